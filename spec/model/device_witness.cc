// Forwarding and book-keeping: see device_witness.h.
#include "spec/model/device_witness.h"

#include <algorithm>

namespace ashlar::spec {

template <class R>
R DeviceWitness::note(device::CallKind kind, R result) noexcept {
  ++calls_[static_cast<unsigned>(kind)];
  ++calls_in_all_;
  const Code code = result.code();
  if (code != Code::kOk && code != Code::kNotReady) {
    ++failures_[static_cast<unsigned>(kind)];
    ++failures_in_all_;
  }
  if (code == Code::kDeviceLost || code == Code::kTornDown) sticky_ = code;
  return result;
}

namespace {
bool by_base(const DeviceWitness::Held& a, std::uint64_t base) { return a.base < base; }
}  // namespace

Result<Address> DeviceWitness::segment_alloc(Bytes size) noexcept {
  segment_asked_ = size.count();
  const Result<Address> got = note(device::CallKind::kSegmentAlloc, device_.segment_alloc(size));
  if (!got.is_ok()) return got;
  const std::uint64_t base = got.value().value();
  if (segments_.capacity() == 0) segments_.reserve(16);
  segments_.insert(std::lower_bound(segments_.begin(), segments_.end(), base, by_base),
                   Held{base, size.count(), granted_++});
  segment_bytes_ += size.count();
  ++segment_changes_;
  return got;
}

Status DeviceWitness::segment_free(Address base) noexcept {
  const Status freed = note(device::CallKind::kSegmentFree, device_.segment_free(base));
  const auto at = std::lower_bound(segments_.begin(), segments_.end(), base.value(), by_base);
  if (!freed.is_ok() || at == segments_.end() || at->base != base.value()) return freed;
  segment_bytes_ -= at->size;
  segments_.erase(at);
  ++segment_changes_;
  return freed;
}

Result<EventHandle> DeviceWitness::event_create() noexcept {
  const Result<EventHandle> got = note(device::CallKind::kEventCreate, device_.event_create());
  events_ += got.is_ok() ? 1 : 0;
  return got;
}

Status DeviceWitness::event_destroy(EventHandle event) noexcept {
  const Status done = note(device::CallKind::kEventDestroy, device_.event_destroy(event));
  events_ -= done.is_ok() ? 1 : 0;
  return done;
}

Result<device::MemoryInfo> DeviceWitness::memory_info() noexcept {
  const Result<device::MemoryInfo> got = note(device::CallKind::kMemoryInfo, device_.memory_info());
  if (got.is_ok()) total_ = got.value().total.count();
  return got;
}

Result<Address> DeviceWitness::address_reserve(Bytes size, Bytes alignment) noexcept {
  return note(device::CallKind::kAddressReserve, device_.address_reserve(size, alignment));
}
Status DeviceWitness::address_release(Address base, Bytes size) noexcept {
  return note(device::CallKind::kAddressRelease, device_.address_release(base, size));
}
Result<PageHandle> DeviceWitness::page_create(Bytes size) noexcept {
  return note(device::CallKind::kPageCreate, device_.page_create(size));
}
Status DeviceWitness::page_release(PageHandle page) noexcept {
  return note(device::CallKind::kPageRelease, device_.page_release(page));
}
Status DeviceWitness::page_map(Address at, Bytes size, PageHandle page) noexcept {
  return note(device::CallKind::kPageMap, device_.page_map(at, size, page));
}
Status DeviceWitness::page_access(Address at, Bytes size) noexcept {
  return note(device::CallKind::kPageAccess, device_.page_access(at, size));
}
Status DeviceWitness::page_unmap(Address at, Bytes size) noexcept {
  return note(device::CallKind::kPageUnmap, device_.page_unmap(at, size));
}
Status DeviceWitness::event_record(EventHandle event, StreamHandle stream) noexcept {
  return note(device::CallKind::kEventRecord, device_.event_record(event, stream));
}
Status DeviceWitness::event_query(EventHandle event) noexcept {
  return note(device::CallKind::kEventQuery, device_.event_query(event));
}
Status DeviceWitness::event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept {
  const Status done =
      note(device::CallKind::kEventSynchronize, device_.event_synchronize(event, timeout_ms));
  timeouts_ += done.code() == Code::kNotReady ? 1 : 0;
  return done;
}
Status DeviceWitness::stream_wait(StreamHandle stream, EventHandle event) noexcept {
  return note(device::CallKind::kStreamWait, device_.stream_wait(stream, event));
}
Result<Stream> DeviceWitness::identify(StreamHandle handle) noexcept {
  return note(device::CallKind::kIdentify, device_.identify(handle));
}
Result<device::CaptureStatus> DeviceWitness::capture_status(StreamHandle stream) noexcept {
  return note(device::CallKind::kCaptureStatus, device_.capture_status(stream));
}
Result<device::CaptureMode> DeviceWitness::exchange_capture_mode(
    device::CaptureMode mode) noexcept {
  return note(device::CallKind::kExchangeCaptureMode, device_.exchange_capture_mode(mode));
}
Result<Address> DeviceWitness::pinned_alloc(Bytes size) noexcept {
  return note(device::CallKind::kPinnedAlloc, device_.pinned_alloc(size));
}
Status DeviceWitness::pinned_free(Address base) noexcept {
  return note(device::CallKind::kPinnedFree, device_.pinned_free(base));
}
Status DeviceWitness::synchronize() noexcept {
  return note(device::CallKind::kSynchronize, device_.synchronize());
}

}  // namespace ashlar::spec
