// The planner against the independent checker, against brute force, and against itself on problems that are related.
//
// Imitates: small problems with every feature, where all collides, in great numbers. Does not prove: anything about how good
// answers are on large problems (bench/), or that a time limit is kept.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/items.h>
#include <ashlar/plan/planner.h>
#include <ashlar/plan/repair.h>
#include <ashlar/plan/replan.h>

#include "props/plan/generate.h"
#include "spec/plan/brute_force.h"
#include "spec/plan/check.h"

namespace ashlar {
namespace {

using plan::Plan;
using plan::PlanOptions;
using plan::Problem;

constexpr std::uint64_t kEnough = 50'000'000;

PlanOptions with_work(std::uint64_t work) {
  PlanOptions options;
  options.work = work;
  return options;
}

/// How many problems: ASHLAR_PLAN_CASES, else what a suite has time for.
int cases(int usual) {
  const char* const asked = std::getenv("ASHLAR_PLAN_CASES");
  return asked == nullptr ? usual : std::atoi(asked);
}

std::string violation(const Problem& problem, const Plan& answer) {
  const auto found = spec::check_answer(problem, answer);
  return found ? found->text : "";
}

TEST(PlannerTest, SolvesWhatBruteForceSolvesToTheSamePeak) {
  spec::Random random(1);
  for (int i = 0; i < cases(20'000); ++i) {
    const Problem problem = generate_problem(&random);
    const Plan answer = plan::make_plan(problem, with_work(kEnough));
    ASSERT_EQ(violation(problem, answer), "") << "case " << i;
    const spec::LeastPeaks least = spec::brute_force(problem);
    for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
      const Bytes capacity = problem.spaces[s].capacity;
      ASSERT_LE(answer.spaces[s].lower_bound, least.peaks[s]) << "case " << i;
      if (capacity == plan::kNowhere) {
        ASSERT_TRUE(answer.spaces[s].is_proved_optimal()) << "case " << i;
        ASSERT_EQ(answer.spaces[s].peak, least.peaks[s]) << "case " << i;
      } else {
        ASSERT_EQ(answer.spaces[s].fits(capacity), least.peaks[s] <= capacity ? plan::Fits::kYes : plan::Fits::kNo)
            << "case " << i;
      }
    }
  }
}

TEST(PlannerTest, SolvesWithinTheLeastPeakAndExplainsWhyNotWithinOneByteLess) {
  spec::Random random(2);
  for (int i = 0; i < cases(5'000); ++i) {
    Problem problem = generate_problem(&random);
    const spec::LeastPeaks least = spec::brute_force(problem);
    for (std::size_t s = 0; s < problem.spaces.size(); ++s) problem.spaces[s].capacity = least.peaks[s];
    Plan answer = plan::make_plan(problem, with_work(kEnough));
    for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
      ASSERT_EQ(answer.spaces[s].fits(least.peaks[s]), plan::Fits::kYes) << "case " << i;
      if (least.peaks[s] > Bytes{}) problem.spaces[s].capacity = least.peaks[s] - 1_B;
    }
    answer = plan::make_plan(problem, with_work(kEnough));
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
        ASSERT_FALSE(spec::cannot_fit(problem, fewer)) << "case " << i << ": one too many is named";
      }
    }
  }
}

TEST(PlannerTest, HintsAreKeptByAPlanThatIsNoWorse) {
  spec::Random random(11);
  for (int i = 0; i < cases(3'000); ++i) {
    Problem problem = generate_problem(&random);
    const spec::LeastPeaks least = spec::brute_force(problem);
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) problem.buffers[b].hint = least.offsets[b];
    ASSERT_EQ(plan::make_plan(problem, with_work(kEnough)).offsets, least.offsets) << "case " << i;

    // A plan that is wished for is where it begins, and nothing that is wished for keeps it from the least peak.
    const std::vector<Bytes> wish = generate_plan(&random, problem);
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) problem.buffers[b].hint = wish[b];
    const Plan at_once = plan::make_plan(problem, with_work(0));
    ASSERT_EQ(violation(problem, at_once), "") << "case " << i;
    for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
      Bytes peak;
      for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
        if (problem.buffers[b].space == s) peak = std::max(peak, wish[b] + problem.buffers[b].size);
      }
      ASSERT_LE(at_once.spaces[s].peak, peak) << "case " << i;
    }
    for (plan::Buffer& buffer : problem.buffers) {
      if (random.one_in(2)) buffer.hint = Bytes{random.below(50)};
    }
    const Plan solved = plan::make_plan(problem, with_work(kEnough));
    ASSERT_EQ(violation(problem, solved), "") << "case " << i;
    for (std::size_t s = 0; s < problem.spaces.size(); ++s) ASSERT_EQ(solved.spaces[s].peak, least.peaks[s]) << "case " << i;
  }
}

