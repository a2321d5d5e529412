// Places in chunks, exact, for few items; and plans that are divided over buffers: what fits the limit is in one
// buffer, nothing passes it, and buffer types do not touch each other.
//
// Imitates: a device whose largest buffer is as large as a plan, or a little smaller.
// Does not prove: that no division needs fewer bytes; first fit promises none.
#include <ashlar/graph/chunk_fit.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include <ashlar/graph/graph_allocator.h>

#include "props/graph/small_graphs.h"
#include "spec/graph/imaginary_buffers.h"
#include "spec/graph/memory_judge.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::ChunkItem;
using graph::ChunkPlace;
using graph::fit_chunks;
using graph::GraphAllocator;
using graph::GraphMemory;
using graph::GraphOptions;
using graph::MemoryRequest;
using graph::Operation;
using graph::TensorId;
using props::SmallGraph;
using spec::ImaginaryBuffers;

using Places = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

/// Memory for the steps [begin, end), which needs all of its bytes.
struct FullItem {
  std::uint32_t begin, end;
  Bytes size;
};
Places places(const std::vector<FullItem>& full, std::uint64_t limit) {
  Places found;
  std::vector<ChunkItem> items;
  for (const FullItem& item : full) items.push_back({item.begin, item.end, item.size, item.size});
  for (const ChunkPlace& place : fit_chunks(items, Bytes{limit}))
    found.emplace_back(place.chunk, place.offset.count());
  return found;
}

// By begin the 8 bytes lie first, by size and by area the 16: 24 bytes each time.
TEST(ChunkPlaces, OfOrdersThatNeedAsManyBytesTheOneByBeginIsKept) {
  EXPECT_EQ(places({{0, 2, 8_B}, {0, 2, 16_B}}, 24), (Places{{0, 0}, {0, 8}}));
  EXPECT_EQ(places({{0, 2, 16_B}, {0, 2, 8_B}}, 24), (Places{{0, 0}, {0, 16}}));
}

// By begin 8 and 8 lie at 0 and 8, and 16 behind them: 32 bytes. By size the 16 lie at 0, over the 8 that end before.
TEST(ChunkPlaces, AnOrderThatNeedsFewerBytesIsTaken) {
  EXPECT_EQ(places({{0, 1, 8_B}, {0, 3, 8_B}, {1, 3, 16_B}}, 32),
            (Places{{0, 0}, {0, 16}, {0, 0}}));
}

// By begin three times 8 lie at 0, 8 and 16; the middle one ends, and what it leaves takes 8.
TEST(ChunkPlaces, AGapIsTakenIfItIsLargeEnough) {
  EXPECT_EQ(places({{0, 9, 8_B}, {0, 1, 8_B}, {0, 9, 8_B}, {1, 2, 8_B}}, 64),
            (Places{{0, 0}, {0, 8}, {0, 16}, {0, 8}}));
  // 12 do not fit there: by begin they would lie at 24 and end at 36, by size they lie at 0, and the others behind.
  EXPECT_EQ(places({{0, 9, 8_B}, {0, 1, 8_B}, {0, 9, 8_B}, {1, 2, 12_B}}, 64),
            (Places{{0, 12}, {0, 0}, {0, 20}, {0, 0}}));
}

TEST(ChunkPlaces, WhatIsAboveTheLimitGetsAChunkOfItsSizeAndLeavesItToOthers) {
  EXPECT_EQ(places({{0, 1, 40_B}, {1, 2, 40_B}, {1, 2, 8_B}, {2, 3, 32_B}, {2, 3, 8_B}}, 16),
            (Places{{0, 0}, {0, 0}, {1, 0}, {0, 0}, {0, 32}}));
  EXPECT_EQ(places({{0, 1, 16_B}, {0, 1, 16_B}}, 16), (Places{{0, 0}, {1, 0}}));
}

/// A tensor of `bytes` that its node computes in step `begin`, the node's number, and that node `last` reads.
struct Interval {
  std::uint64_t bytes;
  std::size_t last;
};

/// One node for each; none is computed in place.
SmallGraph graph_of(const std::vector<Interval>& intervals) {
  SmallGraph g;
  for (std::uint32_t n = 0; n < intervals.size(); ++n) {
    std::vector<TensorId> sources;
    for (std::uint32_t k = 0; k < n; ++k) {
      if (intervals[k].last == n) sources.push_back(TensorId{k});
    }
    g.node(Operation::kControl, intervals[n].bytes, sources);
  }
  return g;
}

