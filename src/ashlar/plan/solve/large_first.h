// Plans the large items of a space as a problem of their own, and fits the small ones in.
//
// Purpose: graphs of training have few items that are large beside the peak, and thousands of small
// ones. An order that is good for all of them is hard to find. The large ones alone are few enough to
// be planned very well in little time, and small ones find room in the gaps.
// Thread safety: pure function; its own threads have ended when it returns.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

/// A plan of all items, and the work it took.
struct LargeFirst {
  Units peak = 0;  ///< stop_at if there is no better plan; then the offsets are meaningless
  std::vector<Units> offsets;
  std::uint64_t steps = 0;
};

/// What large_first() may use, and the peak to be below.
struct LargeFirstLimits {
  unsigned threads;
  Units stop_at;
  const StopCondition* stop;
};

/// Plans the items above `small` units in height, with the pinned ones, by a SpaceSolver of
/// limited work; then places each other item by first fit, the highest first. No plan, at no cost,
/// if all items are large or none is. REQUIRES: `items` are the space's.
/// Cost: O(n^2) at worst, and the solver's work.
LargeFirst large_first(const Problem& problem, const Items& items, Units small,
                       const LargeFirstLimits& limits);

}  // namespace ashlar::inline v0::plan::solve
