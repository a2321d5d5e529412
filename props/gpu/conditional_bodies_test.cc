// Bodies of conditionals on the simulated GPU: the order of a launch's touches, and what the detector says of
// memory that a body shares with its parent.
//
// Imitates: a "while" whose body runs several times, an "if" with an "else". Does not prove: that the library keeps
// the rules (the lockstep suites do).
#include "props/gpu/fixture.h"
#include "spec/gpu/captured_graph.h"

namespace ashlar::spec {
namespace {

constexpr Address kBodyAt{std::uint64_t{1} << 45};
constexpr Bytes kBodySize{4096};

/// Touch 0 of the graph, 1 of a body, 2 of one inside it, 3 of the outer body, 4 of the graph.
CapturedGraph nested() {
  CapturedGraph graph;
  graph.touches.resize(5);
  graph.body_of = {0, 1, 2, 1, 0};
  graph.bodies = {{0, 1}, {1, 2}};
  return graph;
}

TEST(RunOrder, ABodyRunsAsOftenAsAskedAndOneInsideSoOftenInEachRun) {
  using Order = std::vector<std::size_t>;
  EXPECT_EQ(run_order(nested(), BodyRuns::never()), (Order{0, 4}));
  EXPECT_EQ(run_order(nested(), BodyRuns::once()), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(run_order(nested(), BodyRuns(2 | 0 << 2)), (Order{0, 1, 3, 1, 3, 4}));
  EXPECT_EQ(run_order(nested(), BodyRuns(2 | 1 << 2)), (Order{0, 1, 2, 3, 1, 2, 3, 4}));
  EXPECT_EQ(run_order(nested(), BodyRuns(1 | 3 << 2)), (Order{0, 1, 2, 2, 2, 3, 4}));
}

TEST(RunOrder, BodiesThatBeginAtOnePlaceRunInTheirOrder) {
  CapturedGraph graph;
  graph.touches.resize(2);
  graph.body_of = {2, 0};
  graph.bodies = {{0, 0}, {0, 0}};
  EXPECT_EQ(run_order(graph, BodyRuns::twice()), (std::vector<std::size_t>{0, 0, 1}));
}

class Bodies : public SimTest {
 protected:
  Bodies() {
    parent_ = make();
    body_ = make();
    EXPECT_TRUE(sim.begin_capture(parent_, device::CaptureMode::kRelaxed).is_ok());
  }
  Status kernel_of(const Stream& s, AllocationTag tag, Bytes size = kBodySize) {
    return sim.launch(s, Touch{kBodyAt, size, Access::kWrite, tag});
  }
  std::string faults() { return blames_of(sim); }

  Stream parent_, body_;
};

TEST_F(Bodies, AParentReusesWhatItsBodyUsed) {
  ASSERT_TRUE(sim.begin_body(body_, parent_).is_ok());
  sim.on_allocate(1, kBodyAt, kBodySize, parent_, 0, &body_);
  ASSERT_TRUE(kernel_of(body_, 1).is_ok());
  sim.on_free(1);
  ASSERT_TRUE(sim.end_body(body_).is_ok());
  sim.on_allocate(2, kBodyAt, kBodySize, parent_);
  ASSERT_TRUE(kernel_of(parent_, 2).is_ok());
  EXPECT_EQ(faults(), "");
}

TEST_F(Bodies, ABodyReusesWhatItsParentUsedBeforeIt) {
  sim.on_allocate(1, kBodyAt, kBodySize, parent_);
  ASSERT_TRUE(kernel_of(parent_, 1).is_ok());
  sim.on_free(1);
  ASSERT_TRUE(sim.begin_body(body_, parent_).is_ok());
  sim.on_allocate(2, kBodyAt, kBodySize, parent_, 0, &body_);
  ASSERT_TRUE(kernel_of(body_, 2).is_ok());
  ASSERT_TRUE(sim.end_body(body_).is_ok());
  EXPECT_EQ(faults(), "");
}

TEST_F(Bodies, ABodyThatReusesWhatAForkUsesBesideItIsTheAllocatorsFault) {
  const Stream fork = make();
  const EventHandle event = recorded(parent_);
  ASSERT_TRUE(gpu.stream_wait(fork.handle, event).is_ok());
  sim.on_allocate(1, kBodyAt, kBodySize, parent_);
  ASSERT_TRUE(kernel_of(fork, 1).is_ok());
  sim.on_use_announced(1, fork);
  sim.on_free(1);
  ASSERT_TRUE(sim.begin_body(body_, parent_).is_ok());
  sim.on_allocate(2, kBodyAt, kBodySize, parent_, 0, &body_);
  EXPECT_EQ(faults(), "allocator early-reuse; ");
}

TEST_F(Bodies, WhatABodyLeavesLiveIsItsParents) {
  ASSERT_TRUE(sim.begin_body(body_, parent_).is_ok());
  sim.on_allocate(1, kBodyAt, kBodySize, parent_, 0, &body_);
  ASSERT_TRUE(kernel_of(body_, 1).is_ok());
  ASSERT_TRUE(sim.end_body(body_).is_ok());
  sim.on_pass(1, parent_);
  ASSERT_TRUE(kernel_of(parent_, 1).is_ok());
  sim.on_free(1);
  sim.on_allocate(2, kBodyAt, kBodySize, parent_);
  ASSERT_TRUE(kernel_of(parent_, 2).is_ok());
  EXPECT_EQ(faults(), "");
}

TEST_F(Bodies, AMarkOfAnotherGraphSaysNothing) {
  const device::CaptureMark before = gpu.capture_mark(parent_.handle).value();
  EXPECT_TRUE(gpu.capture_covers(parent_.handle, before).is_ok());
  ASSERT_TRUE(sim.begin_body(body_, parent_).is_ok());
  EXPECT_EQ(gpu.capture_covers(body_.handle, before).code(), Code::kNotReady);
  const device::CaptureMark inside = gpu.capture_mark(body_.handle).value();
  EXPECT_TRUE(gpu.capture_covers(body_.handle, inside).is_ok());
  EXPECT_EQ(gpu.capture_covers(parent_.handle, inside).code(), Code::kNotReady);
  ASSERT_TRUE(sim.end_body(body_).is_ok());
}

TEST_F(Bodies, AWaitForAnEventOfABodyThatHasEndedIsUnsafe) {
  ASSERT_TRUE(sim.begin_body(body_, parent_).is_ok());
  const EventHandle event = recorded(body_);
  ASSERT_TRUE(sim.end_body(body_).is_ok());
  EXPECT_EQ(gpu.stream_wait(body_.handle, event).code(), Code::kCaptureUnsafe);
  expect_fault(FaultKind::kCaptureUnsafe);
}

TEST_F(Bodies, ACapturedKernelStaysInItsAllocation) {
  sim.on_allocate(1, kBodyAt, kBodySize, parent_);
  ASSERT_TRUE(kernel_of(parent_, 1, kBodySize + Bytes{1}).is_ok());
  EXPECT_EQ(faults(), "caller out-of-bounds; ");
}

TEST_F(Bodies, AStreamCapturesTwoBodiesInTurn) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(sim.begin_body(body_, parent_).is_ok());
    ASSERT_TRUE(kernel(body_).is_ok());
    ASSERT_TRUE(sim.end_body(body_).is_ok());
    EXPECT_EQ(sim.end_body(body_).code(), Code::kInvalidArgument);
  }
  const Result<GraphId> graph = sim.end_capture(parent_);
  ASSERT_TRUE(graph.is_ok());
  EXPECT_EQ(sim.graph_contents(graph.value()).bodies.size(), 2u);
}

}  // namespace
}  // namespace ashlar::spec
