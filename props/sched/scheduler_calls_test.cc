// The scheduler's calls to its backends: which, in which order, and what a failing one leads to.
//
// Imitates: two and three devices; runs with several places for copies; observers; callers who come back
// with another graph.
// Does not prove: that the order is enough for backends that run late; schedule_oracle_test does.
#include <ashlar/sched/graph_scheduler.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "props/graph/small_graphs.h"
#include "props/sched/recording_backend.h"

namespace ashlar {
namespace {

using graph::Operation;
using graph::TensorId;
using props::CallLog;
using props::RecordingBackend;
using props::RecordingTraits;
using props::SmallGraph;
using sched::GraphScheduler;
using sched::SchedulerOptions;
using Calls = std::vector<std::string>;

/// x -> scale -> negate -> square: the scale on the first backend, the square on the second, and the
/// negation where a test assigns it.
struct Steps {
  SmallGraph g;
  TensorId x = g.input(16);
  TensorId scaled, negated, squared;
  std::vector<Address> external{4};

  explicit Steps(float factor = 2) {
    graph::TensorSpec spec;
    spec.operation = Operation::kScale;
    spec.shape = {4, 1, 1, 1};
    spec.sources = {x};
    spec.parameters.reals[0] = factor;
    scaled = g.add(spec);
    negated = g.same(Operation::kNeg, {scaled});
    squared = g.same(Operation::kSqr, {negated}, graph::kOutput);
    external.resize(g.graph.tensors().size());
  }
  void assign(GraphScheduler& scheduler, std::uint32_t of_negated) const {
    for (const auto& [tensor, backend] :
         {std::pair{x, 0u}, {scaled, 0u}, {negated, of_negated}, {squared, 1u}})
      ASSERT_TRUE(scheduler.assign(tensor, backend).is_ok());
  }
  /// The square that a run leaves, of an input of ones.
  float result(GraphScheduler& scheduler) const {
    std::vector<float> values(4, 1.0f);
    EXPECT_TRUE(scheduler.reserve(g.graph, external).is_ok());
    EXPECT_TRUE(scheduler.set(x, std::as_bytes(std::span(values))).is_ok());
    EXPECT_TRUE(scheduler.run(g.graph, external).is_ok());
    EXPECT_TRUE(scheduler.get(squared, std::as_writable_bytes(std::span(values))).is_ok());
    return values[3];
  }
};

/// The call that computes these nodes of the caller's graph.
std::string compute(const GraphScheduler& scheduler, const std::string& backend,
                    const std::vector<TensorId>& nodes) {
  std::string call = backend + ".compute";
  for (const TensorId node : nodes)
    call += " " + std::to_string(scheduler.schedule()->tensor_of[node.value()].value());
  return call;
}

TEST(SchedulerCalls, OfARunAreTheCopiesTheWaitsAndTheWork) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b"), c(log, "c");
  GraphScheduler scheduler({&a, &b, &c});
  // An event for now, and one for the end of the last run.
  EXPECT_EQ(log.take(), (Calls{"a.make_event", "b.make_event", "c.make_event", "a.make_event",
                               "b.make_event", "c.make_event"}));
  const Steps steps;
  steps.assign(scheduler, 0);
  ASSERT_TRUE(scheduler.reserve(steps.g.graph, steps.external).is_ok());
  EXPECT_EQ(log.count("a.make_plan"), 1u);
  EXPECT_EQ(log.count("b.make_plan"), 1u);
  for (int round = 0; round < 2; ++round) {
    log.calls.clear();
    ASSERT_TRUE(scheduler.run(steps.g.graph, steps.external).is_ok());
    EXPECT_EQ(log.take(), (Calls{compute(scheduler, "a", {steps.scaled, steps.negated}),
                                 "b.record b0", "a.wait b0", "a.copy b 16", "a.record a0",
                                 "b.wait a0", compute(scheduler, "b", {steps.squared}),
                                 "a.record a1", "b.record b1", "c.record c1"}));
  }
}

// The copies of a run go to another place than those of the run before, and each place serves in its turn.
// A copy waits for the end of the last run that used its place, which is event 1 + place, and for nothing
// else.
TEST(SchedulerCalls, UseEachPlaceOfACopyInItsTurn) {
  for (const std::uint32_t places : {2u, 3u, 4u}) {
    CallLog log;
    RecordingBackend a(log, "a"), b(log, "b");
    GraphScheduler scheduler({&a, &b}, SchedulerOptions{false, places});
    const Steps steps;
    steps.assign(scheduler, 0);
    ASSERT_TRUE(scheduler.reserve(steps.g.graph, steps.external).is_ok());
    EXPECT_EQ(log.count("a.make_plan"), places);
    EXPECT_EQ(log.count("b.make_plan"), places);
    const std::string first = compute(scheduler, "a", {steps.scaled, steps.negated});
    const std::string second = compute(scheduler, "b", {steps.squared});
    for (std::uint32_t run = 0; run < 2 * places + 1; ++run) {
      const std::string end = std::to_string(1 + run % places);
      log.calls.clear();
      ASSERT_TRUE(scheduler.run(steps.g.graph, steps.external).is_ok());
      Calls expected{first};
      if (run >= places) expected.push_back("a.wait b" + end);
      for (const std::string& call :
           {std::string("a.copy b 16"), std::string("a.record a0"), std::string("b.wait a0"),
            second, "a.record a" + end, "b.record b" + end})
        expected.push_back(call);
      EXPECT_EQ(log.take(), expected) << run;
      if (run >= places) {
        EXPECT_EQ(a.copied_to[run], a.copied_to[run - places]);
      }
    }
    const std::set<Address> distinct(a.copied_to.begin(), a.copied_to.end());
    EXPECT_EQ(distinct.size(), places);
    EXPECT_EQ(steps.result(scheduler), 4.0f);
  }
}

// Nodes that nobody wants to see are computed together with the next one that somebody does, or at the end.
TEST(SchedulerCalls, OfAnObservedRunStopAtTheNodesThatAreWanted) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  GraphScheduler scheduler({&a, &b});
  SmallGraph g;
  std::vector<TensorId> nodes(4);
  TensorId at = g.input(16);
  for (TensorId& node : nodes) node = at = g.same(Operation::kNeg, {at});
  const std::vector<Address> external(5);
  ASSERT_TRUE(scheduler.reserve(g.graph, external).is_ok());
  ASSERT_EQ(scheduler.schedule()->splits.size(), 1u);  // on the last backend, as the input
  for (unsigned wanted = 0; wanted < 16; ++wanted) {
    Calls expected;
    std::vector<TensorId> together;
    for (unsigned k = 0; k < 4; ++k) {
      together.push_back(nodes[k]);
      const bool is_wanted = (wanted >> k & 1) != 0;
      if (!is_wanted && k < 3) continue;
      expected.push_back(compute(scheduler, "b", together));
      if (is_wanted) expected.push_back("b.synchronize");
      together.clear();
    }
    expected.insert(expected.end(), {"a.record a1", "b.record b1"});
    std::vector<TensorId> asked, seen;
    sched::NodeObserver observer;
    observer.wants = [&](TensorId node) {
      asked.push_back(node);
      return (wanted >> (node.value() - nodes[0].value()) & 1) != 0;
    };
    observer.seen = [&](TensorId node, sched::Backend& backend, Address) {
      EXPECT_EQ(&backend, &b);
      seen.push_back(node);
      return true;
    };
    scheduler.observe(observer);
    log.calls.clear();
    ASSERT_TRUE(scheduler.run(g.graph, external).is_ok());
    EXPECT_EQ(log.take(), expected) << wanted;
    EXPECT_EQ(asked, nodes);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(std::popcount(wanted)));
  }
}

