// Imitates: an allocator that reuses memory inside a capture, on streams that were forked from it and joined
// back. Each legal story is ordered by the graph's edges; without one it is reported, as what every replay of
// the graph might do. Does not prove: that the library keeps the rules (the lockstep suites do).
#include <functional>

#include "props/gpu/fixture.h"

namespace ashlar::spec {
namespace {

constexpr Address kShared{std::uint64_t{1} << 45};
constexpr Bytes kSharedSize{4096};

// A capture that began on `a`, and `b`, which joined it.
struct ForkedCapture {
  ForkedCapture() : sim(SimGpuOptions{}) {
    a = sim.create_stream(DeviceId{0}).value();
    b = sim.create_stream(DeviceId{0}).value();
    EXPECT_TRUE(sim.begin_capture(a, device::CaptureMode::kRelaxed).is_ok());
    order(b, a);
  }
  /// What `after` captures from now on comes after what `before` has captured.
  void order(const Stream& after, const Stream& before) {
    const EventHandle event = gpu.event_create().value();
    EXPECT_TRUE(gpu.event_record(event, before.handle).is_ok());
    EXPECT_TRUE(gpu.stream_wait(after.handle, event).is_ok());
  }
  void allocate(AllocationTag tag, const Stream& s) {
    sim.on_allocate(tag, kShared, kSharedSize, s);
  }
  void kernel(const Stream& s, AllocationTag tag) {
    EXPECT_TRUE(sim.launch(s, Touch{kShared, kSharedSize, Access::kWrite, tag}).is_ok());
  }
  void announce(AllocationTag tag, const Stream& s) { sim.on_use_announced(tag, s); }
  void free(AllocationTag tag) { sim.on_free(tag); }
  std::string faults() { return blames_of(sim); }

  SimGpu sim;
  device::Device& gpu = sim.device();
  Stream a, b;
};

TEST(DetectorOfGraphs, OneStreamsNodesAreInOrder) {
  ForkedCapture w;
  w.allocate(1, w.a);
  w.kernel(w.a, 1);
  w.free(1);
  w.allocate(2, w.a);
  w.kernel(w.a, 2);
  EXPECT_EQ(w.faults(), "");
}

TEST(DetectorOfGraphs, ReuseBesideANodeThatMayRunThenIsTheAllocatorsFault) {
  ForkedCapture w;
  w.allocate(1, w.a);
  w.kernel(w.b, 1);
  w.announce(1, w.b);
  w.free(1);
  w.allocate(2, w.a);
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
}

TEST(DetectorOfGraphs, AWaitInTheCaptureOrdersTheReuse) {
  ForkedCapture w;
  w.allocate(1, w.a);
  w.kernel(w.b, 1);
  w.announce(1, w.b);
  w.free(1);
  w.order(w.a, w.b);
  w.allocate(2, w.a);
  w.kernel(w.a, 2);
  EXPECT_EQ(w.faults(), "");
}

TEST(DetectorOfGraphs, AWaitForAnEarlierPlaceDoesNot) {
  ForkedCapture w;
  w.allocate(1, w.a);
  w.order(w.a, w.b);
  w.kernel(w.b, 1);
  w.announce(1, w.b);
  w.free(1);
  w.allocate(2, w.a);
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
}

TEST(DetectorOfGraphs, AUseThatNobodyAnnouncedIsTheCallersFault) {
  ForkedCapture w;
  w.allocate(1, w.a);
  w.kernel(w.b, 1);
  w.free(1);
  w.allocate(2, w.a);
  EXPECT_EQ(w.faults(), "caller unannounced-use; ");
}

TEST(DetectorOfGraphs, AFirstUseOnAnotherStreamIsTheCallersToOrder) {
  ForkedCapture w;
  w.allocate(1, w.a);
  w.kernel(w.a, 1);
  w.free(1);
  w.allocate(2, w.a);
  w.kernel(w.b, 2);  // b joined before the first kernel
  EXPECT_EQ(w.faults(), "caller unordered-use; ");
}

TEST(DetectorOfGraphs, GraphsThatShareAPoolAreNotOrderedByTheDetector) {
  ForkedCapture w;
  w.allocate(1, w.a);
  w.kernel(w.b, 1);
  w.announce(1, w.b);
  w.order(w.a, w.b);
  w.free(1);
  EXPECT_TRUE(w.sim.end_capture(w.a).is_ok());
  EXPECT_TRUE(w.sim.begin_capture(w.a, device::CaptureMode::kRelaxed).is_ok());
  w.allocate(2, w.a);
  w.kernel(w.a, 2);
  EXPECT_EQ(w.faults(), "");
}

TEST(CaptureMarks, CoverWhatIsOrderedBehindThem) {
  ForkedCapture w;
  w.kernel(w.b, kNoTag);
  const device::CaptureMark mark = w.gpu.capture_mark(w.b.handle).value();
  EXPECT_TRUE(w.gpu.capture_covers(w.b.handle, mark).is_ok());
  EXPECT_EQ(w.gpu.capture_covers(w.a.handle, mark).code(), Code::kNotReady);
  w.kernel(w.b, kNoTag);
  w.order(w.a, w.b);
  EXPECT_TRUE(w.gpu.capture_covers(w.a.handle, mark).is_ok());
  w.kernel(w.b, kNoTag);
  const device::CaptureMark later = w.gpu.capture_mark(w.b.handle).value();
  EXPECT_EQ(w.gpu.capture_covers(w.a.handle, later).code(), Code::kNotReady);
}

TEST(CaptureMarks, MeanNothingOutsideTheirCapture) {
  ForkedCapture w;
  const Stream other = w.sim.create_stream(DeviceId{0}).value();
  EXPECT_EQ(w.gpu.capture_mark(other.handle).code(), Code::kInvalidArgument);
  const device::CaptureMark mark = w.gpu.capture_mark(w.b.handle).value();
  EXPECT_EQ(w.gpu.capture_covers(other.handle, mark).code(), Code::kNotReady);
  w.order(w.a, w.b);
  EXPECT_TRUE(w.sim.end_capture(w.a).is_ok());
  EXPECT_TRUE(w.sim.begin_capture(w.a, device::CaptureMode::kRelaxed).is_ok());
  EXPECT_EQ(w.gpu.capture_covers(w.a.handle, mark).code(), Code::kNotReady);
  static_cast<void>(w.gpu.synchronize());
  EXPECT_EQ(w.gpu.capture_mark(w.a.handle).code(), Code::kCaptureInvalidated);
}

}  // namespace
}  // namespace ashlar::spec
