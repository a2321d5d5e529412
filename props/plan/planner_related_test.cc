// The planner compared with itself: when a problem is changed in a known way, so is its least peak.
//
// Imitates: small problems with every feature. Does not prove: anything about problems that are too
// large to be solved.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>

#include "props/plan/generate.h"
#include "props/plan/planner_cases.h"

namespace ashlar {
namespace {

using plan::Plan;
using plan::Problem;

/// The least peaks, with their proof. REQUIRES: no space has a capacity, which would end the search
/// early; the generator sets none.
std::vector<Bytes> least_peaks(const Problem& problem) {
  const Plan answer = plan::make_plan(problem, with_work(kEnoughWork));
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
      // -1 - t: unlike -t it cannot overflow
      buffer.life = {~buffer.life.upper, ~buffer.life.lower};
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

/// Removes or relaxes one condition. The result may be unsound, because of a pin.
void relax(spec::Random* random, Problem* problem) {
  const std::uint64_t b = random->below(problem->buffers.size());
  plan::Buffer& buffer = problem->buffers[b];
  switch (random->below(6)) {
    case 0:
      problem->buffers.erase(problem->buffers.begin() + static_cast<std::ptrdiff_t>(b));
      problem->ids.clear();
      return;
    case 1: buffer.size -= Bytes{random->below(buffer.size.count())}; return;
    case 2:
      buffer.alignment =
          Bytes{std::uint64_t{1} << random->below(std::bit_width(buffer.alignment.count()))};
      return;
    case 3: buffer.pinned = plan::kNowhere; return;
    case 4: (random->one_in(2) ? buffer.life.lower += 1 : buffer.life.upper -= 1); return;
    default:  // a gap over all of its life but both ends
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

/// In any plan, what lies below a buffer that is always live can be moved up by its size, and the
/// buffer down to the bottom.
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

}  // namespace
}  // namespace ashlar
