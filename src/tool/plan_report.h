// The report of a plan: one self-contained HTML page.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include <ashlar/plan/plan.h>

namespace ashlar::tool {

/// Shows each space's figures and its packing, with time to the right and offsets upwards. The page
/// loads nothing from elsewhere. Of large problems it draws the largest buffers, and says so.
/// `seconds`: how long planning took. REQUIRES: check_problem() is ok, and the plan is of the problem.
/// Cost: O(n log n).
std::string plan_page(const plan::Problem& problem, const plan::Plan& plan,
                      const std::string& title, double seconds);

}  // namespace ashlar::tool
