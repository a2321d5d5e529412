// Edges of the graph room's parts: chunks beside a plain first fit, sums that wrap, loops inside loops, parse
// orders, sources that are not the first, what is counted.
//
// Imitates: requests at the bounds of what is permitted.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <ashlar/graph/chunk_fit.h>
#include <ashlar/graph/graph_allocator.h>
#include <ashlar/graph/tensor_set.h>

#include "props/graph/small_graphs.h"
#include "spec/graph/imaginary_buffers.h"
#include "spec/graph/memory_judge.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::ChunkItem;
using graph::ChunkPlace;
using graph::ElementType;
using graph::GraphAllocator;
using graph::MemoryRequest;
using graph::Operation;
using graph::RegionKind;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;
using spec::ImaginaryBuffers;

/// First fit in one order, by trying every offset at which something ends.
std::uint64_t plain_first_fit(const std::vector<ChunkItem>& items,
                              const std::vector<std::size_t>& order, std::uint64_t limit) {
  struct Placed {
    std::size_t chunk;
    std::uint64_t offset;
    ChunkItem item;
  };
  std::vector<Placed> placed;
  std::vector<std::uint64_t> limits, peaks;
  for (const std::size_t k : order) {
    const ChunkItem& item = items[k];
    const std::uint64_t size = item.size.count();
    bool is_placed = false;
    for (std::size_t c = 0; c <= limits.size() && !is_placed; ++c) {
      if (c == limits.size()) {
        limits.push_back(std::max(limit, item.needed.count()));
        peaks.push_back(0);
      }
      std::vector<std::uint64_t> offsets{0};
      for (const Placed& other : placed) {
        if (other.chunk == c) offsets.push_back(other.offset + other.item.size.count());
      }
      std::sort(offsets.begin(), offsets.end());
      for (const std::uint64_t offset : offsets) {
        const bool fits = offset + item.needed.count() <= limits[c] &&
                          std::none_of(placed.begin(), placed.end(), [&](const Placed& other) {
                            return other.chunk == c && other.item.begin < item.end &&
                                   item.begin < other.item.end && other.offset < offset + size &&
                                   offset < other.offset + other.item.size.count();
                          });
        if (!fits) continue;
        placed.push_back({c, offset, item});
        peaks[c] = std::max(peaks[c], offset + size);
        is_placed = true;
        break;
      }
    }
  }
  return std::accumulate(peaks.begin(), peaks.end(), std::uint64_t{0});
}

TEST(ChunkFit, IsTheBestOfThreeFirstFits) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<ChunkItem> items(1 + random() % 9);
    for (ChunkItem& item : items) {
      item.begin = static_cast<std::uint32_t>(random() % 6);
      item.end = item.begin + 1 + static_cast<std::uint32_t>(random() % 5);
      item.size = Bytes{8 * (1 + random() % 5)};
      item.needed = item.size - Bytes{random() % 8};
    }
    const std::uint64_t limit = 16 + 8 * (random() % 4);
    std::uint64_t least = ~std::uint64_t{0};
    const auto area = [](const ChunkItem& item) {
      return item.size.count() * (item.end - item.begin);
    };
    for (int kind = 0; kind < 3; ++kind) {
      std::vector<std::size_t> order(items.size());
      std::iota(order.begin(), order.end(), 0);
      // Equal items keep the order of the list.
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (kind == 0 && items[a].begin != items[b].begin) return items[a].begin < items[b].begin;
        if (kind == 1 && items[a].size != items[b].size) return items[a].size > items[b].size;
        if (kind == 2 && area(items[a]) != area(items[b])) return area(items[a]) > area(items[b]);
        return a < b;
      });
      least = std::min(least, plain_first_fit(items, order, limit));
    }
    const std::vector<ChunkPlace> places = graph::fit_chunks(items, Bytes{limit});
    std::vector<std::uint64_t> peaks;
    for (std::size_t a = 0; a < items.size(); ++a) {
      const std::uint64_t end = (places[a].offset + items[a].size).count();
      std::uint64_t chunk_limit = limit;  // or its largest item
      for (std::size_t b = 0; b < items.size(); ++b) {
        if (places[b].chunk == places[a].chunk)
          chunk_limit = std::max(chunk_limit, items[b].needed.count());
      }
      ASSERT_LE((places[a].offset + items[a].needed).count(), chunk_limit);
      peaks.resize(std::max<std::size_t>(peaks.size(), places[a].chunk + std::size_t{1}));
      peaks[places[a].chunk] = std::max(peaks[places[a].chunk], end);
      for (std::size_t b = 0; b < a; ++b) {
        const bool is_apart = places[a].chunk != places[b].chunk ||
                              items[a].begin >= items[b].end || items[b].begin >= items[a].end ||
                              places[a].offset >= places[b].offset + items[b].size ||
                              places[b].offset >= places[a].offset + items[a].size;
        ASSERT_TRUE(is_apart);
      }
    }
    ASSERT_EQ(std::accumulate(peaks.begin(), peaks.end(), std::uint64_t{0}), least) << round;
  }
}

