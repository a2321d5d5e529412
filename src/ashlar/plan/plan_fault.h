// Is it a valid plan? Asked of every plan that comes from outside before it is used: from a file,
// or for a replay.
//
// Thread safety: pure function.
#pragma once

#include <optional>
#include <string>

#include <ashlar/plan/plan.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// Why it is not a valid plan of the problem, if so: "buffer 3 is not aligned". cannot_fit is not
/// looked at.
/// REQUIRES: check_problem(problem). Cost: O(n log n).
std::optional<std::string> fault_of_plan(const Problem& problem, const Plan& plan);

}  // namespace ashlar::inline v0::plan
