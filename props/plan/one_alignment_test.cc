// Problems whose buffers all have one alignment, which the planner solves with rounded sizes.
//
// Imitates: recorded allocations of any size, planned at the granule of a device. Compares with brute force, which
// knows nothing of rounding. Does not prove: that plans of large problems are good (ci/figures/perturbed).
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>
#include <ashlar/plan/replan.h>
#include <ashlar/plan/solve/items.h>

#include "props/plan/generate.h"
#include "props/plan/planner_cases.h"
#include "spec/plan/brute_force.h"

namespace ashlar {
namespace {

using plan::Plan;
using plan::Problem;

/// A problem of every kind with one alignment for all buffers. Pins that this makes unsound are dropped.
Problem aligned_problem(spec::Random* random, const GenerateLimits& limits = {}) {
  Problem problem = generate_problem(random, limits);
  const Bytes alignment{std::uint64_t{2} << random->below(4)};
  for (plan::Buffer& buffer : problem.buffers) {
    if (buffer.size.count() > std::uint64_t{1} << 32)
      buffer.size = Bytes{1 + random->below(limits.sizes)};
    buffer.alignment = alignment;
    if (buffer.pinned != plan::kNowhere)
      buffer.pinned = alignment * random->below(limits.sizes / 2 + 1);
  }
  if (plan::check_problem(problem).status.is_ok()) return problem;
  for (plan::Buffer& buffer : problem.buffers) buffer.pinned = plan::kNowhere;
  return problem;
}

TEST(OneAlignment, IsSolvedToThePeakThatBruteForceFinds) {
  spec::Random random(81);
  int rounded = 0;
  for (int i = 0; i < cases(6'000); ++i) {
    const Problem problem = aligned_problem(&random);
    ASSERT_TRUE(plan::check_problem(problem).status.is_ok()) << "case " << i;
    const Plan answer = plan::make_plan(problem, with_work(kEnoughWork));
    ASSERT_EQ(violation(problem, answer), "") << "case " << i;
    const spec::LeastPeaks least = spec::brute_force(problem);
    for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
      ASSERT_EQ(answer.spaces[s].peak, least.peaks[s]) << "case " << i;
      ASSERT_EQ(answer.spaces[s].lower_bound, least.peaks[s]) << "case " << i;
      rounded += plan::solve::make_rounded_items(problem, s).rounding > Bytes{} ? 1 : 0;
    }
  }
  EXPECT_GT(rounded, cases(6'000) / 2);
}

TEST(OneAlignment, BoundsHoldWhateverTheWorkAndGetNoWorseWithMore) {
  spec::Random random(82);
  for (int i = 0; i < cases(2'000); ++i) {
    const Problem problem = aligned_problem(&random);
    const spec::LeastPeaks least = spec::brute_force(problem);
    std::vector<plan::SpaceAnswer> before(problem.spaces.size(), {plan::kNowhere, Bytes{}});
    for (const std::uint64_t work : {0u, 1'500u, 3'000u, 10'000u, 200'000u}) {
      const Plan answer = plan::make_plan(problem, with_work(work));
      ASSERT_EQ(violation(problem, answer), "") << "case " << i;
      for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
        ASSERT_LE(answer.spaces[s].lower_bound, least.peaks[s]) << "case " << i;
        ASSERT_GE(answer.spaces[s].lower_bound, before[s].lower_bound) << "case " << i;
        ASSERT_LE(answer.spaces[s].peak, before[s].peak) << "case " << i;
      }
      before = answer.spaces;
    }
  }
}

TEST(OneAlignment, ACapacityOfTheLeastPeakIsMetAndOneByteLessIsExplained) {
  spec::Random random(83);
  for (int i = 0; i < cases(3'000) && !HasFatalFailure(); ++i)
    expect_least_capacity(aligned_problem(&random), i);
}

TEST(OneAlignment, ProgressAndReplanTellPeaksAndBoundsInBytes) {
  spec::Random random(84);
  for (int i = 0; i < cases(500); ++i) {
    const Problem problem = aligned_problem(&random);
    const spec::LeastPeaks least = spec::brute_force(problem);
    plan::PlanOptions options = with_work(kEnoughWork);
    std::vector<Bytes> last(problem.spaces.size(), plan::kNowhere);
    options.progress = [&](std::uint32_t s, Bytes peak, Bytes lower_bound) {
      EXPECT_LT(peak, last[s]) << "case " << i;
      EXPECT_LE(lower_bound, least.peaks[s]) << "case " << i;
      EXPECT_GE(peak, least.peaks[s]) << "case " << i;
      last[s] = peak;
    };
    const Plan answer = plan::make_plan(problem, options);
    const plan::Replanned again = plan::replan(problem, answer.offsets, with_work(0));
    ASSERT_EQ(violation(problem, again.plan), "") << "case " << i;
    for (std::size_t s = 0; s < problem.spaces.size(); ++s)
      ASSERT_LE(again.plan.spaces[s].lower_bound, least.peaks[s]) << "case " << i;
  }
}

/// A step of training: each layer leaves something for the way back, and the middle is the fullest.
/// The sizes are of no common unit, and before they were rounded, no bound was within the alignment.
TEST(OneAlignment, AStepOfTrainingIsPlannedToItsLeastNumberOfGranules) {
  constexpr Bytes kGranule{512};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    spec::Random random(85 + seed);
    Problem problem;
    constexpr plan::Time kLayers = 1'000;
    for (plan::Time layer = 0; layer < kLayers; ++layer) {
      problem.buffers.push_back(
          plain_buffer(layer, 2 * kLayers - layer, 1 + random.below(1u << 20)));
      problem.buffers.push_back(
          plain_buffer(2 * kLayers - layer, 2 * kLayers - layer + 2, 1 + random.below(1u << 20)));
    }
    for (plan::Buffer& buffer : problem.buffers) buffer.alignment = kGranule;
    const Plan answer = plan::make_plan(problem, with_work(20'000'000));
    ASSERT_EQ(violation(problem, answer), "");
    EXPECT_LT(answer.spaces[0].peak - answer.spaces[0].lower_bound, kGranule) << seed;
  }
}

}  // namespace
}  // namespace ashlar