// A larger parent and the smaller tensor over it are one item of a chunk, for as long as either lives.
TEST(GraphChunks, WhatIsInPlaceStaysTogetherAndWithinTheLimit) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto big = g.node(Operation::kPad, 4096, {a});
  const auto small = g.same(Operation::kScale, {g.view(big, 64)});
  const auto next = g.node(Operation::kPad, 4096, {a});
  g.node(Operation::kConcat, 4, {next, small});
  ImaginaryBuffers source;
  const std::vector<BufferType> types{{64_B, 4096_B, nullptr}};
  GraphAllocator allocator(source, types);
  std::vector<Address> at(g.graph.tensors().size());
  ASSERT_TRUE(allocator.allocate(g.graph, {}, at).is_ok());
  EXPECT_EQ(at[small.value()], at[big.value()]);
  for (const spec::JudgedBuffer& buffer : source.live()) EXPECT_LE(buffer.size, 4096_B);
  EXPECT_EQ(spec::judge_memory(g.graph, {}, types, source.live(), at).value_or(""), "");
}

TEST(GraphPlans, OfMoreThanTheBoundAreRefused) {
  const std::uint64_t half = std::uint64_t{1} << 61;
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  SmallGraph two, three;
  for (int k = 0; k < 2; ++k) two.input(half);
  for (int k = 0; k < 3; ++k) three.input(half);
  EXPECT_TRUE(allocator.measure(two.graph, {}).is_ok());
  EXPECT_EQ(allocator.measure(three.graph, {}).code(), Code::kSizeOverflow);
  MemoryRequest request;
  request.parts = {{TensorId{0}, 0, Bytes{half}}, {TensorId{0}, 0, Bytes{half}}};
  EXPECT_EQ(allocator.measure(two.graph, request).code(), Code::kSizeOverflow);
  request.parts = {{TensorId{0}, 0, Bytes::max()}};
  EXPECT_EQ(allocator.measure(two.graph, request).code(), Code::kSizeOverflow);
  std::vector<TensorId> all{TensorId{0}, TensorId{1}, TensorId{2}};
  EXPECT_EQ(plan_tensor_set(three.graph, all, {}).code(), Code::kSizeOverflow);
  EXPECT_EQ(plan_tensor_set(three.graph, std::vector<TensorId>{TensorId{3}}, {}).code(),
            Code::kInvalidArgument);
}

