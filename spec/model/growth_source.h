// GrowthSource: a growth device of memory pools (MemoryPoolOptions::growth), in front of the witness.
//
// Purpose: segments of some pools come from it and go back to it, of others not. It has less memory than the
// device, so that it runs short while the device does not.
// Thread safety: none; for one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spec/model/device_witness.h"

namespace ashlar::spec {

class GrowthSource final : public device::ForwardingDevice {
 public:
  static constexpr std::uint64_t kBytesMax = std::uint64_t{32} << 20;

  explicit GrowthSource(DeviceWitness& witness)
      : ForwardingDevice(static_cast<device::Device&>(witness)), witness_(witness) {}

  Result<Address> segment_alloc(Bytes size) noexcept override {
    if (size.count() > kBytesMax - held_bytes_) {
      witness_.segment_asked_ = size.count();
      witness_.on_answer(device::CallKind::kSegmentAlloc, size, Code::kOutOfMemory);
      return Status{Code::kOutOfMemory, "the growth device is full"};
    }
    const Result<Address> got = ForwardingDevice::segment_alloc(size);
    if (!got.is_ok()) return got;
    held_.push_back({got.value().value(), size.count()});
    held_bytes_ += size.count();
    return got;
  }
  Status segment_free(Address base) noexcept override {
    const auto at = std::find_if(held_.begin(), held_.end(),
                                 [base](const Held& each) { return each.base == base.value(); });
    any_foreign_ = any_foreign_ || at == held_.end();
    const Status freed = ForwardingDevice::segment_free(base);
    if (!freed.is_ok() || at == held_.end()) return freed;
    held_bytes_ -= at->size;
    held_.erase(at);
    return freed;
  }

  /// Is the address in a segment that came from here?
  bool has(std::uint64_t address) const {
    return std::any_of(held_.begin(), held_.end(),
                       [address](const Held& each) { return address - each.base < each.size; });
  }
  /// Did a segment go back here that came from elsewhere, or elsewhere though it came from here?
  bool is_wronged() const {
    return any_foreign_ || std::any_of(held_.begin(), held_.end(), [this](const Held& each) {
             const auto& segments = witness_.segments();
             return std::none_of(
                 segments.begin(), segments.end(),
                 [&each](const DeviceWitness::Held& held) { return held.base == each.base; });
           });
  }

 private:
  struct Held {
    std::uint64_t base;
    std::uint64_t size;
  };

  DeviceWitness& witness_;
  std::vector<Held> held_;
  std::uint64_t held_bytes_ = 0;
  bool any_foreign_ = false;
};

}  // namespace ashlar::spec
