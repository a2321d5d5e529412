#include "src/cuda_backend/cuda_backend.h"

#include <atomic>
#include <new>
#include <utility>

#include <ashlar/base/exceptions.h>

#include "src/cuda_backend/device_fill.h"
#include "src/cuda_backend/kernel_launch.h"

namespace ashlar::cuda_backend {
namespace {

using graph::TensorId;

const Status kElsewhere{Code::kWrongDevice, "the bytes are in no buffer of this backend's memory"};

/// Products of fewer rows read their weight once or twice: unpacking it first would cost more than it saves.
constexpr std::uint64_t kUnpackRowsMin = 32;
/// The rows from which a product is worth the copy of its weight.
constexpr std::uint64_t kPreferredRowsMin = 32;

class CudaEvent final : public sched::BackendEvent {
 public:
  CudaEvent(const sched::Backend& owner, std::shared_ptr<CudaGpu> gpu, EventHandle handle) noexcept
      : BackendEvent(owner), gpu_(std::move(gpu)), handle_(handle) {}
  ~CudaEvent() override { static_cast<void>(gpu_->device().event_destroy(handle_)); }
  EventHandle handle() const noexcept { return handle_; }

 private:
  const std::shared_ptr<CudaGpu> gpu_;
  const EventHandle handle_;
};

}  // namespace

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(std::shared_ptr<CudaGpu> gpu,
                                                         std::string name) noexcept {
  std::unique_ptr<CudaBackend> made(new (std::nothrow)
                                        CudaBackend(std::move(gpu), std::move(name)));
  if (made == nullptr) return {Code::kHostOutOfMemory, "no host memory for a backend"};
  if (const Status status = made->set_up(); !status.is_ok()) return status;
  return made;
}

Status CudaBackend::set_up() noexcept {
  const Result<Stream> stream = gpu_->make_stream();
  if (!stream.is_ok()) return stream.status();
  stream_ = stream.value();
  const Result<Address> fault = gpu_->device().pinned_alloc(Bytes{sizeof(int)});
  if (!fault.is_ok()) return fault.status();
  fault_ = static_cast<int*>(fault.value().pointer());
  *fault_ = 0;
  return blas_.open(*gpu_, stream_);
}

CudaBackend::~CudaBackend() {
  if (stream_.id.value() == 0) return;
  static_cast<void>(gpu_->synchronize(stream_));
  blas_.close();
  if (fault_ != nullptr) static_cast<void>(gpu_->device().pinned_free(Address::of(fault_)));
  gpu_->end_stream(stream_);
}

Status CudaBackend::enqueue_copy(Address to, Address from, Bytes size) noexcept {
  if (size == Bytes{}) return Status::ok();
  return gpu_->context().call([&] {
    return gpu_->work().memcpy_async(to.value(), from.value(), size.count(), pointer_of(stream_));
  });
}

Status CudaBackend::set_async(Address to, std::span<const std::byte> from) noexcept {
  if (!holds(to, Bytes{from.size()})) return kElsewhere;
  return enqueue_copy(to, Address::of(const_cast<std::byte*>(from.data())), Bytes{from.size()});
}

Status CudaBackend::get_async(std::span<std::byte> to, Address from) noexcept {
  if (!holds(from, Bytes{to.size()})) return kElsewhere;
  return enqueue_copy(Address::of(to.data()), from, Bytes{to.size()});
}

Status CudaBackend::copy_async(Address from, const sched::Backend& target, Address to,
                               Bytes size) noexcept {
  if (!target.is_host_memory() && dynamic_cast<const CudaBackend*>(&target) == nullptr)
    return Backend::copy_async(from, target, to, size);
  if (!holds(from, size) || !target.holds(to, size)) return kElsewhere;
  return enqueue_copy(to, from, size);
}

Status CudaBackend::synchronize() noexcept {
  if (const Status status = gpu_->synchronize(stream_); !status.is_ok()) return status;
  // The stream is idle, so no kernel writes the word.
  if (std::atomic_ref<int>(*fault_).exchange(0, std::memory_order_relaxed) == 0)
    return Status::ok();
  return {Code::kInvalidArgument, "an index in a tensor is out of range"};
}

Result<std::unique_ptr<sched::BackendEvent>> CudaBackend::make_event() noexcept {
  const Result<EventHandle> handle = gpu_->device().event_create();
  if (!handle.is_ok()) return handle.status();
  std::unique_ptr<sched::BackendEvent> event;
  if (with_host_memory([&] { event = std::make_unique<CudaEvent>(*this, gpu_, handle.value()); }))
    return event;
  static_cast<void>(gpu_->device().event_destroy(handle.value()));
  return {Code::kHostOutOfMemory, "no host memory for an event"};
}

Status CudaBackend::record(sched::BackendEvent& event) noexcept {
  if (&event.owner() != this) return Backend::record(event);
  return gpu_->device().event_record(static_cast<const CudaEvent&>(event).handle(), stream_.handle);
}

Status CudaBackend::wait(const sched::BackendEvent& event) noexcept {
  const auto* const other = dynamic_cast<const CudaEvent*>(&event);
  if (other == nullptr) return Backend::wait(event);
  return gpu_->device().stream_wait(stream_.handle, other->handle());
}

Status CudaBackend::synchronize(const sched::BackendEvent& event) noexcept {
  if (&event.owner() != this) return Backend::synchronize(event);
  return gpu_->device().event_synchronize(static_cast<const CudaEvent&>(event).handle(),
                                          device::kWaitForever);
}

bool CudaBackend::supports(const graph::Graph& graph, TensorId node) const noexcept {
  return has_device_kernel(graph, node);
}

bool CudaBackend::prefers(const graph::Graph& graph, TensorId node) const noexcept {
  const graph::Tensor& tensor = graph[node];
  switch (tensor.operation) {
    case graph::Operation::kMulMat: return tensor.shape[1] >= kPreferredRowsMin;
    case graph::Operation::kMulMatId: return tensor.shape[2] >= kPreferredRowsMin;
    default: return false;
  }
}

Status CudaBackend::compute(const graph::Graph& graph, std::span<const TensorId> nodes,
                            std::span<const Address> addresses) noexcept {
  for (const TensorId node : nodes) {
    if (!supports(graph, node)) return {Code::kUnsupported, "the GPU has no kernel for a node"};
  }
  for (const TensorId node : nodes) {
    if (is_view_only(graph, node)) continue;
    if (!sched::has_addresses(graph, node, addresses))
      return {Code::kInvalidArgument, "a tensor that is not empty has a null address"};
    const Status status = enqueue_node(device_call(graph, node, addresses, fault_));
    if (!status.is_ok()) return status;
  }
  return Status::ok();
}

Status CudaBackend::enqueue_node(const DeviceCall& call) noexcept {
  if (blas_.is_there()) {
    bool is_done = false;
    if (const Status status = try_blas(call, &is_done); is_done || !status.is_ok()) return status;
  }
  return launch(call);
}

Status CudaBackend::try_blas(const DeviceCall& call, bool* is_done) noexcept {
  *is_done = BlasProduct::takes(call);
  if (*is_done) return blas_.enqueue(call);
  const DeviceOperand& packed = call.in[0];
  const DeviceOperand floats = contiguous_floats(packed);
  DeviceCall product = call;
  product.in[0] = floats;
  if (packed.type == kDeviceF32 || call.out.shape[1] < kUnpackRowsMin ||
      !BlasProduct::takes(product))
    return Status::ok();
  const Result<Address> room =
      gpu_->allocator().allocate(Bytes{floats.elements() * sizeof(float)}, stream_);
  if (!room.is_ok()) return Status::ok();  // our own kernel needs no room
  product.in[0].base = static_cast<unsigned char*>(room.value().pointer());
  *is_done = true;
  Status status = launch(unpacking_call(product.in[0], packed));
  if (status.is_ok()) status = blas_.enqueue(product);
  const Status freed = gpu_->allocator().free(room.value());
  return status.is_ok() ? freed : status;
}

Status CudaBackend::launch(const DeviceCall& call) noexcept {
  KernelLaunch launch = launch_of(call);
  if (launch.units == 0) return Status::ok();
  void* parameters[] = {&launch.call, &launch.units};
  return gpu_->context().call([&] {
    return gpu_->work().launch_kernel(gpu_->kernel(launch.is_by_warp), launch.blocks, 1, 1,
                                      kThreadsPerBlock, 1, 1, 0, pointer_of(stream_), parameters,
                                      nullptr);
  });
}

}  // namespace ashlar::cuda_backend