TEST(GraphPlans, SayWhatTheyNeedAndCountWhatTheyDo) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto b = g.same(Operation::kScale, {a});
  const auto c = g.node(Operation::kMean, 64, {b});
  g.node(Operation::kConcat, 128, {c, b});
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}, BufferType{}});
  MemoryRequest request;
  request.types = {0, 0, 1, 0};
  const graph::GraphMemory memory = allocator.measure(g.graph, request).value();
  EXPECT_EQ(memory.buffers, (std::vector<std::vector<Bytes>>{{192_B}, {64_B}}));
  EXPECT_EQ(memory.total, 256_B);
  EXPECT_EQ(memory.lower_bound, 256_B);
  EXPECT_EQ(memory.in_place_nodes, 1u);
  EXPECT_EQ(allocator.plans_made(), 0u);
  ASSERT_TRUE(allocator.reserve(g.graph, request).is_ok());
  EXPECT_EQ(allocator.plans_made(), 1u);
  EXPECT_EQ(allocator.buffers_replaced(), 0u);
  SmallGraph larger;
  larger.input(4096);
  ASSERT_TRUE(allocator.reserve(larger.graph, {}).is_ok());
  EXPECT_EQ(allocator.buffers_replaced(), 1u);
  EXPECT_EQ(allocator.buffer_bytes(0), std::vector<Bytes>{4096_B});
  std::vector<Address> at(3);
  EXPECT_EQ(allocator.apply(g.graph, request, at).code(), Code::kInvalidArgument);
  at.resize(4);
  EXPECT_TRUE(allocator.apply(g.graph, request, at).is_ok());
  SmallGraph empty;
  empty.input(0);
  ImaginaryBuffers none;
  GraphAllocator other(none, {BufferType{}});
  std::vector<Address> nowhere(1, Address{1});
  ASSERT_TRUE(other.allocate(empty.graph, {}, nowhere).is_ok());
  EXPECT_TRUE(nowhere[0].is_null());
  EXPECT_EQ(none.calls(), 0u);
}

TEST(GraphPlans, AreOfTheirRequest) {
  SmallGraph g;
  const auto a = g.input(64), b = g.input(64);
  const auto c = g.same(Operation::kAdd, {a, b});
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}, BufferType{}});
  MemoryRequest request;
  request.parts = {{a, 0, 64_B}};
  ASSERT_TRUE(allocator.reserve(g.graph, request).is_ok());
  std::vector<Address> at(3), parts(1);
  EXPECT_TRUE(allocator.apply(g.graph, request, at, parts).is_ok());
  const auto is_other = [&](const MemoryRequest& other) {
    std::vector<Address> places(other.parts.size());
    return allocator.apply(g.graph, other, at, places).code() == Code::kNotFound;
  };
  MemoryRequest other = request;
  other.parts[0].tensor = b;
  EXPECT_TRUE(is_other(other));
  other = request;
  other.parts[0].type = 1;
  EXPECT_TRUE(is_other(other));
  other = request;
  other.parts.clear();
  EXPECT_TRUE(is_other(other));
  other = request;
  other.uses = {{0, a}};
  EXPECT_TRUE(is_other(other));
  other = request;
  other.order = {0};
  EXPECT_TRUE(is_other(other));
  other = request;
  other.types = {0, 0, 0};
  EXPECT_TRUE(is_other(other));
  const auto refuses = [&](const MemoryRequest& bad) {
    return allocator.measure(g.graph, bad).code() == Code::kInvalidArgument;
  };
  other = {};
  other.uses = {{1, a}};
  EXPECT_TRUE(refuses(other));
  other.uses = {{0, TensorId{3}}};
  EXPECT_TRUE(refuses(other));
  other.uses.clear();
  other.parts = {{TensorId{3}, 0, 8_B}};
  EXPECT_TRUE(refuses(other));
  other.parts = {{b, 0, 8_B}, {a, 0, 8_B}};
  EXPECT_TRUE(refuses(other));
  other.parts = {{a, 2, 8_B}};
  EXPECT_TRUE(refuses(other));
  static_cast<void>(c);
}

TEST(GraphInPlaceEdges, AnySourceOfASumCanBeWrittenOver) {
  SmallGraph g;
  const auto x = g.input(64), y = g.input(64);
  const auto s = g.same(Operation::kAdd, {x, y});
  const auto t = g.same(Operation::kMul, {s, x});
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  std::vector<Address> at(4);
  ASSERT_TRUE(allocator.allocate(g.graph, {}, at).is_ok());
  EXPECT_EQ(at[s.value()], at[y.value()]);
  EXPECT_TRUE(at[t.value()] == at[s.value()] || at[t.value()] == at[x.value()]);
  EXPECT_EQ(allocator.buffer_bytes(0), std::vector<Bytes>{128_B});
}