TEST(PlannerTest, LargerProblemsHaveValidAnswersWhateverTheWork) {
  spec::Random random(3);
  GenerateLimits limits;
  limits.buffers_max = 60;
  limits.times = 40;
  limits.sizes = 50;
  for (int i = 0; i < cases(100); ++i) {
    const Problem problem = generate_problem(&random, limits);
    std::vector<plan::SpaceAnswer> before(problem.spaces.size(), {plan::kNowhere, Bytes{}});
    for (const std::uint64_t work : {0u, 1'000u, 100'000u, 1'000'000u}) {
      const Plan answer = plan::make_plan(problem, with_work(work));
      ASSERT_EQ(violation(problem, answer), "") << "case " << i;
      for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
        ASSERT_LE(answer.spaces[s].peak, before[s].peak) << "more work, a worse answer: case " << i;
        ASSERT_GE(answer.spaces[s].lower_bound, before[s].lower_bound) << "more work, a worse bound: case " << i;
      }
      before = answer.spaces;
    }
  }
}

TEST(PlannerTest, HundredsOfEveryKindHaveValidAnswers) {
  spec::Random random(11);
  GenerateLimits limits;
  limits.buffers_max = 300;
  limits.times = 200;
  limits.sizes = 500;
  for (int i = 0; i < cases(20); ++i) {
    const Problem problem = generate_problem(&random, limits);
    for (const std::uint64_t work : {0u, 3'000'000u}) {
      const Plan answer = plan::make_plan(problem, with_work(work));
      ASSERT_EQ(violation(problem, answer), "") << "case " << i;
    }
  }
}

