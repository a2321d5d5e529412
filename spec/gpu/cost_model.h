// What driver calls would cost on a real machine: replaceable figures, and the running account of a
// simulated one.
//
// Purpose: a replay reports modelled driver time in total, per call and per step, without a GPU.
// Thread safety: plain values; the simulated machine guards its own account.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <ashlar/device/device.h>

namespace ashlar::spec {

/// Modelled duration of one call: a fixed part and a part for every 2 MiB (begun) of its size.
/// Nanoseconds.
struct CallCost {
  std::uint64_t call_ns = 0;
  std::uint64_t per_page_ns = 0;
};

/// One CallCost per kind of call. Every figure is a plain field, to be replaced by measured ones.
struct CostModel {
  // Source of the page-* figures: a public micro-benchmark of CUDA's virtual memory calls on an
  // A100, per 2 MiB page: create 193 us, set access 36 us, unmap 26 us, map 1.5 us; ten pages cost
  // ten times one.
  CallCost page_create{0, 193'000};
  CallCost page_access{0, 36'000};
  CallCost page_unmap{0, 26'000};
  CallCost page_map{0, 1'500};
  // Everything below is assumed: orders of magnitude, no measurement behind them.
  CallCost page_release{5'000, 0};
  CallCost address_reserve{2'000, 0};
  CallCost address_release{2'000, 0};
  CallCost segment_alloc{80'000, 2'000};
  CallCost segment_free{100'000, 1'000};
  CallCost pinned_alloc{50'000, 400'000};
  CallCost pinned_free{50'000, 100'000};
  CallCost event_create{700, 0};
  CallCost event_destroy{300, 0};
  CallCost event_record{900, 0};
  CallCost event_query{400, 0};
  CallCost event_synchronize{2'000, 0};
  CallCost stream_wait{700, 0};
  CallCost identify{100, 0};
  CallCost capture_status{100, 0};
  CallCost exchange_capture_mode{50, 0};
  CallCost memory_info{20'000, 0};
  CallCost synchronize{5'000, 0};

  /// A model in which every call is free.
  static CostModel zero();
  /// The cost of one call of that kind over `size` bytes (0 where the call has none), in ns.
  std::uint64_t of(device::CallKind kind, Bytes size) const;
  const CallCost& figures(device::CallKind kind) const;
};

/// How often one kind of call was made, and what that would have cost.
struct CallCount {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t ns = 0;
  std::uint64_t ns_max = 0;
};

/// The account of a machine: per kind, in total, and since the last step mark.
struct CallAccount {
  std::array<CallCount, device::kCallKinds> by_kind{};
  std::uint64_t ns = 0;           ///< modelled, all calls
  std::uint64_t ns_max = 0;       ///< the dearest single call
  std::uint64_t step_calls = 0;   ///< since mark_step()
  std::uint64_t step_ns = 0;      ///< since mark_step()
  std::uint64_t step_ns_max = 0;  ///< the dearest step so far, the running one included
  std::uint64_t waits = 0;        ///< blocking calls that did have to wait
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