TEST(GraphInPlaceEdges, AnotherTypeOrAnotherMemoryIsNotWrittenOver) {
  SmallGraph g;
  TensorSpec whole;
  whole.type = ElementType::kI32;
  whole.shape = {16, 1, 1, 1};
  const auto i = g.add(whole);
  const auto s = g.same(Operation::kScale, {i});
  EXPECT_EQ(g.graph[s].in_place_sources, 0);
  const auto t = g.same(Operation::kScale, {s});
  EXPECT_EQ(g.graph[t].in_place_sources, 1);
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}, BufferType{}});
  MemoryRequest request;
  request.types = {0, 0, 1};
  EXPECT_EQ(allocator.measure(g.graph, request).value().in_place_nodes, 0u);
  request.types = {0, 1, 1};
  EXPECT_EQ(allocator.measure(g.graph, request).value().in_place_nodes, 1u);
}

// A value that the outer loop computes is used again by the inner loop's next run, not by the outer's.
TEST(GraphLoops, AUseLastsToTheEndOfTheLoopsThatDoNotComputeIt) {
  SmallGraph g;
  const auto x = g.input(64);
  g.graph.begin_region(RegionKind::kLoop);
  const auto a = g.node(Operation::kMean, 64, {x});  // the body's first node
  g.graph.begin_region(RegionKind::kLoop);
  const auto b = g.node(Operation::kMean, 64, {a});
  const auto c = g.node(Operation::kMean, 64, {b});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  const auto d = g.node(Operation::kMean, 64, {c});
  const auto e = g.same(Operation::kScale, {d});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  g.node(Operation::kControl, 64, {e});
  const auto lives = spec::lives_by_definition(g.graph, {});
  using Life = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(lives[x.value()], Life(0, 5));
  EXPECT_EQ(lives[a.value()], Life(0, 3));
  EXPECT_EQ(lives[b.value()], Life(1, 3));
  ImaginaryBuffers source;
  const std::vector<BufferType> types{BufferType{}};
  GraphAllocator allocator(source, types);
  std::vector<Address> at(g.graph.tensors().size());
  ASSERT_TRUE(allocator.allocate(g.graph, {}, at).is_ok());
  EXPECT_EQ(spec::judge_memory(g.graph, {}, types, source.live(), at).value_or(""), "");
  EXPECT_EQ(at[e.value()], at[d.value()]);  // both are of one run of the body
  EXPECT_EQ(allocator.buffer_bytes(0), std::vector<Bytes>{Bytes{4 * 64}});  // x, a, b and c
}

TEST(GraphLoops, ANodeThatReadsItTwiceWritesNotOverWhatTheNextRunReads) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  g.graph.begin_region(RegionKind::kLoop);
  const auto b = g.same(Operation::kAdd, {a, a});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  g.node(Operation::kControl, 64, {b});
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  EXPECT_EQ(allocator.measure(g.graph, {}).value().in_place_nodes, 0u);
}

TEST(GraphOrders, WithABarrierBehindEachNodeCostNothing) {
  SmallGraph g;
  TensorId x = g.input(64);
  for (int k = 0; k < 5; ++k) x = g.node(Operation::kMean, 64, {x});
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  MemoryRequest request;
  request.order = {0, graph::kBarrier, 1, graph::kBarrier, 2, graph::kBarrier,
                   3, graph::kBarrier, 4, graph::kBarrier};
  EXPECT_EQ(allocator.measure(g.graph, request).value().total, 128_B);
  request.order = {0, 1, 2, 3, 4};
  EXPECT_EQ(allocator.measure(g.graph, request).value().total, Bytes{6 * 64});
  const std::vector<std::vector<std::uint32_t>> wrong{
      {0, 1, 2, 3, 3}, {0, 1, 2, 3}, {0, 1, 2, 3, 4, 4}, {0, 1, 2, 3, 5}, {0, 2, 1, 3, 4}};
  for (const std::vector<std::uint32_t>& order : wrong) {
    request.order = order;
    EXPECT_EQ(allocator.measure(g.graph, request).code(), Code::kInvalidArgument);
  }
}

