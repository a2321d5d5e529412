// Steps and lives of small graphs, exact: parse orders with barriers, loops inside loops, values that are set before,
// what is used in a group, and which root each node takes over.
//
// Imitates: requests and graphs in which one rule of lifetimes.h decides.
// Does not prove: that the rules save every value; spec/graph states them apart, and value_oracle_test.cc runs graphs.
#include <ashlar/graph/lifetimes.h>

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "props/graph/small_graphs.h"
#include "spec/graph/memory_judge.h"

namespace ashlar {
namespace {

using graph::kBarrier;
using graph::kNeverInPlace;
using graph::kNoTensor;
using graph::MemoryRequest;
using graph::Operation;
using graph::RegionKind;
using graph::RootLife;
using graph::Steps;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;

using Life = std::pair<std::uint32_t, std::uint32_t>;

/// The lives of a graph whose tensors take their extents, but where `padded` says otherwise.
class Lives {
 public:
  explicit Lives(const SmallGraph& g, const MemoryRequest& request = {},
                 const std::vector<std::pair<TensorId, Bytes>>& padded = {})
      : definition_(spec::lives_by_definition(g.graph, request)) {
    std::vector<Bytes> bytes;
    for (const graph::Tensor& tensor : g.graph.tensors()) bytes.push_back(tensor.extent);
    for (const auto& [tensor, size] : padded) bytes[tensor.value()] = size;
    const Steps steps = graph::steps_of(g.graph, request.order).value();
    lives_ = graph::lifetimes_of(g.graph, steps, bytes, request);
  }
  Life of(TensorId tensor) const {
    const RootLife& life = lives_[tensor.value()];
    EXPECT_EQ(definition_[tensor.value()], Life(life.begin, life.end)) << tensor.value();
    return {life.begin, life.end};
  }
  TensorId over(TensorId tensor) const { return lives_[tensor.value()].takes_over; }

