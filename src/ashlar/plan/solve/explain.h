// Why a space does not fit: some buffers that cannot fit together.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>
#include <ashlar/plan/solve/stop.h>

namespace ashlar::inline v0::plan::solve {

/// Buffers of the space that have no plan within its capacity, ascending: as many as take too much
/// at one time, or one that is pinned too high, or all; less what `steps` of search (and `stop`)
/// sufficed to leave out. Where they did, none of the rest can be. REQUIRES: it is proved that the
/// space does not fit.
std::vector<std::uint32_t> explain_misfit(const Problem& problem, std::uint32_t space,
                                          std::uint64_t steps, Stop* stop);

}  // namespace ashlar::inline v0::plan::solve
