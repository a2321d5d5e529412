// The graph of a schedule: what stands in it for views, copies and their places, and what is refused.
//
// Imitates: graphs with views of views, marks of ends, and inputs that another backend reads.
// Does not prove: that a run of it gives the right values; schedule_oracle_test does.
#include <ashlar/sched/schedule.h>

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
using graph::Tensor;
using graph::TensorId;
using graph::TensorSpec;
using props::CallLog;
using props::RecordingBackend;
using props::SmallGraph;
using sched::kNoBackend;
using sched::Schedule;
using sched::ScheduleRequest;

/// Two backends with memories of their own, and a graph.
struct TwoAndGraph {
  CallLog log;
  RecordingBackend a{log, "a"}, b{log, "b"};
  std::vector<sched::Backend*> both{&a, &b};
  SmallGraph g;
  ScheduleRequest request;

  /// The schedule with these tensors on the first backend, and the others on the second.
  Schedule schedule(const std::vector<TensorId>& on_first) {
    request.backend_of.assign(g.graph.tensors().size(), 1);
    for (const TensorId id : on_first) request.backend_of[id.value()] = 0;
    return make_schedule(g.graph, both, request).value();
  }
};

TEST(ScheduleGraph, HasEveryViewAsAViewOfItsRoot) {
  TwoAndGraph two;
  SmallGraph& g = two.g;
  const auto x = g.input(64);
  const auto node = g.same(Operation::kScale, {x});
  TensorSpec spec;
  spec.operation = Operation::kReshape;
  spec.shape = {4, 4, 1, 1};
  spec.sources = {node};
  spec.view_source = node;
  const auto square = g.add(spec);
  spec.operation = Operation::kPermute;
  spec.strides = {16, 4, 64, 64};
  spec.sources = {square};
  spec.view_source = square;
  const auto turned = g.add(spec);
  spec = {};
  spec.shape = {8, 1, 1, 1};
  spec.view_source = node;
  spec.view_offset = 32_B;
  const auto bare = g.add(spec);
  const Schedule schedule = two.schedule({});
  EXPECT_EQ(schedule.graph.tensors().size(), 5u);
  const TensorId root = schedule.tensor_of[node.value()];
  EXPECT_EQ(schedule.graph[root].operation, Operation::kScale);
  for (const TensorId view : {square, turned, bare}) {
    const TensorId at = schedule.tensor_of[view.value()];
    EXPECT_EQ(schedule.graph[at].root, root);
    EXPECT_EQ(schedule.graph[at].view_offset, g.graph[view].view_offset);
    EXPECT_EQ(schedule.graph[at].strides, g.graph[view].strides);
    if (view == bare) continue;
    EXPECT_EQ(schedule.graph[at].operation, Operation::kView);
    ASSERT_EQ(schedule.graph.sources(schedule.graph[at]).size(), 1u);
    EXPECT_EQ(schedule.graph.sources(schedule.graph[at])[0], root);
  }
}

TEST(ScheduleGraph, KeepsTheMarkOfAnEndOutOfSplitsAndCopies) {
  TwoAndGraph two;
  SmallGraph& g = two.g;
  const auto x = g.input(16);
  const auto a = g.same(Operation::kScale, {x});
  const auto end = g.node(Operation::kControl, 4, {a, kNoTensor, x});
  const auto start = g.node(Operation::kControl, 4, {});
  const Schedule schedule = two.schedule({end, start});
  ASSERT_EQ(schedule.splits.size(), 1u);
  EXPECT_EQ(schedule.splits[0].nodes, std::vector<TensorId>{schedule.tensor_of[a.value()]});
  EXPECT_EQ(schedule.copies.size(), 0u);
  const Tensor& mark = schedule.graph[schedule.tensor_of[end.value()]];
  EXPECT_EQ(mark.operation, Operation::kControl);
  const auto sources = schedule.graph.sources(mark);
  EXPECT_EQ(std::vector<TensorId>(sources.begin(), sources.end()),
            (std::vector<TensorId>{schedule.tensor_of[a.value()], kNoTensor,
                                   schedule.tensor_of[x.value()]}));
}

// A copy has the layout of what is copied, and nothing else of it; and as many places as are asked for.
TEST(ScheduleGraph, HasForACopyAsManyTensorsAsPlaces) {
  TwoAndGraph two;
  SmallGraph& g = two.g;
  const auto x = g.input(16);
  TensorSpec spec;
  spec.operation = Operation::kScale;
  spec.shape = {4, 1, 1, 1};
  spec.sources = {x};
  spec.flags = graph::kOutput;
  spec.parameters.reals = {2, 3, 4, 5};
  const auto y = g.add(spec);
  g.same(Operation::kNeg, {y});
  for (const std::uint32_t places : {1u, 2u, 3u}) {
    two.request.copy_places = places;
    const Schedule schedule = two.schedule({x, y});
    ASSERT_EQ(schedule.copies.size(), 1u);
    EXPECT_EQ(schedule.graph.tensors().size(), 3 + places);
    EXPECT_EQ(schedule.memory_of.size(), 3 + places);
    const TensorId to = schedule.copies[0].to;
    EXPECT_EQ(schedule.graph[to].operation, Operation::kCpy);
    for (std::uint32_t k = 0; k < places; ++k) {
      const Tensor& place = schedule.graph[TensorId{to.value() + k}];
      EXPECT_EQ(place.parameters, graph::OperationParameters{});
      EXPECT_EQ(place.flags, places == 1 ? graph::kNoFlags : graph::kParameter);
      EXPECT_EQ(place.extent, 16_B);
      EXPECT_EQ(schedule.memory_of[to.value() + k], 1u);
    }
  }
}

// The view covers its root, so the root is copied. The view of the copy is read by that one node: it is no
// output of the run, though the view that it stands for is.
TEST(ScheduleGraph, HasTheViewOfACopyWithoutFlags) {
  TwoAndGraph two;
  SmallGraph& g = two.g;
  const auto x = g.input(16);
  TensorSpec spec;
  spec.operation = Operation::kReshape;
  spec.shape = {2, 2, 1, 1};
  spec.sources = {x};
  spec.view_source = x;
  spec.flags = graph::kOutput;
  const auto view = g.add(spec);
  const auto y = g.same(Operation::kNeg, {view});
  const Schedule schedule = two.schedule({x, view});
  ASSERT_EQ(schedule.copies.size(), 1u);
  EXPECT_EQ(schedule.copies[0].from, schedule.tensor_of[x.value()]);
  const Tensor& node = schedule.graph[schedule.tensor_of[y.value()]];
  const Tensor& read = schedule.graph[schedule.graph.sources(node)[0]];
  EXPECT_EQ(read.root, schedule.copies[0].to);
  EXPECT_EQ(read.flags, graph::kNoFlags);
  EXPECT_EQ(read.shape, g.graph[view].shape);
  EXPECT_EQ(schedule.graph[schedule.tensor_of[view.value()]].flags, graph::kOutput);
}

TEST(ScheduleGraph, IsNotMadeOfAnAssignmentToTheBackendBehindTheLast) {
  TwoAndGraph two;
  two.g.input(16);
  std::string error;
  for (const std::uint32_t backend : {0u, 1u, kNoBackend}) {
    two.request.backend_of = {backend};
    EXPECT_TRUE(make_schedule(two.g.graph, two.both, two.request, &error).is_ok());
  }
  EXPECT_EQ(error, "");
  two.request.backend_of = {2};
  EXPECT_EQ(make_schedule(two.g.graph, two.both, two.request, &error).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(error, "an assignment to a backend that does not exist");
}

}  // namespace
}  // namespace ashlar
