// The search for the smallest device on which a trace does what is asked of it.
//
// Thread safety: a pure function.
#pragma once

#include <algorithm>

#include "src/tool/trace.h"

namespace ashlar::tool {

inline constexpr Bytes kCapacityStep = 2_MiB;

/// The smallest capacity that will do, between what is live and `enough`, in steps of 2 MiB. Bisection
/// assumes that whatever runs on a device also runs on every larger one, which a caching allocator does
/// not promise: the result will do and 2 MiB less will not, but some still smaller device may.
/// `will_do(capacity)` makes a pass. Cost: log2 of the steps between the two, in passes.
template <class WillDo>
Bytes smallest_capacity(const Trace& trace, Bytes enough, WillDo&& will_do) {
  // In steps of capacity. The trace does not run on `low`; it runs on `high`.
  std::uint64_t low = (trace.peak_live.count() + kCapacityStep.count() - 1) / kCapacityStep.count();
  low = std::max<std::uint64_t>(low, 1) - 1;
  std::uint64_t high = std::max<std::uint64_t>(
      (enough.count() + kCapacityStep.count() - 1) / kCapacityStep.count(), 1);
  high = std::max(high, low + 1);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (will_do(kCapacityStep * middle) ? high : low) = middle;
  }
  return kCapacityStep * high;
}

}  // namespace ashlar::tool
