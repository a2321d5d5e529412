// Explains why a space does not fit: names buffers that cannot fit together.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

/// Buffers of the space, ascending, that have no plan within its capacity. It begins with one
/// buffer that is pinned too high, or with buffers that need more than the capacity at one time, or
/// with all; then it leaves out every buffer that is not needed for the conflict, for as long as
/// `steps` of search and `stop` permit. If they last to the end, no further buffer can be left out.
/// REQUIRES: it is proved that the space does not fit.
std::vector<std::uint32_t> explain_misfit(const Problem& problem, std::uint32_t space,
                                          std::uint64_t steps, const StopCondition& stop);

}  // namespace ashlar::inline v0::plan::solve
