// What an allocation policy made of a trace: one row of `ashlar replay --policy`.
//
// Purpose: the table, the JSON and the page show the same figures of every policy, whether it is
// simulated (policy.h) or the allocator itself.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/base/types.h>
#include <ashlar/device/device.h>

namespace ashlar::tool {

/// The most points that a timeline of a PolicyOutcome has.
inline constexpr std::size_t kPolicyTimelineMax = 2000;

struct PolicyOutcome {
  std::string name;     ///< "ashlar", "pytorch", "pytorch-expandable" or "planned"
  Bytes peak_reserved;  ///< the most bytes of device memory that it held at once
  double used = 1;      ///< the trace's peak of live bytes divided by peak_reserved
  std::optional<Bytes>
      capacity;  ///< the smallest device on which it runs; nothing if not looked for
  std::array<std::uint64_t, device::kCallKinds> driver_calls{};  ///< by kind of call
  std::uint64_t driver_ns = 0;                                   ///< modelled, of those calls
  std::uint64_t waits = 0;                                       ///< for work of the device
  std::uint64_t ooms = 0;                                        ///< requests that failed
  /// Reserved bytes over the trace, for the page; empty unless asked for. The trace's events, marks
  /// included, are divided into as many equal parts as there are points; a point is the most that is
  /// reserved after any event of its part.
  std::vector<std::uint64_t> timeline;

  std::uint64_t calls() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : driver_calls) sum += count;
    return sum;
  }
};

}  // namespace ashlar::tool
