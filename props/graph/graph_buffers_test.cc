// The buffers of a graph allocator, call by call: made once, replaced only if they are too small, asked for again after a
// refusal, released in the end; and the addresses of tensors and parts in them.
//
// Imitates: a serving process that reserves for one graph after another, on a device that is nearly full.
// Does not prove: anything about values; memory_judge.h judges addresses in other suites.
#include <ashlar/graph/graph_allocator.h>

#include <gtest/gtest.h>

#include <vector>

#include "props/graph/small_graphs.h"
#include "spec/graph/imaginary_buffers.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::GraphAllocator;
using graph::MemoryRequest;
using graph::Operation;
using graph::TensorId;
using props::SmallGraph;
using spec::ImaginaryBuffers;

/// A graph of one leaf.
SmallGraph leaf_of(std::uint64_t bytes) {
  SmallGraph g;
  g.input(bytes);
  return g;
}

TEST(GraphBuffers, AreReplacedOnlyByLargerOnes) {
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  for (const std::uint64_t bytes : {4096u, 4096u, 64u, 4092u, 0u}) {
    ASSERT_TRUE(allocator.reserve(leaf_of(bytes).graph, {}).is_ok());
    EXPECT_EQ(source.calls(), 1u) << bytes;
    EXPECT_EQ(allocator.buffers_replaced(), 0u);
    EXPECT_EQ(allocator.buffer_bytes(0), std::vector<Bytes>{4096_B});
  }
  ASSERT_TRUE(allocator.reserve(leaf_of(4100).graph, {}).is_ok());
  EXPECT_EQ(source.calls(), 2u);
  EXPECT_EQ(allocator.buffers_replaced(), 1u);
  ASSERT_EQ(source.live().size(), 1u);
  EXPECT_EQ(source.live()[0].size, 4100_B);
  EXPECT_EQ(allocator.plans_made(), 6u);
}

TEST(GraphBuffers, OfFewerChunksLeaveTheOthersThere) {
  const auto leafs = [](const std::vector<std::uint64_t>& sizes) {
    SmallGraph g;
    for (const std::uint64_t size : sizes) g.input(size);
    return g;
  };
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {{64_B, 256_B, nullptr}});
  ASSERT_TRUE(allocator.reserve(leafs({256, 256, 256}).graph, {}).is_ok());
  ASSERT_TRUE(allocator.reserve(leafs({256, 256}).graph, {}).is_ok());
  ASSERT_TRUE(allocator.reserve(leafs({64}).graph, {}).is_ok());
  EXPECT_EQ(allocator.buffer_bytes(0), std::vector<Bytes>(3, 256_B));
  EXPECT_EQ(source.calls(), 3u);
}

TEST(GraphBuffers, AreReleasedByTheDestructorAndByReleaseOnce) {
  ImaginaryBuffers source;
  {
    GraphAllocator allocator(source, {BufferType{}});
    ASSERT_TRUE(allocator.reserve(leaf_of(64).graph, {}).is_ok());
    EXPECT_EQ(source.live().size(), 1u);
  }
  EXPECT_TRUE(source.live().empty());
  {
    GraphAllocator allocator(source, {BufferType{}});
    ASSERT_TRUE(allocator.reserve(leaf_of(64).graph, {}).is_ok());
    allocator.release();
    EXPECT_TRUE(source.live().empty());
    EXPECT_TRUE(allocator.buffer_bytes(0).empty());
  }
  EXPECT_EQ(source.unknown_releases(), 0u);
}

