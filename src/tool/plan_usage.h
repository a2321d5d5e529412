// How full a plan's space is over time.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/plan.h>

namespace ashlar::tool {

/// From a time until that of the next point; from that of the last on, nothing is live.
struct UsagePoint {
  plan::Time from;
  Bytes least;  ///< live at one time; what is live of an alias group counts once, as its largest
  Bytes most;
  Bytes end;  ///< the highest end of what is live
  friend constexpr bool operator==(const UsagePoint&, const UsagePoint&) = default;
};

/// The usage by those buffers, all of one space: every change of it, or, where there are more than
/// `points_max` changes, the least and the most of each of about as many equal spans of time.
/// REQUIRES: check_problem() is ok, points_max > 0.
/// Cost: O(n log n).
std::vector<UsagePoint> usage_of(const plan::Problem& problem, const std::vector<Bytes>& offsets,
                                 const std::vector<std::uint32_t>& buffers,
                                 std::uint64_t points_max);

}  // namespace ashlar::tool
