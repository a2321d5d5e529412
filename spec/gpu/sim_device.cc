#include "spec/gpu/sim_device.h"

#include <utility>

#include "spec/gpu/gated_call.h"

namespace ashlar::spec {
device::DeviceTraits SimDevice::traits() const noexcept {
  device::DeviceTraits traits;
  traits.id = DeviceId{static_cast<std::int32_t>(index_)};
  traits.page_granularity = machine_->state().options.page_granularity;
  traits.has_virtual_memory = machine_->state().options.virtual_memory;
  traits.has_stream_memory = machine_->state().options.stream_memory;
  return traits;
}

Result<Address> SimDevice::segment_alloc(Bytes size) noexcept {
  return gated_call<Result<Address>>(*machine_, index_, device::CallKind::kSegmentAlloc, size, [&] {
    return machine_->memory().segment_alloc(index_, size, HeldKind::kSegment);
  });
}

Status SimDevice::segment_free(Address base) noexcept {
  const StreamPool::Block block = pool_->take(base);
  const Status freed = gated_call<Status>(
      *machine_, index_, device::CallKind::kSegmentFree, Bytes{0},
      [&] { return machine_->memory().segment_free(index_, base, HeldKind::kSegment); });
  if (!freed.is_ok() && block.device != nullptr) pool_->put_back(block);
  return freed;
}

Result<Address> SimDevice::address_reserve(Bytes size, Bytes alignment) noexcept {
  return gated_call<Result<Address>>(
      *machine_, index_, device::CallKind::kAddressReserve, size,
      [&] { return machine_->memory().address_reserve(index_, size, alignment); });
}

Status SimDevice::address_release(Address base, Bytes size) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kAddressRelease, size,
                            [&] { return machine_->memory().address_release(index_, base, size); });
}

Result<PageHandle> SimDevice::page_create(Bytes size) noexcept {
  return gated_call<Result<PageHandle>>(
      *machine_, index_, device::CallKind::kPageCreate, size,
      [&] { return machine_->memory().page_create(index_, size); });
}

Status SimDevice::page_release(PageHandle page) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kPageRelease, Bytes{0},
                            [&] { return machine_->memory().page_release(index_, page); });
}

Status SimDevice::page_map(Address at, Bytes size, PageHandle page) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kPageMap, size,
                            [&] { return machine_->memory().page_map(index_, at, size, page); });
}

Status SimDevice::page_access(Address at, Bytes size) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kPageAccess, size,
                            [&] { return machine_->memory().page_access(index_, at, size); });
}

Status SimDevice::page_unmap(Address at, Bytes size) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kPageUnmap, size,
                            [&] { return machine_->memory().page_unmap(index_, at, size); });
}

Result<EventHandle> SimDevice::event_create() noexcept {
  return gated_call<Result<EventHandle>>(*machine_, index_, device::CallKind::kEventCreate,
                                         Bytes{0},
                                         [&] { return machine_->events().create(index_); });
}

Status SimDevice::event_destroy(EventHandle event) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kEventDestroy, Bytes{0},
                            [&] { return machine_->events().destroy(index_, event); });
}

Status SimDevice::event_record(EventHandle event, StreamHandle stream) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kEventRecord, Bytes{0},
                            [&] { return machine_->events().record(index_, event, stream); });
}

Status SimDevice::event_query(EventHandle event) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kEventQuery, Bytes{0},
                            [&] { return machine_->events().query(event); });
}

Status SimDevice::event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kEventSynchronize, Bytes{0},
                            [&] { return machine_->events().synchronize(event, timeout_ms); });
}

Status SimDevice::stream_wait(StreamHandle stream, EventHandle event) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kStreamWait, Bytes{0},
                            [&] { return machine_->events().wait(index_, stream, event); });
}

Result<Stream> SimDevice::identify(StreamHandle handle) noexcept {
  return gated_call<Result<Stream>>(*machine_, index_, device::CallKind::kIdentify, Bytes{0},
                                    [&] { return machine_->streams().identify(index_, handle); });
}

Result<device::CaptureStatus> SimDevice::capture_status(StreamHandle stream) noexcept {
  return gated_call<Result<device::CaptureStatus>>(
      *machine_, index_, device::CallKind::kCaptureStatus, Bytes{0},
      [&] { return machine_->captures().status(index_, stream); });
}

