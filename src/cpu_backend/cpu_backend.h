// The processor as a backend: graphs computed by the host's threads in host memory.
//
// Purpose: computes every operation of graph/README.md; matrix products by Eigen.
// Thread safety: one thread at a time for each backend. Its work is done when it is enqueued, so
// synchronize() has nothing to wait for.
//
// Invariants:
//   (1) The bits of a result depend on the bits of the sources, not on the number of threads, nor on
//       where the tensors lie, if they are aligned to 64 bytes alike.
//   (2) set, get and copies refuse addresses outside the memory's buffers. compute() does not ask where addresses
//       are: the scheduler vouches for them (S1).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ashlar/sched/backend.h>

#include "src/cpu_backend/host_buffers.h"
#include "src/cpu_backend/kernels.h"
#include "src/cpu_backend/worker_pool.h"

namespace ashlar::cpu {

class CpuBackend final : public sched::Backend {
 public:
  /// A backend over `buffers`, which several may share. Throws std::bad_alloc.
  CpuBackend(std::string name, std::shared_ptr<HostBuffers> buffers, unsigned threads = 1);

  std::string_view name() const noexcept override { return name_; }
  sched::MemoryId memory() const noexcept override { return buffers_->id(); }
  graph::BufferType buffer_type() const noexcept override {
    return {buffers_->alignment(), buffers_->buffer_max(), nullptr};
  }
  Result<Address> make_buffer(Bytes size) noexcept override { return buffers_->make(size); }
  Result<Address> adopt_buffer(void* pointer, Bytes size) noexcept override {
    return buffers_->adopt(pointer, size);
  }
  Status release_buffer(Address base) noexcept override { return buffers_->release(base); }
  Result<sched::BufferRange> buffer_at(Address at) const noexcept override {
    return buffers_->at(at);
  }
  bool holds(Address begin, Bytes size) const noexcept override {
    return buffers_->holds(begin, size);
  }
  bool is_host_memory() const noexcept override { return true; }

  Status set_async(Address to, std::span<const std::byte> from) noexcept override;
  Status get_async(std::span<std::byte> to, Address from) noexcept override;
  Status copy_async(Address from, const sched::Backend& target, Address to,
                    Bytes size) noexcept override;
  using Backend::synchronize;
  Status synchronize() noexcept override { return Status::ok(); }

  bool supports(const graph::Graph& graph, graph::TensorId node) const noexcept override {
    return has_kernel(graph, node);
  }
  Status compute(const graph::Graph& graph, std::span<const graph::TensorId> nodes,
                 std::span<const Address> addresses) noexcept override;

 private:
  Status compute_node(const graph::Graph& graph, graph::TensorId node,
                      std::span<const Address> addresses);

  const std::string name_;
  const std::shared_ptr<HostBuffers> buffers_;
  WorkerPool workers_;
  std::vector<Scratch> scratch_;  // by part
};

}  // namespace ashlar::cpu