TEST(SchedulerCalls, OfASynchronizationAreOneForEachBackendAndItsErrorIsTheFirst) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b"), c(log, "c");
  GraphScheduler scheduler({&a, &b, &c});
  log.calls.clear();
  EXPECT_TRUE(scheduler.synchronize().is_ok());
  EXPECT_EQ(log.take(), (Calls{"a.synchronize", "b.synchronize", "c.synchronize"}));
  log.refuse("b.synchronize", Code::kDeviceLost);
  log.refuse("c.synchronize", Code::kDriverError);
  EXPECT_EQ(scheduler.synchronize().code(), Code::kDeviceLost);
  EXPECT_EQ(log.take(), (Calls{"a.synchronize", "b.synchronize", "c.synchronize"}));
}

TEST(SchedulerCalls, OfItsEndWaitForEveryBackendBeforeABufferIsReleased) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  {
    GraphScheduler scheduler({&a, &b});
    const Steps steps;
    steps.assign(scheduler, 1);
    ASSERT_TRUE(scheduler.run(steps.g.graph, steps.external).is_ok());
    log.calls.clear();
  }
  EXPECT_EQ(log.take(),
            (Calls{"a.synchronize", "b.synchronize", "a.release_buffer", "b.release_buffer"}));
}

// What is enqueued may use what is remade, so there is no new schedule before all is done.
TEST(SchedulerCalls, OfAReservationBeginWithAWaitThatMustNotFail) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  GraphScheduler scheduler({&a, &b});
  const Steps steps;
  log.calls.clear();
  log.refuse("b.synchronize", Code::kDeviceLost);
  EXPECT_EQ(scheduler.reserve(steps.g.graph, steps.external).code(), Code::kDeviceLost);
  EXPECT_EQ(log.take(), (Calls{"a.synchronize", "b.synchronize"}));
  EXPECT_EQ(scheduler.schedules_made(), 0u);
}

