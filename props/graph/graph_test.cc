// Graphs: what add() refuses, what views, extents and the wiring hash are.
//
// Imitates: a loader that is given a broken file, and layouts as models have them.
#include <ashlar/graph/graph.h>

#include <gtest/gtest.h>

#include <string>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::ElementType;
using graph::Graph;
using graph::kNoTensor;
using graph::Operation;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;

std::string why(Graph& graph, const TensorSpec& spec) {
  const std::size_t before = graph.tensors().size();
  const std::uint64_t wiring = graph.wiring();
  const auto added = graph.add(spec);
  if (added.is_ok()) return "";
  EXPECT_EQ(graph.tensors().size(), before);
  EXPECT_EQ(graph.wiring(), wiring);
  return added.status().why();
}

TensorSpec node(Operation operation, std::vector<TensorId> sources) {
  TensorSpec spec;
  spec.operation = operation;
  spec.shape = {4, 1, 1, 1};
  spec.sources = std::move(sources);
  return spec;
}

TEST(GraphAdd, RefusesSourcesThatAreNotThereYet) {
  SmallGraph g;
  const auto a = g.input(16);
  EXPECT_NE(why(g.graph, node(Operation::kScale, {TensorId{1}})), "");  // itself
  EXPECT_NE(why(g.graph, node(Operation::kAdd, {a, TensorId{7}})), "");
  EXPECT_NE(why(g.graph, node(Operation::kAdd, {a})), "");
  EXPECT_NE(why(g.graph, node(Operation::kAdd, {a, a, a})), "");
  EXPECT_NE(why(g.graph, node(Operation::kAdd, {a, kNoTensor})), "");
  EXPECT_EQ(why(g.graph, node(Operation::kSoftMax, {a, kNoTensor})), "");
  EXPECT_EQ(why(g.graph, node(Operation::kControl, std::vector<TensorId>(300, a))), "");
  TensorSpec view = node(Operation::kView, {a});
  view.view_source = TensorId{99};
  EXPECT_NE(why(g.graph, view), "");
}

TEST(GraphAdd, RefusesViewsOutsideTheirRoot) {
  SmallGraph g;
  const auto a = g.input(64);
  TensorSpec view = node(Operation::kView, {a});
  EXPECT_NE(why(g.graph, view), "");  // no view source
  view.view_source = a;
  view.view_offset = 48_B;
  EXPECT_EQ(why(g.graph, view), "");
  view.view_offset = 52_B;
  EXPECT_NE(why(g.graph, view), "");
  view.view_offset = 46_B;
  EXPECT_NE(why(g.graph, view), "");  // not aligned for f32
  view.view_offset = Bytes::max();
  EXPECT_NE(why(g.graph, view), "");
  view.view_offset = 4_B;
  view.strides = {16, 16, 16, 16};
  EXPECT_EQ(why(g.graph, view), "");  // 4 + 3 * 16 + 4 = 56
  view.view_offset = 16_B;
  EXPECT_NE(why(g.graph, view), "");
  TensorSpec scale = node(Operation::kScale, {a});
  scale.view_source = a;
  EXPECT_NE(why(g.graph, scale), "");
}

TEST(GraphAdd, ViewsOfViewsLieInTheRoot) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto b = g.view(a, 32, 16);
  const auto c = g.view(b, 16, 8);
  EXPECT_EQ(g.graph[c].root, a);
  EXPECT_EQ(g.graph[c].view_offset, 24_B);
  TensorSpec outside = node(Operation::kView, {c});
  outside.view_source = c;
  outside.view_offset = 40_B;
  EXPECT_NE(why(g.graph, outside), "");
  const auto e = g.leaf(64, graph::kExternal);
  EXPECT_NE(g.graph[g.view(e, 16)].flags & graph::kExternal, 0);
}

TEST(GraphAdd, RefusesStridesThatDoNotFit) {
  SmallGraph g;
  TensorSpec leaf;
  leaf.shape = {4, 3, 1, 1};
  leaf.strides = {4, 8, 48, 48};
  EXPECT_NE(why(g.graph, leaf), "");  // rows overlap
  leaf.strides = {4, 0, 48, 48};
  EXPECT_NE(why(g.graph, leaf), "");
  leaf.strides = {4, 18, 72, 72};
  EXPECT_NE(why(g.graph, leaf), "");  // no multiple of 4
  leaf.strides = {12, 4, 48, 48};
  EXPECT_EQ(why(g.graph, leaf), "");  // transposed
  leaf.strides = {4, 20, 60, 60};
  EXPECT_EQ(why(g.graph, leaf), "");
  EXPECT_EQ(g.graph.tensors().back().extent, 56_B);  // H53: from the strides, not 4 * 12
  leaf.type = ElementType::kQ4_0;
  leaf.strides = {};
  EXPECT_NE(why(g.graph, leaf), "");  // not in whole blocks
  leaf.shape = {64, 3, 1, 1};
  EXPECT_EQ(why(g.graph, leaf), "");
  EXPECT_EQ(g.graph.tensors().back().extent, Bytes{18 * 2 * 3});
  leaf.strides = {36, 72, 216, 216};
  EXPECT_NE(why(g.graph, leaf), "");
  leaf.shape = {0, 3, 1, 1};
  leaf.strides = {};
  EXPECT_EQ(why(g.graph, leaf), "");
  EXPECT_EQ(g.graph.tensors().back().extent, 0_B);
}

