// Why a space does not fit: some buffers that cannot fit together.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>
#include <ashlar/plan/stop.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

/// Buffers of the space that have no plan within its capacity, ascending. Where so much is live at one time, or pinned so high,
/// that this says it all: those, and none could be left out. Else all buffers less what `steps` of search (and `stop`) sufficed
/// to leave out. REQUIRES: it is proved that the space does not fit.
std::vector<std::uint32_t> explain_misfit(const Problem& problem, std::uint32_t space, std::uint64_t steps, Stop* stop);

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
