// Book-keeping of the calls that pass: see device_witness.h.
#include "spec/model/device_witness.h"

#include <algorithm>
#include <array>

namespace ashlar::spec {

void DeviceWitness::on_answer(device::CallKind kind, Bytes, Code code) noexcept {
  ++calls_[static_cast<unsigned>(kind)];
  ++calls_in_all_;
  if (code != Code::kOk && code != Code::kNotReady) {
    ++failures_[static_cast<unsigned>(kind)];
    ++failures_in_all_;
    using device::CallKind;
    constexpr std::array kOfGrowth{CallKind::kSegmentAlloc, CallKind::kStreamAlloc,
                                   CallKind::kMemoryInfo,   CallKind::kAddressReserve,
                                   CallKind::kPageCreate,   CallKind::kPageMap,
                                   CallKind::kPageAccess,   CallKind::kExchangeCaptureMode};
    const bool is_of_growth =
        std::find(kOfGrowth.begin(), kOfGrowth.end(), kind) != kOfGrowth.end();
    constexpr std::array kOfReturn{CallKind::kSegmentFree, CallKind::kStreamFree,
                                   CallKind::kPageUnmap, CallKind::kPageRelease};
    if (std::find(kOfReturn.begin(), kOfReturn.end(), kind) != kOfReturn.end())
      refusals_.of_return |= std::uint64_t{1} << static_cast<unsigned>(code);
    if (is_of_growth) refusals_.of_growth |= std::uint64_t{1} << static_cast<unsigned>(code);
  }
  waits_.synchronizations += kind == device::CallKind::kSynchronize && code == Code::kOk;
  if (code == Code::kDeviceLost || code == Code::kTornDown) sticky_ = code;
}

void DeviceWitness::on_granted(Address base, Bytes size) noexcept {
  segments_.grant(base, size, false);
  backing_.on_backed(base.value(), size.count());
  backing_.on_usable(base.value(), size.count());
}

void DeviceWitness::on_given_back(Address base) noexcept {
  const std::uint64_t size = segments_.take_back(base);
  backing_.on_gone(base.value(), size);
}

Result<Address> DeviceWitness::segment_alloc(Bytes size) noexcept {
  segment_asked_ = size.count();
  const Result<Address> got = ForwardingDevice::segment_alloc(size);
  if (got.is_ok()) on_granted(got.value(), size);
  return got;
}

Status DeviceWitness::segment_free(Address base) noexcept {
  const Status freed = ForwardingDevice::segment_free(base);
  if (freed.is_ok()) on_given_back(base);
  return freed;
}

Result<Address> DeviceWitness::stream_alloc(Bytes size, StreamHandle stream) noexcept {
  segment_asked_ = size.count();
  const Result<Address> got = ForwardingDevice::stream_alloc(size, stream);
  if (got.is_ok()) on_granted(got.value(), size);
  return got;
}

Status DeviceWitness::stream_free(Address base, StreamHandle stream) noexcept {
  const Status freed = ForwardingDevice::stream_free(base, stream);
  if (freed.is_ok()) on_given_back(base);
  return freed;
}

Result<Address> DeviceWitness::address_reserve(Bytes size, Bytes alignment) noexcept {
  const Result<Address> got = ForwardingDevice::address_reserve(size, alignment);
  if (got.is_ok()) segments_.grant(got.value(), size, true);
  return got;
}

Status DeviceWitness::address_release(Address base, Bytes size) noexcept {
  const Status released = ForwardingDevice::address_release(base, size);
  if (released.is_ok()) segments_.take_back(base);
  return released;
}

Result<PageHandle> DeviceWitness::page_create(Bytes size) noexcept {
  const Result<PageHandle> got = ForwardingDevice::page_create(size);
  if (got.is_ok()) pages_.on_create(got.value(), size.count());
  return got;
}

Status DeviceWitness::page_release(PageHandle page) noexcept {
  const Status released = ForwardingDevice::page_release(page);
  if (released.is_ok()) pages_.on_release(page);
  return released;
}

Status DeviceWitness::page_map(Address at, Bytes size, PageHandle page) noexcept {
  const Status mapped = ForwardingDevice::page_map(at, size, page);
  if (!mapped.is_ok()) return mapped;
  pages_.on_map(at.value(), size.count(), page);
  backing_.on_backed(at.value(), size.count());
  return mapped;
}

Status DeviceWitness::page_access(Address at, Bytes size) noexcept {
  const Status given = ForwardingDevice::page_access(at, size);
  // Of another device's memory nothing is mapped here.
  if (!given.is_ok()) return given;
  pages_.on_access(at.value(), size.count());
  backing_.on_usable(at.value(), size.count());
  return given;
}

Status DeviceWitness::page_unmap(Address at, Bytes size) noexcept {
  const Status unmapped = ForwardingDevice::page_unmap(at, size);
  if (!unmapped.is_ok()) return unmapped;
  pages_.on_unmap(at.value(), size.count());
  backing_.on_gone(at.value(), size.count());
  return unmapped;
}

Result<EventHandle> DeviceWitness::event_create() noexcept {
  const Result<EventHandle> got = ForwardingDevice::event_create();
  events_ += got.is_ok() ? 1 : 0;
  return got;
}

Status DeviceWitness::event_destroy(EventHandle event) noexcept {
  const Status done = ForwardingDevice::event_destroy(event);
  events_ -= done.is_ok() ? 1 : 0;
  return done;
}

Status DeviceWitness::event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept {
  const Status done = ForwardingDevice::event_synchronize(event, timeout_ms);
  waits_.timeouts += done.code() == Code::kNotReady ? 1 : 0;
  return done;
}

Status DeviceWitness::synchronize_for(std::uint32_t timeout_ms) noexcept {
  const Status done = ForwardingDevice::synchronize_for(timeout_ms);
  waits_.questions += timeout_ms == 0;
  waits_.timeouts += done.code() == Code::kNotReady;
  return done;
}

Result<device::MemoryInfo> DeviceWitness::memory_info() noexcept {
  const Result<device::MemoryInfo> got = ForwardingDevice::memory_info();
  told_ = got.value_or({});
  if (got.is_ok()) total_ = got.value().total.count();
  return got;
}

}  // namespace ashlar::spec