TEST(SchedulerGraphs, ThatDifferInANumberHaveSchedulesOfTheirOwn) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  GraphScheduler scheduler({&a, &b});
  const Steps twice(2), thrice(3);
  twice.assign(scheduler, 0);
  EXPECT_EQ(twice.result(scheduler), 4.0f);
  EXPECT_EQ(thrice.result(scheduler), 9.0f);
  EXPECT_EQ(scheduler.schedules_made(), 2u);
  EXPECT_EQ(thrice.result(scheduler), 9.0f);
  EXPECT_EQ(scheduler.schedules_made(), 2u);
}

// The graph that was reserved last is the one that failed: there is no schedule, and no tensor of an earlier
// graph.
TEST(SchedulerGraphs, ThatCannotBeScheduledLeaveNoSchedule) {
  CallLog log;
  RecordingTraits traits;
  traits.has = {Operation::kScale, Operation::kNeg, Operation::kSqr};
  RecordingBackend a(log, "a", traits), b(log, "b", traits);
  GraphScheduler scheduler({&a, &b});
  const Steps steps;
  steps.assign(scheduler, 0);
  EXPECT_EQ(steps.result(scheduler), 4.0f);
  SmallGraph g;
  g.same(Operation::kTanh, {g.input(16)});
  EXPECT_EQ(scheduler.reserve(g.graph, std::vector<Address>(2)).code(), Code::kUnsupported);
  EXPECT_EQ(scheduler.schedule(), nullptr);
  std::vector<std::byte> bytes(16);
  EXPECT_EQ(scheduler.get(steps.squared, bytes).code(), Code::kNotFound);
  EXPECT_EQ(steps.result(scheduler), 4.0f);
}

// An assignment may be of a larger graph. Graphs of 1 to 40 tensors, each with an assignment of the tensor
// that would come next.
TEST(SchedulerGraphs, MayHaveFewerTensorsThanAreAssigned) {
  for (std::uint32_t tensors = 1; tensors <= 40; ++tensors) {
    CallLog log;
    RecordingBackend a(log, "a"), b(log, "b");
    GraphScheduler scheduler({&a, &b});
    SmallGraph g;
    TensorId at = g.input(16);
    for (std::uint32_t t = 1; t < tensors; ++t) at = g.same(Operation::kNeg, {at});
    ASSERT_TRUE(scheduler.assign(TensorId{tensors}, 0).is_ok());
    ASSERT_TRUE(scheduler.reserve(g.graph, std::vector<Address>(tensors)).is_ok());
    const std::vector<std::uint32_t> all_on_the_last(tensors, 1);
    EXPECT_EQ(scheduler.schedule()->backend_of, all_on_the_last);
  }
}

}  // namespace
}  // namespace ashlar