GraphMemory measure(const SmallGraph& g, std::uint64_t limit, const GraphOptions& options = {}) {
  ImaginaryBuffers source;
  return GraphAllocator(source, {{4_B, Bytes{limit}, nullptr}}, options)
      .measure(g.graph, {})
      .value();
}

using Sizes = std::vector<std::vector<Bytes>>;

// In step 1 the 12 bytes and 8 are in use, in step 3 three times 8: 24 bytes are least. First fit needs more, whatever
// its order: by size and by begin the 12 lie at 0 and the first 8 at 12, so that a part of 0 to 12 is lost to two 8.
TEST(ChunkPlans, WhatTheLimitPermitsIsInOneBuffer) {
  const SmallGraph g = graph_of({{12, 1}, {8, 3}, {8, 9}, {8, 9}});
  EXPECT_EQ(measure(g, 25).buffers, (Sizes{{24_B}}));
  EXPECT_EQ(measure(g, 24).buffers, (Sizes{{24_B}}));
  EXPECT_GE(measure(g, 23).buffers[0].size(), 2u);
}

// Without search the planner's own first answer needs 32 bytes for what first fit places in 28: what is divided starts
// from there.
TEST(ChunkPlans, NeedNoSearchToStayWithinTheLimit) {
  const SmallGraph g = graph_of({{24, 1}, {4, 9}, {4, 3}, {12, 9}, {12, 9}});
  EXPECT_EQ(measure(g, 28, {0, 0}).buffers, (Sizes{{28_B}}));
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Interval> intervals(4 + random() % 6);
    for (std::size_t n = 0; n < intervals.size(); ++n)
      intervals[n] = {4 * (1 + random() % 12), n + 1 + random() % (intervals.size() / 2 + 1)};
    const std::uint64_t limit = 48 + 4 * (random() % 16);  // no tensor is larger
    const GraphMemory memory = measure(graph_of(intervals), limit, {0, 0});
    for (const Bytes size : memory.buffers[0]) ASSERT_LE(size, Bytes{limit}) << round;
  }
}

// Type 0 has no limit; type 1 is divided, and its chunks are its own.
TEST(ChunkPlans, ATypeThatIsDividedLeavesTheOthersAsTheyAre) {
  SmallGraph g;
  const auto a = g.input(64), b = g.input(128), c = g.input(32), d = g.input(64);
  g.node(Operation::kControl, 0, {a, b, c, d});
  MemoryRequest request;
  request.types = {0, 1, 1, 0, 0};
  ImaginaryBuffers source;
  const std::vector<BufferType> types{{4_B, Bytes::max(), nullptr}, {4_B, 128_B, nullptr}};
  GraphAllocator allocator(source, types);
  EXPECT_EQ(allocator.measure(g.graph, request).value().buffers, (Sizes{{128_B}, {128_B, 32_B}}));
  std::vector<Address> at(5);
  ASSERT_TRUE(allocator.allocate(g.graph, request, at).is_ok());
  EXPECT_EQ(spec::judge_memory(g.graph, request, types, source.live(), at).value_or(""), "");
}

// Thirty pairs of a tensor of 64 bytes and a smaller one over its beginning: each pair is one item of one chunk.
TEST(ChunkPlans, ManyPairsInPlaceStayTogether) {
  SmallGraph g;
  std::vector<TensorId> large, small;
  for (int k = 0; k < 30; ++k) {
    large.push_back(g.node(Operation::kPad, 64, {g.leaf(4, graph::kExternal)}));
    const auto view = g.view(large.back(), 16);
    g.node(Operation::kControl, 0, {large.back()});
    small.push_back(g.same(Operation::kScale, {view}));
  }
  g.node(Operation::kControl, 0, small);
  ImaginaryBuffers source;
  const std::vector<BufferType> types{{4_B, 96_B, nullptr}};
  GraphAllocator allocator(source, types);
  std::vector<Address> at(g.graph.tensors().size());
  ASSERT_TRUE(allocator.allocate(g.graph, {}, at).is_ok());
  EXPECT_EQ(allocator.measure(g.graph, {}).value().in_place_nodes, 30u);
  for (std::size_t k = 0; k < large.size(); ++k)
    EXPECT_EQ(at[large[k].value()], at[small[k].value()]) << k;
  for (const spec::JudgedBuffer& buffer : source.live()) EXPECT_LE(buffer.size, 96_B);
  EXPECT_EQ(spec::judge_memory(g.graph, {}, types, source.live(), at).value_or(""), "");
}

}  // namespace
}  // namespace ashlar