 private:
  std::vector<Life> definition_;
  std::vector<RootLife> lives_;
};

using Numbers = std::vector<std::uint32_t>;

TEST(StepsOf, AreNodesOrGroupsBetweenBarriers) {
  SmallGraph g;
  const auto x = g.input(64);
  const auto a = g.same(Operation::kScale, {x}), b = g.same(Operation::kScale, {x});
  const auto c = g.same(Operation::kAdd, {a, b});
  g.same(Operation::kScale, {c});
  const auto steps = [&](const Numbers& order) { return graph::steps_of(g.graph, order).value(); };
  EXPECT_EQ(steps({}).of_node, (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(steps({}).count, 4u);
  EXPECT_EQ(steps({1, 0, 2, 3}).of_node, (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(steps({1, 0, 2, 3}).count, 1u);
  const Numbers grouped{1, kBarrier, 0, 2, kBarrier, 3};
  EXPECT_EQ(steps(grouped).of_node, (Numbers{1, 0, 1, 2}));
  EXPECT_EQ(steps(grouped).count, 3u);
}

TEST(StepsOf, AnOrderHasTheGraphsNodesAndNoOthers) {
  SmallGraph none;
  none.input(64);
  EXPECT_EQ(graph::steps_of(none.graph, Numbers{}).value().count, 0u);
  EXPECT_EQ(graph::steps_of(none.graph, Numbers{0}).code(), Code::kInvalidArgument);
  SmallGraph one;
  one.same(Operation::kScale, {one.input(64)});
  for (const std::uint32_t node : {1u, 2u, 1u << 30, kBarrier - 1}) {
    const auto steps = graph::steps_of(one.graph, Numbers{node});
    EXPECT_STREQ(steps.status().why(), "a parse order that does not have each node once");
  }
  one.graph.begin_region(RegionKind::kBranch);
  ASSERT_TRUE(one.graph.end_region().is_ok());
  EXPECT_STREQ(graph::steps_of(one.graph, Numbers{0}).status().why(),
               "a parse order for a graph with regions");
}

TEST(StepsOf, AnUnusedSourceIsBehindNothing) {
  SmallGraph g;
  const auto a = g.same(Operation::kScale, {g.input(64)});
  g.same(Operation::kSoftMax, {a, kNoTensor});
  EXPECT_EQ(graph::steps_of(g.graph, Numbers{0, kBarrier, 1}).value().of_node, (Numbers{0, 1}));
  EXPECT_STREQ(graph::steps_of(g.graph, Numbers{1, 0}).status().why(),
               "a parse order with a node before a source of it");
}

TEST(LivesOf, ChainsEndWithTheirLastReader) {
  SmallGraph g;
  const auto x = g.input(64), unread = g.input(64), weight = g.leaf(64, graph::kExternal);
  const auto a = g.node(Operation::kMulMat, 64, {weight, x});
  const auto b = g.node(Operation::kMean, 64, {a});
  const auto view = g.view(b, 16);
  const auto c = g.node(Operation::kConcat, 64, {a, view});
  const Lives lives(g);  // the steps are those of a, b, view and c
  EXPECT_EQ(lives.of(x), Life(0, 1));
  EXPECT_EQ(lives.of(unread), Life(0, 4));
  EXPECT_EQ(lives.of(weight), Life(0, 0));
  EXPECT_EQ(lives.of(a), Life(0, 4));
  EXPECT_EQ(lives.of(b), Life(1, 4));
  EXPECT_EQ(lives.of(view), Life(0, 0));
  EXPECT_EQ(lives.of(c), Life(3, 4));
}

// A leaf of a graph without nodes is in use in the one step that there is.
TEST(LivesOf, LeafsAloneLiveForOneStep) {
  SmallGraph g;
  const auto x = g.input(64), y = g.leaf(64), e = g.leaf(64, graph::kExternal);
  const Lives lives(g);
  EXPECT_EQ(lives.of(x), Life(0, 1));
  EXPECT_EQ(lives.of(y), Life(0, 1));
  EXPECT_EQ(lives.of(e), Life(0, 0));
}

// A caller sets an input or a parameter before the run, so its memory is its own although a node writes it too.
TEST(LivesOf, WhatIsSetBeforeLivesFromTheFirstStepAndTakesNothingOver) {
  for (const std::uint8_t flag : {graph::kInput, graph::kParameter, graph::kExternal}) {
    SmallGraph g;
    const auto a = g.node(Operation::kPad, 64, {g.input(16)});
    const auto b = g.node(Operation::kMean, 64, {a});
    const auto set = g.same(Operation::kScale, {b}, flag);
    g.node(Operation::kMean, 64, {set});
    g.node(Operation::kControl, 64, {});
    const Lives lives(g);
    EXPECT_EQ(lives.of(b), Life(1, 3));
    EXPECT_EQ(lives.over(set), kNoTensor);
    EXPECT_EQ(lives.of(set), flag == graph::kInput       ? Life(0, 4)
                             : flag == graph::kParameter ? Life(0, 5)
                                                         : Life(0, 0));
  }
}

// Nodes by position: a 0, b 1, c 2, d 3, e 4. The outer loop is [0, 4), the inner one [1, 3).
TEST(LivesOf, AUseLastsToTheEndOfTheLoopsThatDoNotComputeIt) {
  SmallGraph g;
  const auto x = g.input(64);
  g.graph.begin_region(RegionKind::kLoop);
  const auto a = g.node(Operation::kMean, 64, {x});  // the outer body's first node
  g.graph.begin_region(RegionKind::kLoop);
  const auto b = g.node(Operation::kMean, 64, {a});  // the inner body's first node
  const auto c = g.node(Operation::kMean, 64, {b});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  const auto d = g.node(Operation::kConcat, 64, {c, x});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  const auto e = g.node(Operation::kControl, 64, {d});
  const Lives lives(g);
  EXPECT_EQ(lives.of(x), Life(0, 4));
  EXPECT_EQ(lives.of(a), Life(0, 3));
  EXPECT_EQ(lives.of(b), Life(1, 3));
  EXPECT_EQ(lives.of(c), Life(2, 4));
  EXPECT_EQ(lives.of(d), Life(3, 5));
  EXPECT_EQ(lives.of(e), Life(4, 5));
}

TEST(LivesOf, ABranchRepeatsNothingAndALoopAroundItDoes) {
  SmallGraph g;
  const auto x = g.input(64), y = g.input(64);
  g.graph.begin_region(RegionKind::kBranch);
  const auto a = g.node(Operation::kMean, 64, {x});
  g.node(Operation::kControl, 64, {a});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  g.graph.begin_region(RegionKind::kLoop);
  g.graph.begin_region(RegionKind::kBranch);
  const auto b = g.node(Operation::kMean, 64, {y});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  g.node(Operation::kControl, 64, {b});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  const Lives lives(g);
  EXPECT_EQ(lives.of(x), Life(0, 1));
  EXPECT_EQ(lives.of(y), Life(0, 4));
  EXPECT_EQ(lives.of(a), Life(0, 2));
  EXPECT_EQ(lives.of(b), Life(2, 4));
}

TEST(TakesOver, MemoryOfAsManyBytesOrMore) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  const auto b = g.same(Operation::kScale, {a});
  EXPECT_EQ(Lives(g).over(b), a);
  EXPECT_EQ(Lives(g, {}, {{a, 128_B}}).over(b), a);
  EXPECT_EQ(Lives(g, {}, {{b, 128_B}}).over(b), kNoTensor);
  // A split tensor neither leaves its memory nor takes another's.
  EXPECT_EQ(Lives(g, {}, {{a, kNeverInPlace}}).over(b), kNoTensor);
  EXPECT_EQ(Lives(g, {}, {{b, kNeverInPlace}}).over(b), kNoTensor);
  EXPECT_EQ(Lives(g, {}, {{a, kNeverInPlace}, {b, kNeverInPlace}}).over(b), kNoTensor);
}

TEST(TakesOver, NothingOfTheCallersMemory) {
  for (const std::uint64_t bytes : {64u, 0u}) {
    SmallGraph g;
    const auto outside = g.leaf(bytes, graph::kExternal), inside = g.leaf(bytes);
    const auto a = g.same(Operation::kScale, {outside}), b = g.same(Operation::kScale, {inside});
    const Lives lives(g);
    EXPECT_EQ(lives.over(a), kNoTensor);
    EXPECT_EQ(lives.over(b), inside);
    EXPECT_EQ(Lives(g, {}, {{a, 0_B}, {outside, 0_B}}).over(a), kNoTensor);
  }
}

// Node 1, the scale, is the only one that uses a in its last step; that node 2 uses it in an earlier one, or by a further
// use, changes nothing.
TEST(TakesOver, WhatOthersUsedBefore) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  const auto b = g.same(Operation::kScale, {a});
  g.node(Operation::kMean, 64, {a});
  MemoryRequest request;
  EXPECT_EQ(Lives(g).over(b), kNoTensor);
  request.order = {0, kBarrier, 2, kBarrier, 1};
  EXPECT_EQ(Lives(g, request).over(b), a);
  EXPECT_EQ(Lives(g, request).of(a), Life(0, 3));
  request.uses = {{2, a}};
  EXPECT_EQ(Lives(g, request).over(b), a);
  request.uses = {{1, a}};
  EXPECT_EQ(Lives(g, request).over(b), kNoTensor) << "node 1 may read any part of it";
  request.uses.clear();
  request.order = {0, kBarrier, 1, 2};
  EXPECT_EQ(Lives(g, request).over(b), kNoTensor);
}

/// Node 0 pads a, which node 1 reads; node 2 is as told, and node 3 scales its result. Whose memory node 3 takes over if
/// 2 and 3 are in one group, and if they are in two.
std::pair<TensorId, TensorId> over_in_groups(const TensorSpec& second) {
  SmallGraph g;
  g.node(Operation::kMean, 64, {g.node(Operation::kPad, 64, {g.input(16)})});
  const auto b = g.add(second);
  const auto c = g.same(Operation::kScale, {b});
  MemoryRequest one, two;
  one.order = {0, 1, kBarrier, 2, 3};
  two.order = {0, 1, kBarrier, 2, kBarrier, 3};
  return {Lives(g, one).over(c), Lives(g, two).over(c)};
}

// What computes a tensor is no user of it; what writes into a view, or reads a root to make a view of it, is one.
TEST(TakesOver, InAGroupWhatOneNodeUses) {
  constexpr TensorId kPadded{1}, kMeans{2}, kSecond{3};
  using Over = std::pair<TensorId, TensorId>;
  TensorSpec spec;
  spec.shape = {16, 1, 1, 1};
  spec.operation = Operation::kMean;
  spec.sources = {kPadded};
  EXPECT_EQ(over_in_groups(spec), Over(kSecond, kSecond));
  spec.operation = Operation::kCpy;  // a writer with memory of its own
  EXPECT_EQ(over_in_groups(spec), Over(kSecond, kSecond));
  spec.sources = {kMeans};
  spec.view_source = kPadded;  // a writer into a, which is no source
  EXPECT_EQ(over_in_groups(spec), Over(kNoTensor, kPadded));
  spec.operation = Operation::kView;
  spec.sources = {kPadded};
  EXPECT_EQ(over_in_groups(spec), Over(kNoTensor, kPadded));
  spec.operation = Operation::kNone;  // a view that reads nothing
  spec.sources = {};
  EXPECT_EQ(over_in_groups(spec), Over(kPadded, kPadded));
}

}  // namespace
}  // namespace ashlar
