#include <ashlar/cuda/cuda_device.h>

#include <algorithm>
#include <new>

#include <ashlar/cuda/captured_order.h>
#include <ashlar/cuda/cuda_sharing.h>
#include <ashlar/cuda/driver_pages.h>
#include <ashlar/cuda/driver_pool.h>
#include <ashlar/cuda/primary_context.h>

namespace ashlar::inline v0::cuda {
namespace {

constexpr Status kNoPages{Code::kUnsupported, "the GPU or its driver has no virtual memory"};
constexpr Status kNoStreamMemory{Code::kUnsupported, "the GPU or its driver has no memory pools"};
/// Between two questions about an event: a tenth of what the shortest wait has (1 ms).
constexpr std::uint64_t kPauseMaxNs = 100'000;
constexpr std::uint64_t kPauseFirstNs = 1'000;
constexpr std::uint64_t kNsPerMs = 1'000'000;

HostClock* machine_clock() noexcept {
  static HostClock clock;
  return &clock;
}

EventPointer pointer_of(EventHandle event) noexcept {
  return reinterpret_cast<EventPointer>(event.value());
}

}  // namespace

CudaDevice::CudaDevice(DeviceId id, std::unique_ptr<PrimaryContext> gpu, HostClock* clock) noexcept
    : gpu_(std::move(gpu)), clock_(clock != nullptr ? clock : machine_clock()) {
  traits_.id = id;
}

CudaDevice::~CudaDevice() = default;

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(int ordinal, DeviceId id, const char* library,
                                                     HostClock* clock) noexcept {
  constexpr Status kNoMemory{Code::kHostOutOfMemory, "no memory for a device"};
  std::unique_ptr<PrimaryContext> gpu(new (std::nothrow) PrimaryContext);
  if (gpu == nullptr) return kNoMemory;
  if (const Status opened = gpu->open(ordinal, library); !opened.is_ok()) return opened;
  std::unique_ptr<CudaDevice> made(new (std::nothrow) CudaDevice(id, std::move(gpu), clock));
  if (made == nullptr) return kNoMemory;
  if (const Status read = made->read_traits(); !read.is_ok()) return read;
  made->sharing_.reset(new (std::nothrow) CudaSharing(*made->gpu_, made->has_direct_rdma_));
  made->pool_.reset(new (std::nothrow) DriverPool(*made->gpu_));
  if (made->sharing_ == nullptr || made->pool_ == nullptr) return kNoMemory;
  return made;
}

Status CudaDevice::read_traits() noexcept {
  traits_.has_stream_memory =
      gpu_->driver().has_stream_memory() && gpu_->attribute(kAttributeMemoryPools) != 0;
  traits_.has_virtual_memory =
      gpu_->driver().has_virtual_memory() && gpu_->attribute(kAttributeVirtualMemory) != 0;
  if (!traits_.has_virtual_memory) return Status::ok();
  has_direct_rdma_ = gpu_->attribute(kAttributeDirectRdma) != 0;
  std::size_t granularity = 0;
  const MemoryProperties properties = page_properties(*gpu_, has_direct_rdma_);
  const Status asked = gpu_->call([&] {
    return gpu_->driver().pages.get_granularity(&granularity, &properties, kGranularityMinimum);
  });
  traits_.page_granularity = Bytes{granularity};
  return asked;
}

Result<Address> CudaDevice::segment_alloc(Bytes size) noexcept {
  DevicePointer base = 0;
  const Status made = gpu_->call([&] { return gpu_->driver().memory.alloc(&base, size.count()); });
  if (!made.is_ok()) return made;
  return Address{base};
}

Status CudaDevice::segment_free(Address base) noexcept {
  return gpu_->call([&] { return gpu_->driver().memory.free(base.value()); });
}

Result<Address> CudaDevice::address_reserve(Bytes size, Bytes alignment) noexcept {
  if (!traits_.has_virtual_memory) return kNoPages;
  DevicePointer base = 0;
  const Status made = gpu_->call([&] {
    return gpu_->driver().pages.address_reserve(&base, size.count(), alignment.count(), 0, 0);
  });
  if (made.code() == Code::kOutOfMemory)
    return Status{Code::kOutOfAddresses, "the driver has no range of addresses of that size"};
  if (!made.is_ok()) return made;
  return Address{base};
}

Status CudaDevice::address_release(Address base, Bytes size) noexcept {
  if (!traits_.has_virtual_memory) return kNoPages;
  return gpu_->call([&] { return gpu_->driver().pages.address_free(base.value(), size.count()); });
}

Result<PageHandle> CudaDevice::page_create(Bytes size) noexcept {
  if (!traits_.has_virtual_memory) return kNoPages;
  return create_page(*gpu_, size, page_properties(*gpu_, has_direct_rdma_));
}

Status CudaDevice::page_release(PageHandle page) noexcept {
  if (!traits_.has_virtual_memory) return kNoPages;
  return gpu_->call([&] { return gpu_->driver().pages.release(page.value()); });
}

Status CudaDevice::page_map(Address at, Bytes size, PageHandle page) noexcept {
  if (!traits_.has_virtual_memory) return kNoPages;
  return gpu_->call(
      [&] { return gpu_->driver().pages.map(at.value(), size.count(), 0, page.value(), 0); });
}

Status CudaDevice::page_access(Address at, Bytes size) noexcept {
  if (!traits_.has_virtual_memory) return kNoPages;
  MemoryAccess access;
  access.location.id = gpu_->device();
  return gpu_->call(
      [&] { return gpu_->driver().pages.set_access(at.value(), size.count(), &access, 1); });
}

Status CudaDevice::page_unmap(Address at, Bytes size) noexcept {
  if (!traits_.has_virtual_memory) return kNoPages;
  return gpu_->call([&] { return gpu_->driver().pages.unmap(at.value(), size.count()); });
}

Result<EventHandle> CudaDevice::event_create() noexcept {
  EventPointer event = nullptr;
  const Status made =
      gpu_->call([&] { return gpu_->driver().streams.event_create(&event, kEventDisableTiming); });
  if (!made.is_ok()) return made;
  return EventHandle{reinterpret_cast<std::uintptr_t>(event)};
}

Status CudaDevice::event_destroy(EventHandle event) noexcept {
  return gpu_->call([&] { return gpu_->driver().streams.event_destroy(pointer_of(event)); });
}

Status CudaDevice::event_record(EventHandle event, StreamHandle stream) noexcept {
  return gpu_->call(
      [&] { return gpu_->driver().streams.event_record(pointer_of(event), pointer_of(stream)); });
}

Status CudaDevice::event_query(EventHandle event) noexcept {
  return gpu_->call([&] { return gpu_->driver().streams.event_query(pointer_of(event)); });
}

Status CudaDevice::event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept {
  if (timeout_ms == device::kWaitForever)
    return gpu_->call([&] { return gpu_->driver().streams.event_synchronize(pointer_of(event)); });
  const std::uint64_t end_ns = clock_->now_ns() + timeout_ms * kNsPerMs;
  for (std::uint64_t pause_ns = kPauseFirstNs;; pause_ns = std::min(2 * pause_ns, kPauseMaxNs)) {
    const Status asked = event_query(event);
    const std::uint64_t now_ns = clock_->now_ns();
    if (asked.code() != Code::kNotReady || now_ns >= end_ns) return asked;
    clock_->sleep_ns(std::min(pause_ns, end_ns - now_ns));
  }
}

Status CudaDevice::stream_wait(StreamHandle stream, EventHandle event) noexcept {
  return gpu_->call(
      [&] { return gpu_->driver().streams.wait_event(pointer_of(stream), pointer_of(event), 0); });
}

Result<Stream> CudaDevice::identify(StreamHandle handle) noexcept {
  unsigned long long id = 0;
  const Status asked =
      gpu_->call([&] { return gpu_->driver().streams.get_id(pointer_of(handle), &id); });
  if (!asked.is_ok()) return asked;
  return Stream{handle, StreamId{id}, traits_.id, handle.value() == kStreamPerThread};
}

Result<device::CaptureMode> CudaDevice::exchange_capture_mode(device::CaptureMode mode) noexcept {
  int exchanged = static_cast<int>(mode);  // the driver's numbers: global, thread-local, relaxed
  const Status done =
      gpu_->call([&] { return gpu_->driver().streams.exchange_capture_mode(&exchanged); });
  if (!done.is_ok()) return done;
  return static_cast<device::CaptureMode>(exchanged);
}

Result<device::MemoryInfo> CudaDevice::memory_info() noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  const Status asked = gpu_->call([&] { return gpu_->driver().memory.get_info(&free, &total); });
  if (!asked.is_ok()) return asked;
  return device::MemoryInfo{Bytes{free}, Bytes{total}};
}

