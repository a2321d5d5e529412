// What the planner's suites share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <ashlar/plan/planner.h>

#include "spec/plan/check.h"

namespace ashlar {

/// Enough to solve any problem that brute force solves.
inline constexpr std::uint64_t kEnoughWork = 50'000'000;

inline plan::PlanOptions with_work(std::uint64_t work) {
  plan::PlanOptions options;
  options.work = work;
  return options;
}

/// How many problems a suite tries: ASHLAR_PLAN_CASES, or `usual`, which it has time for.
inline int cases(int usual) {
  const char* const asked = std::getenv("ASHLAR_PLAN_CASES");
  return asked == nullptr ? usual : std::atoi(asked);
}

inline std::string violation(const plan::Problem& problem, const plan::Plan& answer) {
  const auto found = spec::check_answer(problem, answer);
  return found ? found->text : "";
}

}  // namespace ashlar
