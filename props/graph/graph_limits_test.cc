// Buffers of limited size, shapes that grow in turn, and large graphs: memory and work stay within bounds.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include <ashlar/graph/graph_allocator.h>
#include <ashlar/graph/graph_plan.h>

#include "props/graph/small_graphs.h"
#include "spec/graph/memory_judge.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::GraphAllocator;
using graph::kOutput;
using graph::Operation;
using graph::TensorId;
using props::SmallGraph;

TEST(GraphLimits, PaddingIsNoReasonForABufferAboveTheLimit) {
  // 132 bytes, padded to 192, are below the limit of 140. Nothing may be put behind them that ends above it.
  SmallGraph small;
  const TensorId a = small.input(132), b = small.input(44);
  small.node(Operation::kSum, 4, {a}, kOutput);
  small.node(Operation::kSum, 4, {b}, kOutput);
  spec::ImaginaryBuffers source;
  source.refuse_above(140_B);
  GraphAllocator allocator(source, {BufferType{64_B, 140_B, nullptr}});
  std::vector<Address> addresses(small.graph.tensors().size());
  const Status status = allocator.allocate(small.graph, {}, addresses);
  EXPECT_TRUE(status.is_ok()) << status.why();
  for (const Bytes size : allocator.buffer_bytes(0)) EXPECT_LE(size, 140_B);
}

TEST(GraphLimits, ABufferThatFitsButForItsPaddingIsNotDivided) {
  SmallGraph small;
  const TensorId a = small.input(64), b = small.input(40);
  small.node(Operation::kAdd, 64, {a, b}, kOutput);  // needs both at once: 64 + 40, padded 128
  spec::ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{64_B, 110_B, nullptr}});
  EXPECT_TRUE(allocator.reserve(small.graph, {}).is_ok());
  EXPECT_EQ(allocator.buffer_bytes(0), (std::vector<Bytes>{104_B}));
}

TEST(GraphLimits, ShapesThatGrowInTurnArePlannedTwice) {
  const auto graph_of = [](std::uint64_t first, std::uint64_t second) {
    SmallGraph small;
    const TensorId a = small.input(first), b = small.input(second);
    small.node(Operation::kSum, 4, {a}, kOutput);
    small.node(Operation::kSum, 4, {b}, kOutput);
    return small;
  };
  const SmallGraph wide = graph_of(4000, 40), high = graph_of(40, 4000);
  ASSERT_EQ(wide.graph.wiring(), high.graph.wiring());
  spec::ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  std::vector<Address> addresses(4);
  for (int round = 0; round < 10; ++round) {
    EXPECT_TRUE(allocator.allocate(wide.graph, {}, addresses).is_ok());
    EXPECT_TRUE(allocator.allocate(high.graph, {}, addresses).is_ok());
  }
  EXPECT_EQ(allocator.plans_made(), 2u);
}

TEST(GraphLimits, ABatchOfOneIsAnotherSizeAndNoOtherWiring) {
  // With a batch of one the bias has the sum's shape; being external it is never written over, so nothing changes.
  const auto graph_of = [](std::uint64_t batch) {
    SmallGraph small;
    graph::TensorSpec x, bias, sum;
    x.shape = sum.shape = {10, batch, 1, 1};
    x.flags = graph::kInput;
    bias.shape = {10, 1, 1, 1};
    bias.flags = graph::kExternal;
    sum.operation = Operation::kAdd;
    sum.sources = {small.add(x), small.add(bias)};
    sum.flags = kOutput;
    small.add(sum);
    return small;
  };
  const SmallGraph large = graph_of(64);
  spec::ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  ASSERT_TRUE(allocator.reserve(large.graph, {}).is_ok());
  std::vector<Address> addresses(3);
  for (const std::uint64_t batch : {64u, 7u, 2u, 1u}) {
    EXPECT_TRUE(allocator.apply(graph_of(batch).graph, {}, addresses).is_ok()) << batch;
  }
}

TEST(GraphLimits, WithoutMemoryForBothShapesEachIsPlannedAlone) {
  // In use at once: both inputs in the first step. 4000 + 40 bytes fit, 4000 + 4000 do not.
  const auto graph_of = [](std::uint64_t first, std::uint64_t second) {
    SmallGraph small;
    const TensorId a = small.input(first), b = small.input(second);
    small.node(Operation::kConcat, first + second, {a, b}, kOutput);
    return small;
  };
  const SmallGraph wide = graph_of(4000, 40), high = graph_of(40, 4000);
  spec::ImaginaryBuffers source;
  source.refuse_above(9000_B);
  GraphAllocator allocator(source, {BufferType{}});
  std::vector<Address> addresses(3);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(allocator.allocate(wide.graph, {}, addresses).is_ok());
    EXPECT_TRUE(allocator.allocate(high.graph, {}, addresses).is_ok());
  }
}

/// `count` halves in place of one another, each in an alias group, over buffers of a few of them.
SmallGraph halves(std::uint64_t count) {
  SmallGraph small;
  for (std::uint64_t k = 0; k < count; ++k) {
    graph::TensorSpec half;
    const TensorId in = small.input(128);
    const TensorId whole = small.same(Operation::kRelu, {in});
    half.operation = Operation::kSwiglu;
    half.shape = {16, 1, 1, 1};
    half.sources = {whole};
    small.node(Operation::kSum, 4, {small.add(half)}, kOutput);
  }
  return small;
}

TEST(GraphLimits, DividingTakesMemoryInProportion) {
  // A table of all groups for each chunk took 2 GiB here, and 8 seconds.
  const SmallGraph small = halves(4000);
  const auto begin = std::chrono::steady_clock::now();
  const auto plan =
      make_graph_plan(small.graph, {}, std::vector<BufferType>{{64_B, 448_B, nullptr}}, 0);
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(plan.is_ok());
  EXPECT_GT(plan.value().chunk_bytes[0].size(), 1000u);
  EXPECT_LT(took, std::chrono::seconds(20));
}

TEST(GraphLimits, TheJudgeOfAChainIsQuick) {
  // Quadratic in tensors and nodes it took 50 s for this chain; the bound leaves room for sanitizers.
  SmallGraph small;
  TensorId last = small.input(64);
  for (int k = 0; k < 60'000; ++k) last = small.same(Operation::kRelu, {last});
  spec::ImaginaryBuffers source;
  const std::vector<BufferType> types{BufferType{}};
  GraphAllocator allocator(source, types);
  std::vector<Address> addresses(small.graph.tensors().size());
  ASSERT_TRUE(allocator.allocate(small.graph, {}, addresses).is_ok());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(spec::judge_memory(small.graph, {}, types, source.live(), addresses), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace ashlar
