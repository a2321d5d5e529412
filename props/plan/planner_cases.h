// What the planner's suites share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>

#include "spec/plan/brute_force.h"
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

/// The problem is solved within the peaks that brute force finds; within a byte less it is not, and the answer
/// names the buffers that cannot fit, and none besides.
inline void expect_least_capacity(plan::Problem problem, int i) {
  const spec::LeastPeaks least = spec::brute_force(problem);
  for (std::size_t s = 0; s < problem.spaces.size(); ++s)
    problem.spaces[s].capacity = least.peaks[s];
  plan::Plan answer = plan::make_plan(problem, with_work(kEnoughWork));
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
    ASSERT_EQ(answer.spaces[s].fits(least.peaks[s]), plan::Fits::kYes) << "case " << i;
    if (least.peaks[s] > Bytes{}) problem.spaces[s].capacity = least.peaks[s] - 1_B;
  }
  answer = plan::make_plan(problem, with_work(kEnoughWork));
  ASSERT_EQ(violation(problem, answer), "") << "case " << i;
  for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
    if (least.peaks[s] == Bytes{}) continue;
    ASSERT_EQ(answer.spaces[s].fits(problem.spaces[s].capacity), plan::Fits::kNo) << "case " << i;
    std::vector<std::uint32_t> misfits;
    for (const std::uint32_t b : answer.cannot_fit) {
      if (problem.buffers[b].space == s) misfits.push_back(b);
    }
    ASSERT_TRUE(spec::cannot_fit(problem, misfits)) << "case " << i;
    for (std::size_t left_out = 0; left_out < misfits.size(); ++left_out) {
      std::vector<std::uint32_t> fewer = misfits;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left_out));
      ASSERT_FALSE(spec::cannot_fit(problem, fewer))
          << "case " << i << ": a buffer is named that is not needed";
    }
  }
}

}  // namespace ashlar
