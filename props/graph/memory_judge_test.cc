// The judge of a graph's memory is seen to fire: one planted damage for each thing it checks.
#include "spec/graph/memory_judge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::MemoryRequest;
using graph::Operation;
using graph::TensorId;
using props::SmallGraph;

std::string judge(const SmallGraph& g, const std::vector<std::uint64_t>& offsets,
                  const MemoryRequest& request = {}, Bytes size = 1024_B) {
  std::vector<Address> addresses;
  for (const std::uint64_t offset : offsets) addresses.push_back(Address{4096 + offset});
  const std::vector<BufferType> types{{16_B, Bytes::max(), nullptr}};
  const std::vector<spec::JudgedBuffer> buffers{{0, Address{4096}, size}};
  return spec::judge_memory(g.graph, request, types, buffers, addresses).value_or("");
}

TEST(MemoryJudge, ReportsOverlapsOfWhatIsInUse) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto b = g.node(Operation::kMean, 64, {a});
  const auto c = g.node(Operation::kMean, 64, {b});
  g.node(Operation::kConcat, 64, {c, b});
  EXPECT_EQ(judge(g, {0, 64, 0, 128}), "");
  EXPECT_NE(judge(g, {0, 0, 64, 128}), "");   // a mean is not in place
  EXPECT_NE(judge(g, {0, 64, 64, 128}), "");  // b is read later
  EXPECT_NE(judge(g, {0, 64, 80, 160}), "");
  EXPECT_NE(judge(g, {0, 64, 0, 48}), "");
}

TEST(MemoryJudge, AcceptsInPlaceOnlyWhereItLosesNothing) {
  SmallGraph g;
  const auto a = g.input(64), b = g.input(64);
  g.same(Operation::kAdd, {a, b});
  EXPECT_EQ(judge(g, {0, 64, 0}), "");
  EXPECT_EQ(judge(g, {0, 64, 64}), "");
  EXPECT_NE(judge(g, {0, 64, 16}), "");  // over both, at another place
  SmallGraph norm;
  const auto x = norm.input(64);
  norm.same(Operation::kRmsNorm, {x});
  EXPECT_EQ(judge(norm, {0, 0}), "");
  SmallGraph rope;
  const auto y = rope.input(64), z = rope.input(64);
  rope.same(Operation::kRope, {y, z});
  EXPECT_EQ(judge(rope, {0, 64, 0}), "");
  EXPECT_NE(judge(rope, {0, 64, 64}), "");  // over the second source
  SmallGraph twice;
  const auto t = twice.input(64);
  twice.same(Operation::kRope, {t, t});
  EXPECT_NE(judge(twice, {0, 0}), "");
  SmallGraph view;
  const auto v = view.input(64);
  const auto w = view.view(v, 32, 32);
  view.same(Operation::kScale, {w});
  EXPECT_EQ(judge(view, {0, 32, 32}), "");
  EXPECT_NE(judge(view, {0, 32, 0}), "");
}

TEST(MemoryJudge, KeepsOutputsParametersAndWhatNobodyReads) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto b = g.node(Operation::kMean, 64, {a}, graph::kOutput);
  const auto c = g.node(Operation::kMean, 64, {b});
  const auto d = g.node(Operation::kMean, 64, {c});
  EXPECT_EQ(judge(g, {0, 64, 128, 0}), "");
  EXPECT_NE(judge(g, {0, 64, 128, 64}), "");
  g.node(Operation::kMean, 64, {c});
  EXPECT_EQ(judge(g, {0, 64, 128, 0, 192}), "");
  EXPECT_NE(judge(g, {0, 64, 128, 0, 0}), "");  // d is never read
  static_cast<void>(d);
}

TEST(MemoryJudge, ReportsPlacesOutsideBuffersAndViewsElsewhere) {
  SmallGraph g;
  const auto a = g.input(64);
  g.view(a, 16, 16);
  EXPECT_EQ(judge(g, {0, 16}), "");
  EXPECT_NE(judge(g, {0, 32}), "");
  EXPECT_NE(judge(g, {8, 24}), "");
  EXPECT_NE(judge(g, {0, 16}, {}, 63_B), "");
  MemoryRequest other;
  other.types = {1, 1};
  const std::vector<BufferType> types(2, {16_B, Bytes::max(), nullptr});
  const std::vector<spec::JudgedBuffer> buffers{{0, Address{4096}, 64_B}};
  const std::vector<Address> addresses{Address{4096}, Address{4112}};
  EXPECT_NE(spec::judge_memory(g.graph, other, types, buffers, addresses).value_or(""), "");
}

TEST(MemoryJudge, KnowsGroupsFurtherUsesAndLoops) {
  SmallGraph g;
  const auto a = g.input(64), b = g.input(64);
  const auto c = g.node(Operation::kMean, 64, {a});
  const auto d = g.node(Operation::kMean, 64, {b});
  g.node(Operation::kConcat, 64, {c, d});
  EXPECT_EQ(judge(g, {0, 64, 128, 0, 64}), "");
  MemoryRequest grouped;
  grouped.order = {0, 1, graph::kBarrier, 2};
  EXPECT_NE(judge(g, {0, 64, 128, 0, 64}, grouped), "");
  MemoryRequest further;
  further.uses = {{1, a}};
  EXPECT_NE(judge(g, {0, 64, 128, 0, 64}, further), "");
  SmallGraph loop;
  const auto x = loop.input(64);
  loop.graph.begin_region(graph::RegionKind::kLoop);
  const auto y = loop.node(Operation::kMean, 64, {x});
  const auto z = loop.node(Operation::kMean, 64, {y});
  ASSERT_TRUE(loop.graph.end_region().is_ok());
  loop.node(Operation::kControl, 64, {z});
  EXPECT_EQ(judge(loop, {0, 64, 128, 0}), "");
  EXPECT_NE(judge(loop, {0, 64, 0, 128}), "");
  SmallGraph again;
  const auto p = again.input(64);
  again.graph.begin_region(graph::RegionKind::kLoop);
  again.same(Operation::kScale, {p});
  ASSERT_TRUE(again.graph.end_region().is_ok());
  EXPECT_EQ(judge(again, {0, 64}), "");
  EXPECT_NE(judge(again, {0, 0}), "");
}

TEST(MemoryJudge, LivesByDefinition) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto b = g.node(Operation::kMean, 64, {a});
  const auto v = g.view(b, 16);
  g.node(Operation::kMean, 64, {v});
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected{
      {0, 1}, {0, 3}, {0, 0}, {2, 3}};
  EXPECT_EQ(spec::lives_by_definition(g.graph, {}), expected);
}

}  // namespace
}  // namespace ashlar
