// CudaGpu: a GPU that backends share: its context, its memory and its kernels.
//
// Purpose: several backends (streams) of one GPU use one memory, which the caching allocator manages.
// Thread safety: any thread.
// Ownership: it owns the device, the allocator, the module and every buffer that is not the caller's. Its
// backends keep it alive.
//
// Buffers are segments and not pages (cache::Backing::kSegments), because a copy from another GPU reaches memory of
// cuMemAlloc without its access having to be granted.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cuda/cuda_device.h>
#include <ashlar/cuda/primary_context.h>
#include <ashlar/sched/backend.h>
#include <ashlar/sched/buffer_map.h>

#include "src/cuda_backend/gpu_functions.h"
#include "src/cuda_backend/kernel_image.h"

namespace ashlar::cuda_backend {

/// Which GPU, and with what.
struct GpuOptions {
  int ordinal = 0;                            ///< the driver's number of the GPU
  const char* driver = cuda::kDriverLibrary;  ///< null: the program itself
  /// nullopt: cuBLAS as it is found; without functions, or if it gives no handle: products by our own kernels
  std::optional<BlasFunctions> blas;
  std::span<const std::byte> image = kernel_image();
};

inline StreamPointer pointer_of(const Stream& stream) noexcept {
  return reinterpret_cast<StreamPointer>(stream.handle.value());
}

class CudaGpu {
 public:
  /// The alignment of buffers: a line of the GPU's memory, which a warp reads at once ("CUDA C++ Best Practices
  /// Guide", coalesced access).
  static constexpr Bytes kAlignment{128};

  /// Opens the GPU. Errors as cuda::CudaDevice::open(); kUnsupported: the build has no kernels, or the GPU
  /// cannot run them; kHostOutOfMemory.
  static Result<std::shared_ptr<CudaGpu>> open(const GpuOptions& options) noexcept;
  ~CudaGpu();
  CudaGpu(const CudaGpu&) = delete;
  CudaGpu& operator=(const CudaGpu&) = delete;

  sched::MemoryId memory() const noexcept { return memory_; }
  const WorkFunctions& work() const noexcept { return work_; }
  const BlasFunctions& blas() const noexcept { return blas_; }
  cuda::PrimaryContext& context() noexcept { return context_; }
  cuda::CudaDevice& device() noexcept { return *device_; }
  cache::CachingAllocator& allocator() noexcept { return *allocator_; }
  Kernel kernel(bool is_by_warp) const noexcept { return is_by_warp ? by_warp_ : by_thread_; }

  /// A new stream, which has no order with the default stream. Errors of the driver.
  Result<Stream> make_stream() noexcept;
  /// Waits for the stream's work, and ends it and the allocator's records of it.
  void end_stream(const Stream& stream) noexcept;
  /// Waits for the stream's work. Errors of the driver, sticky ones of earlier work too.
  Status synchronize(const Stream& stream) noexcept;

  /// As Backend's functions of these names. A buffer that is adopted is memory that the GPU reaches.
  Result<Address> make_buffer(Bytes size) noexcept;
  Result<Address> adopt_buffer(void* pointer, Bytes size) noexcept;
  Status release_buffer(Address base) noexcept;
  Result<sched::BufferRange> buffer_at(Address at) const noexcept { return buffers_.at(at); }
  bool holds(Address begin, Bytes size) const noexcept { return buffers_.holds(begin, size); }

 private:
  CudaGpu() : memory_(sched::new_memory_id()) {}
  Status set_up(const GpuOptions& options) noexcept;
  Status load_kernels(std::span<const std::byte> image) noexcept;
  /// The first cuBLAS that works here: one that is newer than the driver may be found, and give no handle.
  void choose_blas(const GpuOptions& options) noexcept;
  /// True, and the GPU has it, if it gives a handle, or would with more memory. Cost: a handle, made and given back.
  bool take_blas(const BlasFunctions& found) noexcept;

  const sched::MemoryId memory_;
  WorkFunctions work_;
  BlasFunctions blas_;
  cuda::PrimaryContext context_;
  Module module_ = nullptr;
  Kernel by_thread_ = nullptr;
  Kernel by_warp_ = nullptr;
  std::unique_ptr<cuda::CudaDevice> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream owner_;  ///< the stream that buffers are allocated on; no work is ever enqueued on it
  sched::BufferMap buffers_;
};

}  // namespace ashlar::cuda_backend
