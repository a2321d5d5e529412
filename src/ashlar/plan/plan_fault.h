// The library's own check of plans that come from outside: from a file, or for a replay.
//
// Thread safety: pure function.
#pragma once

#include <optional>
#include <string>

#include <ashlar/plan/plan.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// Why `plan` is not a valid plan of the problem ("buffer 3 is not aligned"), or nothing if it is.
/// Does not look at cannot_fit. REQUIRES: check_problem(problem).
/// Cost: O(n log n). Throws std::bad_alloc.
std::optional<std::string> fault_of_plan(const Problem& problem, const Plan& plan);

}  // namespace ashlar::inline v0::plan
