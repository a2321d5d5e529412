// The planner with several threads: the same bytes as with one, and no races (the tsan preset runs
// this).
//
// Imitates: problems whose search lasts long enough that threads meet, cut off anywhere by work, by
// a capacity, or by proof.
// Does not prove: that threads make anything faster (bench/).
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/search_lanes.h>

#include "props/plan/generate.h"
#include "props/plan/packing.h"
#include "props/plan/planner_cases.h"
#include "spec/plan/brute_force.h"

namespace ashlar {
namespace {

using plan::Plan;
using plan::PlanOptions;
using plan::Problem;

constexpr unsigned kThreads[] = {2, 3, 8};

PlanOptions with_threads(unsigned threads) {
  PlanOptions options;
  options.threads = threads;
  return options;
}

constexpr GenerateLimits kHard{120, 60, 99};

void expect_same(const Plan& one, const Plan& other, int i) {
  ASSERT_EQ(one.offsets, other.offsets) << "case " << i;
  ASSERT_EQ(one.spaces, other.spaces) << "case " << i;
  ASSERT_EQ(one.cannot_fit, other.cannot_fit) << "case " << i;
}

TEST(PlannerThreads, TheSameWorkGivesTheSameBytes) {
  spec::Random random(21);
  for (int i = 0; i < 60; ++i) {
    Problem problem = generate_problem(&random, kHard);
    // Now and then a capacity that the search may meet in one lane or the other.
    if (random.one_in(3))
      problem.spaces[0].capacity =
          Bytes{spec::live_peaks(problem)[0].count() * (100 + random.below(6)) / 100};
    PlanOptions options = with_work(random.below(400'000));
    const Plan one = plan::make_plan(problem, options);
    for (const unsigned threads : kThreads) {
      options.threads = threads;
      expect_same(one, plan::make_plan(problem, options), i);
    }
  }
}

TEST(PlannerThreads, WhatIsSolvedHasTheSameBytes) {
  spec::Random random(22);
  int searched = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = generate_problem(&random, kHard);
    const Plan one = plan::make_plan(problem, with_work(400'000));
    bool is_solved = true;
    for (const plan::SpaceAnswer& space : one.spaces)
      is_solved = is_solved && space.is_proved_optimal();
    if (!is_solved) continue;
    searched += one.spaces[0].peak > spec::live_peaks(problem)[0] ? 1 : 0;
    for (const unsigned threads : kThreads) {
      PlanOptions timed = with_threads(threads);
      timed.time_limit = std::chrono::hours(1);
      expect_same(one, plan::make_plan(problem, timed), i);
    }
  }
  EXPECT_GT(searched, 0);
}

struct Searched {
  plan::solve::Units lower_bound;
  plan::solve::Units best;
  std::vector<plan::solve::Units> offsets;
  friend bool operator==(const Searched&, const Searched&) = default;
};

/// From a poor plan on, with one lane held up at every attempt; none, if it is not there.
Searched search(const plan::solve::Items& items, plan::solve::Units best, plan::solve::Units enough,
                unsigned threads, std::size_t held_up, std::uint64_t work = 200'000) {
  plan::solve::Stop stop;
  plan::solve::SearchLanes lanes(items, {items.lower_bound, best}, enough, nullptr);
  lanes.run({work, threads, &stop, [held_up](std::size_t lane) {
               if (lane == held_up) std::this_thread::sleep_for(std::chrono::microseconds(200));
             }});
  return {lanes.known().lower_bound, lanes.known().best, lanes.offsets()};
}

/// A few that are searched long, some of which do not fit where others do.
Problem searched_problem(spec::Random* random) {
  if (random->one_in(2)) {
    Problem problem = generate_problem(random, {30, 20, 40, 10});
    problem.spaces[0].capacity = plan::kNowhere;
    return problem;
  }
  PackingMaker maker(random, 30, 500, 40 + random->below(60));
  if (random->one_in(2)) maker.add_features();
  return maker.take().problem;
}

/// Whichever lane is the first to come to something, as far as clocks go.
TEST(PlannerThreads, ALaneThatIsHeldUpChangesNothing) {
  spec::Random random(26);
  int solved = 0;
  for (int i = 0; i < 250; ++i) {
    const plan::solve::Items items = plan::solve::make_items(searched_problem(&random), 0);
    const plan::solve::Units bound = items.lower_bound;
    const plan::solve::Units enough =
        random.one_in(3) ? 0
                         : bound * static_cast<plan::solve::Units>(100 + random.below(20)) / 100;
    const plan::solve::Units worst = bound * 5 / 4 + 1;
    const Searched one = search(items, worst, enough, 1, 9);
    for (const std::size_t held_up : {0u, 1u, 9u})
      ASSERT_EQ(search(items, worst, enough, 2, held_up), one) << "case " << i;
    solved += one.best <= std::max(one.lower_bound, enough) ? 1 : 0;
  }
  EXPECT_GT(solved, 30);
}

/// The lane above the bound has nothing to try, and leaves its work to the other while that begins:
/// too late for its first attempt, however long the other takes to begin it.
TEST(PlannerThreads, ALaneThatRetiresDoesSoAtOneTime) {
  spec::Random random(27);
  for (int i = 0; i < 400; ++i) {
    const Packing packing = PackingMaker(&random, 60, 300, 60 + random.below(60)).take();
    const plan::solve::Items items = plan::solve::make_items(packing.problem, 0);
    const std::uint64_t work = 2'000 + random.below(20'000);
    const Searched one = search(items, items.lower_bound + 1, 0, 1, 9, work);
    for (int again = 0; again < 3; ++again) {
      ASSERT_EQ(search(items, items.lower_bound + 1, 0, 2, 9, work), one) << "case " << i;
    }
  }
}

TEST(PlannerThreads, FillsOfManyBuffersAreTheSame) {
  spec::Random random(23);
  for (int i = 0; i < 12; ++i) {
    Problem problem;
    problem.buffers.resize(3'000);
    for (plan::Buffer& buffer : problem.buffers) {
      const auto lower = static_cast<plan::Time>(random.below(5'000));
      buffer.life = {lower, lower + 1 + static_cast<plan::Time>(random.below(200))};
      // of one size, every fill is as good as the others
      buffer.size = Bytes{1 + (i % 4 < 2 ? 0 : random.below(500))};
      if (i % 2 == 1) buffer.alignment = Bytes{std::uint64_t{1} << random.below(4)};
    }
    PlanOptions options = with_work(1);
    const Plan one = plan::make_plan(problem, options);
    for (const unsigned threads : kThreads) {
      options.threads = threads;
      expect_same(one, plan::make_plan(problem, options), i);
    }
  }
}

TEST(PlannerThreads, ATimeLimitIsKeptAndTheAnswerIsValid) {
  spec::Random random(24);
  for (int i = 0; i < 20; ++i) {
    const Problem problem = generate_problem(&random, kHard);
    PlanOptions options = with_threads(4);
    options.time_limit = std::chrono::milliseconds(i);
    ASSERT_EQ(violation(problem, plan::make_plan(problem, options)), "") << "case " << i;
  }
}

TEST(PlannerThreads, ProgressIsToldByOneThreadAtATime) {
  spec::Random random(25);
  for (int i = 0; i < 30; ++i) {
    const Problem problem = generate_problem(&random, kHard);
    // no lock: tsan would see two at once
    std::vector<Bytes> peaks(problem.spaces.size(), plan::kNowhere);
    PlanOptions options = with_threads(4);
    options.work = 200'000;
    options.progress = [&](std::uint32_t space, Bytes peak, Bytes lower_bound) {
      EXPECT_LT(peak, peaks[space]);
      EXPECT_LE(lower_bound, peak);
      peaks[space] = peak;
    };
    const Plan answer = plan::make_plan(problem, options);
    for (std::size_t s = 0; s < peaks.size(); ++s) {
      EXPECT_TRUE(peaks[s] == plan::kNowhere || peaks[s] <= answer.spaces[s].peak);
    }
  }
}

}  // namespace
}  // namespace ashlar