TEST(PlannerTest, TheSameWorkGivesTheSameOffsets) {
  spec::Random random(4);
  GenerateLimits limits;
  limits.buffers_max = 80;
  limits.times = 60;
  limits.sizes = 99;
  for (int i = 0; i < cases(100); ++i) {
    const Problem problem = generate_problem(&random, limits);
    const Plan a = plan::make_plan(problem, with_work(200'000));
    const Plan b = plan::make_plan(problem, with_work(200'000));
    ASSERT_EQ(a.offsets, b.offsets);
    ASSERT_EQ(a.spaces, b.spaces);
  }
}

/// The least peaks, proved. Capacities, of which the generator makes none, would keep them from that.
std::vector<Bytes> least_peaks(const Problem& problem) {
  const Plan answer = plan::make_plan(problem, with_work(kEnough));
  EXPECT_EQ(violation(problem, answer), "");
  std::vector<Bytes> peaks;
  for (const plan::SpaceAnswer& space : answer.spaces) {
    EXPECT_TRUE(space.is_proved_optimal());
    peaks.push_back(space.peak);
  }
  return peaks;
}

TEST(PlannerTest, SizesScaledScaleThePeak) {
  spec::Random random(5);
  for (int i = 0; i < cases(2'000); ++i) {
    Problem problem = generate_problem(&random);
    std::vector<Bytes> least = least_peaks(problem);
    for (plan::Buffer& buffer : problem.buffers) {
      for (Bytes* const bytes : {&buffer.size, &buffer.alignment, &buffer.pinned, &buffer.hint}) {
        if (*bytes != plan::kNowhere) *bytes = *bytes * 8;
      }
    }
    ASSERT_TRUE(plan::check_problem(problem).status.is_ok());
    for (Bytes& peak : least) peak = peak * 8;
    ASSERT_EQ(least_peaks(problem), least) << "case " << i;
  }
}

TEST(PlannerTest, TimeReversedHasTheSamePeak) {
  spec::Random random(6);
  for (int i = 0; i < cases(2'000); ++i) {
    Problem problem = generate_problem(&random);
    const std::vector<Bytes> least = least_peaks(problem);
    std::vector<plan::Lifetime> gaps;
    for (plan::Buffer& buffer : problem.buffers) {
      buffer.life = {~buffer.life.upper, ~buffer.life.lower};  // one less than negated: that cannot overflow
      const auto begin = static_cast<std::uint32_t>(gaps.size());
      for (std::uint32_t g = buffer.gaps_end; g-- > buffer.gaps_begin;) {
        gaps.push_back({~problem.gaps[g].upper, ~problem.gaps[g].lower});
      }
      buffer.gaps_begin = begin;
      buffer.gaps_end = static_cast<std::uint32_t>(gaps.size());
    }
    problem.gaps = gaps;
    ASSERT_TRUE(plan::check_problem(problem).status.is_ok());
    ASSERT_EQ(least_peaks(problem), least) << "case " << i;
  }
}

TEST(PlannerTest, BuffersInAnotherOrderHaveTheSamePeak) {
  spec::Random random(12);
  for (int i = 0; i < cases(2'000); ++i) {
    Problem problem = generate_problem(&random);
    const std::vector<Bytes> least = least_peaks(problem);
    for (std::size_t b = problem.buffers.size(); b > 1; --b) {
      std::swap(problem.buffers[b - 1], problem.buffers[random.below(b)]);
    }
    ASSERT_EQ(least_peaks(problem), least) << "case " << i;
  }
}

/// Takes something away that a plan has to heed. What that makes of a pin may be unsound.
void relax(spec::Random* random, Problem* problem) {
  const std::uint64_t b = random->below(problem->buffers.size());
  plan::Buffer& buffer = problem->buffers[b];
  switch (random->below(6)) {
    case 0:
      problem->buffers.erase(problem->buffers.begin() + static_cast<std::ptrdiff_t>(b));
      problem->ids.clear();
      return;
    case 1:
      buffer.size -= Bytes{random->below(buffer.size.count())};
      return;
    case 2:
      buffer.alignment = Bytes{std::uint64_t{1} << random->below(std::bit_width(buffer.alignment.count()))};
      return;
    case 3:
      buffer.pinned = plan::kNowhere;
      return;
    case 4:
      (random->one_in(2) ? buffer.life.lower += 1 : buffer.life.upper -= 1);
      return;
    default:  // live at both ends of its life, and not between
      if (buffer.gaps_begin != buffer.gaps_end || buffer.life.upper - buffer.life.lower < 3) return;
      buffer.gaps_begin = static_cast<std::uint32_t>(problem->gaps.size());
      problem->gaps.push_back({buffer.life.lower + 1, buffer.life.upper - 1});
      buffer.gaps_end = static_cast<std::uint32_t>(problem->gaps.size());
  }
}

TEST(PlannerTest, WhatIsTakenAwayNeverRaisesThePeak) {
  spec::Random random(7);
  int relaxed = 0;
  for (int i = 0; i < cases(4'000); ++i) {
    Problem problem = generate_problem(&random);
    if (problem.buffers.empty()) continue;
    const std::vector<Bytes> least = least_peaks(problem);
    relax(&random, &problem);
    if (!plan::check_problem(problem).status.is_ok()) continue;
    relaxed += 1;
    const std::vector<Bytes> after = least_peaks(problem);
    for (std::size_t s = 0; s < least.size(); ++s) ASSERT_LE(after[s], least[s]) << "case " << i;
  }
  EXPECT_GT(relaxed, cases(4'000) / 2);
}

/// Whatever lies below a buffer that is always live can be moved up by its size, and the buffer to the bottom.
TEST(PlannerTest, ABufferThatIsAlwaysLiveAddsItsSize) {
  spec::Random random(13);
  for (int i = 0; i < cases(2'000); ++i) {
    Problem problem = generate_problem(&random, {7, 12, 9});
    if (problem.buffers.empty()) continue;
    plan::Buffer always;
    always.life = problem.buffers[0].life;
    always.size = problem.buffers[0].size;
    always.space = problem.buffers[0].space;
    for (plan::Buffer& buffer : problem.buffers) {
      buffer.alignment = 1_B;
      buffer.pinned = plan::kNowhere;
      always.life.lower = std::min(always.life.lower, buffer.life.lower);
      always.life.upper = std::max(always.life.upper, buffer.life.upper);
    }
    std::vector<Bytes> least = least_peaks(problem);
    problem.buffers.push_back(always);
    problem.ids.clear();
    least[always.space] += always.size;
    ASSERT_EQ(least_peaks(problem), least) << "case " << i;
  }
}

TEST(PlannerTest, SpacesHaveNothingToDoWithEachOther) {
  spec::Random random(14);
  for (int i = 0; i < cases(2'000); ++i) {
    const Problem problem = generate_problem(&random);
    const std::vector<Bytes> least = least_peaks(problem);
    for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
      Problem alone = problem;
      alone.ids.clear();
      alone.buffers.clear();
      for (const plan::Buffer& buffer : problem.buffers) {
        if (buffer.space == s) alone.buffers.push_back(buffer);
      }
      ASSERT_EQ(least_peaks(alone)[s], least[s]) << "case " << i;
    }
  }
}

TEST(PlannerTest, MoreCapacityIsNeverHarder) {
  spec::Random random(8);
  GenerateLimits limits;
  limits.buffers_max = 40;
  limits.times = 30;
  limits.sizes = 60;
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

TEST(PlannerTest, AWarmStartIsNeverMadeWorseAndABadOneIsPassedOver) {
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
    for (std::size_t b = 0; b < start.size(); ++b) {
      ASSERT_LE(answer.offsets[b], plan::kPlanBytesMax);
      const std::uint32_t space = problem.buffers[b].space;
      Bytes peak;
      for (std::size_t other = 0; other < start.size(); ++other) {
        if (problem.buffers[other].space == space) peak = std::max(peak, start[other] + problem.buffers[other].size);
      }
      ASSERT_LE(answer.spaces[space].peak, peak) << "case " << i;
    }
    for (Bytes& offset : start) offset = random.next() % 3 == 0 ? plan::kNowhere : Bytes{random.next() % 16};
    answer = plan::make_plan(problem, options);
    ASSERT_EQ(violation(problem, answer), "") << "case " << i;
  }
}

TEST(RepairTest, AValidPlanStaysValidAndIsLowerWhereThatIsSaid) {
  spec::Random random(16);
  GenerateLimits limits;
  limits.buffers_max = 60;
  limits.times = 40;
  limits.sizes = 50;
  int lowered = 0, given_up = 0;
  for (int i = 0; i < cases(120); ++i) {
    const Problem problem = generate_problem(&random, limits);
    const plan::Items items = plan::make_items(problem, 0);
    std::vector<Bytes> plan = generate_plan(&random, problem);
    std::vector<plan::Units> offsets(items.size());
    for (std::size_t b = 0; b < plan.size(); ++b) {
      if (items.item_of[b] != plan::kNoItem) offsets[items.item_of[b]] = static_cast<plan::Units>(plan[b] / items.unit);
    }
    plan::Repair repair(items);
    plan::Stop stop;
    for (plan::Units peak = plan::peak_of(items, offsets); peak > items.lower_bound;) {
      const plan::Units target = peak - 1 - static_cast<plan::Units>(random.below(static_cast<std::uint64_t>(peak - items.lower_bound)));
      const std::uint64_t steps = random.one_in(4) ? random.below(3'000) : 1'000'000;
      const bool is_lower = repair.lower(target, &offsets, steps, &stop);
      plan::write_offsets(items, offsets, &plan);
      const auto found = spec::check_plan(problem, plan);
      ASSERT_FALSE(found.has_value()) << found->text << " in case " << i;
      const plan::Units after = plan::peak_of(items, offsets);
      ASSERT_TRUE(is_lower ? after <= target : after <= peak) << "case " << i;
      (is_lower ? lowered : given_up) += 1;
      if (!is_lower) break;
      peak = after;
    }
  }
  EXPECT_GT(lowered, 50);
  EXPECT_GT(given_up, 10);
}

TEST(ReplanTest, WhatDidNotChangeStaysWhereItWasWhileThatFits) {
  spec::Random random(10);
  GenerateLimits limits;
  limits.buffers_max = 30;
  unsigned stayed = 0, moved = 0;
  for (int i = 0; i < cases(500); ++i) {
    Problem problem = generate_problem(&random, limits);
    if (problem.buffers.empty()) continue;
    std::vector<Bytes> kept = plan::make_plan(problem, with_work(20'000)).offsets;
    const auto changed = static_cast<std::uint32_t>(random.below(problem.buffers.size()));
    problem.buffers[changed].size += problem.buffers[changed].alignment;
    kept[changed] = plan::kNowhere;
    if (!plan::check_problem(problem).status.is_ok()) continue;  // it was pinned below another
    for (plan::Space& space : problem.spaces) {
      if (random.one_in(2)) space.capacity = plan::kNowhere;
    }
    const plan::Replanned again = plan::replan(problem, kept, with_work(20'000));
    ASSERT_EQ(violation(problem, again.plan), "") << "case " << i;
    const bool is_tied = problem.buffers[changed].group != plan::kNoGroup || problem.buffers[changed].pinned != plan::kNowhere;
    bool is_unlimited = true;
    for (const plan::Space& space : problem.spaces) is_unlimited = is_unlimited && space.capacity == plan::kNowhere;
    // Without a capacity nothing but the changed buffer has a reason to move, unless it is tied to where it is.
    ASSERT_TRUE(again.moved == 0 || !is_unlimited || is_tied) << "case " << i;
    (again.moved == 0 ? stayed : moved) += 1;
  }
  EXPECT_GT(stayed, 100u);
  EXPECT_GT(moved, 0u);
}

}  // namespace
}  // namespace ashlar
