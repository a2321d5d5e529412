// The graph allocator in examples: the cases that llama.cpp's tests/test-alloc.cpp has (limits of buffer
// sizes, reuse, views, several buffer types, reallocation), and the defects that were reproduced in
// ggml's allocator (September 2026).
//
// Imitates: the graphs of those tests, as their documentation describes them, not their code.
// Does not prove: that values survive; value_oracle_test.cc runs graphs for that.
#include <ashlar/graph/graph_allocator.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "props/graph/small_graphs.h"
#include "spec/graph/imaginary_buffers.h"
#include "spec/graph/memory_judge.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::Graph;
using graph::GraphAllocator;
using graph::GraphMemory;
using graph::MemoryRequest;
using graph::Operation;
using graph::TensorId;
using props::SmallGraph;
using spec::ImaginaryBuffers;

/// An allocator of one or more buffer types, whose every answer is judged.
class Judged {
 public:
  explicit Judged(std::vector<BufferType> types)
      : types_(std::move(types)), allocator_(source_, types_) {}

  GraphMemory measure(const Graph& graph, const MemoryRequest& request = {}) {
    return allocator_.measure(graph, request).value();
  }
  /// Reserves and applies. The addresses have been judged.
  std::vector<Address> allocate(const Graph& graph, const MemoryRequest& request = {}) {
    EXPECT_EQ(allocator_.reserve(graph, request).code(), Code::kOk);
    return apply(graph, request);
  }
  std::vector<Address> apply(const Graph& graph, const MemoryRequest& request = {}) {
    std::vector<Address> addresses(graph.tensors().size());
    EXPECT_EQ(allocator_.allocate(graph, request, addresses).code(), Code::kOk);
    const auto found = spec::judge_memory(graph, request, types_, source_.live(), addresses);
    EXPECT_EQ(found.value_or(""), "");
    return addresses;
  }
  GraphAllocator& allocator() { return allocator_; }
  ImaginaryBuffers& source() { return source_; }
  Bytes total() const {
    Bytes sum;
    for (const spec::JudgedBuffer& buffer : source_.live()) sum += buffer.size;
    return sum;
  }
  Bytes largest() const {
    Bytes most;
    for (const spec::JudgedBuffer& buffer : source_.live()) most = std::max(most, buffer.size);
    return most;
  }

 private:
  ImaginaryBuffers source_;
  std::vector<BufferType> types_;
  GraphAllocator allocator_;
};

Judged limited(std::uint64_t buffer_max, std::uint64_t alignment = 8) {
  return Judged({{Bytes{alignment}, Bytes{buffer_max}, nullptr}});
}

TEST(GraphLimits, TooManyTensorsForOneBufferTakeTwo) {
  SmallGraph g;
  const auto a = g.input(8), b = g.input(8), c = g.input(8);
  const auto m = g.same(Operation::kMul, {a, b});
  const auto s = g.same(Operation::kAdd, {m, b});
  const auto t = g.same(Operation::kAdd, {s, c});
  g.same(Operation::kAdd, {t, a});
  auto judged = limited(16);
  judged.allocate(g.graph);
  EXPECT_LE(judged.total(), 32_B);
  EXPECT_LE(judged.largest(), 16_B);
}

TEST(GraphLimits, ATensorThatDoesNotFitBesideTheOthersGetsABuffer) {
  SmallGraph g;
  const auto a = g.input(16), b = g.input(8);
  g.node(Operation::kConcat, 24, {a, b});
  auto judged = limited(32);
  judged.allocate(g.graph);
  EXPECT_LE(judged.total(), 56_B);
  EXPECT_LE(judged.largest(), 32_B);
}

TEST(GraphLimits, ATensorAboveTheLimitIsTriedAnyway) {
  SmallGraph g;
  const auto a = g.input(24);
  g.same(Operation::kScale, {a});
  auto judged = limited(16);
  judged.allocate(g.graph);
  EXPECT_EQ(judged.total(), 24_B);
}

TEST(GraphLimits, ThereIsNoLimitOnTheNumberOfBuffers) {
  SmallGraph g;
  std::vector<TensorId> inputs;
  for (int k = 0; k < 17; ++k) inputs.push_back(g.input(8));
  TensorId sum = inputs[0];
  for (std::size_t k = 1; k < inputs.size(); ++k) sum = g.same(Operation::kAdd, {sum, inputs[k]});
  auto judged = limited(8);
  judged.allocate(g.graph);
  EXPECT_EQ(judged.source().live().size(), 17u);
  EXPECT_EQ(judged.total(), 136_B);
}

