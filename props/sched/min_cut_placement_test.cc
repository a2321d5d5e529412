// Placement against brute force: every placement of small problems, with a cost that is worked out anew.
//
// Imitates: any graph over two to four backends.
// Does not prove: minima over three backends and more; there the answer is compared with what a single
// move could improve.
#include <ashlar/sched/placement.h>

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <ashlar/sched/min_cut.h>

namespace ashlar {
namespace {

using sched::MinCut;
using sched::place;
using sched::PlacedFlow;
using sched::PlacementProblem;
using Cost = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

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

/// Bytes, copies and changes of a placement, from the definition.
Cost cost_by_definition(const PlacementProblem& problem, const std::vector<std::uint32_t>& at) {
  std::uint64_t bytes = 0, copies = 0, changes = 0;
  for (const PlacedFlow& flow : problem.flows) {
    std::set<std::uint32_t> memories;
    for (const std::uint32_t consumer : flow.consumers) {
      if (!problem.can_read(at[consumer], at[flow.producer]))
        memories.insert(problem.memory[at[consumer]]);
    }
    bytes += memories.size() * flow.bytes.count();
    copies += memories.size();
  }
  for (std::size_t k = 1; k < problem.work.size(); ++k)
    changes += at[problem.work[k]] != at[problem.work[k - 1]] ? 1 : 0;
  return {bytes, copies, changes};
}

Cost least_by_brute_force(const PlacementProblem& problem) {
  std::vector<std::uint32_t> at(problem.items, 0);
  Cost least{~std::uint64_t{0}, 0, 0};
  for (;;) {
    bool is_allowed = true;
    for (std::uint32_t item = 0; item < problem.items; ++item)
      is_allowed = is_allowed && problem.is_allowed(item, at[item]);
    if (is_allowed) least = std::min(least, cost_by_definition(problem, at));
    std::uint32_t item = 0;
    while (item < problem.items && ++at[item] == problem.backends) at[item++] = 0;
    if (item == problem.items) return least;
  }
}

/// A problem whose backends have memories of their own, or share some.
/// Sizes are small, so that copies and changes decide in many problems.
PlacementProblem random_problem(std::mt19937_64& random, std::uint32_t backends,
                                bool has_shared_memory) {
  const auto below = [&random](std::uint64_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  PlacementProblem problem;
  problem.backends = backends;
  problem.items = 1 + below(backends == 2 ? 8 : 5);
  for (std::uint32_t b = 0; b < backends; ++b) {
    const bool is_shared = has_shared_memory && b > 0 && below(2) == 0;
    problem.memory.push_back(is_shared ? problem.memory[b - 1] : b);
  }
  for (std::uint32_t reader = 0; reader < backends; ++reader) {
    for (std::uint32_t owner = 0; owner < backends; ++owner)
      problem.reads.push_back(problem.memory[reader] == problem.memory[owner] ? 1 : 0);
  }
  for (std::uint32_t item = 0; item < problem.items; ++item) {
    const std::uint32_t fixed = below(3 * backends);
    for (std::uint32_t b = 0; b < backends; ++b)
      problem.allowed.push_back(fixed >= backends || fixed == b ? 1 : 0);
    if (below(3) != 0) problem.work.push_back(item);
    if (below(4) == 0) problem.work.push_back(below(item + 1));
  }
  const std::uint32_t flows = below(10), size_max = below(3) == 0 ? 20 : 3;
  for (std::uint32_t k = 0; k < flows; ++k) {
    PlacedFlow flow;
    flow.producer = below(problem.items);
    flow.bytes = Bytes{below(size_max)};
    std::set<std::uint32_t> consumers;
    const std::uint32_t count = 1 + below(4);
    for (std::uint32_t c = 0; c < count; ++c) consumers.insert(below(problem.items));
    consumers.erase(flow.producer);
    flow.consumers.assign(consumers.begin(), consumers.end());
    problem.flows.push_back(flow);
  }
  return problem;
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
