// The costs that placement weighs against each other: bytes, then copies, then changes; and where they end.
//
// Imitates: much work of few bytes, devices that read each other's memory, weights of 2^60 bytes.
// Does not prove: minima over more than two backends but for the problems here.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include <ashlar/sched/min_cut.h>
#include <ashlar/sched/placement.h>

#include "props/sched/placement_problems.h"

namespace ashlar {
namespace {

using props::cost_by_definition;
using props::CostByDefinition;
using props::least_by_brute_force;
using sched::place;
using sched::PlacementProblem;
using Places = std::vector<std::uint32_t>;

/// Backends with memories of their own, and items that may be on any of them.
PlacementProblem apart(std::uint32_t backends, std::uint32_t items) {
  PlacementProblem problem;
  problem.backends = backends;
  problem.items = items;
  problem.allowed.assign(std::size_t{items} * backends, 1);
  problem.reads.assign(std::size_t{backends} * backends, 0);
  for (std::uint32_t b = 0; b < backends; ++b) {
    problem.memory.push_back(b);
    problem.reads[std::size_t{b} * backends + b] = 1;
  }
  return problem;
}

/// Lets the item be on these backends only.
void allow(PlacementProblem& problem, std::uint32_t item, const std::vector<std::uint32_t>& on) {
  for (std::uint32_t b = 0; b < problem.backends; ++b) {
    const bool is_one = std::find(on.begin(), on.end(), b) != on.end();
    problem.allowed[std::size_t{item} * problem.backends + b] = is_one ? 1 : 0;
  }
}

/// Lets one backend read what lies in the memory of another.
void let_read(PlacementProblem& problem, std::uint32_t reader, std::uint32_t owner) {
  problem.reads[std::size_t{reader} * problem.backends + owner] = 1;
}

// A GPU may read the host's memory where it is, while the host cannot read the GPU's. The first move to
// the second backend covers every placement, so the answer is a minimum.
TEST(PlacementCosts, OverTwoBackendsThatReadOneAnothersMemoryAreLeast) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 3000; ++round) {
    PlacementProblem problem = props::random_problem(random, 2, false);
    if (random() % 3 != 0) let_read(problem, 0, 1);
    if (random() % 3 != 0) let_read(problem, 1, 0);
    const Places at = place(problem);
    ASSERT_EQ(cost_by_definition(problem, at), least_by_brute_force(problem)) << round;
    const sched::PlacementCost cost = cost_of(problem, at);
    ASSERT_EQ(CostByDefinition(cost.bytes.count(), cost.copies, cost.changes),
              cost_by_definition(problem, at));
  }
}

// However many changes a placement saves, one copy is worth more; however many copies, one byte is.
TEST(PlacementCosts, OfMuchWorkOrNoneAreLeast) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 3000; ++round) {
    PlacementProblem problem = props::random_problem(random, 2, false);
    const std::uint64_t works = round % 4 == 0 ? 0 : random() % 40;
    problem.work.clear();
    for (std::uint64_t k = 0; k < works; ++k)
      problem.work.push_back(static_cast<std::uint32_t>(random() % problem.items));
    ASSERT_EQ(cost_by_definition(problem, place(problem)), least_by_brute_force(problem)) << round;
  }
}

// Item 1 stands between others in two runs of work. Behind item 0 of the first backend it stands once, and
// before item 2 of the second backend twice: there it changes the backend once less.
TEST(PlacementCosts, CountAChangeFromEitherSide) {
  PlacementProblem problem = apart(2, 3);
  allow(problem, 0, {0});
  allow(problem, 2, {1});
  problem.work = {1, 2, 0, 1, 2};
  EXPECT_EQ(place(problem), (Places{0, 1, 1}));
  problem.work = {2, 1, 0, 2, 1};
  EXPECT_EQ(place(problem), (Places{0, 1, 1}));
}

