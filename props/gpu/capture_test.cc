// Imitates: programs that capture streams into graphs while an allocator runs.
// Does not prove: that a real driver invalidates captures in the same cases (props/rules).
#include "props/gpu/fixture.h"

namespace ashlar::spec {
namespace {

struct SimCapture : SimTest {
  Stream s = make();
  void begin(device::CaptureMode mode = device::CaptureMode::kGlobal) {
    EXPECT_TRUE(sim.begin_capture(s, mode).is_ok());
  }
  /// Expects that the capture was invalidated, and that this was reported.
  void expect_broken(Code code, Blame by = Blame::kAllocator) {
    EXPECT_EQ(code, Code::kCaptureUnsafe);
    expect_fault(FaultKind::kCaptureUnsafe, by);
    EXPECT_EQ(gpu.capture_status(s.handle).value(), device::CaptureStatus::kInvalidated);
    EXPECT_EQ(kernel(s).code(), Code::kCaptureInvalidated);
    EXPECT_EQ(sim.end_capture(s).code(), Code::kCaptureInvalidated);
    EXPECT_EQ(gpu.capture_status(s.handle).value(), device::CaptureStatus::kNone);
    EXPECT_TRUE(kernel(s).is_ok());
  }
};

TEST_F(SimCapture, CapturedWorkRunsOnlyWhenItsGraphRuns) {
  const Address at = gpu.segment_alloc(1_MiB).value();
  begin();
  EXPECT_EQ(gpu.capture_status(s.handle).value(), device::CaptureStatus::kActive);
  EXPECT_TRUE(kernel(s, at, 1_MiB).is_ok());
  EXPECT_EQ(sim.pending(s), 0u);
  const GraphId graph = sim.end_capture(s).value();
  EXPECT_TRUE(sim.launch_graph(s, graph).is_ok());
  EXPECT_EQ(sim.pending(s), 1u);
  EXPECT_TRUE(gpu.segment_free(at).is_ok());
  expect_fault(FaultKind::kInFlight);
  sim.step(s);
  expect_fault(FaultKind::kTouchUnmapped, Blame::kCaller);
  EXPECT_TRUE(sim.destroy_graph(graph).is_ok());
  EXPECT_EQ(sim.launch_graph(s, graph).code(), Code::kInvalidHandle);
}

TEST_F(SimCapture, ACaptureOfALostDeviceEndsAndDoesNotAffectOtherDevices) {
  SimGpuOptions two;
  two.capacities = {Bytes{0}, Bytes{0}};
  SimGpu machine(two);
  const Stream other = machine.create_stream(DeviceId{1}).value();
  EXPECT_TRUE(machine.begin_capture(other, device::CaptureMode::kGlobal).is_ok());
  machine.lose(DeviceId{1});
  EXPECT_EQ(machine.end_capture(other).code(), Code::kDeviceLost);
  EXPECT_TRUE(machine.device(0).segment_alloc(1_MiB).is_ok());
  EXPECT_EQ(machine.fault_count(), 0u);
}

TEST_F(SimCapture, AnUnsafeCallInvalidatesTheCapture) {
  begin();
  expect_broken(gpu.segment_alloc(1_MiB).code());
}

TEST_F(SimCapture, TheRelaxedModePermitsUnsafeCalls) {
  begin();
  EXPECT_EQ(gpu.exchange_capture_mode(device::CaptureMode::kRelaxed).value(),
            device::CaptureMode::kGlobal);
  EXPECT_TRUE(gpu.segment_alloc(1_MiB).is_ok());
  EXPECT_EQ(gpu.exchange_capture_mode(device::CaptureMode::kGlobal).value(),
            device::CaptureMode::kRelaxed);
  EXPECT_TRUE(sim.end_capture(s).is_ok());
}

TEST_F(SimCapture, AnotherThreadIsForbiddenByGlobalCapturesOnly) {
  begin();
  sim.act_as_thread(1);
  EXPECT_EQ(gpu.exchange_capture_mode(device::CaptureMode::kThreadLocal).value(),
            device::CaptureMode::kGlobal);
  EXPECT_TRUE(gpu.segment_alloc(1_MiB).is_ok());
  EXPECT_TRUE(gpu.exchange_capture_mode(device::CaptureMode::kGlobal).is_ok());
  const Code code = gpu.segment_alloc(1_MiB).code();
  sim.act_as_thread(0);
  expect_broken(code);
  begin(device::CaptureMode::kThreadLocal);
  sim.act_as_thread(1);
  EXPECT_TRUE(gpu.segment_alloc(1_MiB).is_ok());
  sim.act_as_thread(0);
  expect_broken(gpu.segment_alloc(1_MiB).code());
}

TEST_F(SimCapture, ACapturedEventCannotBeQueriedWhateverTheMode) {
  begin(device::CaptureMode::kRelaxed);
  const EventHandle e = recorded(s);
  expect_broken(gpu.event_query(e).code());
  EXPECT_TRUE(gpu.event_record(e, s.handle).is_ok());
  EXPECT_EQ(gpu.event_query(e).code(), Code::kNotReady);
}

TEST_F(SimCapture, ForksMustBeJoined) {
  const Stream side = make();
  begin();
  EXPECT_TRUE(gpu.stream_wait(side.handle, recorded(s)).is_ok());
  EXPECT_EQ(gpu.capture_status(side.handle).value(), device::CaptureStatus::kActive);
  EXPECT_TRUE(kernel(side).is_ok());
  EXPECT_TRUE(gpu.stream_wait(s.handle, recorded(side)).is_ok());
  EXPECT_TRUE(sim.end_capture(s).is_ok());
  EXPECT_EQ(gpu.capture_status(side.handle).value(), device::CaptureStatus::kNone);

  begin();
  EXPECT_TRUE(gpu.stream_wait(side.handle, recorded(s)).is_ok());
  EXPECT_TRUE(kernel(side).is_ok());
  EXPECT_EQ(sim.end_capture(s).code(), Code::kCaptureUnsafe);
  expect_fault(FaultKind::kCaptureUnsafe, Blame::kCaller);
}

TEST_F(SimCapture, ACaptureEndsOnTheStreamAndThreadItBeganOn) {
  const Stream side = make();
  begin();
  EXPECT_TRUE(gpu.stream_wait(side.handle, recorded(s)).is_ok());
  EXPECT_EQ(sim.end_capture(side).code(), Code::kCaptureUnsafe);
  expect_fault(FaultKind::kCaptureUnsafe, Blame::kCaller);
  EXPECT_EQ(sim.end_capture(s).code(), Code::kCaptureInvalidated);
  begin();
  sim.act_as_thread(1);
  const Code code = sim.end_capture(s).code();
  sim.act_as_thread(0);
  expect_broken(code, Blame::kCaller);
}

TEST_F(SimCapture, AWaitDoesNotCrossItsBoundary) {
  const EventHandle before = recorded(s);
  begin();
  expect_broken(gpu.stream_wait(s.handle, before).code());
}

TEST_F(SimCapture, TwoCapturesDoNotMerge) {
  const Stream other = make();
  EXPECT_TRUE(sim.begin_capture(other, device::CaptureMode::kGlobal).is_ok());
  begin();
  const EventHandle e = recorded(other);
  expect_broken(gpu.stream_wait(s.handle, e).code());
  EXPECT_EQ(sim.end_capture(other).code(), Code::kCaptureInvalidated);
}

TEST_F(SimCapture, TheLegacyStreamIsForbiddenWhileABlockingStreamCaptures) {
  const Stream legacy = sim.default_stream(kFirstDevice);
  EXPECT_EQ(sim.begin_capture(legacy, device::CaptureMode::kGlobal).code(), Code::kCaptureUnsafe);
  const Stream blocking = make(StreamKind::kBlocking);
  EXPECT_TRUE(sim.begin_capture(blocking, device::CaptureMode::kRelaxed).is_ok());
  EXPECT_EQ(kernel(legacy).code(), Code::kCaptureUnsafe);
  expect_fault(FaultKind::kCaptureUnsafe, Blame::kCaller);
  EXPECT_EQ(sim.end_capture(blocking).code(), Code::kCaptureInvalidated);
}

TEST_F(SimCapture, TheDeviceCannotBeSynchronizedDuringACapture) {
  begin(device::CaptureMode::kRelaxed);
  expect_broken(gpu.synchronize().code());
}

}  // namespace
}  // namespace ashlar::spec
