// Placement against brute force: every placement of small problems, with a cost that is worked out anew.
//
// Imitates: any graph over two to four backends.
// Does not prove: minima over three backends and more; there the answer is compared with what a single
// move could improve.
#include <ashlar/sched/placement.h>

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <tuple>
#include <vector>

#include <ashlar/sched/min_cut.h>

#include "props/sched/placement_problems.h"

namespace ashlar {
namespace {

using props::cost_by_definition;
using props::least_by_brute_force;
using props::random_problem;
using sched::MinCut;
using sched::place;
using sched::PlacementProblem;
using Cost = props::CostByDefinition;

TEST(MinCutTest, CutsTheCheapestEdges) {
  MinCut cut;
  const auto a = cut.add_vertex(), b = cut.add_vertex(), c = cut.add_vertex();
  cut.add_edge(MinCut::kSource, a, 10);
  cut.add_edge(a, b, 3);
  cut.add_edge(a, c, 4);
  cut.add_edge(b, MinCut::kSink, 10);
  cut.add_edge(c, MinCut::kSink, 2);
  cut.add_edge(c, b, 1);
  cut.solve();
  EXPECT_TRUE(cut.is_on_source_side(a));
  EXPECT_FALSE(cut.is_on_source_side(b));
  EXPECT_TRUE(cut.is_on_source_side(c));
  EXPECT_TRUE(cut.is_on_source_side(MinCut::kSource));
  EXPECT_FALSE(cut.is_on_source_side(MinCut::kSink));
}

// A network may grow when it is solved: what is cut before is cut by the edge that is new.
TEST(MinCutTest, SolvesAgainAfterAnEdgeWasAdded) {
  MinCut cut;
  const auto a = cut.add_vertex();
  cut.add_edge(MinCut::kSource, a, 2);
  cut.add_edge(a, MinCut::kSink, 1);
  cut.solve();
  EXPECT_TRUE(cut.is_on_source_side(a));  // 1 is cut, not 2
  cut.add_edge(MinCut::kSource, MinCut::kSink, 1);
  cut.solve();
  EXPECT_TRUE(cut.is_on_source_side(a));  // 1 and 1, not 2 and 1
  cut.add_edge(a, MinCut::kSink, 2);
  cut.solve();
  EXPECT_FALSE(cut.is_on_source_side(a));  // 2 and 1, not 1 + 2 and 1
}

// All paths of one length are found in one phase. With a phase for each path, this network would need
// 100000 phases of 300000 edges each: a minute at least, where one phase needs milliseconds.
TEST(MinCutTest, ManyShortPathsCostOnePhase) {
  constexpr std::uint32_t kPaths = 100000;
  MinCut cut;
  for (std::uint32_t k = 0; k < kPaths; ++k) {
    const auto a = cut.add_vertex(), b = cut.add_vertex();
    cut.add_edge(MinCut::kSource, a, 2);
    cut.add_edge(a, b, k % 2 == 0 ? 1 : 3);
    cut.add_edge(b, MinCut::kSink, 2);
  }
  const auto begin = std::chrono::steady_clock::now();
  cut.solve();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  for (std::uint32_t k = 0; k < kPaths; ++k)
    ASSERT_EQ(cut.is_on_source_side(2 + 2 * k), k % 2 == 0) << k;
}

TEST(PlacementProperty, OverTwoBackendsIsAMinimum) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 4000; ++round) {
    const PlacementProblem problem = random_problem(random, 2, false);
    const std::vector<std::uint32_t> at = place(problem);
    for (std::uint32_t item = 0; item < problem.items; ++item)
      ASSERT_TRUE(problem.is_allowed(item, at[item]));
    ASSERT_EQ(cost_by_definition(problem, at), least_by_brute_force(problem)) << round;
    const sched::PlacementCost cost = cost_of(problem, at);
    ASSERT_EQ(Cost(cost.bytes.count(), cost.copies, cost.changes), cost_by_definition(problem, at));
  }
}

TEST(PlacementProperty, OverBackendsThatShareAMemoryIsSound) {
  std::mt19937_64 random(2);
  std::uint64_t worse = 0;
  for (int round = 0; round < 2000; ++round) {
    const PlacementProblem problem = random_problem(random, 3 + random() % 2, true);
    const std::vector<std::uint32_t> at = place(problem);
    for (std::uint32_t item = 0; item < problem.items; ++item)
      ASSERT_TRUE(problem.is_allowed(item, at[item]));
    const Cost cost = cost_by_definition(problem, at), least = least_by_brute_force(problem);
    ASSERT_FALSE(cost < least);
    worse += std::get<0>(cost) > std::get<0>(least) ? 1 : 0;
  }
  EXPECT_LT(worse, 100u);  // of the bytes; local minima
}

// Every expansion move is a minimum: what an exhaustive search over all moves to one backend finds.
TEST(PlacementProperty, NoMoveOfAnyItemsToOneBackendIsBetter) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    const PlacementProblem problem = random_problem(random, 3 + random() % 2, false);
    const std::vector<std::uint32_t> at = place(problem);
    const Cost cost = cost_by_definition(problem, at);
    for (std::uint32_t target = 0; target < problem.backends; ++target) {
      for (std::uint32_t moved = 0; moved < 1u << problem.items; ++moved) {
        std::vector<std::uint32_t> other = at;
        bool is_allowed = true;
        for (std::uint32_t item = 0; item < problem.items; ++item) {
          if ((moved >> item & 1) == 0) continue;
          other[item] = target;
          is_allowed = is_allowed && problem.is_allowed(item, target);
        }
        if (!is_allowed) continue;
        ASSERT_FALSE(cost_by_definition(problem, other) < cost) << round;
      }
    }
  }
}

TEST(PlacementTest, CountsOfBytesThatLeaveNoRoomForTheRestStillCount) {
  PlacementProblem problem;
  problem.items = 3;
  problem.backends = 2;
  problem.memory = {0, 1};
  problem.reads = {1, 0, 0, 1};
  problem.allowed = {1, 0, 1, 1, 0, 1};
  problem.work = {0, 1, 2};
  problem.flows = {{0, {1}, Bytes{std::uint64_t{1} << 57}}, {1, {2}, Bytes{1}}};
  EXPECT_EQ(place(problem), (std::vector<std::uint32_t>{0, 0, 1}));
}

}  // namespace
}  // namespace ashlar