// Five copies of no byte against one of a single byte; then one copy against the four changes of {0, 1, 0,
// 1, 0}, where item 1 can be at the one or the other.
TEST(PlacementCosts, AreComparedInTheirOrder) {
  PlacementProblem problem = apart(2, 3);
  allow(problem, 0, {0});
  allow(problem, 2, {1});
  for (int k = 0; k < 5; ++k) problem.flows.push_back({0, {1}, 0_B});
  problem.flows.push_back({2, {1}, 1_B});
  for (int k = 0; k < 40; ++k) problem.work.push_back(k % 2 == 0 ? 0 : 1);
  EXPECT_EQ(place(problem), (Places{0, 1, 1}));
  problem.flows = {{2, {1}, 0_B}};
  problem.work = {0, 1, 0, 1, 0};
  EXPECT_EQ(place(problem), (Places{0, 1, 1}));
}

// Both placements of item 1 cost nothing.
TEST(PlacementCosts, ThatAreEqualLeaveAnItemOnTheFirstBackendThatItMayBeOn) {
  PlacementProblem problem = apart(3, 1);
  EXPECT_EQ(place(problem), Places{0});
  allow(problem, 0, {1, 2});
  EXPECT_EQ(place(problem), Places{1});
  // Item 1 goes to the second backend for the sake of item 0; item 2 has no reason to go anywhere.
  problem = apart(3, 3);
  allow(problem, 0, {1});
  allow(problem, 1, {0, 1});
  allow(problem, 2, {1, 2});
  problem.flows = {{0, {1}, 5_B}};
  EXPECT_EQ(place(problem), (Places{1, 1, 1}));
}

// Items that go to the second backend, and come back when others have gone on to the third.
TEST(PlacementCosts, AreLeastWhereAnItemHasToComeBackToTheFirstBackend) {
  PlacementProblem problem = apart(3, 5);
  allow(problem, 0, {0});
  allow(problem, 3, {1});
  allow(problem, 4, {2});
  problem.work = {0, 1, 2, 3, 4};
  problem.flows = {{0, {1, 3}, 1_B}, {3, {2, 4}, 1_B}, {2, {4}, 3_B}, {3, {2}, 1_B}};
  EXPECT_EQ(cost_by_definition(problem, place(problem)), least_by_brute_force(problem));
}

// The first two backends share a memory, and the second of them also reads the third's. Item 1 has no
// reason to leave item 0, though item 2 does not read item 3's value on the first backend.
TEST(PlacementCosts, AreLeastWhereOneOfTwoThatShareAMemoryReadsAnother) {
  PlacementProblem problem = apart(3, 4);
  problem.memory = {0, 0, 2};
  let_read(problem, 0, 1);
  let_read(problem, 1, 0);
  let_read(problem, 1, 2);
  allow(problem, 0, {0});
  allow(problem, 3, {2});
  problem.work = {0, 1, 2, 3};
  problem.flows = {{1, {0}, 6_B}, {3, {2}, 6_B}};
  EXPECT_EQ(cost_by_definition(problem, place(problem)), least_by_brute_force(problem));
  EXPECT_EQ(least_by_brute_force(problem), CostByDefinition(0, 0, 1));
}

// Backends 1 and 2 share a memory. Item 1, on the one, needs a copy there unless item 0 goes to the other; a cut that
// forgot what item 1 costs now took that move for a loss, and copied ten times the bytes.
TEST(PlacementCosts, AreLeastWhereAConsumerSharesTheMemoryThatAMoveIsTo) {
  PlacementProblem problem = apart(3, 3);
  problem.memory = {0, 1, 1};
  let_read(problem, 1, 2);
  let_read(problem, 2, 1);
  allow(problem, 0, {0, 1});
  allow(problem, 1, {2});
  allow(problem, 2, {0});
  problem.flows = {{0, {1}, Bytes{10}}, {0, {2}, Bytes{1}}};
  EXPECT_EQ(cost_by_definition(problem, place(problem)), CostByDefinition(1, 1, 0));
  EXPECT_EQ(least_by_brute_force(problem), CostByDefinition(1, 1, 0));
}

