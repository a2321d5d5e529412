// Sets of tensors: exact places, what the search for fewer buffers finds and where it gives up, and limits and sums at
// their bounds.
//
// Imitates: models of thousands of weights, of one size and of very different ones.
// Does not prove: that fewer buffers would not do where the plan does not say so.
#include <ashlar/graph/tensor_set.h>

#include <gtest/gtest.h>

#include <vector>

#include <ashlar/plan/problem.h>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::plan_tensor_set;
using graph::SetPlace;
using graph::Tensor;
using graph::TensorId;
using graph::TensorSetPlan;
using props::SmallGraph;

using Counted =
    std::vector<std::pair<std::size_t, std::uint64_t>>;  // so many tensors, of so many bytes

Result<TensorSetPlan> planned(const Counted& counted, const BufferType& type) {
  SmallGraph g;
  std::vector<TensorId> ids;
  for (const auto& [count, bytes] : counted) {
    for (std::size_t k = 0; k < count; ++k) ids.push_back(g.leaf(bytes, graph::kExternal));
  }
  return plan_tensor_set(g.graph, ids, type);
}
/// A plan without padding whose buffers have at most `limit` bytes; they are checked.
TensorSetPlan divided(const Counted& counted, std::uint64_t limit) {
  TensorSetPlan plan = planned(counted, {4_B, Bytes{limit}, nullptr}).value();
  for (const Bytes size : plan.buffers) EXPECT_LE(size, Bytes{limit});
  return plan;
}

// First fit of these, the largest first, takes three buffers: 20 + 16, 12 + 12 + 12, and 8. Two are full with
// 20 + 12 + 8 and 16 + 12 + 12.
const Counted kSix{{1, 8}, {3, 12}, {1, 16}, {1, 20}};
constexpr std::uint64_t kSixLimit = 40;

TEST(TensorSetSearch, FindsTheBuffersThatAreFull) {
  const TensorSetPlan plan = divided(kSix, kSixLimit);
  EXPECT_EQ(plan.buffers, (std::vector<Bytes>{40_B, 40_B}));
  EXPECT_TRUE(plan.is_least);
  const std::vector<SetPlace> expected{{0, 32_B}, {0, 20_B}, {1, 16_B},
                                       {1, 28_B}, {1, 0_B},  {0, 0_B}};
  EXPECT_EQ(plan.places, expected);
}

TEST(TensorSetSearch, IsNotNeededWhereEachBufferIsFull) {
  // Pairs of halves, in their order.
  const TensorSetPlan halves = divided({{4100, 32}}, 64);
  EXPECT_EQ(halves.buffers, std::vector<Bytes>(2050, 64_B));
  EXPECT_TRUE(halves.is_least);
  for (std::uint32_t k = 0; k < 4100; ++k) {
    const SetPlace expected{k / 2, Bytes{std::uint64_t{k % 2} * 32}};
    ASSERT_EQ(halves.places[k], expected);
  }
  const TensorSetPlan wholes = divided({{4100, 64}}, 64);
  EXPECT_EQ(wholes.buffers, std::vector<Bytes>(4100, 64_B));
  EXPECT_TRUE(wholes.is_least);
}

// 4100 tensors fill a buffer but for the padding, and 20 of 96 bytes need one each: 20 * 96 = 19 * 101 + 1 bytes, so
// that one byte decides that 20 buffers are least.
TEST(TensorSetSearch, IsNotNeededWhereOneByteIsTooMany) {
  const TensorSetPlan plan = planned({{4100, 100}, {20, 96}}, {32_B, 101_B, nullptr}).value();
  EXPECT_EQ(plan.padded_bytes, Bytes{4100 * 101 + 20 * 96});
  EXPECT_EQ(plan.buffers.size(), 4120u);
  EXPECT_TRUE(plan.is_least);
}

// Each of twelve is alone, though seven buffers have as many bytes. That eleven are too few is found at once, as buffers
// that are as full are alike; without that there are 11! ways.
TEST(TensorSetSearch, TriesOneOfBuffersThatAreAlike) {
  const TensorSetPlan plan = divided({{12, 36}}, 64);
  EXPECT_EQ(plan.buffers.size(), 12u);
  EXPECT_TRUE(plan.is_least);
}

TEST(TensorSetSearch, IsGivenUpAndThenProvesNothing) {
  const TensorSetPlan plan = divided({{4100, 36}}, 64);
  EXPECT_EQ(plan.buffers.size(), 4100u);
  EXPECT_FALSE(plan.is_least);
  const TensorSetPlan short_of_it = divided({{700, 36}}, 64);  // 700 * 699 steps would be needed
  EXPECT_EQ(short_of_it.buffers.size(), 700u);
  EXPECT_FALSE(short_of_it.is_least);
}