Result<Address> CudaDevice::pinned_alloc(Bytes size) noexcept {
  void* base = nullptr;
  const Status made = gpu_->call(
      [&] { return gpu_->driver().memory.host_alloc(&base, size.count(), kHostPortable); });
  if (!made.is_ok()) return made;
  return Address::of(base);
}

Status CudaDevice::pinned_free(Address base) noexcept {
  return gpu_->call([&] { return gpu_->driver().memory.free_host(base.pointer()); });
}

Status CudaDevice::host_register(Address base, Bytes size) noexcept {
  return gpu_->call([&] {
    return gpu_->driver().memory.host_register(base.pointer(), size.count(), kHostPortable);
  });
}

Status CudaDevice::host_unregister(Address base) noexcept {
  return gpu_->call([&] { return gpu_->driver().memory.host_unregister(base.pointer()); });
}

Status CudaDevice::synchronize() noexcept {
  return gpu_->call([&] { return gpu_->driver().contexts.synchronize(); });
}

Result<Address> CudaDevice::stream_alloc(Bytes size, StreamHandle stream) noexcept {
  if (!traits_.has_stream_memory) return kNoStreamMemory;
  const Result<MemoryPool> from = pool_->get();
  if (!from.is_ok()) return from.status();
  DevicePointer base = 0;
  const Status made = gpu_->call([&] {
    return gpu_->driver().pools.alloc(&base, size.count(), from.value(), pointer_of(stream));
  });
  if (!made.is_ok()) return made;
  return Address{base};
}