TEST(GraphLimits, ASmallTensorGoesIntoWhatIsLeft) {
  SmallGraph g;
  const auto a = g.input(8);
  const auto p = g.node(Operation::kPad, 16, {a});
  g.node(Operation::kMean, 4, {p});
  auto judged = limited(16);
  judged.allocate(g.graph);
  EXPECT_LE(judged.total(), 28_B);
}

TEST(GraphInPlace, ViewsCostNothingAndTheSumIsInPlaceThroughThem) {
  SmallGraph g;
  const auto a = g.input(16);
  graph::TensorSpec spec;
  spec.operation = Operation::kReshape;
  spec.shape = {2, 2, 1, 1};
  spec.sources = {a};
  spec.view_source = a;
  const auto r = g.add(spec);
  spec.operation = Operation::kPermute;
  spec.strides = {8, 4, 16, 16};
  spec.sources = {r};
  spec.view_source = r;
  const auto p = g.add(spec);
  const auto v = g.view(p, 16);
  const auto b = g.input(8);
  const auto s = g.same(Operation::kAdd, {v, b});
  auto judged = limited(32);
  const auto at = judged.allocate(g.graph);
  EXPECT_EQ(judged.total(), 24_B);
  EXPECT_EQ(at[s.value()], at[a.value()]);  // defect (a): ggml never does this
}

TEST(GraphReuse, FreedMemoryIsUsedAgain) {
  SmallGraph g;
  const auto a = g.input(24), b = g.input(8), c = g.input(8);
  const auto d = g.same(Operation::kAdd, {b, c});
  const auto e = g.node(Operation::kPad, 24, {d});
  const auto f = g.same(Operation::kScale, {e});
  const auto h = g.same(Operation::kAdd, {f, a});
  const auto v = g.view(h, 8);
  g.same(Operation::kAdd, {v, d});
  auto judged = limited(40);
  judged.allocate(g.graph);
  EXPECT_LE(judged.total(), 104_B);
  EXPECT_LE(judged.largest(), 40_B);
}

TEST(GraphReuse, FreedNeighboursMerge) {
  for (const std::uint64_t buffer_max : {std::uint64_t{32}, ~std::uint64_t{0}}) {
    SmallGraph g;
    const auto a = g.input(16), b = g.input(16), c = g.input(16);
    const auto ma = g.node(Operation::kMean, 4, {a}), mb = g.node(Operation::kMean, 4, {b});
    const auto mc = g.node(Operation::kMean, 4, {c});
    const auto pa = g.node(Operation::kPad, 24, {ma});
    const auto s = g.same(Operation::kAdd, {pa, mb});
    g.same(Operation::kAdd, {s, mc});
    auto judged = limited(buffer_max);
    judged.allocate(g.graph);
    EXPECT_LE(judged.total(), 88_B);
  }
}

TEST(GraphReuse, MemoryThatIsThereIsPreferred) {
  SmallGraph g;
  const auto a = g.input(24);
  const auto m = g.node(Operation::kMean, 4, {a});
  g.node(Operation::kMean, 4, {m});
  auto judged = limited(32, 4);
  judged.allocate(g.graph);
  EXPECT_LE(judged.total(), 28_B);
}

TEST(GraphTypes, TensorsGoWhereTheRequestSaysAndEachTypeHasItsLimit) {
  SmallGraph g;
  const auto a = g.input(16), b = g.input(16);
  const auto x = g.leaf(16, graph::kExternal), y = g.leaf(16, graph::kExternal);
  const auto n0 = g.same(Operation::kAdd, {a, x});
  const auto n1 = g.same(Operation::kAdd, {b, y});
  const auto n2 = g.same(Operation::kMul, {n0, n1});
  const auto n3 = g.node(Operation::kPad, 24, {n2});
  const auto n4 = g.same(Operation::kMul, {n3, n0});
  const auto n5 = g.node(Operation::kConcat, 32, {n2, n0});
  const auto n6 = g.same(Operation::kScale, {n5});
  g.same(Operation::kAdd, {n6, n4});
  MemoryRequest request;
  request.types = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  Judged judged({{8_B, 32_B, nullptr}, {8_B, Bytes::max(), nullptr}});
  judged.allocate(g.graph, request);
  Bytes a_total, b_total;
  for (const spec::JudgedBuffer& buffer : judged.source().live())
    (buffer.type == 0 ? a_total : b_total) += buffer.size;
  EXPECT_LE(a_total, 88_B);
  EXPECT_LE(b_total, 88_B);
}

