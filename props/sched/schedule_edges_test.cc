// Edges of schedules: what identifies a graph, orders of writers and readers, views over copies, causes.
//
// Imitates: graphs that differ in one number; caches that several nodes write.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/sched/graph_identity.h>
#include <ashlar/sched/node_order.h>
#include <ashlar/sched/node_placer.h>
#include <ashlar/sched/schedule.h>

#include "props/graph/small_graphs.h"
#include "props/sched/late_backend.h"

namespace ashlar {
namespace {

using graph::Operation;
using graph::TensorId;
using graph::TensorSpec;
using props::LateBackend;
using props::LateTraits;
using props::LateWorld;
using props::SmallGraph;
using sched::kNoBackend;
using sched::PlacedBy;
using sched::ScheduleRequest;

/// Two backends with memories of their own.
struct Pair {
  LateWorld world{1};
  LateBackend first{world, "first", std::make_shared<cpu::HostBuffers>(), LateTraits{}};
  LateBackend second{world, "second", std::make_shared<cpu::HostBuffers>(), LateTraits{}};
  std::vector<sched::Backend*> both{&first, &second};
};

/// A view node that writes its root.
TensorId write(SmallGraph& g, TensorId from, TensorId into) {
  TensorSpec spec;
  spec.operation = Operation::kCpy;
  spec.shape = g.graph[into].shape;
  spec.sources = {from, into};
  spec.view_source = into;
  return g.add(spec);
}

TEST(GraphIdentity, DependsOnEveryNumberOfAGraph) {
  const auto identity = [](const std::function<void(TensorSpec&)>& change) {
    graph::Graph graph;
    TensorSpec leaf;
    leaf.shape = {16, 4, 1, 1};
    leaf.strides = {4, 64, 256, 256};
    const TensorId x = graph.add(leaf).value();
    TensorSpec spec;
    spec.operation = Operation::kView;
    spec.shape = {4, 2, 1, 1};
    spec.strides = {4, 64, 128, 128};
    spec.sources = {x};
    spec.view_source = x;
    spec.view_offset = 8_B;
    spec.parameters.reals = {1, 2, 3, 4};
    spec.parameters.integers = {1, 2, 3, 4, 5, 6, 7, 8};
    change(spec);
    return graph.add(spec).is_ok() ? sched::identity_of(graph) : 0;
  };
  std::vector<std::uint64_t> seen;
  seen.push_back(identity([](TensorSpec&) {}));
  const auto is_new = [&](const std::function<void(TensorSpec&)>& change) {
    const std::uint64_t one = identity(change);
    const bool is_known = std::find(seen.begin(), seen.end(), one) != seen.end();
    seen.push_back(one);
    return one != 0 && !is_known;
  };
  EXPECT_FALSE(is_new([](TensorSpec& s) { s.name = "another name"; }));
  EXPECT_TRUE(is_new([](TensorSpec& s) { s.operation = Operation::kPermute; }));
  EXPECT_TRUE(is_new([](TensorSpec& s) { s.type = graph::ElementType::kI32; }));
  EXPECT_TRUE(is_new([](TensorSpec& s) { s.view_offset = 12_B; }));
  EXPECT_TRUE(is_new([](TensorSpec& s) { s.flags = graph::kOutput; }));
  for (std::size_t d = 0; d < 4; ++d) {
    EXPECT_TRUE(is_new([d](TensorSpec& s) { s.shape[d] = d == 0 ? 3 : d == 1 ? 1 : 0; })) << d;
    EXPECT_TRUE(is_new([d](TensorSpec& s) { s.strides[d] = d == 0 ? 8 : d == 1 ? 32 : 64; })) << d;
    EXPECT_TRUE(is_new([d](TensorSpec& s) { s.parameters.reals[d] = 0.5f; })) << d;
  }
  for (std::size_t k = 0; k < 8; ++k)
    EXPECT_TRUE(is_new([k](TensorSpec& s) { s.parameters.integers[k] = -1; })) << k;
}

/// Whether `order` has a before b.
bool has_before(const std::vector<std::uint32_t>& order, std::uint32_t a, std::uint32_t b) {
  const auto at = [&](std::uint32_t n) { return std::find(order.begin(), order.end(), n); };
  return at(a) < at(b);
}

// Nodes of the second backend would come together, if writers and readers of one cache did not forbid it.
TEST(NodeOrder, KeepsWritersAndReadersInOrder) {
  SmallGraph g;
  const auto x = g.input(64), y = g.input(64), cache = g.input(64);
  const auto before = g.same(Operation::kScale, {cache});  // node 0
  const auto w = write(g, x, cache);                       // node 1
  const auto after = g.same(Operation::kScale, {cache});   // node 2: reads what node 1 wrote
  const auto w2 = write(g, y, cache);                      // node 3
  const auto last = g.same(Operation::kScale, {cache});    // node 4
  std::vector<std::uint32_t> backends(g.graph.tensors().size(), 0);
  for (const TensorId id : {before, after, last}) backends[id.value()] = 1;
  const std::vector<std::uint32_t> given{0, 1, 2, 3, 4};
  EXPECT_EQ(sched::order_nodes(g.graph, backends), given);
  static_cast<void>(w);
  static_cast<void>(w2);
}

TEST(NodeOrder, BringsIndependentNodesTogether) {
  SmallGraph g;
  const auto x = g.input(64), y = g.input(64);
  TensorId a = x, b = y;
  std::vector<TensorId> firsts, seconds;
  for (int k = 0; k < 3; ++k) {
    a = g.same(Operation::kScale, {a});
    b = g.same(Operation::kScale, {b});
    firsts.push_back(a);
    seconds.push_back(b);
  }
  const auto sum = g.same(Operation::kAdd, {a, b});
  std::vector<std::uint32_t> backends(g.graph.tensors().size(), 0);
  for (const TensorId id : seconds) backends[id.value()] = 1;
  const std::vector<std::uint32_t> order = sched::order_nodes(g.graph, backends);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 2, 4, 1, 3, 5, 6}));
  static_cast<void>(sum);
}

