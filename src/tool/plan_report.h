// The picture of a plan: one self-contained HTML page.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include <ashlar/plan/plan.h>

namespace ashlar::tool {

/// Each space's figures and its packing, time across and offset up. It loads nothing from anywhere.
/// Of large problems it shows what is largest, and says so. `seconds`: that planning took.
/// REQUIRES: check_problem() is ok and the plan is one for the problem. Cost: O(n log n).
std::string plan_page(const plan::Problem& problem, const plan::Plan& plan,
                      const std::string& title, double seconds);

}  // namespace ashlar::tool