// The six sizes, times 10 000, beside small ones for which the limit has room: the search finds two buffers, but not of
// more than 4000 tensors (kDepthMax), which would need as deep a recursion.
TEST(TensorSetSearch, IsOfAtMostFourThousandTensors) {
  const auto count = [](std::size_t small) {
    return divided({{1, 80000}, {3, 120000}, {1, 160000}, {1, 200000}, {small, 4}}, 408000);
  };
  EXPECT_EQ(count(3994).buffers.size(), 2u);
  EXPECT_TRUE(count(3994).is_least);
  EXPECT_EQ(count(3995).buffers.size(), 3u);
  EXPECT_FALSE(count(3995).is_least);
}

// A search does 199 999 steps (kSearchSteps less one); a step is one look at one buffer. Full buffers in front make it as
// long as wished: of f full ones and a search of p placements and s steps behind them, the way there and back are
// f (f + 1) / 2 + s + f p steps to an end that is found, and (f + p) (f + b) of all for b buffers behind them.
TEST(TensorSetSearch, EndsBeforeItsLastStep) {
  // The six, times 200, with 71 small ones: 81 placements, 118 steps. 556 * 557 / 2 + 118 + 556 * 81 = 200 000.
  const auto found = [](std::size_t full) {
    const std::uint64_t limit = 40 * 200 + 41 * 4;
    return divided({{full, limit}, {1, 1600}, {3, 2400}, {1, 3200}, {1, 4000}, {71, 4}}, limit);
  };
  EXPECT_EQ(found(555).buffers.size(), 555u + 2);
  EXPECT_TRUE(found(555).is_least);
  EXPECT_EQ(found(556).buffers.size(), 556u + 3);
  EXPECT_FALSE(found(556).is_least);
  // Thirteen that need seven buffers, and are not proved to by their sum: 106 placements over six buffers lead nowhere.
  // (394 + 106) * (394 + 6) = 200 000.
  const auto refuted = [](std::size_t full) {
    return divided({{full, 72}, {3, 64}, {1, 44}, {1, 36}, {1, 32}, {2, 24}, {1, 16}, {4, 12}}, 72);
  };
  EXPECT_EQ(refuted(393).buffers.size(), 393u + 7);
  EXPECT_TRUE(refuted(393).is_least);
  EXPECT_EQ(refuted(394).buffers.size(), 394u + 7);
  EXPECT_FALSE(refuted(394).is_least);
}

Bytes one_byte(const Tensor&) { return 1_B; }
Bytes all_bytes(const Tensor& tensor) {
  return tensor.extent == 8_B ? Bytes::max() : tensor.extent;
}

TEST(TensorSetBounds, LimitsMayBeOfOneByteOrNone) {
  const TensorSetPlan ones = planned({{4100, 0}}, {1_B, 1_B, one_byte}).value();
  EXPECT_EQ(ones.buffers, std::vector<Bytes>(4100, 1_B));
  EXPECT_TRUE(ones.is_least);
  const TensorSetPlan none = planned({{3, 0}}, {64_B, 0_B, nullptr}).value();
  EXPECT_TRUE(none.buffers.empty());
  EXPECT_EQ(none.places, std::vector<SetPlace>(3));
  EXPECT_TRUE(none.is_least);
  EXPECT_EQ(planned({{1, 4}}, {64_B, 0_B, nullptr}).code(), Code::kSizeOverflow);
}

TEST(TensorSetBounds, BytesAreAtMostTheBoundOfAPlan) {
  const std::uint64_t half = plan::kPlanBytesMax.count() / 2;
  EXPECT_EQ(planned({{2, half}}, {}).value().buffers, std::vector<Bytes>{plan::kPlanBytesMax});
  const auto refused = [](const Counted& counted) {
    const auto plan = planned(counted, {64_B, Bytes::max(), all_bytes});
    return plan.code() == Code::kSizeOverflow ? plan.status().why() : "";
  };
  const char* const too_large = "the tensors' bytes exceed the bound of a plan";
  EXPECT_STREQ(refused({{2, half}, {1, 4}}), too_large);
  EXPECT_STREQ(refused({{1, 8}}), too_large);  // cannot be rounded up
  EXPECT_STREQ(refused({{1, 64}, {1, 8}}), too_large);
}

TEST(TensorSetBounds, TensorsAreOfTheGraph) {
  for (std::uint32_t leafs = 0; leafs < 3; ++leafs) {
    SmallGraph g;
    for (std::uint32_t k = 0; k < leafs; ++k) g.leaf(64);
    const auto plan = plan_tensor_set(g.graph, std::vector<TensorId>{TensorId{leafs}}, {});
    EXPECT_EQ(plan.code(), Code::kInvalidArgument);
    EXPECT_STREQ(plan.status().why(), "a tensor that is a view, or not of the graph");
  }
}

}  // namespace
}  // namespace ashlar
