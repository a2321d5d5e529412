// BlasProduct: products of matrices of floats by cuBLAS, on one stream.
//
// Purpose: MUL_MAT where the operands are laid out as cuBLAS takes them; the others are our own kernel's.
// Thread safety: one thread at a time.
// Ownership: its workspace is memory of the GPU's allocator, so cuBLAS allocates none of its own.
#pragma once

#include <ashlar/base/status.h>

#include "src/cuda_backend/cuda_gpu.h"
#include "src/cuda_backend/device_call.h"

namespace ashlar::cuda_backend {

class BlasProduct {
 public:
  /// Without effect where the GPU has no cuBLAS; is_there() tells. The GPU and the stream outlive this.
  /// kOutOfMemory, kDriverError: cuBLAS cannot be used on this GPU.
  Status open(CudaGpu& gpu, const Stream& stream) noexcept;
  /// Ends the handle and its workspace. REQUIRES: no product is enqueued. The stream is still there.
  void close() noexcept;
  BlasProduct() = default;
  ~BlasProduct() { close(); }
  BlasProduct(const BlasProduct&) = delete;
  BlasProduct& operator=(const BlasProduct&) = delete;

  bool is_there() const noexcept { return handle_ != nullptr; }
  /// Whether cuBLAS can compute the node: a MUL_MAT of floats, whose rows are contiguous, and whose numbers
  /// fit its interface.
  static bool takes(const DeviceCall& call) noexcept;
  /// Enqueues the product. REQUIRES: is_there(), takes(call). kOutOfMemory, kDriverError; the sticky errors.
  Status enqueue(const DeviceCall& call) noexcept;

 private:
  CudaGpu* gpu_ = nullptr;
  BlasHandle handle_ = nullptr;
  Address workspace_;
};

}  // namespace ashlar::cuda_backend