TEST(GraphTypes, ATypeThatNothingUsesGetsNoBuffer) {
  SmallGraph g;
  const auto a = g.input(16);
  g.same(Operation::kScale, {a});
  Judged judged({{8_B, Bytes::max(), nullptr}, {8_B, Bytes::max(), nullptr}});
  judged.allocate(g.graph);
  EXPECT_EQ(judged.total(), 16_B);
  EXPECT_TRUE(judged.allocator().buffer_bytes(1).empty());
}

// H49: one chunk grows while the total does not.
TEST(GraphReservations, EachBufferIsComparedNotTheTotal) {
  SmallGraph first;
  const auto a = first.input(24), b = first.input(16);
  const auto v = first.view(a, 16);
  first.same(Operation::kAdd, {v, b});
  SmallGraph second;
  const auto c = second.input(20), d = second.input(20);
  second.same(Operation::kAdd, {c, d});
  auto judged = limited(32, 4);
  judged.allocate(first.graph);
  EXPECT_EQ(judged.total(), 40_B);
  judged.allocate(second.graph);
  judged.apply(first.graph);
  EXPECT_EQ(judged.source().unknown_releases(), 0u);
}

TEST(GraphInPlace, AFurtherUseKeepsTheMemory) {
  SmallGraph g;
  const auto a = g.input(16);
  const auto b = g.same(Operation::kScale, {a});
  const auto c = g.same(Operation::kScale, {b});
  auto judged = limited(~std::uint64_t{0});
  auto at = judged.allocate(g.graph);
  EXPECT_EQ(at[c.value()], at[a.value()]);
  const auto d = g.same(Operation::kScale, {c});
  MemoryRequest request;
  request.uses = {{2, b}};  // the third scale needs the first one's result too
  at = judged.allocate(g.graph, request);
  EXPECT_NE(at[c.value()], at[b.value()]);
  EXPECT_EQ(at[d.value()], at[c.value()]);
}

// Defect (b), H47: ggml aborts with 600 inputs of which every second is read, and with 300 tensors of
// no bytes between live ones.
TEST(GraphDefects, NoTableOfFreeRangesOverflows) {
  SmallGraph many;
  std::vector<TensorId> inputs;
  for (int k = 0; k < 1200; ++k) inputs.push_back(many.input(64));
  for (std::size_t k = 0; k < inputs.size(); k += 2) many.same(Operation::kScale, {inputs[k]});
  Judged judged({BufferType{}});
  judged.allocate(many.graph);

  SmallGraph empty;
  TensorId sum = empty.input(64);
  for (int k = 0; k < 300; ++k) {
    empty.input(0);
    sum = empty.same(Operation::kAdd, {sum, empty.input(64)});
  }
  judged.allocate(empty.graph);
}

// Defect (c), H50: the same number of nodes and the same sizes, but n1 is alive past n3.
TEST(GraphDefects, APlanIsNotAppliedToOtherWiring) {
  const auto build = [](bool is_alive) {
    SmallGraph g;
    const auto a = g.input(4096);
    const auto n1 = g.node(Operation::kMean, 4096, {a});
    const auto n2 = g.node(Operation::kMean, 4096, {n1});
    const auto n3 = g.node(Operation::kMean, 4096, {n2});
    g.node(Operation::kConcat, 4096, {n3, is_alive ? n1 : n2});
    return g;
  };
  const SmallGraph dead = build(false), alive = build(true);
  Judged judged({BufferType{}});
  judged.allocate(dead.graph);
  std::vector<Address> addresses(alive.graph.tensors().size(), Address{1});
  EXPECT_EQ(judged.allocator().apply(alive.graph, {}, addresses).code(), Code::kNotFound);
  EXPECT_EQ(addresses[0], Address{1});  // no effect
  judged.apply(alive.graph);
  judged.apply(dead.graph);
  EXPECT_EQ(judged.allocator().plans_made(), 2u);  // two graphs in turn are not planned again
}

