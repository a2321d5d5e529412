// What the planner is put together from, and what is built on it: repairs of plans, and planning again.
//
// Imitates: poor plans, and buffers that change. Does not prove: that repairs find what there is to find (bench/).
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/items.h>
#include <ashlar/plan/planner.h>
#include <ashlar/plan/repair.h>
#include <ashlar/plan/replan.h>

#include "props/plan/generate.h"
#include "props/plan/planner_cases.h"

namespace ashlar {
namespace {

using plan::Problem;

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