// The larger buffer is refused, and the old size asked for again: then what was planned before is applied as before.
TEST(GraphBuffers, ThatAreRefusedLeaveTheOldPlan) {
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  const SmallGraph small = leaf_of(4096), large = leaf_of(8192);
  source.refuse_above(4096_B);
  std::vector<Address> at(1);
  EXPECT_EQ(allocator.reserve(large.graph, {}).code(), Code::kOutOfMemory);
  EXPECT_EQ(source.calls(), 1u);  // there was no buffer before
  ASSERT_TRUE(allocator.reserve(small.graph, {}).is_ok());
  EXPECT_EQ(source.calls(), 2u);
  EXPECT_EQ(allocator.reserve(large.graph, {}).code(), Code::kOutOfMemory);
  EXPECT_EQ(source.calls(), 4u);
  ASSERT_EQ(source.live().size(), 1u);
  ASSERT_TRUE(allocator.apply(small.graph, {}, at).is_ok());
  EXPECT_EQ(at[0], source.live()[0].base);
  EXPECT_EQ(allocator.buffers_replaced(), 0u);
  EXPECT_EQ(source.unknown_releases(), 0u);
}

// A leaf and the node over it are in one plan; the first tensor and the first part are compared as the others are.
TEST(GraphPlansHold, EachTensorAndEachPartOfNoMoreBytes) {
  const auto build = [](std::uint64_t first, std::uint64_t second) {
    SmallGraph g;
    const auto a = g.input(first), b = g.input(second);
    g.node(Operation::kControl, 0, {a, b});
    return g;
  };
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  std::vector<Address> at(3);
  ASSERT_TRUE(allocator.reserve(build(64, 64).graph, {}).is_ok());
  const auto applied = [&](std::uint64_t first, std::uint64_t second) {
    return allocator.apply(build(first, second).graph, {}, at).code();
  };
  EXPECT_EQ(applied(64, 64), Code::kOk);
  EXPECT_EQ(applied(0, 60), Code::kOk);
  EXPECT_EQ(applied(68, 64), Code::kNotFound);
  EXPECT_EQ(applied(64, 68), Code::kNotFound);

  const SmallGraph g = build(64, 64);
  MemoryRequest request;
  request.parts = {{TensorId{0}, 0, 48_B}, {TensorId{1}, 0, 16_B}};
  ASSERT_TRUE(allocator.reserve(g.graph, request).is_ok());
  const auto split = [&](Bytes first, Bytes second) {
    request.parts[0].size = first;
    request.parts[1].size = second;
    std::vector<Address> parts(2);
    return allocator.apply(g.graph, request, at, parts).code();
  };
  EXPECT_EQ(split(48_B, 16_B), Code::kOk);
  EXPECT_EQ(split(52_B, 16_B), Code::kNotFound);
  EXPECT_EQ(split(48_B, 20_B), Code::kNotFound);
}

// Parts that are live at once: each in the one buffer of its type, aligned, and apart.
TEST(GraphPartAddresses, LieApartInTheBuffersOfTheirTypes) {
  SmallGraph g;
  const auto a = g.input(256), b = g.input(256);
  g.node(Operation::kControl, 0, {a, b});
  MemoryRequest request;
  request.parts = {{a, 0, 64_B}, {a, 1, 192_B}, {b, 0, 128_B}, {b, 1, 128_B}};
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}, BufferType{}});
  std::vector<Address> at(3), parts(4);
  ASSERT_TRUE(allocator.allocate(g.graph, request, at, parts).is_ok());
  ASSERT_EQ(source.live().size(), 2u);
  for (std::size_t p = 0; p < 4; ++p) {
    const spec::JudgedBuffer& buffer = source.live()[request.parts[p].type];
    EXPECT_EQ(buffer.type, request.parts[p].type);
    EXPECT_EQ(buffer.size, request.parts[p].type == 0 ? Bytes{64 + 128} : Bytes{192 + 128});
    EXPECT_GE(parts[p], buffer.base);
    EXPECT_LE(parts[p] + request.parts[p].size, buffer.base + buffer.size);
    EXPECT_EQ(parts[p].value() % 64, 0u);
  }
  for (const std::size_t p : {0u, 1u}) {
    const bool is_behind = parts[p] + request.parts[p].size <= parts[p + 2];
    EXPECT_TRUE(is_behind || parts[p + 2] + request.parts[p + 2].size <= parts[p]) << p;
  }
}

}  // namespace
}  // namespace ashlar
