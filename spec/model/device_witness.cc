// Book-keeping of the calls that pass: see device_witness.h.
#include "spec/model/device_witness.h"

#include <algorithm>

namespace ashlar::spec {

void DeviceWitness::on_answer(device::CallKind kind, Bytes, Code code) noexcept {
  ++calls_[static_cast<unsigned>(kind)];
  ++calls_in_all_;
  if (code != Code::kOk && code != Code::kNotReady) {
    ++failures_[static_cast<unsigned>(kind)];
    ++failures_in_all_;
    const bool is_of_growth = kind == device::CallKind::kSegmentAlloc ||
                              kind == device::CallKind::kMemoryInfo ||
                              kind == device::CallKind::kExchangeCaptureMode;
    if (kind == device::CallKind::kSegmentFree)
      grants_.refused_returns |= std::uint64_t{1} << static_cast<unsigned>(code);
    if (is_of_growth) grants_.refusals |= std::uint64_t{1} << static_cast<unsigned>(code);
  }
  waits_.synchronizations += kind == device::CallKind::kSynchronize && code == Code::kOk;
  if (code == Code::kDeviceLost || code == Code::kTornDown) sticky_ = code;
}

namespace {
bool by_base(const DeviceWitness::Held& a, std::uint64_t base) { return a.base < base; }
}  // namespace

Result<Address> DeviceWitness::segment_alloc(Bytes size) noexcept {
  segment_asked_ = size.count();
  const Result<Address> got = ForwardingDevice::segment_alloc(size);
  if (!got.is_ok()) return got;
  const std::uint64_t base = got.value().value();
  if (segments_.capacity() == 0) segments_.reserve(16);
  segments_.insert(std::lower_bound(segments_.begin(), segments_.end(), base, by_base),
                   Held{base, size.count(), grants_.all++});
  segment_bytes_ += size.count();
  return got;
}

Status DeviceWitness::segment_free(Address base) noexcept {
  const Status freed = ForwardingDevice::segment_free(base);
  const auto at = std::lower_bound(segments_.begin(), segments_.end(), base.value(), by_base);
  if (!freed.is_ok() || at == segments_.end() || at->base != base.value()) return freed;
  segment_bytes_ -= at->size;
  returned_.push_back(*at);
  grants_.undone += at->ordinal >= grants_.before_call;
  segments_.erase(at);
  return freed;
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