// Defect (d): ggml crashes when a graph is allocated after a failed reserve.
TEST(GraphDefects, AFailedReservationLeavesNoAddresses) {
  SmallGraph g;
  const auto a = g.input(4096);
  g.same(Operation::kScale, {a});
  Judged judged({BufferType{}});
  judged.source().refuse_call(1);
  EXPECT_EQ(judged.allocator().reserve(g.graph, {}).code(), Code::kOutOfMemory);
  std::vector<Address> addresses(g.graph.tensors().size());
  EXPECT_EQ(judged.allocator().apply(g.graph, {}, addresses).code(), Code::kNotFound);
  judged.allocate(g.graph);
}

TEST(GraphReservations, AFailureKeepsEarlierPlansAndLeaksNothing) {
  SmallGraph small, large;
  small.same(Operation::kScale, {small.input(4096)});
  large.same(Operation::kScale, {large.input(8192)});
  {
    Judged judged({BufferType{}});
    judged.allocate(small.graph);
    judged.source().refuse_above(4096_B);
    EXPECT_EQ(judged.allocator().reserve(large.graph, {}).code(), Code::kOutOfMemory);
    judged.apply(small.graph);
    judged.source().refuse_above(0_B);  // what was there is lost too
    EXPECT_EQ(judged.allocator().reserve(large.graph, {}).code(), Code::kOutOfMemory);
    std::vector<Address> addresses(small.graph.tensors().size());
    EXPECT_EQ(judged.allocator().apply(small.graph, {}, addresses).code(), Code::kNotFound);
    judged.source().refuse_above(Bytes::max());
    judged.apply(small.graph);
    judged.allocator().release();
    EXPECT_TRUE(judged.source().live().empty());
    EXPECT_EQ(judged.source().unknown_releases(), 0u);
  }
}

// A program whose graph has another wiring in each step must not fill the host with plans.
TEST(GraphReservations, OldPlansAreForgotten) {
  const auto build = [](std::size_t nodes) {
    SmallGraph g;
    TensorId x = g.input(64);
    for (std::size_t k = 0; k < nodes; ++k) x = g.same(Operation::kScale, {x});
    return g;
  };
  Judged judged({BufferType{}});
  for (std::size_t nodes = 0; nodes <= graph::kGraphPlansMax; ++nodes)
    judged.allocate(build(nodes).graph);
  for (std::size_t nodes = 0; nodes <= graph::kGraphPlansMax; ++nodes) {
    const SmallGraph g = build(nodes);
    std::vector<Address> addresses(g.graph.tensors().size());
    const Status applied = judged.allocator().apply(g.graph, {}, addresses);
    EXPECT_EQ(applied.code(), nodes == 0 ? Code::kNotFound : Code::kOk) << nodes;
  }
  EXPECT_EQ(judged.source().live().size(), 1u);
}

// H48: a plan measured at one size fails at smaller sizes.
TEST(GraphReservations, EverySmallerShapeFitsAtTheSameOffsets) {
  const auto build = [](std::uint64_t bytes) {
    SmallGraph g;
    const auto a = g.input(bytes);
    const auto b = g.node(Operation::kMulMat, bytes * 2, {a, a});
    const auto c = g.same(Operation::kScale, {b});
    g.node(Operation::kConcat, bytes * 3, {c, a});
    return g;
  };
  Judged judged({BufferType{}});
  const auto largest = judged.allocate(build(4096).graph);
  for (std::uint64_t bytes = 0; bytes <= 4096; bytes += 4)
    EXPECT_EQ(judged.apply(build(bytes).graph), largest);
  EXPECT_EQ(judged.allocator().plans_made(), 1u);
  std::vector<Address> addresses(largest.size());
  EXPECT_EQ(judged.allocator().apply(build(4100).graph, {}, addresses).code(), Code::kNotFound);
  judged.apply(build(4100).graph);
  EXPECT_EQ(judged.allocator().plans_made(), 2u);
}

// H51: in-place reuse of a larger parent loses or misaligns the rest.
TEST(GraphInPlace, WhatALargerParentLeavesIsUsed) {
  SmallGraph g;
  const auto a = g.input(256);
  const auto big = g.node(Operation::kPad, 4096, {a});
  const auto part = g.view(big, 64);
  const auto small = g.same(Operation::kScale, {part});
  const auto next = g.node(Operation::kPad, 3968, {a});
  g.node(Operation::kConcat, 4, {next, small});
  Judged judged({BufferType{}});
  const auto at = judged.allocate(g.graph);
  EXPECT_EQ(at[small.value()], at[big.value()]);
  EXPECT_LE(judged.total(), Bytes{4096 + 256 + 64});
}

