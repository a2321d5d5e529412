// Stored hashes of what the planner and its parts compute: clause P4, the same bytes on every machine and with every compiler.
//
// Imitates: a plan made on one machine and made again on another. The other suites compare runs of one build with each other;
// this one compares every build with the numbers below, so it notices a compiler or a library that sorts, rounds or shifts
// otherwise, and a change of an order or of a count of steps that nobody meant.
// Does not prove: that any of these answers is good, or valid; planner_test judges them.
//
// A change of an order, a limit or a count of steps is permitted between versions (plan/solve/README.md). Then, after all other
// suites have passed, `ASHLAR_PLAN_FINGERPRINTS=1 build/release/props/planner_fingerprint_test` prints the numbers to put here.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>
#include <ashlar/plan/solve/fills.h>
#include <ashlar/plan/solve/first_fit.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/repair.h>
#include <ashlar/plan/solve/search_lanes.h>
#include <ashlar/plan/solve/skyline_search.h>
#include <ashlar/plan/solve/valley_fill.h>

#include "props/plan/generate.h"
#include "props/plan/packing.h"
#include "props/plan/planner_cases.h"

namespace ashlar {
namespace {

using plan::Problem;
using plan::solve::ItemIndex;
using plan::solve::Items;
using plan::solve::Units;

/// FNV-1a over words.
class Fingerprint {
 public:
  void add(std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      value_ = (value_ ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3u;
    }
  }
  void add(Units units) { add(static_cast<std::uint64_t>(units)); }
  void add(std::int32_t rank) { add(static_cast<std::uint64_t>(static_cast<std::int64_t>(rank))); }
  void add(std::uint32_t index) { add(std::uint64_t{index}); }
  void add(Bytes bytes) { add(bytes.count()); }
  template <class T>
  void add(const std::vector<T>& values) {
    add(std::uint64_t{values.size()});
    for (const T& value : values) add(value);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

void expect_stored(const Fingerprint& found, std::uint64_t stored) {
  if (std::getenv("ASHLAR_PLAN_FINGERPRINTS") != nullptr) {
    const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
    std::printf("%s: 0x%016llx\n", info->name(), static_cast<unsigned long long>(found.value()));
    return;
  }
  EXPECT_EQ(found.value(), stored) << "see the head of this file";
}

/// Problems of every kind and several sizes; none has a capacity.
std::vector<Problem> corpus(std::uint64_t seed, int count, const GenerateLimits& limits) {
  spec::Random random(seed);
  std::vector<Problem> problems;
  for (int i = 0; i < count; ++i) {
    if (i % 3 != 2) {
      problems.push_back(generate_problem(&random, limits));
      for (plan::Space& space : problems.back().spaces) space.capacity = plan::kNowhere;
      continue;
    }
    PackingMaker maker(&random, 20, 300, limits.buffers_max);
    if (random.one_in(2)) maker.add_features();
    problems.push_back(maker.take().problem);
  }
  return problems;
}

/// A thousand and more buffers, which are repaired; more than 3 000 are not searched.
Problem large_problem(spec::Random* random, std::size_t buffers, plan::Time times,
                      plan::Time longest) {
  Problem problem;
  for (std::size_t b = 0; b < buffers; ++b) {
    const auto lower = static_cast<plan::Time>(random->below(static_cast<std::uint64_t>(times)));
    const auto life = static_cast<plan::Time>(random->below(static_cast<std::uint64_t>(longest)));
    problem.buffers.push_back(plain_buffer(lower, lower + 1 + life, 1 + random->below(2'000)));
    if (random->one_in(8)) problem.buffers.back().alignment = Bytes{64};
  }
  return problem;
}

void add_plan(Fingerprint* found, const plan::Plan& plan) {
  found->add(plan.offsets);
  for (const plan::SpaceAnswer& space : plan.spaces) {
    found->add(space.peak);
    found->add(space.lower_bound);
  }
  found->add(plan.cannot_fit);
}

TEST(PlannerFingerprint, RanksOfItemsInEveryOrder) {
  Fingerprint found;
  spec::Random random(31);
  for (const Problem& problem : corpus(31, 12, {30, 400, 5'000, 10})) {
    const Items items = plan::solve::make_items(problem, 0);
    std::vector<std::uint64_t> blames(items.size());
    for (std::uint64_t& blame : blames) blame = random.below(1'000);
    for (std::uint64_t attempt = 0; attempt < 40; ++attempt) {
      const plan::solve::FillOrder order = plan::solve::fill_order(items, attempt);
      found.add(order.ranks);
      found.add(std::uint64_t{order.picks_best ? 1u : 0u});
      found.add(std::uint64_t{order.is_backwards ? 1u : 0u});
      found.add(plan::solve::search_ranks(items, attempt + 1, blames));
      found.add(plan::solve::search_ranks(items, attempt + 1, {}));
    }
  }
  expect_stored(found, 0x6dd6588f6ae40373u);
}

TEST(PlannerFingerprint, FillsInTheirFixedAndRandomOrders) {
  Fingerprint found;
  for (const Problem& problem : corpus(32, 30, {60, 60, 12, 20})) {
    const Items items = plan::solve::make_items(problem, 0);
    plan::solve::Fills fills(items);
    for (std::uint32_t k = 0; k < 20; ++k) {
      std::vector<Units> offsets;
      found.add(fills.run(k, std::numeric_limits<Units>::max(), nullptr, &offsets));
      found.add(offsets);
      found.add(fills.cost(k));
    }
  }
  expect_stored(found, 0xe2c44b01284e8965u);
}

TEST(PlannerFingerprint, SearchesWithTheirStepsAndBlames) {
  Fingerprint found;
  spec::Random random(33);
  const plan::solve::StopCondition stop;
  int index = 0;
  for (const Problem& problem : corpus(33, 300, {40, 24, 60, 10})) {
    const Items items = plan::solve::make_items(problem, 0);
    if (items.size() == 0) continue;
    plan::solve::SkylineSearch search(items);
    plan::solve::SearchMemory memory;
    for (std::uint64_t attempt = 1; attempt <= 8; ++attempt) {
      const Units capacity =
          items.lower_bound + items.lower_bound * static_cast<Units>(random.below(8)) / 100;
      const std::uint64_t steps = random.one_in(3) ? random.below(20'000) : 60'000;
      const auto outcome =
          search.run(capacity, plan::solve::search_ranks(items, attempt, memory.blames),
                     {100 + random.below(400), steps, &stop}, &memory);
      found.add(static_cast<std::uint64_t>(outcome));
      found.add(search.steps());
      found.add(memory.blames);
      if (outcome == plan::solve::SkylineSearch::Outcome::kFound) found.add(search.offsets());
    }
    index += 1;
  }
  EXPECT_GT(index, 200);
  expect_stored(found, 0xe13dac16b7b74c17u);
}

TEST(PlannerFingerprint, SearchesInTwoLanes) {
  Fingerprint found;
  spec::Random random(34);
  const plan::solve::StopCondition stop;
  for (const Problem& problem : corpus(34, 150, {45, 24, 60, 20})) {
    const Items items = plan::solve::make_items(problem, 0);
    if (items.size() == 0) continue;
    const Units above =
        1 + static_cast<Units>(random.below(1 + static_cast<std::uint64_t>(items.lower_bound) / 4));
    plan::solve::SearchLanes lanes(items, {items.lower_bound, items.lower_bound + above}, 0,
                                   nullptr);
    std::vector<std::uint64_t> attempts;
    lanes.run({1 + random.below(300'000), 1, &stop,
               [&attempts](std::size_t lane) { attempts.push_back(lane); }});
    found.add(lanes.bounds().lower_bound);
    found.add(lanes.bounds().best);
    found.add(lanes.offsets());
    found.add(attempts);
  }
  expect_stored(found, 0x5c58af27fc7f4e69u);
}

TEST(PlannerFingerprint, RepairsWithTheirSteps) {
  Fingerprint found;
  spec::Random random(35);
  const plan::solve::StopCondition stop;
  for (int i = 0; i < 48; ++i) {
    const Problem problem =
        i % 2 == 0 ? large_problem(&random, 300 + random.below(600), 400, i % 4 == 0 ? 40 : 6)
                   : generate_problem(&random, {150, 120, 400, 60});
    const Items items = plan::solve::make_items(problem, 0);
    if (items.size() == 0) continue;
    plan::solve::Fills fills(items);
    std::vector<Units> offsets;
    Units peak = fills.run(static_cast<std::uint32_t>(random.below(8)),
                           std::numeric_limits<Units>::max(), nullptr, &offsets);
    plan::solve::Repair repair(items);
    for (int again = 0; again < 4 && peak > items.lower_bound; ++again) {
      const Units target = peak - 1 - (peak - 1 - items.lower_bound) * again / 4;
      const std::uint64_t steps = random.one_in(3) ? random.below(40'000) : 400'000;
      const bool is_lower = repair.lower(target, &offsets, steps, stop);
      found.add(std::uint64_t{is_lower ? 1u : 0u});
      found.add(repair.steps());
      found.add(offsets);
      peak = plan::solve::peak_of(items, offsets);
    }
  }
  expect_stored(found, 0xfd28926cca1562e3u);
}

TEST(PlannerFingerprint, PlansOfSmallProblems) {
  Fingerprint found;
  spec::Random random(36);
  for (Problem& problem : corpus(36, 150, {70, 40, 90})) {
    if (random.one_in(3))
      problem.spaces[0].capacity =
          Bytes{1 + peaks_of(problem, generate_plan(&random, problem))[0].count() / 2};
    add_plan(&found, plan::make_plan(problem, with_work(random.below(300'000))));
  }
  expect_stored(found, 0xf9a01ecf6dea14f5u);
}

/// Cut from a rectangle, so that greedy fills and repairs come near the least peak and seldom reach it.
TEST(PlannerFingerprint, PlansOfLargeProblemsWithoutRoomToSpare) {
  Fingerprint found;
  spec::Random random(38);
  constexpr std::size_t kBuffers[] = {998, 999, 1'000, 1'001, 1'400, 3'001, 3'100};
  int unsolved = 0;
  for (const std::size_t buffers : kBuffers) {
    for (int again = 0; again < 3; ++again) {
      Problem problem = PackingMaker(&random, 700, 20'000, buffers).take().problem;
      const plan::Plan plan =
          plan::make_plan(problem, with_work(1'500'000 + random.below(4'000'000)));
      add_plan(&found, plan);
      unsolved += plan.spaces[0].is_proved_optimal() ? 0 : 1;
    }
  }
  EXPECT_GT(unsolved, 10);
  expect_stored(found, 0x6dfb3e618f5c9b7du);
}

TEST(PlannerFingerprint, SearchesWithGapsAndFewSizes) {
  Fingerprint found;
  spec::Random random(39);
  const plan::solve::StopCondition stop;
  int with_gaps = 0;
  for (int i = 0; i < 1'500; ++i) {
    const Problem problem = generate_problem(&random, {24, 12, 3, 10});
    with_gaps += problem.gaps.empty() ? 0 : 1;
    const Items items = plan::solve::make_items(problem, 0);
    plan::solve::SkylineSearch search(items);
    plan::solve::SearchMemory memory;
    for (const std::uint64_t attempt : {1u, 2u, 5u}) {
      const auto outcome = search.run(items.lower_bound + static_cast<Units>(i % 3),
                                      plan::solve::search_ranks(items, attempt, memory.blames),
                                      {200, 60'000, &stop}, &memory);
      found.add(static_cast<std::uint64_t>(outcome));
      found.add(search.steps());
      if (outcome == plan::solve::SkylineSearch::Outcome::kFound) found.add(search.offsets());
    }
  }
  EXPECT_GT(with_gaps, 300);
  expect_stored(found, 0x453f073ec03ba47bu);
}

TEST(PlannerFingerprint, RepairsOfPoorPlansWithManyHighItems) {
  Fingerprint found;
  spec::Random random(40);
  const plan::solve::StopCondition stop;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = generate_problem(&random, {70, 40, 9, 30});
    const Items items = plan::solve::make_items(problem, 0);
    std::vector<ItemIndex> order(items.size());
    for (ItemIndex k = 0; k < items.size(); ++k) order[k] = k;
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random.below(k)]);
    std::vector<Units> offsets;
    Units peak =
        plan::solve::first_fit(items, order, std::numeric_limits<Units>::max(), nullptr, &offsets);
    plan::solve::Repair repair(items);
    while (peak > items.lower_bound) {
      const Units target = (peak + items.lower_bound) / 2;
      const bool is_lower = repair.lower(target, &offsets, 400'000, stop);
      found.add(repair.steps());
      found.add(offsets);
      if (!is_lower) break;
      peak = plan::solve::peak_of(items, offsets);
    }
  }
  expect_stored(found, 0x5325c65a16f13c1cu);
}

TEST(PlannerFingerprint, PlansOfLargeProblems) {
  Fingerprint found;
  spec::Random random(37);
  constexpr std::size_t kBuffers[] = {999, 1'000, 1'001, 1'500, 3'000, 3'001, 5'000};
  for (const std::size_t buffers : kBuffers) {
    for (const plan::Time longest : {8, 60}) {
      const Problem problem = large_problem(&random, buffers, 600, longest);
      add_plan(&found, plan::make_plan(problem, with_work(1 + random.below(12'000'000))));
    }
  }
  expect_stored(found, 0xa925867c8b36e1bfu);
}

}  // namespace
}  // namespace ashlar
