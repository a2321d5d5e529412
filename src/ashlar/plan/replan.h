// Planning again when a few buffers have changed.
//
// Purpose: whoever has baked offsets into graphs or kernels wants them to stay.
// Thread safety: pure function.
#pragma once

#include <vector>

#include <ashlar/plan/planner.h>

namespace ashlar::inline v0::plan {

struct Replanned {
  Plan plan;
  std::uint32_t moved = 0;  ///< buffers of `kept` that are elsewhere now
};

/// A plan in which every buffer stays at its offset in `kept` (by buffer; kNowhere: new, or
/// changed, and free to go anywhere), if such a plan fits every capacity. Buffers whose kept
/// offsets are in each other's way, or not allowed any more, are moved: as few as are found in
/// passing. Where what is kept does not fit so, everything may move, and `kept` is where the
/// planner begins. REQUIRES: as make_plan(). Cost: at most two of those.
ASHLAR_API Replanned replan(const Problem& problem, const std::vector<Bytes>& kept,
                            const PlanOptions& options);

}  // namespace ashlar::inline v0::plan
