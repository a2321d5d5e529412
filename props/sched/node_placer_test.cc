// Who computes what, and why: kernels, wishes, weights, offload, and what the cut counts.
//
// Imitates: devices that lack kernels, caches that are written and read again, a dozen backends.
// Does not prove: that placements are least; min_cut_placement_test.cc does.
#include <ashlar/sched/node_placer.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "props/graph/small_graphs.h"
#include "props/sched/recording_backend.h"

namespace ashlar {
namespace {

using graph::kNoTensor;
using graph::Operation;
using graph::TensorId;
using graph::TensorSpec;
using props::CallLog;
using props::RecordingBackend;
using props::RecordingTraits;
using props::SmallGraph;
using sched::kNoBackend;
using sched::NodePlaces;
using sched::PlacedBy;
using sched::ScheduleRequest;

/// Backends with memories of their own.
class Backends {
 public:
  explicit Backends(const std::vector<RecordingTraits>& traits) {
    for (const RecordingTraits& one : traits) {
      own_.push_back(
          std::make_unique<RecordingBackend>(log_, "b" + std::to_string(own_.size()), one));
      all_.push_back(own_.back().get());
    }
  }
  NodePlaces place(const SmallGraph& g, const ScheduleRequest& request = {}) const {
    return place_nodes(g.graph, all_, request, nullptr).value();
  }
  std::span<sched::Backend* const> all() const { return all_; }

 private:
  CallLog log_;
  std::vector<std::unique_ptr<RecordingBackend>> own_;
  std::vector<sched::Backend*> all_;
};

RecordingTraits with_kernels(std::vector<Operation> has) {
  RecordingTraits traits;
  traits.has = std::move(has);
  return traits;
}
RecordingTraits eager(Operation prefers) {
  RecordingTraits traits;
  traits.prefers = {prefers};
  return traits;
}

/// A request with a wish for each of these tensors.
ScheduleRequest wishes(const SmallGraph& g,
                       const std::vector<std::pair<TensorId, std::uint32_t>>& all) {
  ScheduleRequest request;
  request.backend_of.assign(g.graph.tensors().size(), kNoBackend);
  for (const auto& [tensor, backend] : all) request.backend_of[tensor.value()] = backend;
  return request;
}

TensorId view_without_operation(SmallGraph& g, TensorId of) {
  TensorSpec spec;
  spec.shape = g.graph[of].shape;
  spec.view_source = of;
  return g.add(spec);
}

TEST(NodePlacer, CountsAsWorkWhatComputesSomething) {
  SmallGraph g;
  const auto x = g.input(16);
  EXPECT_FALSE(is_work(g.graph, x));
  EXPECT_FALSE(is_work(g.graph, view_without_operation(g, x)));
  EXPECT_FALSE(is_work(g.graph, g.view(x, 16)));
  EXPECT_FALSE(is_work(g.graph, g.node(Operation::kControl, 16, {x})));
  EXPECT_TRUE(is_work(g.graph, g.same(Operation::kScale, {x})));
}

TEST(NodePlacer, NamesSupportAsTheCauseWhereOneBackendOfSeveralHasTheKernel) {
  SmallGraph g;
  const auto x = g.input(16);
  const auto scale = g.same(Operation::kScale, {x});
  const auto sqr = g.same(Operation::kSqr, {x});
  const auto neg = g.same(Operation::kNeg, {x});
  const Backends three({with_kernels({Operation::kScale}),
                        with_kernels({Operation::kScale, Operation::kSqr}),
                        with_kernels({Operation::kScale, Operation::kSqr, Operation::kNeg})});
  const NodePlaces places = three.place(g);
  EXPECT_EQ(places.placed_by[scale.value()], PlacedBy::kCut);
  EXPECT_EQ(places.placed_by[sqr.value()], PlacedBy::kCut);
  EXPECT_EQ(places.placed_by[neg.value()], PlacedBy::kSupport);
  EXPECT_EQ(places.backend_of[neg.value()], 2u);
  // A wish is the cause where there is one.
  EXPECT_EQ(three.place(g, wishes(g, {{neg, 2}})).placed_by[neg.value()], PlacedBy::kUser);
  // There is no other backend that could lack the kernel.
  const NodePlaces alone = Backends({RecordingTraits{}}).place(g);
  EXPECT_EQ(alone.placed_by[neg.value()], PlacedBy::kCut);
  EXPECT_EQ(alone.placed_by[x.value()], PlacedBy::kInput);
}

TEST(NodePlacer, AsksForNoKernelOfWhatComputesNothing) {
  SmallGraph g;
  const auto x = g.input(16);
  const auto a = g.same(Operation::kScale, {x});
  const auto bare = view_without_operation(g, a);
  const auto front = g.view(a, 8);
  const auto end = g.node(Operation::kControl, 16, {bare, front});
  const Backends two(
      {with_kernels({Operation::kScale}), with_kernels({Operation::kScale, Operation::kSqr})});
  // A view without an operation is no input, which would be on the last backend.
  const NodePlaces places = two.place(g, wishes(g, {{a, 0}}));
  for (const TensorId id : {a, bare, front}) EXPECT_EQ(places.backend_of[id.value()], 0u);
  for (const TensorId id : {bare, front}) EXPECT_EQ(places.placed_by[id.value()], PlacedBy::kRoot);
  EXPECT_EQ(places.placed_by[end.value()], PlacedBy::kCut);
}

TEST(NodePlacer, NamesTheCallerAsTheCauseOfAWishForAViewOfAWeight) {
  SmallGraph g;
  const auto w = g.leaf(16, graph::kExternal);
  const auto v = g.view(w, 8), u = g.view(w, 8, 8);
  const Backends two({{}, {}});
  const NodePlaces places = two.place(g, wishes(g, {{w, 0}, {v, 0}}));
  EXPECT_EQ(places.placed_by[v.value()], PlacedBy::kUser);
  EXPECT_EQ(places.placed_by[u.value()], PlacedBy::kRoot);
  EXPECT_EQ(two.place(g, wishes(g, {{w, 0}})).placed_by[w.value()], PlacedBy::kMemory);
}

/// x and y are inputs; v and w weights on the first and the second backend.
struct Weights {
  SmallGraph g;
  TensorId x = g.input(16), y = g.input(16);
  TensorId v = g.leaf(16, graph::kExternal), w = g.leaf(16, graph::kExternal);

