// How full a plan's space is over time.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/plan.h>

namespace ashlar::tool {

/// The usage from a time to that of the next point. From the last point's time on nothing is live.
struct UsagePoint {
  plan::Time from;
  /// the minimum of the bytes live at one time; an alias group counts as its largest buffer
  Bytes least;
  Bytes most;  ///< the maximum of the bytes live at one time
  Bytes end;   ///< the highest end of a live buffer
  friend constexpr bool operator==(const UsagePoint&, const UsagePoint&) = default;
};

/// The usage by `buffers`, which are all of one space: a point for every change. If there are more
/// than `points_max` changes: a point for each of about that many equal spans of time, with the
/// minimum and the maximum of the span.
/// REQUIRES: check_problem() is ok, points_max > 0.
/// Cost: O(n log n).
std::vector<UsagePoint> usage_of(const plan::Problem& problem, const std::vector<Bytes>& offsets,
                                 const std::vector<std::uint32_t>& buffers,
                                 std::uint64_t points_max);

}  // namespace ashlar::tool
