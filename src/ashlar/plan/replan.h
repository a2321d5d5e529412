// Planning again after a few buffers have changed.
//
// Purpose: offsets that are built into graphs or kernels should stay.
// Thread safety: pure function.
#pragma once

#include <vector>

#include <ashlar/plan/planner.h>

namespace ashlar::inline v0::plan {

/// The result of replan().
struct Replanned {
  Plan plan;                ///< of the changed problem
  std::uint32_t moved = 0;  ///< how many buffers have left their kept offset
};

/// Makes a plan of `problem` in which buffers stay at their offsets in `kept` (bytes, by buffer;
/// kNowhere for a buffer that is new or changed and may go anywhere), if such a plan fits every
/// capacity. Buffers move whose kept offsets overlap or are no longer permitted: the first that are
/// found, which need not be the fewest. If no plan with the kept offsets is found to fit, every
/// buffer may move, and `kept` is the planner's warm start. REQUIRES: as make_plan(); `kept` has an
/// entry for each buffer.
///
/// Cost: at most twice make_plan(). Throws as make_plan().
/// Thread safety: any number of calls at the same time.
ASHLAR_API Replanned replan(const Problem& problem, const std::vector<Bytes>& kept,
                            const PlanOptions& options);

}  // namespace ashlar::inline v0::plan
