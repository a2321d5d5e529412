// What driver calls would cost on a real machine: replaceable figures, and the running account of a
// simulated machine.
//
// Purpose: a replay reports modelled driver time in total, per call and per step, without a GPU.
// Thread safety: plain values; the simulated machine guards its own account.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <ashlar/device/device.h>

namespace ashlar::spec {

/// Modelled duration of one call in nanoseconds: a fixed part, and a part for every 2 MiB of its
/// size, the last one rounded up.
struct CallCost {
  std::uint64_t call_ns = 0;
  std::uint64_t per_page_ns = 0;
};

/// The cost of each kind of call, to be replaced by measured figures.
struct CostModel {
  std::array<CallCost, device::kCallKinds> by_kind = usual();

  /// The figures a simulated machine starts with; cost_model.cc says where each comes from.
  static std::array<CallCost, device::kCallKinds> usual();
  CallCost& figures(device::CallKind kind) { return by_kind[static_cast<unsigned>(kind)]; }
  const CallCost& figures(device::CallKind kind) const {
    return by_kind[static_cast<unsigned>(kind)];
  }
  /// The cost of one call of that kind over `size` bytes (0 where the call has no size), in ns.
  std::uint64_t of(device::CallKind kind, Bytes size) const;
};

/// How often one kind of call was made, and what that would have cost.
struct CallCount {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t ns = 0;
  std::uint64_t ns_max = 0;
};

/// The account of a machine: by kind, in total, and since the last mark_step().
struct CallAccount {
  std::array<CallCount, device::kCallKinds> by_kind{};
  std::uint64_t ns = 0;           ///< modelled, all calls
  std::uint64_t ns_max = 0;       ///< the dearest single call
  std::uint64_t step_calls = 0;   ///< since mark_step()
  std::uint64_t step_ns = 0;      ///< since mark_step()
  std::uint64_t step_ns_max = 0;  ///< the dearest step so far, the current one included
  std::uint64_t waits = 0;        ///< blocking calls that had to wait
  std::uint64_t entries_run = 0;  ///< stream entries finished

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