Status CudaDevice::stream_free(Address base, StreamHandle stream) noexcept {
  if (!traits_.has_stream_memory) return kNoStreamMemory;
  return gpu_->call([&] { return gpu_->driver().pools.free(base.value(), pointer_of(stream)); });
}

Status CudaDevice::stream_trim(Bytes keep) noexcept {
  if (!traits_.has_stream_memory) return kNoStreamMemory;
  const Result<MemoryPool> from = pool_->get();
  if (!from.is_ok()) return from.status();
  return gpu_->call([&] { return gpu_->driver().pools.trim_to(from.value(), keep.count()); });
}

Result<device::CaptureStatus> CudaDevice::capture_status(StreamHandle stream) noexcept {
  int status = 0;
  const Status asked =
      gpu_->call([&] { return gpu_->driver().streams.is_capturing(pointer_of(stream), &status); });
  if (!asked.is_ok()) return asked;
  return static_cast<device::CaptureStatus>(status);  // the driver's numbers
}

Result<device::CaptureMark> CudaDevice::capture_mark(StreamHandle stream) noexcept {
  return mark_capture(*gpu_, pointer_of(stream));
}

Status CudaDevice::capture_covers(StreamHandle stream, device::CaptureMark mark) noexcept {
  return covers_mark(*gpu_, pointer_of(stream), mark);
}

}  // namespace ashlar::inline v0::cuda
