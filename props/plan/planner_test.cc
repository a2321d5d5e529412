// The planner compared with the independent checker and with brute force.
//
// Imitates: small problems with every feature and many conflicts, in great numbers. Does not prove:
// that answers to large problems are good (bench/), or that a time limit is kept.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>

#include "props/plan/generate.h"
#include "props/plan/packing.h"
#include "props/plan/planner_cases.h"
#include "spec/plan/brute_force.h"

namespace ashlar {
namespace {

using plan::Plan;
using plan::PlanOptions;
using plan::Problem;

void expect_solved(const Problem& problem, int i) {
  const Plan answer = plan::make_plan(problem, with_work(kEnoughWork));
  ASSERT_EQ(violation(problem, answer), "") << "case " << i;
  const spec::LeastPeaks least = spec::brute_force(problem);
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
    ASSERT_LE(answer.spaces[s].lower_bound, least.peaks[s]) << "case " << i;
    ASSERT_TRUE(answer.spaces[s].is_proved_optimal()) << "case " << i;
    ASSERT_EQ(answer.spaces[s].peak, least.peaks[s]) << "case " << i;
  }
}

TEST(PlannerTest, SolvesWhatBruteForceSolvesToTheSamePeak) {
  spec::Random random(1);
  for (int i = 0; i < cases(10'000) && !HasFatalFailure(); ++i)
    expect_solved(generate_problem(&random), i);
}

/// Eight buffers each, at few times, so that a search meets the same failed parts again.
TEST(PlannerTest, SolvesWhatIsCrowdedAsBruteForceDoes) {
  spec::Random random(18);
  const GenerateLimits limits{8, 6, 9, 8};
  for (int i = 0; i < cases(1'500) && !HasFatalFailure(); ++i)
    expect_solved(generate_problem(&random, limits), i);
}

TEST(PlannerTest, SolvesWithinTheLeastPeakAndExplainsWhyNotWithinOneByteLess) {
  spec::Random random(2);
  for (int i = 0; i < cases(5'000) && !HasFatalFailure(); ++i)
    expect_least_capacity(generate_problem(&random), i);
}

TEST(PlannerTest, HintsAreKeptByAPlanThatIsNoWorse) {
  spec::Random random(11);
  for (int i = 0; i < cases(3'000); ++i) {
    Problem problem = generate_problem(&random);
    const spec::LeastPeaks least = spec::brute_force(problem);
    for (std::size_t b = 0; b < problem.buffers.size(); ++b)
      problem.buffers[b].hint = least.offsets[b];
    ASSERT_EQ(plan::make_plan(problem, with_work(kEnoughWork)).offsets, least.offsets)
        << "case " << i;

    // The planner starts from hints that are a plan, and hints never keep it from the least peak.
    const std::vector<Bytes> hinted = generate_plan(&random, problem);
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) problem.buffers[b].hint = hinted[b];
    const Plan at_once = plan::make_plan(problem, with_work(0));
    ASSERT_EQ(violation(problem, at_once), "") << "case " << i;
    const std::vector<Bytes> peaks = peaks_of(problem, hinted);
    for (std::size_t s = 0; s < peaks.size(); ++s)
      ASSERT_LE(at_once.spaces[s].peak, peaks[s]) << "case " << i;
    for (plan::Buffer& buffer : problem.buffers) {
      if (random.one_in(2)) buffer.hint = Bytes{random.below(50)};
    }
    const Plan solved = plan::make_plan(problem, with_work(kEnoughWork));
    ASSERT_EQ(violation(problem, solved), "") << "case " << i;
    for (std::size_t s = 0; s < problem.spaces.size(); ++s)
      ASSERT_EQ(solved.spaces[s].peak, least.peaks[s]) << "case " << i;
  }
}

TEST(PlannerTest, LargerProblemsHaveValidAnswersWhateverTheWork) {
  spec::Random random(3);
  const GenerateLimits limits{60, 40, 50};
  for (int i = 0; i < cases(100); ++i) {
    const Problem problem = generate_problem(&random, limits);
    std::vector<plan::SpaceAnswer> before(problem.spaces.size(), {plan::kNowhere, Bytes{}});
    for (const std::uint64_t work : {0u, 1'000u, 100'000u, 1'000'000u}) {
      const Plan answer = plan::make_plan(problem, with_work(work));
      ASSERT_EQ(violation(problem, answer), "") << "case " << i;
      for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
        ASSERT_LE(answer.spaces[s].peak, before[s].peak) << "more work, a worse answer: case " << i;
        ASSERT_GE(answer.spaces[s].lower_bound, before[s].lower_bound)
            << "more work, a worse bound: case " << i;
      }
      before = answer.spaces;
    }
  }
}

TEST(PlannerTest, HundredsOfEveryKindHaveValidAnswers) {
  spec::Random random(11);
  const GenerateLimits limits{300, 200, 500};
  for (int i = 0; i < cases(20); ++i) {
    const Problem problem = generate_problem(&random, limits);
    for (const std::uint64_t work : {0u, 3'000'000u}) {
      const Plan answer = plan::make_plan(problem, with_work(work));
      ASSERT_EQ(violation(problem, answer), "") << "case " << i;
    }
  }
}

TEST(PlannerTest, WhatIsCutFromARectangleIsNeverProvedNotToFitInIt) {
  spec::Random random(17);
  int solved = 0, all = 0;
  for (int i = 0; i < cases(1'500); ++i) {
    PackingMaker maker(&random, 6 + random.below(30), 6 + random.below(60), 8 + random.below(40));
    if (i % 2 == 1) maker.add_features();
    Packing packing = maker.take();
    ASSERT_TRUE(plan::check_problem(packing.problem).status.is_ok());
    ASSERT_FALSE(spec::check_plan(packing.problem, packing.offsets).has_value());
    // First all buffers; then without some, but with all that are live at one time: there is room
    // elsewhere, and the least peak is the same.
    const plan::Time full = packing.problem.buffers[0].life.lower;
    for (const bool is_full : {true, false}) {
      for (std::size_t b = packing.problem.buffers.size(); !is_full && b-- > 0;) {
        const plan::Lifetime life = packing.problem.buffers[b].life;
        if (life.lower <= full && full < life.upper) continue;
        if (random.one_in(3))
          packing.problem.buffers.erase(packing.problem.buffers.begin() +
                                        static_cast<std::ptrdiff_t>(b));
      }
      const Plan answer = plan::make_plan(packing.problem, with_work(300'000));
      ASSERT_EQ(violation(packing.problem, answer), "") << "case " << i;
      ASSERT_LE(answer.spaces[0].lower_bound, packing.peak) << "case " << i;
      solved += answer.spaces[0].peak <= packing.peak ? 1 : 0;
      all += 1;
    }
  }
  EXPECT_GT(solved, all * 9 / 10);
}

TEST(PlannerTest, TheSameWorkGivesTheSameOffsets) {
  spec::Random random(4);
  const GenerateLimits limits{80, 60, 99};
  for (int i = 0; i < cases(100); ++i) {
    const Problem problem = generate_problem(&random, limits);
    const Plan a = plan::make_plan(problem, with_work(200'000));
    const Plan b = plan::make_plan(problem, with_work(200'000));
    ASSERT_EQ(a.offsets, b.offsets);
    ASSERT_EQ(a.spaces, b.spaces);
  }
}

TEST(PlannerTest, MoreCapacityIsNeverHarder) {
  spec::Random random(8);
  const GenerateLimits limits{40, 30, 60};
  for (int i = 0; i < cases(100); ++i) {
    Problem problem = generate_problem(&random, limits);
    const std::vector<Bytes> bounds = spec::live_peaks(problem);
    std::vector<bool> has_fit(bounds.size(), false);
    for (const std::uint64_t percent : {100u, 101u, 103u, 108u, 120u}) {
      for (std::size_t s = 0; s < bounds.size(); ++s) {
        const std::uint64_t bound = bounds[s].count();
        problem.spaces[s].capacity = Bytes{bound / 100 * percent + bound % 100 * percent / 100};
      }
      const Plan answer = plan::make_plan(problem, with_work(100'000));
      for (std::size_t s = 0; s < bounds.size(); ++s) {
        const bool fits = answer.spaces[s].fits(problem.spaces[s].capacity) == plan::Fits::kYes;
        ASSERT_TRUE(fits || !has_fit[s]) << "case " << i << " at " << percent << " %";
        has_fit[s] = fits;
      }
    }
  }
}

TEST(PlannerTest, AWarmStartIsNeverMadeWorseAndAnInvalidOneIsIgnored) {
  spec::Random random(9);
  GenerateLimits limits;
  limits.buffers_max = 40;
  for (int i = 0; i < cases(300); ++i) {
    const Problem problem = generate_problem(&random, limits);
    std::vector<Bytes> start = generate_plan(&random, problem);
    PlanOptions options = with_work(0);
    options.warm_start = &start;
    Plan answer = plan::make_plan(problem, options);
    ASSERT_EQ(violation(problem, answer), "") << "case " << i;
    for (const Bytes offset : answer.offsets) ASSERT_LE(offset, plan::kPlanBytesMax);
    const std::vector<Bytes> peaks = peaks_of(problem, start);
    for (std::size_t s = 0; s < peaks.size(); ++s)
      ASSERT_LE(answer.spaces[s].peak, peaks[s]) << "case " << i;
    for (Bytes& offset : start)
      offset = random.next() % 3 == 0 ? plan::kNowhere : Bytes{random.next() % 16};
    answer = plan::make_plan(problem, options);
    ASSERT_EQ(violation(problem, answer), "") << "case " << i;
  }
}

}  // namespace
}  // namespace ashlar