TEST(GraphAdd, RefusesWhatIsTooLarge) {
  SmallGraph g;
  TensorSpec leaf;
  leaf.shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40, 1, 1};
  EXPECT_NE(why(g.graph, leaf), "");
  leaf.shape = {std::uint64_t{1} << 61, 1, 1, 1};
  EXPECT_NE(why(g.graph, leaf), "");
  leaf.shape = {std::uint64_t{1} << 60, 1, 1, 1};
  EXPECT_EQ(why(g.graph, leaf), "");
  EXPECT_EQ(g.graph.tensors().back().extent, Bytes{std::uint64_t{1} << 62});
  leaf.shape = {2, 1, 1, 1};
  leaf.strides = {std::uint64_t{1} << 62, 4, 4, 4};
  EXPECT_NE(why(g.graph, leaf), "");
}

TEST(GraphAdd, RefusesFlagsThatDoNotGoTogether) {
  SmallGraph g;
  const auto a = g.input(64);
  TensorSpec view = node(Operation::kView, {a});
  view.view_source = a;
  view.flags = graph::kExternal;
  EXPECT_NE(why(g.graph, view), "");
  view.flags = graph::kParameter;
  EXPECT_NE(why(g.graph, view), "");
  view.flags = graph::kOutput;
  EXPECT_EQ(why(g.graph, view), "");
  TensorSpec leaf;
  leaf.flags = 128;
  EXPECT_NE(why(g.graph, leaf), "");
}

TEST(GraphWiring, DependsOnEverythingButSizes) {
  const auto build = [](std::uint64_t bytes, Operation operation, bool same, std::uint8_t flags) {
    SmallGraph g;
    const auto a = g.input(bytes), b = g.input(bytes);
    g.same(operation, {a, same ? a : b}, flags);
    return g.graph.wiring();
  };
  const std::uint64_t wiring = build(64, Operation::kAdd, false, 0);
  EXPECT_EQ(build(32, Operation::kAdd, false, 0), wiring);
  EXPECT_EQ(build(64, Operation::kMul, false, 0), wiring);  // the same reuse is permitted
  EXPECT_NE(build(64, Operation::kAdd, true, 0), wiring);
  EXPECT_NE(build(64, Operation::kAdd, false, graph::kOutput), wiring);
  EXPECT_NE(build(64, Operation::kOutProd, false, 0), wiring);  // not in place
  SmallGraph plain, looped, branched;
  for (SmallGraph* g : {&plain, &looped, &branched}) {
    const auto a = g->input(64);
    if (g == &looped) g->graph.begin_region(graph::RegionKind::kLoop);
    if (g == &branched) g->graph.begin_region(graph::RegionKind::kBranch);
    g->same(Operation::kScale, {a});
    if (g == &plain) continue;
    EXPECT_TRUE(g->graph.end_region().is_ok());
  }
  EXPECT_NE(plain.graph.wiring(), looped.graph.wiring());
  EXPECT_NE(branched.graph.wiring(), looped.graph.wiring());
}

// Whether a source may be written over depends on shapes: broadcast sums of one wiring differ in it.
TEST(GraphWiring, DependsOnWhichSourceHasTheResultsShape) {
  const auto build = [](std::uint64_t a_bytes, std::uint64_t b_bytes) {
    SmallGraph g;
    const auto a = g.input(a_bytes), b = g.input(b_bytes);
    g.node(Operation::kAdd, 64, {a, b});
    return g.graph.wiring();
  };
  EXPECT_NE(build(64, 64), build(64, 4));
  EXPECT_NE(build(64, 4), build(4, 64));
}

TEST(GraphNames, OfTypesAndOperationsLeadBack) {
  for (std::uint8_t k = 0; k < graph::kOperations; ++k) {
    const auto operation = static_cast<Operation>(k);
    EXPECT_EQ(graph::operation_of(graph::traits_of(operation).name), operation);
  }
  for (std::uint8_t k = 0; k < graph::kElementTypes; ++k) {
    const auto type = static_cast<ElementType>(k);
    EXPECT_EQ(graph::element_type_of(graph::traits_of(type).name), type);
  }
  EXPECT_EQ(graph::operation_of("ADD1"), std::nullopt);
  EXPECT_EQ(graph::element_type_of("F32"), std::nullopt);
}

}  // namespace
}  // namespace ashlar