Result<device::CaptureMark> SimDevice::capture_mark(StreamHandle stream) noexcept {
  return gated_call<Result<device::CaptureMark>>(
      *machine_, index_, device::CallKind::kCaptureMark, Bytes{0},
      [&] { return machine_->captures().mark(index_, stream); });
}

Status SimDevice::capture_covers(StreamHandle stream, device::CaptureMark mark) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kCaptureCovers, Bytes{0},
                            [&] { return machine_->captures().covers(index_, stream, mark); });
}

Result<device::CaptureMode> SimDevice::exchange_capture_mode(device::CaptureMode mode) noexcept {
  return gated_call<Result<device::CaptureMode>>(
      *machine_, index_, device::CallKind::kExchangeCaptureMode, Bytes{0}, [&] {
        return Result<device::CaptureMode>(
            std::exchange(machine_->state().threads.capture_mode(), mode));
      });
}

Result<device::MemoryInfo> SimDevice::memory_info() noexcept {
  return gated_call<Result<device::MemoryInfo>>(
      *machine_, index_, device::CallKind::kMemoryInfo, Bytes{0},
      [&] { return Result<device::MemoryInfo>(machine_->state().memory.info(index_)); });
}

Result<Address> SimDevice::pinned_alloc(Bytes size) noexcept {
  return gated_call<Result<Address>>(*machine_, index_, device::CallKind::kPinnedAlloc, size, [&] {
    return machine_->memory().segment_alloc(index_, size, HeldKind::kPinned);
  });
}

Status SimDevice::pinned_free(Address base) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kPinnedFree, Bytes{0}, [&] {
    return machine_->memory().segment_free(index_, base, HeldKind::kPinned);
  });
}

Status SimDevice::host_register(Address base, Bytes size) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kHostRegister, size,
                            [&] { return machine_->memory().host_register(index_, base, size); });
}

Status SimDevice::host_unregister(Address base) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kHostUnregister, Bytes{0}, [&] {
    return machine_->memory().segment_free(index_, base, HeldKind::kRegistered);
  });
}

Status SimDevice::enter_pool(device::CallKind kind, Bytes size) noexcept {
  return gated_call<Status>(*machine_, index_, kind, size, [&] {
    ASHLAR_REQUIRE(machine_->state().options.stream_memory, Code::kUnsupported,
                   "no stream-ordered memory on this device");
    return Status::ok();
  });
}

Result<Stream> SimDevice::enter_pool(device::CallKind kind, Bytes size,
                                     StreamHandle stream) noexcept {
  const Status entered = enter_pool(kind, size);
  return entered.is_ok() ? stream_outside_captures(*this, stream) : Result<Stream>(entered);
}

Result<Address> SimDevice::stream_alloc(Bytes size, StreamHandle stream) noexcept {
  const Result<Stream> on = enter_pool(device::CallKind::kStreamAlloc, size, stream);
  return on.is_ok() ? pool_->allocate(*this, size, on.value()) : Result<Address>(on.status());
}

Status SimDevice::stream_free(Address base, StreamHandle stream) noexcept {
  const Result<Stream> on = enter_pool(device::CallKind::kStreamFree, Bytes{0}, stream);
  return on.is_ok() ? pool_->free_behind(*this, base, on.value()) : on.status();
}

Status SimDevice::stream_trim(Bytes keep) noexcept {
  const Status entered = enter_pool(device::CallKind::kStreamTrim, keep);
  if (entered.is_ok()) pool_->trim(keep);
  return entered;
}

Status SimDevice::synchronize() noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kSynchronize, Bytes{0},
                            [&] { return machine_->synchronize(index_); });
}

Status SimDevice::synchronize_for(std::uint32_t timeout_ms) noexcept {
  return gated_call<Status>(*machine_, index_, device::CallKind::kSynchronize, Bytes{0},
                            [&] { return machine_->synchronize_for(index_, timeout_ms); });
}

std::uint64_t SimDevice::now_ns() const noexcept {
  // A host function runs under the lock.
  if (machine_->state().scheduler.host_functions().is_running_here())
    return machine_->state().time.now_ns();
  const std::lock_guard<std::mutex> lock(machine_->mutex());
  return machine_->state().time.now_ns();
}

}  // namespace ashlar::spec