/// A chain in which each round can move one item: item k reads what item k - 1 makes, item 0 what `items`
/// makes, which lies on the last backend. Item k may be on the first backend or on backend items - k,
/// which reads where item k - 1 may go, and nothing else. So it gains, by one byte, as soon as item k - 1
/// has gone; and a round tries the backends in ascending order, so it has passed that backend by then.
PlacementProblem chain(std::uint32_t items) {
  PlacementProblem problem = apart(items + 2, items + 1);
  allow(problem, items, {items + 1});
  for (std::uint32_t k = 0; k < items; ++k) {
    allow(problem, k, {0, items - k});
    let_read(problem, items - k, items - k + 1);
    problem.flows.push_back({k == 0 ? items : k - 1, {k}, Bytes{items - k}});
  }
  return problem;
}

TEST(PlacementCosts, FallForSixteenRounds) {
  // After 16 rounds all 16 items have gone, and nothing is copied.
  const PlacementProblem sixteen = chain(16);
  EXPECT_EQ(cost_by_definition(sixteen, place(sixteen)), CostByDefinition(0, 0, 0));
  // There is no round after that: of 18 items the last two are where they were.
  const Places at = place(chain(18));
  for (std::uint32_t k = 0; k < 18; ++k) EXPECT_EQ(at[k], k < 16 ? 18 - k : 0u) << k;
}

/// Items 0 and 1 are fixed to the two backends. Item 2 works between pieces of item 1's work, item 3 between
/// more pieces of item 0's: fewest changes if item 2 is on the second backend, and item 3 on the first.
/// Bytes decide nothing, and where they alone count, the only move is of both, which gains nothing.
/// Item 4 reads `bytes` of item 0, so it stays there; what could be copied leaves less room for the rest. What can never
/// be copied, item 0's value for itself, leaves all of it.
PlacementProblem large(std::uint32_t backends, std::size_t works, std::uint64_t bytes) {
  PlacementProblem problem = apart(backends, 5);
  allow(problem, 0, {0});
  allow(problem, 1, {1});
  for (const std::uint32_t item : {2u, 3u, 4u}) allow(problem, item, {0, 1});
  problem.work = {1, 2, 1, 0, 3, 0, 3, 0};
  problem.work.resize(works, 0);
  problem.flows = {{0, {4}, Bytes{bytes}}, {0, {0}, Bytes{std::uint64_t{1} << 59}}};
  return problem;
}

// The three costs have room if (1 + bytes * backends) * (1 + flows * backends) * (1 + works), over what could be
// copied, is at most 2^59, a quarter of the capacity that no cut contains.
static_assert(sched::MinCut::kUncuttable / 4 == std::int64_t{1} << 59);
constexpr Places::value_type kFirst = 0, kSecond = 1;

TEST(PlacementCosts, AllCountUpToTheirLimit) {
  // (1 + 3 * bytes) * (1 + 3) * (1 + 31) = 2^52 * 2^2 * 2^5.
  constexpr std::uint64_t kBytes = ((std::uint64_t{1} << 52) - 1) / 3;
  static_assert((1 + 3 * kBytes) * 4 * 32 == std::uint64_t{1} << 59);
  EXPECT_EQ(place(large(3, 31, kBytes)), (Places{kFirst, kSecond, kSecond, kFirst, kFirst}));
}

TEST(PlacementCosts, AboveTheirLimitAreBytesAlone) {
  // (1 + 2 * bytes) * (1 + 2) * (1 + 1000) is above 2^59, and 2 * bytes * 3 * 1001 is not.
  constexpr std::uint64_t kBytes = (std::uint64_t{1} << 59) / 3003 / 2;
  static_assert((1 + 2 * kBytes) * 3003 > std::uint64_t{1} << 59);
  static_assert(2 * kBytes * 3003 <= std::uint64_t{1} << 59);
  EXPECT_EQ(place(large(2, 1000, kBytes)), (Places{kFirst, kSecond, kFirst, kFirst, kFirst}));
}

}  // namespace
}  // namespace ashlar