// A view that only reads is no use of its root: what reads the view is.
TEST(GraphOrders, AViewIsNoUseByItself) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  const auto v = g.view(a, 64);
  const auto b = g.node(Operation::kMean, 64, {v});
  const auto w = g.view(a, 64);
  static_cast<void>(w);
  g.node(Operation::kMean, 64, {b});
  const auto lives = spec::lives_by_definition(g.graph, {});
  ImaginaryBuffers source;
  const std::vector<BufferType> types{BufferType{}};
  GraphAllocator allocator(source, types);
  std::vector<Address> at(g.graph.tensors().size());
  ASSERT_TRUE(allocator.allocate(g.graph, {}, at).is_ok());
  EXPECT_EQ(lives[a.value()].second, 5u);  // nobody reads w, so its root is kept
  EXPECT_EQ(spec::judge_memory(g.graph, {}, types, source.live(), at).value_or(""), "");
}

TEST(GraphAddEdges, BoundsOfViewsSourcesAndStrides) {
  SmallGraph g;
  const auto a = g.input(64);
  TensorSpec view;
  view.operation = Operation::kView;
  view.sources = {a};
  view.view_source = a;
  view.shape = {0, 1, 1, 1};
  view.view_offset = 64_B;
  EXPECT_TRUE(g.graph.add(view).is_ok());  // nothing, at the end
  view.view_offset = 68_B;
  EXPECT_FALSE(g.graph.add(view).is_ok());
  TensorSpec mask;
  mask.operation = Operation::kSoftMax;
  mask.shape = {16, 1, 1, 1};
  mask.sources = {a, TensorId{99}};
  EXPECT_FALSE(g.graph.add(mask).is_ok());
  TensorSpec wide;
  wide.shape = {1, 2, 1, 1};
  wide.strides = {4, ~std::uint64_t{0} - 3, 4, 4};
  EXPECT_EQ(g.graph.add(wide).code(), Code::kSizeOverflow);
  SmallGraph leaf, node;
  leaf.leaf(64);
  node.node(Operation::kControl, 64, {});
  EXPECT_NE(leaf.graph.wiring(), node.graph.wiring());
  EXPECT_EQ(node.graph.nodes().size(), 1u);
}

TEST(TensorSetEdges, AreSearchedWhereFirstFitTakesTooMany) {
  SmallGraph g;
  std::vector<TensorId> ids;
  for (const std::uint64_t size : std::vector<std::uint64_t>{12, 36, 80, 12, 36, 24, 16, 20})
    ids.push_back(g.leaf(size, graph::kExternal));
  const auto plan = plan_tensor_set(g.graph, ids, {4_B, 80_B, nullptr}).value();
  EXPECT_EQ(plan.buffers.size(), 3u);
  EXPECT_TRUE(plan.is_least);
  for (const Bytes size : plan.buffers) EXPECT_LE(size, 80_B);
}

TEST(TensorSetEdges, LieLargestFirstAndAreReleasedWhenReplaced) {
  SmallGraph g;
  std::vector<TensorId> ids;
  for (const std::uint64_t size : std::vector<std::uint64_t>{8, 64, 32, 32})
    ids.push_back(g.leaf(size, graph::kExternal));
  const BufferType type{4_B, Bytes::max(), nullptr};
  const auto plan = plan_tensor_set(g.graph, ids, type).value();
  const std::vector<graph::SetPlace> expected{{0, 128_B}, {0, 0_B}, {0, 64_B}, {0, 96_B}};
  EXPECT_EQ(plan.places, expected);
  EXPECT_EQ(plan.padded_bytes, 136_B);
  ImaginaryBuffers source;
  std::vector<Address> at(4), again(4);
  graph::TensorSet set = graph::TensorSet::make(g.graph, ids, type, 0, source, at).value();
  EXPECT_EQ(at[0], at[1] + 128_B);
  set = graph::TensorSet::make(g.graph, ids, type, 0, source, again).value();
  EXPECT_EQ(source.live().size(), 1u);
  EXPECT_EQ(source.live()[0].base, again[1]);
}

}  // namespace
}  // namespace ashlar
