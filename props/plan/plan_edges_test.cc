// The planner's interface at its edges: what a capacity says, names and columns of files, kept offsets of any kind, and an
// explanation without steps.
//
// Imitates: callers that pass kept offsets from another version of a problem, capacities that are met exactly, hosts with
// little time. Does not prove: anything about the quality of plans.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/plan.h>
#include <ashlar/plan/planner.h>
#include <ashlar/plan/problem_csv.h>
#include <ashlar/plan/replan.h>
#include <ashlar/plan/solve/explain.h>

#include "props/plan/generate.h"
#include "props/plan/pairwise_check.h"
#include "props/plan/planner_cases.h"
#include "spec/plan/brute_force.h"

namespace ashlar {
namespace {

using plan::Buffer;
using plan::kNowhere;
using plan::Problem;

TEST(SpaceAnswerTest, ACapacityFitsBetweenThePeakAndTheBoundAsTheyAreOrdered) {
  for (std::uint64_t bound = 0; bound < 8; ++bound) {
    for (std::uint64_t peak = bound; peak < 8; ++peak) {
      const plan::SpaceAnswer answer{Bytes{peak}, Bytes{bound}};
      EXPECT_EQ(answer.is_proved_optimal(), peak == bound);
      EXPECT_TRUE((answer == plan::SpaceAnswer{Bytes{peak}, Bytes{bound}}));
      EXPECT_FALSE((answer == plan::SpaceAnswer{Bytes{peak + 1}, Bytes{bound}}));
      EXPECT_FALSE((answer == plan::SpaceAnswer{Bytes{peak}, Bytes{bound + 1}}));
      for (std::uint64_t capacity = 0; capacity < 9; ++capacity) {
        plan::Fits fits = plan::Fits::kYes;
        if (capacity < peak) fits = plan::Fits::kUnknown;
        if (capacity < bound) fits = plan::Fits::kNo;
        EXPECT_EQ(answer.fits(Bytes{capacity}), fits) << bound << ' ' << peak << ' ' << capacity;
      }
    }
  }
}

TEST(ProblemCsvEdges, EveryCharacterIsTakenIfItCanBePrintedAndIsNoCommaOrQuote) {
  for (int c = 0; c < 256; ++c) {
    const bool is_good = c >= 32 && c < 127 && c != ',' && c != '"';
    for (const char* const around : {"", "x"}) {
      Problem problem;
      problem.buffers = {plain_buffer(0, 1, 1)};
      problem.ids = {std::string(around) + static_cast<char>(c) + around};
      EXPECT_EQ(plan::format_problem_csv(problem, {}).is_ok(), is_good) << c;
    }
  }
  for (const std::size_t length : {plan::kCsvNameMax, plan::kCsvNameMax + 1}) {
    Problem problem;
    problem.buffers = {plain_buffer(0, 1, 1)};
    problem.ids = {std::string(length, 'a')};
    EXPECT_EQ(plan::format_problem_csv(problem, {}).is_ok(), length == plan::kCsvNameMax);
  }
}

TEST(ProblemCsvEdges, SpacesAreWrittenIfThereAreTwoOrOneHasAName) {
  for (std::uint32_t spaces = 1; spaces <= 4; ++spaces) {
    for (const bool has_name : {false, true}) {
      Problem problem;
      problem.spaces.assign(spaces, {});
      if (has_name) problem.spaces[0].name = "first";
      for (std::uint32_t s = 0; s < spaces; ++s) {
        problem.buffers.push_back(plain_buffer(0, 1, 1 + s));
        problem.buffers.back().space = s;
      }
      const std::string text = plan::format_problem_csv(problem, {}).value();
      EXPECT_EQ(text.find("space") != std::string::npos, spaces > 1 || has_name) << text;
      const plan::ProblemCsv again = plan::parse_problem_csv(text, "in.csv", nullptr).value();
      ASSERT_EQ(again.problem.spaces.size(), spaces) << text;
      for (std::uint32_t s = 0; s < spaces; ++s) EXPECT_EQ(again.problem.buffers[s].space, s);
    }
  }
}

TEST(ProblemCsvEdges, ManyNamesAreToldApartWhereverTheyFirstOccur) {
  for (const std::uint32_t names : {1u, 7u, 8u, 9u, 64u, 3'000u}) {
    std::string text = "id,lower,upper,size,group\n";
    for (std::uint32_t b = 0; b < 2 * names; ++b) {
      text += std::to_string(b) + ",0,1,1,g" + std::to_string(b < names ? b : 2 * names - 1 - b);
      text += '\n';
    }
    const Problem problem = plan::parse_problem_csv(text, "in.csv", nullptr).value().problem;
    ASSERT_EQ(problem.groups.size(), names);
    for (std::uint32_t b = 0; b < names; ++b) {
      ASSERT_EQ(problem.groups[b], "g" + std::to_string(b));
      ASSERT_EQ(problem.buffers[b].group, b);
      ASSERT_EQ(problem.buffers[2 * names - 1 - b].group, b);
    }
  }
}

/// Offsets to keep: some of a plan, some of none, misaligned, beyond the space or beyond all spaces.
std::vector<Bytes> draw_kept(spec::Random* random, const Problem& problem) {
  std::vector<Bytes> kept = generate_plan(random, problem);
  const bool is_wild = random->one_in(2);
  for (Bytes& offset : kept) {
    if (random->one_in(4)) offset = kNowhere;
    if (!is_wild || !random->one_in(4)) continue;
    switch (random->below(4)) {
      case 0: offset = Bytes{random->below(60)}; break;
      case 1: offset = plan::kPlanBytesMax; break;
      case 2: offset = plan::kPlanBytesMax + Bytes{random->below(100)}; break;
      default: offset = kNowhere - Bytes{1 + random->below(3)};
    }
  }
  return kept;
}

/// The offsets that may be kept: by the rules of replan.h, said again.
std::vector<Bytes> permitted(const Problem& problem, const std::vector<Bytes>& kept) {
  std::vector<Bytes> out(kept.size(), kNowhere);
  for (std::size_t b = 0; b < kept.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    out[b] = buffer.pinned;
    if (buffer.pinned != kNowhere || kept[b] == kNowhere) continue;
    const std::uint64_t offset = kept[b].count(), size = buffer.size.count();
    const std::uint64_t most =
        std::min(plan::kPlanBytesMax.count(), problem.spaces[buffer.space].capacity.count());
    if (offset % buffer.alignment.count() == 0 && offset <= most && size <= most - offset)
      out[b] = kept[b];
  }
  return out;
}

TEST(ReplanEdges, EveryOffsetThatMayBeKeptIsKeptAndTheOthersAreCountedAsMoved) {
  spec::Random random(71);
  int kept_all = 0, moved = 0, refused = 0;
  for (int i = 0; i < cases(3'000); ++i) {
    Problem problem = generate_problem(&random, {9, 12, 9, 1});
    for (Buffer& buffer : problem.buffers) buffer.group = plan::kNoGroup;
    problem.groups.clear();
    const std::vector<Bytes> kept = draw_kept(&random, problem);
    const std::vector<Bytes> peaks = peaks_of(problem, generate_plan(&random, problem));
    for (std::size_t s = 0; s < peaks.size(); ++s) {
      problem.spaces[s].capacity = random.one_in(2) ? peaks[s] : kNowhere;
    }
    if (!plan::check_problem(problem).status.is_ok()) continue;
    const plan::PlanOptions options = with_work(20'000);
    const plan::Replanned again = plan::replan(problem, kept, options);
    ASSERT_EQ(violation(problem, again.plan), "") << "case " << i;
    std::uint32_t count = 0;
    for (std::size_t b = 0; b < kept.size(); ++b)
      count += kept[b] != kNowhere && again.plan.offsets[b] != kept[b] ? 1 : 0;
    ASSERT_EQ(again.moved, count) << "case " << i;

    const std::vector<Bytes> may = permitted(problem, kept);
    if (first_overlap_by_pairs(problem, may)) continue;
    Problem pinned = problem;
    for (std::size_t b = 0; b < kept.size(); ++b) pinned.buffers[b].pinned = may[b];
    if (!plan::check_problem(pinned).status.is_ok()) continue;
    plan::Plan expected = plan::make_plan(pinned, options);
    bool fits = true;
    for (std::size_t s = 0; s < peaks.size(); ++s)
      fits = fits && expected.spaces[s].peak <= problem.spaces[s].capacity;
    if (!fits) {
      plan::PlanOptions warm = options;
      warm.warm_start = &kept;
      expected = plan::make_plan(problem, warm);
      refused += 1;
    }
    ASSERT_EQ(again.plan.offsets, expected.offsets) << "case " << i;
    const std::vector<Bytes> live = spec::live_peaks(problem);
    for (std::size_t s = 0; s < peaks.size(); ++s) {
      ASSERT_EQ(again.plan.spaces[s].peak, expected.spaces[s].peak) << "case " << i;
      ASSERT_GE(again.plan.spaces[s].lower_bound, live[s]) << "case " << i;
    }
    const spec::LeastPeaks least = spec::brute_force(problem);
    for (std::size_t s = 0; s < peaks.size(); ++s)
      ASSERT_LE(again.plan.spaces[s].lower_bound, least.peaks[s]) << "case " << i;
    (again.moved == 0 ? kept_all : moved) += 1;
  }
  EXPECT_GT(kept_all, 200);
  EXPECT_GT(moved, 200);
  EXPECT_GT(refused, 20);
}

/// Of conflicting pins, 64 are taken out one by one; with more, nothing is pinned.
TEST(ReplanEdges, OffsetsBeyondAllSpacesDoNotCountAmongTheConflictsThatAreTriedOneByOne) {
  for (const std::uint32_t wild : {1u, 64u, 65u, 70u}) {
    Problem problem;
    std::vector<Bytes> kept;
    for (std::uint32_t b = 0; b < 3; ++b) {
      problem.buffers.push_back(plain_buffer(b, b + 1, 8));
      kept.push_back(Bytes{1'000 + b});
    }
    for (std::uint32_t b = 0; b < wild; ++b) {
      problem.buffers.push_back(plain_buffer(10 + b, 11 + b, 8));
      kept.push_back(plan::kPlanBytesMax - Bytes{b % 8});
    }
    problem.spaces[0].capacity = kNowhere;
    const plan::Replanned again = plan::replan(problem, kept, with_work(1'000));
    EXPECT_EQ(violation(problem, again.plan), "");
    for (std::uint32_t b = 0; b < 3; ++b) EXPECT_EQ(again.plan.offsets[b], kept[b]) << wild;
    EXPECT_EQ(again.moved, wild);
  }
}

TEST(ReplanEdges, UpTo64OverlapsAreResolvedOneByOne) {
  for (const std::uint32_t overlaps : {1u, 2u, 63u, 64u, 65u, 66u}) {
    Problem problem;
    std::vector<Bytes> kept;
    problem.buffers.push_back(plain_buffer(0, 1, 8));
    kept.push_back(Bytes{4'000});
    for (std::uint32_t b = 0; b < overlaps; ++b) {
      for (int twice = 0; twice < 2; ++twice) {
        problem.buffers.push_back(plain_buffer(10 + b, 11 + b, 8));
        kept.push_back(Bytes{2'000});
      }
    }
    problem.spaces[0].capacity = kNowhere;
    const plan::Replanned again = plan::replan(problem, kept, with_work(1'000));
    EXPECT_EQ(violation(problem, again.plan), "");
    EXPECT_EQ(again.plan.offsets[0] == kept[0], overlaps <= 64) << overlaps;
    if (overlaps > 64) continue;
    EXPECT_EQ(again.moved, overlaps);
  }
}

/// What an explanation begins with, by explain.h: a buffer that is pinned too high, or the largest of
/// those that are live when the most bytes are, or all.
std::vector<std::uint32_t> beginning(const Problem& problem) {
  const Bytes capacity = problem.spaces[0].capacity;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    if (buffer.pinned != kNowhere && buffer.pinned + buffer.size > capacity) return {b};
  }
  std::vector<std::uint32_t> fullest;
  Bytes most;
  for (plan::Time at = 0; at < 40; ++at) {
    std::vector<std::uint32_t> live;
    Bytes sum;
    for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
      const plan::Lifetime life = problem.buffers[b].life;
      if (at < life.lower || at >= life.upper) continue;
      live.push_back(b);
      sum += problem.buffers[b].size;
    }
    if (sum <= most) continue;
    most = sum;
    fullest = live;
  }
  std::vector<std::uint32_t> few;
  if (most <= capacity) {
    for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) few.push_back(b);
    return few;
  }
  // The larger first; of equals the one with the lower number.
  std::sort(fullest.begin(), fullest.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Bytes of_a = problem.buffers[a].size;
    const Bytes of_b = problem.buffers[b].size;
    return of_a != of_b ? of_a > of_b : a < b;
  });
  Bytes sum;
  for (const std::uint32_t b : fullest) {
    few.push_back(b);
    sum += problem.buffers[b].size;
    if (sum > capacity) break;
  }
  std::sort(few.begin(), few.end());
  return few;
}

TEST(ExplainEdges, WithoutStepsNothingIsLeftOutAndWithStepsOnlyWhatIsNotNeeded) {
  spec::Random random(72);
  const plan::solve::StopCondition never;
  int overloaded = 0, all = 0;
  for (int i = 0; i < cases(4'000); ++i) {
    Problem problem;
    const bool is_crowded = i % 2 == 0;
    for (std::uint64_t b = 2 + random.below(6); b-- > 0;) {
      const auto lower = static_cast<plan::Time>(random.below(is_crowded ? 5 : 30));
      problem.buffers.push_back(plain_buffer(
          lower, lower + 1 + static_cast<plan::Time>(random.below(8)), 1 + random.below(6)));
      if (random.one_in(8)) problem.buffers.back().alignment = Bytes{4};
    }
    // Beside a pin the bytes may have room at every time, and one buffer none.
    if (random.one_in(2)) problem.buffers[0].pinned = Bytes{4 * random.below(3)};
    const Bytes least = spec::brute_force(problem).peaks[0];
    problem.spaces[0].capacity = least - 1_B;
    const std::vector<std::uint32_t> first = beginning(problem);
    ASSERT_EQ(plan::solve::explain_misfit(problem, 0, 0, never), first) << "case " << i;
    (first.size() == problem.buffers.size() ? all : overloaded) += 1;
    for (const std::uint64_t steps : {1u, 100u, 1'000u}) {
      const std::vector<std::uint32_t> found =
          plan::solve::explain_misfit(problem, 0, steps, never);
      ASSERT_TRUE(std::includes(first.begin(), first.end(), found.begin(), found.end()));
      ASSERT_TRUE(spec::cannot_fit(problem, found)) << "case " << i;
    }
    const plan::solve::StopCondition met(plan::solve::StopCondition::Clock::now());
    ASSERT_EQ(plan::solve::explain_misfit(problem, 0, 1'000'000, met), first) << "case " << i;
  }
  EXPECT_GT(overloaded, 200);
  EXPECT_GT(all, 100);
}

}  // namespace
}  // namespace ashlar
