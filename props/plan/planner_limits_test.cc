// What the planner's parts promise about limits: steps, nodes, threads, memory, and who is called when.
//
// Imitates: limits at their exact bounds, callbacks that throw, more threads than work. Does not prove: that a limit of time is
// kept to the millisecond (bench/), or that every interleaving of threads was seen.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>
#include <ashlar/plan/solve/compact.h>
#include <ashlar/plan/solve/failed_parts.h>
#include <ashlar/plan/solve/fills.h>
#include <ashlar/plan/solve/first_fit.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/parallel.h>
#include <ashlar/plan/solve/search_lanes.h>
#include <ashlar/plan/solve/skyline_search.h>

#include "props/plan/generate.h"
#include "props/plan/packing.h"
#include "props/plan/planner_cases.h"

namespace ashlar {
namespace {

using plan::Problem;
using plan::solve::FailedParts;
using plan::solve::ItemIndex;
using plan::solve::Items;
using plan::solve::kNotPinned;
using plan::solve::SkylineSearch;
using plan::solve::Units;

constexpr Units kNoLimit = std::numeric_limits<Units>::max();
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

TEST(FailedPartsTest, TheTwoNewestKeysOfAPlaceAreHeldWithinTheirCapacityAndNoOtherKeyIs) {
  spec::Random random(61);
  FailedParts parts;
  EXPECT_FALSE(parts.holds({0, 0}));
  FailedParts::Key before;
  Units before_capacity = -1;
  for (int k = 0; k < 120; ++k) {  // fewer than half of the entries of the first table
    const FailedParts::Key key{(1 + random.below(1'000)) << 8, 1 + random.next() / 2};
    const auto capacity = static_cast<Units>(random.below(4));
    parts.begin(capacity);
    parts.add(key);
    for (Units asked = 0; asked < 5; ++asked) {
      parts.begin(asked);
      ASSERT_EQ(parts.holds(key), asked <= capacity) << k;
      ASSERT_EQ(parts.holds(before), asked <= before_capacity) << k;
      ASSERT_FALSE(parts.holds({key.bucket, key.check + 1})) << k;
      ASSERT_FALSE(parts.holds({key.bucket + 2, key.check})) << k;
    }
    before = key;
    before_capacity = capacity;
  }
}

TEST(FailedPartsTest, GrowsWithoutLosingAKeyUntilItsMemoryIsUsedUp) {
  constexpr std::uint64_t kEntriesMax = 1u << 20;
  FailedParts parts;
  parts.begin(7);
  for (std::uint64_t k = 0; k < kEntriesMax / 2; k += 2) {
    parts.add({k, ~k});
    ASSERT_TRUE(parts.holds({k, ~k}));
    if ((k & (k + 2)) != 0) continue;
    for (std::uint64_t old = 0; old <= k; old += 2) ASSERT_TRUE(parts.holds({old, ~old})) << k;
  }
  for (std::uint64_t k = 0; k < kEntriesMax; k += 2) parts.add({k, ~k});
  // Keys that differ in the highest bit of the full table have places of their own;
  for (const std::uint64_t k : {0u, 1u, 2u, 3u}) parts.add({2 + k * kEntriesMax / 4, k});
  for (const std::uint64_t k : {0u, 1u, 2u, 3u})
    EXPECT_TRUE(parts.holds({2 + k * kEntriesMax / 4, k}));
  // keys that differ above it share one, which holds two.
  for (const std::uint64_t k : {0u, 1u, 2u}) parts.add({4 + k * kEntriesMax, k});
  EXPECT_FALSE(parts.holds({4, 0}));
  EXPECT_TRUE(parts.holds({4 + kEntriesMax, 1}));
  EXPECT_TRUE(parts.holds({4 + 2 * kEntriesMax, 2}));
}

TEST(ForEachJob, EveryJobRunsOnceOnNoMoreThreadsThanPermitted) {
  for (const unsigned threads : {0u, 1u, 2u, 3u, 8u}) {
    for (const std::uint32_t count : {0u, 1u, 2u, 5u, 30u}) {
      std::vector<std::atomic<int>> runs(count);
      std::mutex mutex;
      std::set<std::thread::id> ids;
      plan::solve::for_each_job(threads, count, [&](std::uint32_t i) {
        runs[i] += 1;
        {
          const std::lock_guard<std::mutex> lock(mutex);
          ids.insert(std::this_thread::get_id());
        }
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      });
      for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
      EXPECT_LE(ids.size(), std::max<std::size_t>(1, std::min<std::size_t>(threads, count)));
      EXPECT_TRUE(threads > 1 || count == 0 || ids.count(std::this_thread::get_id()) == 1);
    }
  }
}

TEST(ForEachJob, TwoThreadsRunTwoJobsAtTheSameTime) {
  std::atomic<int> begun{0};
  bool have_met[2] = {false, false};
  plan::solve::for_each_job(2, 2, [&](std::uint32_t i) {
    begun += 1;
    for (int waits = 0; begun < 2 && waits < 10'000; ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    have_met[i] = begun == 2;
  });
  EXPECT_TRUE(have_met[0] && have_met[1]);
}

TEST(ForEachJob, TheFirstExceptionIsRethrown) {
  std::atomic<bool> has_thrown{false};
  std::atomic<int> begun{0};
  std::string caught;
  try {
    plan::solve::for_each_job(2, 2, [&](std::uint32_t i) {
      begun += 1;
      for (int waits = 0; begun < 2 && waits < 10'000; ++waits)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (i == 0) {
        has_thrown = true;
        throw std::runtime_error("the first");
      }
      while (!has_thrown) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      throw std::runtime_error("a later one");
    });
  } catch (const std::runtime_error& error) {
    caught = error.what();
  }
  EXPECT_EQ(caught, "the first");
}

/// A second thread that did not notice would begin all the jobs that are left.
TEST(ForEachJob, NoJobIsBegunAfterAnException) {
  for (const unsigned threads : {1u, 2u}) {
    std::atomic<bool> has_thrown{false};
    std::atomic<int> late{0};
    EXPECT_THROW(
        plan::solve::for_each_job(threads, 1'000,
                                  [&](std::uint32_t i) {
                                    late += has_thrown ? 1 : 0;
                                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                    if (i != 3) return;
                                    has_thrown = true;
                                    throw std::runtime_error("from a job");
                                  }),
        std::runtime_error);
    EXPECT_LE(late, threads == 1 ? 0 : 500);
  }
}

/// `count` items of which `pinned` are pinned, without pieces: enough to be counted.
Items counted_items(std::size_t count, std::size_t pinned) {
  Items items;
  items.items.assign(count, {0, 0, 0, 1, 1, 1, kNotPinned});
  for (std::size_t i = 0; i < pinned; ++i) items.items[i].pinned = 0;
  return items;
}

TEST(FillsTest, FirstFitIsThereUpToItsNumberOfPairsAndSoonUpToAFewer) {
  struct Case {
    std::size_t items, pinned;
    bool is_there, is_soon;
  };
  // Pairs: of the items that are not pinned, with all.
  constexpr Case kCases[] = {{10, 3, true, true},
                             {5'000, 3'000, true, true},        // 10^7
                             {5'001, 3'001, true, false},       // 10'002'000
                             {10'001, 9'002, true, true},       // 9'990'999
                             {30'000, 0, true, false},          // 9 * 10^8
                             {30'001, 1, false, false},         // 900'030'000
                             {100'000, 99'900, true, true},     // 10^7
                             {100'000, 91'000, true, false},    // 9 * 10^8
                             {100'000, 90'999, false, false}};  // 9 * 10^8 + 10^5
  for (const Case& one : kCases) {
    const Items items = counted_items(one.items, one.pinned);
    const plan::solve::Fills fills(items);
    EXPECT_EQ(fills.initial_count(), one.is_soon ? 10u : 8u) << one.items;
    const std::uint32_t first = one.is_soon ? 8 : 40;
    for (std::uint32_t k = 0; k < 60; ++k) {
      const bool is_first_fit = one.is_there && (k == first || k == first + 1);
      EXPECT_EQ(fills.cost(k),
                is_first_fit ? (one.items - one.pinned) * one.items / 4 : 100 * one.items)
          << one.items << " items, attempt " << k;
    }
  }
}

TEST(FillsTest, AttemptsEightAndNineAreFirstFitsByHeightAndByArea) {
  spec::Random random(62);
  for (int i = 0; i < cases(200); ++i) {
    const Problem problem = generate_problem(&random, {20, 20, 9, 2});
    const Items items = plan::solve::make_items(problem, 0);
    plan::solve::Fills fills(items);
    for (const bool by_area : {false, true}) {
      // The order, said otherwise: by the logarithm, then the height, then the number.
      std::vector<ItemIndex> order(items.size());
      for (ItemIndex k = 0; k < items.size(); ++k) order[k] = k;
      std::sort(order.begin(), order.end(), [&](ItemIndex a, ItemIndex b) {
        const auto key = [&](ItemIndex k) {
          const plan::solve::Item& item = items.items[k];
          const std::int32_t width = plan::solve::log2_fixed(item.last - item.first);
          return std::pair(plan::solve::log2_fixed(static_cast<std::uint64_t>(item.height)) +
                               (by_area ? width : 0),
                           item.height);
        };
        return key(a) != key(b) ? key(a) > key(b) : a < b;
      });
      EXPECT_EQ(plan::solve::order_by_size(items, by_area), order);
      std::vector<Units> expected, offsets;
      const Units peak = plan::solve::first_fit(items, order, kNoLimit, nullptr, &expected);
      ASSERT_EQ(fills.run(by_area ? 9 : 8, kNoLimit, nullptr, &offsets), peak);
      ASSERT_EQ(offsets, expected);
    }
  }
}

TEST(SearchLimits, AnInstanceIsSearchedUpToItsItemsAndItsCover) {
  for (const std::uint32_t pinned : {0u, 10u}) {
    EXPECT_TRUE(SkylineSearch::can_search(counted_items(3'000 + pinned, pinned)));
    EXPECT_FALSE(SkylineSearch::can_search(counted_items(3'001 + pinned, pinned)));
  }
  Items wide = counted_items(2, 0);
  wide.pieces = {{0, 1u << 23, 1}, {5, 5 + (1u << 23), 1}};
  EXPECT_TRUE(SkylineSearch::can_search(wide));
  wide.pieces[1].last += 1;
  EXPECT_FALSE(SkylineSearch::can_search(wide));
}

struct SearchRun {
  SkylineSearch::Outcome outcome;
  std::uint64_t steps;
  std::vector<Units> offsets;
  std::vector<std::uint64_t> blames;
  friend bool operator==(const SearchRun&, const SearchRun&) = default;
};

SearchRun run_once(SkylineSearch* search, const Items& items, Units capacity,
                   const SkylineSearch::Limits& limits) {
  plan::solve::SearchMemory memory;
  const std::uint64_t before = search->steps();
  const auto outcome =
      search->run(capacity, plan::solve::search_ranks(items, 3, {}), limits, &memory);
  return {outcome, search->steps() - before,
          outcome == SkylineSearch::Outcome::kFound ? search->offsets() : std::vector<Units>(),
          memory.blames};
}

TEST(SearchLimits, ASearchThatHasRunBeforeRunsAsANewOneWhateverItsLimits) {
  spec::Random random(63);
  const plan::solve::StopCondition stop;
  int stopped = 0, ended = 0;
  for (int i = 0; i < cases(300); ++i) {
    const Packing packing = PackingMaker(&random, 40, 300, 25 + random.below(45)).take();
    const Items items = plan::solve::make_items(packing.problem, 0);
    SkylineSearch used(items);
    SearchRun longest{};
    for (int again = 0; again < 5; ++again) {
      const Units capacity = items.lower_bound + static_cast<Units>(random.below(3));
      const std::uint64_t steps = random.one_in(2) ? kNever : random.below(30'000);
      const SkylineSearch::Limits limits{random.below(400), steps, &stop};
      SkylineSearch fresh(items);
      const SearchRun expected = run_once(&fresh, items, capacity, limits);
      const SearchRun found = run_once(&used, items, capacity, limits);
      ASSERT_EQ(found, expected) << "case " << i;
      (found.outcome == SkylineSearch::Outcome::kStopped ? stopped : ended) += 1;
      for (const std::uint64_t blame : found.blames) ASSERT_LE(blame, found.steps) << "case " << i;
      // A larger limit goes on where a smaller one stopped.
      SkylineSearch other(items);
      const SearchRun further =
          run_once(&other, items, capacity, {limits.nodes + 64, steps, &stop});
      ASSERT_GE(further.steps, found.steps) << "case " << i;
      ASSERT_TRUE(found.outcome == SkylineSearch::Outcome::kStopped || further == found);
    }
  }
  EXPECT_GT(stopped, 100);
  EXPECT_GT(ended, 100);
}

TEST(SearchLimits, NothingIsBlamedIfTheFirstWayDownIsAPlan) {
  Problem problem;
  for (plan::Time t = 0; t < 9; ++t) problem.buffers.push_back(plain_buffer(t, t + 1, 5));
  const Items items = plan::solve::make_items(problem, 0);
  const plan::solve::StopCondition stop;
  SkylineSearch search(items);
  const SearchRun run = run_once(&search, items, 5, {kNever, kNever, &stop});
  EXPECT_EQ(run.outcome, SkylineSearch::Outcome::kFound);
  EXPECT_EQ(run.blames, std::vector<std::uint64_t>(9, 0));
}

struct CountingMonitor : plan::solve::SearchMonitor {
  bool should_stop(std::uint64_t steps) override {
    EXPECT_GE(steps, reached);
    reached = steps;
    calls += 1;
    return calls == stop_at;
  }
  std::uint64_t calls = 0, reached = 0, stop_at = 0;
};

TEST(SearchLimits, AMonitorIsAskedOnceInThirtyTwoNodesAndObeyed) {
  spec::Random random(64);
  int stopped = 0;
  for (int i = 0; i < 200; ++i) {
    const Packing packing = PackingMaker(&random, 40, 300, 60).take();
    const Items items = plan::solve::make_items(packing.problem, 0);
    const std::uint64_t nodes = 300 + random.below(64);
    SkylineSearch search(items);
    CountingMonitor monitor;
    if (i % 2 == 1) monitor.stop_at = 1 + random.below(8);
    const SearchRun run =
        run_once(&search, items, items.lower_bound, {nodes, kNever, nullptr, &monitor});
    if (run.outcome != SkylineSearch::Outcome::kStopped) continue;
    stopped += 1;
    EXPECT_EQ(monitor.calls, i % 2 == 1 ? monitor.stop_at : nodes / 32);
    EXPECT_LE(monitor.reached, run.steps);
  }
  EXPECT_GT(stopped, 20);
}

/// A lane that went on would wait for the broken one for ever.
TEST(SearchLimits, AnExceptionInOneLaneEndsTheOther) {
  spec::Random random(65);
  const plan::solve::StopCondition stop;
  int thrown = 0;
  for (int i = 0; i < 20; ++i) {
    const Packing packing = PackingMaker(&random, 60, 700, 120).take();
    const Items items = plan::solve::make_items(packing.problem, 0);
    for (const unsigned threads : {1u, 2u}) {
      plan::solve::SearchLanes lanes(items, {items.lower_bound, items.lower_bound * 2}, 0, nullptr);
      std::atomic<bool> has_thrown{false};
      try {
        lanes.run({30'000'000, threads, &stop, [&](std::size_t lane) {
                     if (lane == static_cast<std::size_t>(i % 2) && !has_thrown.exchange(true))
                       throw std::runtime_error("from a lane");
                   }});
      } catch (const std::runtime_error&) {
        thrown += 1;
      }
    }
  }
  EXPECT_GT(thrown, 10);
}

TEST(PlannerProgress, EveryBetterPeakIsToldTheLastIsTheAnswersAndSmallSpacesComeFirst) {
  spec::Random random(66);
  const auto self = std::this_thread::get_id();
  int switched = 0;
  for (int i = 0; i < cases(300); ++i) {
    Problem problem = generate_problem(&random, {60, 40, 60, 4});
    for (plan::Space& space : problem.spaces) space.capacity = plan::kNowhere;
    std::vector<std::uint32_t> sizes(problem.spaces.size(), 0);
    for (const plan::Buffer& buffer : problem.buffers) sizes[buffer.space] += 1;
    std::vector<Bytes> told(problem.spaces.size(), plan::kNowhere);
    std::vector<std::uint32_t> spaces;
    bool is_own_thread = true;
    plan::PlanOptions options = with_work(random.below(60'000));
    options.progress = [&](std::uint32_t space, Bytes peak, Bytes lower_bound) {
      is_own_thread = is_own_thread && std::this_thread::get_id() == self;
      EXPECT_LT(peak, told[space]);
      EXPECT_LE(lower_bound, peak);
      told[space] = peak;
      if (spaces.empty() || spaces.back() != space) spaces.push_back(space);
    };
    const plan::Plan answer = plan::make_plan(problem, options);
    EXPECT_TRUE(is_own_thread) << "case " << i;
    ASSERT_EQ(spaces.size(), problem.spaces.size()) << "case " << i;
    for (std::size_t k = 0; k < spaces.size(); ++k) {
      ASSERT_EQ(told[k], answer.spaces[k].peak) << "case " << i;
      if (k == 0) continue;
      const std::uint32_t one = spaces[k - 1], next = spaces[k];
      ASSERT_TRUE(std::pair(sizes[one], one) < std::pair(sizes[next], next)) << "case " << i;
      switched += next < one ? 1 : 0;
    }
  }
  EXPECT_GT(switched, 10);
}

TEST(PlannerProgress, WithOneThreadNoOtherIsUsedAndAnExceptionReachesTheCaller) {
  spec::Random random(67);
  for (int i = 0; i < 40; ++i) {
    const Packing packing = PackingMaker(&random, 60, 700, 100).take();
    plan::PlanOptions options = with_work(2'000'000);
    options.threads = 1 + static_cast<unsigned>(i) % 3;
    int calls = 0;
    const int last = 1 + i % 2;
    options.progress = [&](std::uint32_t, Bytes, Bytes) {
      if (++calls == last) throw std::runtime_error("from the caller");
    };
    const plan::Plan quiet = plan::make_plan(packing.problem, with_work(2'000'000));
    EXPECT_EQ(violation(packing.problem, quiet), "");
    try {
      plan::make_plan(packing.problem, options);
      EXPECT_LT(calls, last) << "case " << i;
    } catch (const std::runtime_error&) {
      EXPECT_EQ(calls, last) << "case " << i;
    }
  }
}

TEST(PlannerProgress, WithoutTimeTheAnswerIsTheGivenPlanMovedDownOrElseTheFirstFill) {
  spec::Random random(68);
  int poor = 0;
  for (int i = 0; i < cases(200); ++i) {
    Problem problem = generate_problem(&random, {40, 30, 60, 5});
    problem.spaces.resize(1);
    for (plan::Buffer& buffer : problem.buffers) {
      buffer.space = 0;
      buffer.group = plan::kNoGroup;
      buffer.pinned = buffer.hint = plan::kNowhere;
      buffer.alignment = 1_B;
    }
    const Items items = plan::solve::make_items(problem, 0);
    const std::vector<Bytes> start = generate_plan(&random, problem);
    std::vector<Units> given, offsets;
    for (const Bytes offset : start) given.push_back(static_cast<Units>(offset / items.unit));
    ASSERT_TRUE(plan::solve::compact(items, given, &offsets));
    plan::PlanOptions options;
    options.time_limit = std::chrono::nanoseconds(0);
    options.warm_start = &start;
    std::vector<Bytes> expected(problem.buffers.size());
    plan::solve::write_offsets(items, offsets, &expected);
    ASSERT_EQ(plan::make_plan(problem, options).offsets, expected) << "case " << i;
    const Units warm = plan::solve::peak_of(items, offsets);

    options.warm_start = nullptr;
    plan::solve::Fills fills(items);
    const Units first = fills.run(0, kNoLimit, nullptr, &offsets);
    plan::solve::write_offsets(items, offsets, &expected);
    ASSERT_EQ(plan::make_plan(problem, options).offsets, expected) << "case " << i;
    poor += first < warm ? 1 : 0;
  }
  EXPECT_GT(poor, 50);
}

// As a command does that is interrupted.
TEST(PlannerProgress, AFlagThatIsSetEndsTheSearchAsATimeLimitDoes) {
  spec::Random random(69);
  int improvable = 0;
  for (int i = 0; i < 40; ++i) {
    const Packing packing = PackingMaker(&random, 60, 700, 100).take();
    plan::PlanOptions no_time;
    no_time.time_limit = std::chrono::nanoseconds(0);
    const plan::Plan first = plan::make_plan(packing.problem, no_time);
    std::atomic<bool> is_stopped{true};
    plan::PlanOptions options = with_work(2'000'000);
    options.stop = &is_stopped;
    options.threads = 1 + static_cast<unsigned>(i) % 3;
    EXPECT_EQ(plan::make_plan(packing.problem, options).offsets, first.offsets) << "case " << i;
    // Set at the first answer, it is seen too.
    is_stopped = false;
    options.progress = [&is_stopped](std::uint32_t, Bytes, Bytes) { is_stopped = true; };
    const plan::Plan soon = plan::make_plan(packing.problem, options);
    EXPECT_EQ(violation(packing.problem, soon), "");
    const plan::Plan best = plan::make_plan(packing.problem, with_work(2'000'000));
    improvable += best.spaces[0].peak < soon.spaces[0].peak ? 1 : 0;
  }
  EXPECT_GT(improvable, 5) << "where the search would have gone on";
}

}  // namespace
}  // namespace ashlar