// A view whose root a later node computes, and a node that nobody waits for, stand where they can.
TEST(NodeOrder, PutsViewsBehindTheirRoots) {
  SmallGraph g;
  const auto x = g.input(64), y = g.input(64);
  const auto a = g.same(Operation::kScale, {x});  // 0, first backend
  const auto b = g.same(Operation::kScale, {y});  // 1, second
  const auto v = g.view(a, 32);                   // 2
  const auto w = g.view(v, 16);                   // 3
  const auto c = g.same(Operation::kScale, {w});  // 4, first
  const auto d = g.same(Operation::kScale, {b});  // 5, second
  std::vector<std::uint32_t> backends(g.graph.tensors().size(), 0);
  for (const TensorId id : {b, d}) backends[id.value()] = 1;
  const std::vector<std::uint32_t> order = sched::order_nodes(g.graph, backends);
  EXPECT_TRUE(has_before(order, 0, 2) && has_before(order, 2, 3) && has_before(order, 3, 4));
  EXPECT_EQ(order.size(), 6u);
  EXPECT_TRUE(has_before(order, 4, 1));  // both of the first backend, then both of the second
  static_cast<void>(c);
}

TEST(CopiedFor, IsTheRootWhereTheViewCoversItOrCannotBeCopied) {
  SmallGraph g;
  const auto x = g.input(64);
  const auto whole = g.view(x, 64), front = g.view(x, 32), back = g.view(x, 32, 32);
  TensorSpec spec;
  spec.operation = Operation::kView;
  spec.shape = {4, 4, 1, 1};
  spec.strides = {4, 0, 16, 16};  // one row, again and again
  spec.sources = {x};
  spec.view_source = x;
  spec.view_offset = 16_B;
  const auto repeated = g.add(spec);
  EXPECT_EQ(sched::copied_for(g.graph, x), x);
  EXPECT_EQ(sched::copied_for(g.graph, whole), x);
  EXPECT_EQ(sched::copied_for(g.graph, front), front);
  EXPECT_EQ(sched::copied_for(g.graph, back), back);
  EXPECT_EQ(sched::copied_for(g.graph, repeated), x);
}

TEST(Schedules, CopyAViewOnceAndItsRootForWhatCannotBeCopied) {
  Pair pair;
  SmallGraph g;
  const auto x = g.input(64);
  const auto back = g.view(x, 32, 32);
  TensorSpec spec;
  spec.operation = Operation::kView;
  spec.shape = {4, 4, 1, 1};
  spec.strides = {4, 0, 16, 16};
  spec.sources = {x};
  spec.view_source = x;
  spec.name = "row";
  const auto repeated = g.add(spec);
  const auto a = g.same(Operation::kScale, {back});
  const auto b = g.same(Operation::kNeg, {back});
  const auto c = g.node(Operation::kCont, 64, {repeated});
  const auto d = g.node(Operation::kCont, 64, {x});
  ScheduleRequest request;
  request.backend_of.assign(g.graph.tensors().size(), kNoBackend);
  request.backend_of[x.value()] = 1;
  for (const TensorId id : {a, b, c, d}) request.backend_of[id.value()] = 0;
  request.copy_places = 3;
  const auto schedule = make_schedule(g.graph, pair.both, request).value();
  ASSERT_EQ(schedule.copies.size(), 2u);
  EXPECT_EQ(schedule.copied_bytes(), Bytes{32 + 64});
  EXPECT_EQ(schedule.splits.size(), 1u);
  // Each copy has two more places behind it, which nothing else uses.
  const auto& copy = schedule.copies[0];
  for (std::uint32_t k = 1; k <= 2; ++k) {
    const graph::Tensor& place = schedule.graph[TensorId{copy.to.value() + k}];
    EXPECT_EQ(place.operation, Operation::kNone);
    EXPECT_EQ(place.flags, graph::kParameter);
    EXPECT_EQ(place.extent, copy.bytes);
  }
  EXPECT_EQ(schedule.graph[TensorId{copy.to.value() + 3}].flags & graph::kParameter,
            schedule.graph[copy.to].flags & graph::kParameter);
  EXPECT_EQ(schedule.graph.name(schedule.tensor_of[repeated.value()]), "row");
  EXPECT_EQ(schedule.graph[schedule.tensor_of[repeated.value()]].operation, Operation::kView);
  EXPECT_EQ(schedule.placed_by[repeated.value()], PlacedBy::kRoot);
  EXPECT_EQ(schedule.placed_by[a.value()], PlacedBy::kUser);
}