// H52: in-place reuse of a source that is still read, through a view or under its own name.
TEST(GraphInPlace, NothingIsWrittenOverWhatIsStillRead) {
  for (const bool is_view_last : {false, true}) {
    SmallGraph g;
    const auto a = g.node(Operation::kPad, 64, {g.input(16)});
    const auto v = g.view(a, 64);
    const auto b = g.same(Operation::kScale, {is_view_last ? a : v});
    const auto c = g.same(Operation::kScale, {is_view_last ? v : a});
    const auto d = g.same(Operation::kAdd, {b, c});
    Judged judged({BufferType{}});
    const auto at = judged.allocate(g.graph);
    EXPECT_NE(at[b.value()], at[a.value()]);
    EXPECT_EQ(at[c.value()], at[a.value()]);
    EXPECT_TRUE(at[d.value()] == at[b.value()] || at[d.value()] == at[c.value()]);
  }
}

TEST(GraphInPlace, TheSameSourceTwiceIsElementByElement) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  const auto b = g.same(Operation::kMul, {a, a});
  const auto c = g.same(Operation::kRope, {b, b});  // reads elements of other places
  Judged judged({BufferType{}});
  const auto at = judged.allocate(g.graph);
  EXPECT_EQ(at[b.value()], at[a.value()]);
  EXPECT_NE(at[c.value()], at[b.value()]);
}

TEST(GraphLifetimes, OutputsAndParametersAreNobodyElses) {
  SmallGraph g;
  const auto p = g.leaf(64, graph::kParameter);
  const auto a = g.same(Operation::kScale, {p});
  const auto o = g.same(Operation::kScale, {a}, graph::kOutput);
  const auto n = g.same(Operation::kScale, {o});
  g.node(Operation::kMean, 64, {n});
  Judged judged({BufferType{}});
  const auto at = judged.allocate(g.graph);
  EXPECT_NE(at[a.value()], at[p.value()]);
  EXPECT_EQ(at[o.value()], at[a.value()]);
  EXPECT_NE(at[n.value()], at[o.value()]);
}

// TEN-5: what a group of concurrent nodes uses is in use until its barrier.
TEST(GraphLifetimes, AGroupKeepsWhatItUsesUntilItsBarrier) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  const auto b = g.node(Operation::kMean, 64, {a});
  const auto c = g.node(Operation::kMean, 64, {g.input(64)});
  g.same(Operation::kAdd, {b, c});
  MemoryRequest request;
  request.order = {0, graph::kBarrier, 1, 2, graph::kBarrier, 3};
  Judged judged({BufferType{}});
  const auto at = judged.allocate(g.graph, request);
  EXPECT_NE(at[c.value()], at[a.value()]);
  for (const std::vector<std::uint32_t>& wrong :
       {std::vector<std::uint32_t>{0, 1, 2}, {0, 1, 2, 3, 3}, {1, 0, 2, 3}, {0, 1, 2, 9}}) {
    request.order = wrong;
    EXPECT_EQ(judged.allocator().reserve(g.graph, request).code(), Code::kInvalidArgument);
  }
}

// executorch#21490: a planner that forgot the body of a loop corrupted data.
TEST(GraphRegions, AUseInALoopLastsToTheLoopsEnd) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  g.graph.begin_region(graph::RegionKind::kLoop);
  const auto b = g.same(Operation::kScale, {a});
  const auto c = g.node(Operation::kMean, 64, {b});
  const auto d = g.node(Operation::kMean, 64, {c});
  ASSERT_EQ(g.graph.end_region().code(), Code::kOk);
  g.node(Operation::kControl, 64, {d});
  Judged judged({BufferType{}});
  const auto at = judged.allocate(g.graph);
  EXPECT_NE(at[b.value()], at[a.value()]);
  EXPECT_NE(at[c.value()], at[a.value()]);
  EXPECT_NE(at[d.value()], at[a.value()]);
  EXPECT_EQ(g.graph.end_region().code(), Code::kInvalidArgument);
}

// Found by the value oracle: the body's last node wrote over what its next run reads.
TEST(GraphRegions, TheLastNodeOfALoopWritesNotOverWhatTheNextRunReads) {
  SmallGraph g;
  const auto a = g.node(Operation::kPad, 64, {g.input(16)});
  g.graph.begin_region(graph::RegionKind::kLoop);
  const auto b = g.same(Operation::kScale, {a});
  ASSERT_EQ(g.graph.end_region().code(), Code::kOk);
  Judged judged({BufferType{}});
  const auto at = judged.allocate(g.graph);
  EXPECT_NE(at[b.value()], at[a.value()]);
}

