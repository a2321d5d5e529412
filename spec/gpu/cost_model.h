// The modelled cost of driver calls: replaceable figures for each kind of call, and the account of
// the calls that a simulated machine has received.
//
// Purpose: a replay reports the time that its driver calls would take, in total, per call and per
// step, without a GPU.
// Thread safety: plain values; the simulated machine guards its own account.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <ashlar/device/device.h>

namespace ashlar::spec {

/// Modelled duration of one call in nanoseconds: a fixed part, and a part for each 2 MiB of its
/// size, which is rounded up to a multiple of 2 MiB.
struct CallCost {
  std::uint64_t call_ns = 0;
  std::uint64_t per_page_ns = 0;
};

/// The cost of each kind of call. A user can replace the figures by measured ones.
struct CostModel {
  std::array<CallCost, device::kCallKinds> by_kind = usual();

  /// The figures that a simulated machine starts with; usual_costs.h gives the source of each.
  static std::array<CallCost, device::kCallKinds> usual();
  CallCost& figures(device::CallKind kind) { return by_kind[static_cast<unsigned>(kind)]; }
  const CallCost& figures(device::CallKind kind) const {
    return by_kind[static_cast<unsigned>(kind)];
  }
  /// The cost of one call of that kind over `size` bytes (0 where the call has no size), in ns.
  std::uint64_t of(device::CallKind kind, Bytes size) const;
};

/// The number of calls of one kind, and their modelled cost.
struct CallCount {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t ns = 0;
  std::uint64_t ns_max = 0;  ///< of the most expensive call
};

/// The account of a machine: by kind of call, in total, and since the last mark_step().
struct CallAccount {
  std::array<CallCount, device::kCallKinds> by_kind{};
  std::uint64_t ns = 0;                ///< modelled, of all calls
  std::uint64_t ns_max = 0;            ///< of the most expensive call
  std::uint64_t step_calls = 0;        ///< since mark_step()
  std::uint64_t step_ns = 0;           ///< since mark_step()
  std::uint64_t step_ns_max = 0;       ///< of the most expensive step, the current one included
  std::uint64_t planned_failures = 0;  ///< calls that failed because that was planned
  std::uint64_t waits = 0;             ///< blocking calls that had to wait
  std::uint64_t entries_run = 0;       ///< finished entries of streams

  const CallCount& of(device::CallKind kind) const { return by_kind[static_cast<unsigned>(kind)]; }
  /// All calls of all kinds.
  std::uint64_t calls() const;
  void charge(device::CallKind kind, std::uint64_t call_ns) {
    CallCount& count = by_kind[static_cast<unsigned>(kind)];
    ++count.calls;
    count.ns += call_ns;
    count.ns_max = std::max(count.ns_max, call_ns);
    ns += call_ns;
    ns_max = std::max(ns_max, call_ns);
    ++step_calls;
    step_ns += call_ns;
    step_ns_max = std::max(step_ns_max, step_ns);
  }
  void mark_step() { step_calls = step_ns = 0; }
};

}  // namespace ashlar::spec
