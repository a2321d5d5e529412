// The report of a plan: one self-contained HTML page.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include <ashlar/plan/plan.h>

namespace ashlar::tool {

/// Shows each space's figures and its packing, with time to the right and offsets upwards. The page
/// loads nothing from elsewhere. Of large problems it draws the largest buffers, and says so.
/// `seconds`: how long planning took. REQUIRES: check_problem() is ok, and the plan is of the problem.
/// Cost: O(n log n).
std::string plan_page(const plan::Problem& problem, const plan::Plan& plan,
                      const std::string& title, double seconds);

/// What page_packing.js draws, for a page of another kind: at most `rectangles_max` rectangles.
/// Otherwise as plan_page().
nlohmann::ordered_json plan_picture(const plan::Problem& problem, const plan::Plan& plan,
                                    const std::string& title, double seconds,
                                    std::uint64_t rectangles_max);

}  // namespace ashlar::tool