  ScheduleRequest request(bool offload) const {
    ScheduleRequest request = wishes(g, {{v, 0}, {w, 1}});
    request.offload = offload;
    return request;
  }
};

TEST(NodePlacer, OffloadsOnlyNodesThatReadAWeight) {
  Weights at;
  const auto sum = at.g.same(Operation::kAdd, {at.x, at.y});
  const auto weighted = at.g.same(Operation::kAdd, {at.x, at.w});
  const Backends two({eager(Operation::kAdd), {}});
  const NodePlaces places = two.place(at.g, at.request(true));
  EXPECT_EQ(places.placed_by[sum.value()], PlacedBy::kCut);
  EXPECT_EQ(places.placed_by[weighted.value()], PlacedBy::kOffload);
  EXPECT_EQ(places.backend_of[weighted.value()], 0u);
  // A source that is not there is no weight.
  Weights other;
  const auto soft = other.g.same(Operation::kSoftMax, {other.x, kNoTensor});
  const NodePlaces more =
      Backends({eager(Operation::kSoftMax), {}}).place(other.g, other.request(true));
  EXPECT_EQ(more.placed_by[soft.value()], PlacedBy::kCut);
}

TEST(NodePlacer, OffloadsToABackendThatPrefersTheNodeAndHasTheKernel) {
  Weights at;
  const auto sum = at.g.same(Operation::kAdd, {at.x, at.w});
  RecordingTraits lacking = eager(Operation::kAdd);
  lacking.has = {Operation::kScale};
  const std::vector<RecordingTraits> unwilling[] = {
      {{}, {}}, {eager(Operation::kMul), {}}, {lacking, {}}};
  for (const auto& traits : unwilling) {
    const NodePlaces places = Backends(traits).place(at.g, at.request(true));
    EXPECT_EQ(places.backend_of[sum.value()], 1u);
    EXPECT_NE(places.placed_by[sum.value()], PlacedBy::kOffload);
  }
  EXPECT_EQ(Backends({{}, {}}).place(at.g, at.request(true)).placed_by[sum.value()],
            PlacedBy::kMemory);
  // Two others have the kernel, so that support does not decide.
  const NodePlaces places = Backends({lacking, {}, {}}).place(at.g, at.request(true));
  EXPECT_EQ(places.backend_of[sum.value()], 1u);
  EXPECT_EQ(places.placed_by[sum.value()], PlacedBy::kMemory);
}

// One of its two weights lies elsewhere, whichever backend computes the node.
TEST(NodePlacer, NamesOffloadAsTheCauseThoughAnotherWeightLiesThere) {
  Weights at;
  const auto sum = at.g.same(Operation::kAdd, {at.v, at.w});
  const Backends two({{}, eager(Operation::kAdd)});
  const NodePlaces places = two.place(at.g, at.request(true));
  EXPECT_EQ(places.backend_of[sum.value()], 1u);
  EXPECT_EQ(places.placed_by[sum.value()], PlacedBy::kOffload);
}

// Each node of the chain is on the next backend, by wish; each of the eleven steps copies 16 bytes, and the
// input, which is on the last backend, is copied to the first.
TEST(NodePlacer, PlacesOverADozenBackends) {
  constexpr std::uint32_t kBackends = 12;
  const std::vector<RecordingTraits> traits(kBackends);
  const Backends dozen(traits);
  SmallGraph g;
  TensorId at = g.input(16);
  std::vector<std::pair<TensorId, std::uint32_t>> all;
  all.reserve(kBackends);
  for (std::uint32_t b = 0; b < kBackends; ++b)
    all.emplace_back(at = g.same(Operation::kScale, {at}), b);
  const auto schedule = make_schedule(g.graph, dozen.all(), wishes(g, all)).value();
  EXPECT_EQ(schedule.splits.size(), kBackends);
  EXPECT_EQ(schedule.copied_bytes(), Bytes{std::uint64_t{16} * kBackends});
}

// Node b can be on either backend: 16 bytes are copied to it, or from it. Beside a and c, both on the second
// backend, it changes the backend twice less.
TEST(NodePlacer, PrefersFewerChangesWhereTheBytesAreTheSame) {
  SmallGraph g;
  const auto x = g.input(16), y = g.input(16);
  const auto a = g.same(Operation::kScale, {y});
  const auto b = g.same(Operation::kScale, {x});
  const auto c = g.same(Operation::kAdd, {b, a});
  const Backends two({{}, {}});
  const NodePlaces places = two.place(g, wishes(g, {{x, 0}, {y, 1}, {a, 1}, {c, 1}}));
  EXPECT_EQ(places.backend_of[b.value()], 1u);
  EXPECT_EQ(places.placed_by[b.value()], PlacedBy::kCut);
}

// The same, beside a table of 2^60 bytes that a node writes where it lies. Such a table is no flow, whose
// bytes would leave no room for the number of changes: then only b and d together could go, which saves
// two changes and costs two.
TEST(NodePlacer, CountsNoBytesForWhatANodeWritesInPlace) {
  SmallGraph g;
  const auto x = g.input(16), y = g.input(16);
  TensorSpec spec;
  spec.shape = {4, std::uint64_t{1} << 56, 1, 1};
  const auto table = g.add(spec);
  spec.shape = {1, 1, 1, 1};
  spec.type = graph::ElementType::kI32;
  const auto row = g.add(spec);
  const auto a = g.same(Operation::kScale, {y});
  const auto b = g.same(Operation::kScale, {x});
  const auto c = g.same(Operation::kAdd, {b, a});
  spec = {};
  spec.operation = Operation::kSetRows;
  spec.shape = g.graph[table].shape;
  spec.sources = {x, row, table};
  spec.view_source = table;
  const auto write = g.add(spec);
  const auto d = g.same(Operation::kScale, {y});
  const auto e = g.same(Operation::kAdd, {x, d});
  const Backends two({{}, {}});
  const NodePlaces places = two.place(
      g, wishes(g, {{x, 0}, {y, 1}, {table, 0}, {row, 0}, {a, 1}, {c, 1}, {write, 0}, {e, 0}}));
  EXPECT_EQ(places.backend_of[b.value()], 1u);
  EXPECT_EQ(places.backend_of[d.value()], 0u);
}

// The nodes read 16 bytes of the first backend and 24 of the second. What is written in between has to be
// copied again: twice 16 bytes are more than once 24, so both nodes are on the first backend.
TEST(NodePlacer, CountsWhatIsWrittenAgainTwice) {
  SmallGraph g;
  const auto cache = g.leaf(16), z = g.input(16), y = g.input(24);
  const auto before = g.node(Operation::kConcat, 40, {cache, y});
  TensorSpec spec;
  spec.operation = Operation::kCpy;
  spec.shape = {4, 1, 1, 1};
  spec.sources = {z, cache};
  spec.view_source = cache;
  g.add(spec);
  const auto after = g.node(Operation::kConcat, 40, {cache, y});
  const Backends two({{}, {}});
  const NodePlaces places = two.place(g, wishes(g, {{cache, 0}, {z, 0}, {y, 1}}));
  EXPECT_EQ(places.backend_of[before.value()], 0u);
  EXPECT_EQ(places.backend_of[after.value()], 0u);
}

}  // namespace
}  // namespace ashlar
