// The time by which a call that may wait has to be done with waiting (C30).
//
// Purpose: one allocation or trim has one deadline, taken at its entry; every wait of the call is
// cut to what is left.
// Thread safety: none; lives within one call.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ashlar/cache/driver.h>

namespace ashlar::inline v0::cache {

class Deadline {
 public:
  /// `permitted_ms` from now by the device's clock. 0: no wait; device::kWaitForever: no end.
  Deadline(const Driver& driver, std::uint32_t permitted_ms) noexcept
      : driver_(driver),
        permitted_ms_(permitted_ms),
        end_ns_(driver.now_ns() + permitted_ms * kNsPerMs) {}

  bool is_endless() const noexcept { return permitted_ms_ == device::kWaitForever; }
  /// What is left, rounded up to a whole millisecond; 0 when the time is over.
  std::uint32_t left_ms() const noexcept {
    if (is_endless() || permitted_ms_ == 0) return permitted_ms_;
    const std::uint64_t now_ns = driver_.now_ns();
    if (now_ns >= end_ns_) return 0;
    return static_cast<std::uint32_t>((end_ns_ - now_ns + kNsPerMs - 1) / kNsPerMs);
  }
  /// The length of the next wait: short, so that what other streams finish meanwhile is seen soon.
  std::uint32_t slice_ms() const noexcept {
    if (is_endless()) return kSliceMaxMs;
    return std::min({left_ms(), std::max(1u, permitted_ms_ / kSlices), kSliceMaxMs});
  }
  /// At least that much is left from now on, where there is an end.
  void leave_ms(std::uint32_t ms) noexcept {
    if (!is_endless()) end_ns_ = std::max(end_ns_, driver_.now_ns() + ms * kNsPerMs);
  }
  /// A wait was refused without taking its time: charges it all the same, and ends the waiting after
  /// kSlices refusals, which a wait of days would otherwise repeat without a pause.
  void charge_ms(std::uint32_t ms) noexcept {
    end_ns_ -= std::min(end_ns_, ms * kNsPerMs);
    if (++refusals_ == kSlices) permitted_ms_ = 0;
  }

 private:
  static constexpr std::uint64_t kNsPerMs = 1'000'000;
  /// A bounded wait is spent in this many slices.
  static constexpr std::uint32_t kSlices = 16;
  /// What an announcement of a capture may have to wait for (DeviceCache::quiesce).
  static constexpr std::uint32_t kSliceMaxMs = 10;

  const Driver& driver_;
  std::uint32_t refusals_ = 0;
  std::uint32_t permitted_ms_;
  std::uint64_t end_ns_;
};

}  // namespace ashlar::inline v0::cache