TEST(GraphRegions, BranchesShareMemory) {
  SmallGraph g;
  const auto a = g.input(64);
  g.graph.begin_region(graph::RegionKind::kBranch);
  const auto b = g.node(Operation::kPad, 4096, {a});
  const auto c = g.node(Operation::kMean, 64, {b});
  ASSERT_EQ(g.graph.end_region().code(), Code::kOk);
  g.graph.begin_region(graph::RegionKind::kBranch);
  const auto d = g.node(Operation::kPad, 4096, {a});
  const auto e = g.node(Operation::kMean, 64, {d});
  ASSERT_EQ(g.graph.end_region().code(), Code::kOk);
  g.node(Operation::kControl, 64, {c, e});
  Judged judged({BufferType{}});
  judged.allocate(g.graph);
  EXPECT_LE(judged.total(), Bytes{4096 + 3 * 64});
}

// A tensor that is split over devices has parts of different sizes.
TEST(GraphParts, EachPartOfASplitTensorHasItsSizeInItsType) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto b = g.same(Operation::kScale, {a});
  const auto c = g.same(Operation::kScale, {b});
  g.node(Operation::kMean, 4, {c});
  MemoryRequest request;
  request.parts = {{b, 0, 48_B}, {b, 1, 16_B}};
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {{16_B, Bytes::max(), nullptr}, {16_B, Bytes::max(), nullptr}});
  ASSERT_EQ(allocator.reserve(g.graph, request).code(), Code::kOk);
  std::vector<Address> addresses(4), parts(2);
  ASSERT_EQ(allocator.apply(g.graph, request, addresses, parts).code(), Code::kOk);
  EXPECT_TRUE(addresses[b.value()].is_null());
  EXPECT_NE(parts[0], addresses[a.value()]);
  EXPECT_NE(parts[0], addresses[c.value()]);  // both are live when c is computed
  EXPECT_EQ(allocator.buffer_bytes(1), std::vector<Bytes>{16_B});
  request.parts[1].size = 8_B;
  EXPECT_EQ(allocator.apply(g.graph, request, addresses, parts).code(), Code::kOk);
  request.parts[1].size = 24_B;
  EXPECT_EQ(allocator.apply(g.graph, request, addresses, parts).code(), Code::kNotFound);
  EXPECT_EQ(allocator.apply(g.graph, request, addresses).code(), Code::kInvalidArgument);
}

TEST(GraphRequests, WhatDoesNotFitTheGraphIsRefused) {
  SmallGraph g;
  const auto a = g.input(64);
  const auto v = g.view(a, 32);
  g.same(Operation::kScale, {v});
  ImaginaryBuffers source;
  GraphAllocator allocator(source, {BufferType{}});
  const auto refuses = [&](const MemoryRequest& request) {
    return allocator.measure(g.graph, request).code() == Code::kInvalidArgument &&
           allocator.reserve(g.graph, request).code() == Code::kInvalidArgument;
  };
  MemoryRequest request;
  request.types = {0, 0};
  EXPECT_TRUE(refuses(request));
  request.types = {0, 0, 1};
  EXPECT_TRUE(refuses(request));
  request.types.clear();
  request.parts = {{v, 0, 8_B}};
  EXPECT_TRUE(refuses(request));
  request.parts = {{a, 0, 8_B}};
  EXPECT_TRUE(refuses(request));  // a view is of it
  request.parts = {{TensorId{9}, 0, 8_B}};
  EXPECT_TRUE(refuses(request));
  request.parts.clear();
  request.uses = {{7, a}};
  EXPECT_TRUE(refuses(request));
  GraphAllocator bent(source, {{3_B, Bytes::max(), nullptr}});
  EXPECT_EQ(bent.measure(g.graph, {}).code(), Code::kInvalidArgument);
  GraphAllocator none(source, {});
  EXPECT_EQ(none.measure(g.graph, {}).code(), Code::kInvalidArgument);
  g.graph.begin_region(graph::RegionKind::kLoop);
  EXPECT_TRUE(refuses({}));
  EXPECT_EQ(source.calls(), 0u);
}

}  // namespace
}  // namespace ashlar
