// Parts of the planner, each by itself: moving a plan down, first fit and repair; and replan(), which
// is built on the planner.
//
// Imitates: poor plans, and buffers that change. Does not prove: that repairs find most improvements
// (bench/).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>
#include <ashlar/plan/replan.h>
#include <ashlar/plan/solve/compact.h>
#include <ashlar/plan/solve/first_fit.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/repair.h>

#include "props/plan/generate.h"
#include "props/plan/planner_cases.h"
#include "spec/plan/brute_force.h"

namespace ashlar {
namespace {

using plan::Problem;

/// The items' offsets in units; nothing if buffers of one item disagree, or an offset is not a
/// multiple of the unit.
std::optional<std::vector<plan::solve::Units>> in_units(const plan::solve::Items& items,
                                                        const std::vector<Bytes>& offsets) {
  std::vector<plan::solve::Units> units(items.size(), -1);
  for (std::size_t b = 0; b < offsets.size(); ++b) {
    const plan::solve::ItemIndex item = items.item_of[b];
    if (item == plan::solve::kNoItem) continue;
    const auto own = static_cast<plan::solve::Units>(offsets[b] / items.unit);
    if (offsets[b] % items.unit != 0 || (units[item] != -1 && units[item] != own))
      return std::nullopt;
    units[item] = own;
  }
  return units;
}

TEST(CompactTest, MovesAValidPlanDownAndRefusesAnInvalidOne) {
  spec::Random random(20);
  int moved = 0, refused = 0;
  for (int i = 0; i < cases(5'000); ++i) {
    Problem problem = generate_problem(&random);
    problem.spaces.resize(1);
    for (plan::Buffer& buffer : problem.buffers) buffer.space = 0;
    if (problem.buffers.empty() || !plan::check_problem(problem).status.is_ok()) continue;
    const plan::solve::Items items = plan::solve::make_items(problem, 0);
    std::vector<Bytes> plan = generate_plan(&random, problem);
    plan[random.below(plan.size())] = items.unit * random.below(30);
    const auto given = in_units(items, plan);
    if (!given) continue;
    std::vector<plan::solve::Units> offsets;
    if (!plan::solve::compact(items, *given, &offsets)) {
      ASSERT_TRUE(spec::check_plan(problem, plan).has_value()) << "case " << i;
      refused += 1;
      continue;
    }
    for (plan::solve::ItemIndex item = 0; item < items.size(); ++item)
      ASSERT_LE(offsets[item], (*given)[item]) << "case " << i;
    plan::solve::write_offsets(items, offsets, &plan);
    const auto found = spec::check_plan(problem, plan);
    ASSERT_FALSE(found.has_value()) << found->text << " in case " << i;
    moved += offsets != *given ? 1 : 0;
  }
  EXPECT_GT(moved, cases(5'000) / 10);
  EXPECT_GT(refused, cases(5'000) / 10);
}

TEST(FirstFitTest, AnyOrderMakesAValidPlan) {
  spec::Random random(21);
  for (int i = 0; i < cases(5'000); ++i) {
    const Problem problem = generate_problem(&random, {12, 14, 9});
    std::vector<Bytes> plan(problem.buffers.size());
    for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
      const plan::solve::Items items = plan::solve::make_items(problem, s);
      std::vector<plan::solve::ItemIndex> order(items.size());
      for (plan::solve::ItemIndex k = 0; k < items.size(); ++k) order[k] = k;
      for (std::size_t k = order.size(); k > 1; --k)
        std::swap(order[k - 1], order[random.below(k)]);
      std::vector<plan::solve::Units> offsets;
      const plan::solve::Units peak = plan::solve::first_fit(
          items, order, std::numeric_limits<plan::solve::Units>::max(), nullptr, &offsets);
      ASSERT_EQ(peak, plan::solve::peak_of(items, offsets)) << "case " << i;
      plan::solve::write_offsets(items, offsets, &plan);
    }
    const auto found = spec::check_plan(problem, plan);
    ASSERT_FALSE(found.has_value()) << found->text << " in case " << i;
  }
}

TEST(FirstFitTest, APlacedItemThatALowPiecePassedBelowIsComparedAgainWhenTheItemIsLifted) {
  const auto buffer = [](plan::Time lower, plan::Time upper, std::uint64_t size,
                         std::uint32_t group = plan::kNoGroup) {
    plan::Buffer made = plain_buffer(lower, upper, size);
    made.group = group;
    return made;
  };
  Problem problem;
  problem.groups.resize(1);
  // at 0, and on top of it; below the second it is free from 2 on
  problem.buffers = {buffer(0, 2, 5), buffer(1, 4, 9),
                     // at 0, and on top of it; below the second it is free before 6
                     buffer(6, 7, 8), buffer(5, 7, 4),
                     // a low piece that fits below the 9 bytes, a high one that the 4 bytes lift
                     buffer(3, 4, 2, 0), buffer(5, 6, 10, 0)};
  const plan::solve::Items items = plan::solve::make_items(problem, 0);
  std::vector<plan::solve::Units> offsets;
  plan::solve::first_fit(items, {0, 1, 2, 3, 4}, std::numeric_limits<plan::solve::Units>::max(),
                         nullptr, &offsets);
  EXPECT_EQ(offsets, (std::vector<plan::solve::Units>{0, 5, 0, 8, 14}));
}

TEST(RepairTest, AValidPlanStaysValidAndIsLowerIfRepairSaysSo) {
  spec::Random random(16);
  const GenerateLimits limits{60, 40, 50};
  int lowered = 0, given_up = 0;
  for (int i = 0; i < cases(120); ++i) {
    const Problem problem = generate_problem(&random, limits);
    const plan::solve::Items items = plan::solve::make_items(problem, 0);
    std::vector<Bytes> plan = generate_plan(&random, problem);
    std::vector<plan::solve::Units> offsets = in_units(items, plan).value();
    plan::solve::Repair repair(items);
    const plan::solve::StopCondition stop;
    for (plan::solve::Units peak = plan::solve::peak_of(items, offsets);
         peak > items.lower_bound;) {
      const plan::solve::Units target = peak - 1 -
                                        static_cast<plan::solve::Units>(random.below(
                                            static_cast<std::uint64_t>(peak - items.lower_bound)));
      const std::uint64_t steps = random.one_in(4) ? random.below(3'000) : 1'000'000;
      const bool is_lower = repair.lower(target, &offsets, steps, stop);
      plan::solve::write_offsets(items, offsets, &plan);
      const auto found = spec::check_plan(problem, plan);
      ASSERT_FALSE(found.has_value()) << found->text << " in case " << i;
      const plan::solve::Units after = plan::solve::peak_of(items, offsets);
      ASSERT_TRUE(is_lower ? after <= target : after <= peak) << "case " << i;
      (is_lower ? lowered : given_up) += 1;
      if (!is_lower) break;
      peak = after;
    }
  }
  EXPECT_GT(lowered, 50);
  EXPECT_GT(given_up, 10);
}

TEST(ReplanTest, UnchangedBuffersStayIfThatFits) {
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
    if (!plan::check_problem(problem).status.is_ok())
      continue;  // it is pinned, and now overlaps another pin
    for (plan::Space& space : problem.spaces) {
      if (random.one_in(2)) space.capacity = plan::kNowhere;
    }
    const plan::Replanned again = plan::replan(problem, kept, with_work(20'000));
    ASSERT_EQ(violation(problem, again.plan), "") << "case " << i;
    const bool is_tied = problem.buffers[changed].group != plan::kNoGroup ||
                         problem.buffers[changed].pinned != plan::kNowhere;
    bool is_unlimited = true;
    for (const plan::Space& space : problem.spaces)
      is_unlimited = is_unlimited && space.capacity == plan::kNowhere;
    // Without a capacity only the changed buffer has a reason to move; others move only if a group or
    // a pin ties it to its place.
    ASSERT_TRUE(again.moved == 0 || !is_unlimited || is_tied) << "case " << i;
    (again.moved == 0 ? stayed : moved) += 1;
  }
  EXPECT_GT(stayed, 100u);
  EXPECT_GT(moved, 0u);
}

TEST(ReplanTest, NothingMovesInAFullSpaceIfNothingHasChanged) {
  spec::Random random(19);
  for (int i = 0; i < cases(1'000); ++i) {
    Problem problem = generate_problem(&random);
    std::vector<Bytes> kept = generate_plan(&random, problem);
    std::vector<std::uint32_t> highest(problem.spaces.size(), 0);
    for (plan::Space& space : problem.spaces) space.capacity = Bytes{};
    for (std::uint32_t b = 0; b < kept.size(); ++b) {
      const std::uint32_t s = problem.buffers[b].space;
      const Bytes end = kept[b] + problem.buffers[b].size;
      if (end > problem.spaces[s].capacity) highest[s] = b;
      problem.spaces[s].capacity = std::max(problem.spaces[s].capacity, end);
    }
    for (const std::uint32_t b : highest) {  // higher than necessary
      if (kept.empty() || problem.buffers[b].pinned != plan::kNowhere ||
          problem.buffers[b].group != plan::kNoGroup)
        continue;
      kept[b] += problem.buffers[b].alignment;
      problem.spaces[problem.buffers[b].space].capacity = kept[b] + problem.buffers[b].size;
    }
    const plan::Replanned again = plan::replan(problem, kept, with_work(20'000));
    ASSERT_EQ(again.plan.offsets, kept) << "case " << i;
    ASSERT_EQ(again.moved, 0u) << "case " << i;
    ASSERT_EQ(violation(problem, again.plan), "") << "case " << i;
    // Kept offsets are not a condition of the problem, so the lower bound holds for every plan.
    const spec::LeastPeaks least = spec::brute_force(problem);
    for (std::size_t s = 0; s < least.peaks.size(); ++s) {
      ASSERT_LE(again.plan.spaces[s].lower_bound, least.peaks[s]) << "case " << i;
    }
  }
}

}  // namespace
}  // namespace ashlar
