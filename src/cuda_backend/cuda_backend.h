// A GPU as a backend: graphs computed by its kernels, in order on one stream.
//
// Purpose: every operation of graph/README.md that the processor has; matrix products by cuBLAS where it is found.
// Thread safety: one thread at a time for each backend. Several backends of one GPU are several streams over one memory.
//
// Invariants:
//   (1) Everything that is enqueued here runs on stream_, in that order.
//   (2) Memory that a product needs for its own while (an unpacked source) is allocated on stream_ and freed right after
//       the product is enqueued: the allocator hands it out again to later work of the stream only (C6).
//   (3) Copies refuse addresses outside the memory's buffers.
#pragma once

#include <memory>
#include <string>

#include <ashlar/sched/backend.h>

#include "src/cuda_backend/blas_product.h"
#include "src/cuda_backend/cuda_gpu.h"

namespace ashlar::cuda_backend {

class CudaBackend final : public sched::Backend {
 public:
  /// A backend of that GPU with a stream of its own. Errors of the driver and of cuBLAS; kHostOutOfMemory.
  static Result<std::unique_ptr<CudaBackend>> create(std::shared_ptr<CudaGpu> gpu,
                                                     std::string name) noexcept;
  /// Waits for what is enqueued.
  ~CudaBackend() override;

  std::string_view name() const noexcept override { return name_; }
  sched::MemoryId memory() const noexcept override { return gpu_->memory(); }
  graph::BufferType buffer_type() const noexcept override {
    return {CudaGpu::kAlignment, Bytes::max(), nullptr};
  }
  Result<Address> make_buffer(Bytes size) noexcept override { return gpu_->make_buffer(size); }
  Result<Address> adopt_buffer(void* pointer, Bytes size) noexcept override {
    return gpu_->adopt_buffer(pointer, size);
  }
  Status release_buffer(Address base) noexcept override { return gpu_->release_buffer(base); }
  Result<sched::BufferRange> buffer_at(Address at) const noexcept override {
    return gpu_->buffer_at(at);
  }
  bool holds(Address begin, Bytes size) const noexcept override { return gpu_->holds(begin, size); }

  Status set_async(Address to, std::span<const std::byte> from) noexcept override;
  Status get_async(std::span<std::byte> to, Address from) noexcept override;
  /// To another backend of a GPU, or to one whose memory is the host's.
  Status copy_async(Address from, const sched::Backend& target, Address to,
                    Bytes size) noexcept override;
  Status synchronize() noexcept override;

  Result<std::unique_ptr<sched::BackendEvent>> make_event() noexcept override;
  Status record(sched::BackendEvent& event) noexcept override;
  /// For events of any CudaBackend, of another GPU too.
  Status wait(const sched::BackendEvent& event) noexcept override;
  Status synchronize(const sched::BackendEvent& event) noexcept override;

  bool supports(const graph::Graph& graph, graph::TensorId node) const noexcept override;
  /// Products of many rows: what copying their weight costs is then little beside the product (SCH-5; ggml's
  /// CUDA backend asks for 32 rows too).
  bool prefers(const graph::Graph& graph, graph::TensorId node) const noexcept override;
  Status compute(const graph::Graph& graph, std::span<const graph::TensorId> nodes,
                 std::span<const Address> addresses) noexcept override;

  /// Whether products are cuBLAS's.
  bool has_blas() const noexcept { return blas_.is_there(); }

 private:
  CudaBackend(std::shared_ptr<CudaGpu> gpu, std::string name) noexcept
      : gpu_(std::move(gpu)), name_(std::move(name)) {}
  Status set_up() noexcept;
  Status enqueue_copy(Address to, Address from, Bytes size) noexcept;
  Status enqueue_node(const DeviceCall& call) noexcept;
  Status launch(const DeviceCall& call) noexcept;
  /// The product by cuBLAS, if that is possible: of packed weights and halves, unpacked, where there are rows
  /// enough. `is_done` says whether it was.
  Status try_blas(const DeviceCall& call, bool* is_done) noexcept;

  const std::shared_ptr<CudaGpu> gpu_;
  const std::string name_;
  Stream stream_;
  int* fault_ = nullptr;  ///< page-locked; a kernel sets it to 1 if an index is out of range
  BlasProduct blas_;
};

}  // namespace ashlar::cuda_backend