TEST(Schedules, NameACauseForEveryTensor) {
  Pair pair;
  SmallGraph g;
  const auto x = g.input(64), w = g.leaf(64, graph::kExternal);
  const auto v = g.view(x, 64);
  const auto a = g.same(Operation::kAdd, {v, w});
  const auto b = g.same(Operation::kScale, {a});
  const auto u = g.view(b, 64);
  ScheduleRequest request;
  request.backend_of.assign(g.graph.tensors().size(), kNoBackend);
  request.backend_of[w.value()] = 0;
  request.backend_of[u.value()] = 1;  // a wish for a view is one for its root
  const auto schedule = make_schedule(g.graph, pair.both, request).value();
  const std::vector<PlacedBy> expected{PlacedBy::kInput,  PlacedBy::kMemory, PlacedBy::kRoot,
                                       PlacedBy::kMemory, PlacedBy::kUser,   PlacedBy::kUser};
  EXPECT_EQ(schedule.placed_by, expected);
  EXPECT_EQ(schedule.backend_of, (std::vector<std::uint32_t>{1, 0, 1, 0, 1, 1}));
  for (const PlacedBy cause :
       {PlacedBy::kUser, PlacedBy::kMemory, PlacedBy::kRoot, PlacedBy::kInput, PlacedBy::kSupport,
        PlacedBy::kOffload, PlacedBy::kCut})
    EXPECT_NE(std::string(sched::name_of(cause)), "");
  g.graph.begin_region(graph::RegionKind::kBranch);
  EXPECT_EQ(make_schedule(g.graph, pair.both, {}).code(), Code::kUnsupported);
}

// Each of them once, and nothing else: not what it reads, and not what a node computes into memory of its
// own.
TEST(WriteCounts, HaveOneForEachNodeThatHasWrittenARoot) {
  SmallGraph g;
  const auto parameter = g.leaf(16), gradient = g.input(16);
  const auto first = g.leaf(16), second = g.leaf(16), numbers = g.leaf(28);
  TensorSpec spec;
  spec.operation = Operation::kOptStepAdamw;
  spec.shape = {4, 1, 1, 1};
  spec.sources = {parameter, gradient, first, second, numbers};
  spec.view_source = parameter;
  const auto step = g.add(spec);
  const auto cast = g.same(Operation::kCpy, {gradient});
  spec.operation = Operation::kCpy;
  spec.sources = {gradient, cast};
  spec.view_source = cast;
  const auto over = g.add(spec);
  sched::WriteCounts counts(g.graph);
  const auto writes = [&] {
    std::vector<std::uint32_t> all;
    for (const TensorId id : {parameter, gradient, first, second, numbers, cast})
      all.push_back(counts.key_of(id).writes);
    return all;
  };
  using Writes = std::vector<std::uint32_t>;
  EXPECT_EQ(writes(), (Writes{0, 0, 0, 0, 0, 0}));
  counts.pass(step);
  EXPECT_EQ(writes(), (Writes{1, 0, 1, 1, 0, 0}));
  counts.pass(cast);
  EXPECT_EQ(writes(), (Writes{1, 0, 1, 1, 0, 0}));
  for (std::uint32_t time = 1; time <= 3; ++time) {
    counts.pass(over);
    counts.pass(step);
    EXPECT_EQ(writes(), (Writes{1 + time, 0, 1 + time, 1 + time, 0, time}));
  }
}

TEST(MemoryIds, AreNeverTheSame) {
  const sched::MemoryId a = sched::new_memory_id(), b = sched::new_memory_id();
  EXPECT_NE(a, b);
  EXPECT_NE(a, sched::MemoryId{});
}

}  // namespace
}  // namespace ashlar
