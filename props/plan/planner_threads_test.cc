// The planner with several threads: the same bytes as with one thread, and no data race (the tsan
// preset runs this suite).
//
// Imitates: problems whose search lasts long enough for threads to interleave, ended anywhere by
// work, by a capacity, or by a proof.
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
    // Some have a capacity, which the search may meet in either lane.
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

TEST(PlannerThreads, ASolvedProblemHasTheSameBytes) {
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

/// Searches from a poor plan, with lane `delayed` held up after every attempt; no lane has number 9.
Searched search(const plan::solve::Items& items, plan::solve::Units best, plan::solve::Units goal,
                unsigned threads, std::size_t delayed, std::uint64_t work = 200'000) {
  const plan::solve::StopCondition stop;
  plan::solve::SearchLanes lanes(items, {items.lower_bound, best}, goal, nullptr);
  lanes.run({work, threads, &stop, [delayed](std::size_t lane) {
               if (lane == delayed) std::this_thread::sleep_for(std::chrono::microseconds(200));
             }});
  return {lanes.bounds().lower_bound, lanes.bounds().best, lanes.offsets()};
}

/// A problem that is searched long: a random one, or one cut from a rectangle.
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

/// By the clock, either lane may be the first to find something.
TEST(PlannerThreads, ADelayedLaneChangesNothing) {
  spec::Random random(26);
  int solved = 0;
  for (int i = 0; i < 250; ++i) {
    const plan::solve::Items items = plan::solve::make_items(searched_problem(&random), 0);
    const plan::solve::Units bound = items.lower_bound;
    const plan::solve::Units goal =
        random.one_in(3) ? 0
                         : bound * static_cast<plan::solve::Units>(100 + random.below(20)) / 100;
    const plan::solve::Units worst = bound * 5 / 4 + 1;
    const Searched one = search(items, worst, goal, 1, 9);
    for (const std::size_t delayed : {0u, 1u, 9u})
      ASSERT_EQ(search(items, worst, goal, 2, delayed), one) << "case " << i;
    solved += one.best <= std::max(one.lower_bound, goal) ? 1 : 0;
  }
  EXPECT_GT(solved, 30);
}

/// The lane above the bound has no capacity to try and leaves its work to the other lane, but too late
/// for that lane's first attempt, whatever the clock says.
TEST(PlannerThreads, ALaneRetiresAtTheSameTimeInEveryRun) {
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
      // in half of the cases all sizes are equal, and so are all fills' peaks
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

TEST(PlannerThreads, TheAnswerIsValidAtAnyTimeLimit) {
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
    // Not locked, so that tsan would notice two threads at once.
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
