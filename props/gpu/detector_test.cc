// Imitates: what a stream-aware allocator and its callers may and may not do with bytes whose
// earlier use is still running. Each legal story runs once with every edge of happens-before, and
// must have no fault; and once without the edge that it relies on, and must be reported. So every
// edge is needed. Does not prove: that the library keeps the rules (the lockstep suites do).
#include <functional>

#include "props/gpu/fixture.h"

namespace ashlar::spec {
namespace {

constexpr Address kAt{std::uint64_t{1} << 45};
constexpr Bytes kSize{4096};

// One machine and three streams, with short names for the driver's calls.
struct World {
  explicit World(std::uint32_t drop_edges = 0)
      : sim(SimGpuOptions{.capacities = {0_B, 0_B}, .drop_edges = drop_edges}) {
    a = sim.create_stream(DeviceId{0}).value();
    b = sim.create_stream(DeviceId{0}).value();
    c = sim.create_stream(DeviceId{0}).value();
  }
  void allocate(AllocationTag tag, const Stream& s, Address at = kAt, Bytes size = kSize) {
    sim.on_allocate(tag, at, size, s);
  }
  void kernel(const Stream& s, AllocationTag tag, Address at = kAt, Bytes size = kSize) {
    EXPECT_TRUE(sim.launch(s, Touch{at, size, Access::kWrite, tag}).is_ok());
  }
  void free(AllocationTag tag) { sim.on_free(tag); }
  /// An allocation for that stream, used there.
  void use(AllocationTag tag, const Stream& s) {
    allocate(tag, s);
    kernel(s, tag);
  }
  void use_and_free(AllocationTag tag, const Stream& s) {
    use(tag, s);
    free(tag);
  }
  EventHandle record(const Stream& s) {
    const EventHandle event = gpu.event_create().value();
    EXPECT_TRUE(gpu.event_record(event, s.handle).is_ok());
    return event;
  }
  void wait(const Stream& s, EventHandle event) {
    EXPECT_TRUE(gpu.stream_wait(s.handle, event).is_ok());
  }
  /// The faults of the detector, without touches of unmapped memory: the stories map none.
  std::string faults() { return blames_of(sim, FaultKind::kTouchUnmapped); }

  SimGpu sim;
  device::Device& gpu = sim.device();
  Stream a, b, c;
};

// A legal story and the edge that makes it legal. `also_dropped` are other edges that would make it
// legal too, and so would hide the edge under test.
struct Story {
  const char* name;
  std::uint32_t edge;
  std::uint32_t also_dropped;
  std::function<void(World&)> tell;
};

const Story kStories[] = {
    {"OwnStreamReusesAtOnce", kEdgeStreamOrder, 0,
     [](World& w) {
       w.use_and_free(1, w.a);
       w.use(2, w.a);
     }},
    {"AnotherStreamReusesAfterAWait", kEdgeRecordWait, 0,
     [](World& w) {
       w.use_and_free(1, w.a);
       w.wait(w.b, w.record(w.a));
       w.use(2, w.b);
     }},
    {"AnotherStreamReusesAfterAQuery", kEdgeQuery, kEdgeCompletion,
     [](World& w) {
       w.use_and_free(1, w.a);
       const EventHandle e = w.record(w.a);
       EXPECT_TRUE(w.sim.drain_all().is_ok());
       EXPECT_TRUE(w.gpu.event_query(e).is_ok());
       w.use(2, w.b);
     }},
    {"AnotherStreamReusesAfterASynchronize", kEdgeSynchronize, kEdgeCompletion,
     [](World& w) {
       w.use_and_free(1, w.a);
       EXPECT_TRUE(w.gpu.event_synchronize(w.record(w.a), device::kWaitForever).is_ok());
       w.use(2, w.b);
     }},
    {"AnotherStreamReusesAfterADeviceSynchronize", kEdgeDeviceSynchronize, kEdgeCompletion,
     [](World& w) {
       w.use_and_free(1, w.a);
       EXPECT_TRUE(w.gpu.synchronize().is_ok());
       w.use(2, w.b);
     }},
    {"AnotherStreamReusesWhatHappensToBeDone", kEdgeCompletion, 0,
     [](World& w) {
       w.use_and_free(1, w.a);
       EXPECT_TRUE(w.sim.drain_all().is_ok());
       w.use(2, w.b);
     }},
    {"OneThreadReusesWhatAnotherSawDone", kEdgeHostThreads, kEdgeCompletion,
     [](World& w) {
       w.use_and_free(1, w.a);
       w.sim.act_as_thread(1);
       EXPECT_TRUE(w.gpu.event_synchronize(w.record(w.a), device::kWaitForever).is_ok());
       w.sim.act_as_thread(0);
       w.use(2, w.b);
     }},
    {"TheLegacyStreamReusesABlockingStreams", kEdgeLegacyStream, 0,
     [](World& w) {
       const Stream blocking = w.sim.create_stream(DeviceId{0}, StreamKind::kBlocking).value();
       const Stream legacy = w.sim.default_stream(DeviceId{0});
       w.use_and_free(1, blocking);
       EXPECT_TRUE(w.sim.launch(legacy, std::span<const Touch>{}).is_ok());
       w.use(2, legacy);
     }},
    {"AStreamReusesAfterAMemoryWait", kEdgeMemoryValue, 0,
     [](World& w) {
       w.use_and_free(1, w.a);
       EXPECT_TRUE(w.sim.write_value(w.a, Address{8}, 1).is_ok());
       EXPECT_TRUE(w.sim.wait_value(w.b, Address{8}, 1).is_ok());
       w.use(2, w.b);
     }},
};

class Stories : public testing::TestWithParam<Story> {};

TEST_P(Stories, IsSilent) {
  World with_all;
  GetParam().tell(with_all);
  EXPECT_EQ(with_all.faults(), "");
  World with_enough(GetParam().also_dropped);
  GetParam().tell(with_enough);
  EXPECT_EQ(with_enough.faults(), "");
}

// The story is reported when its edge is dropped.
TEST_P(Stories, IsReportedWithoutItsEdge) {
  World without(GetParam().also_dropped | GetParam().edge);
  GetParam().tell(without);
  EXPECT_NE(without.faults(), "");
}

// With any other single edge dropped, the story stays legal.
TEST_P(Stories, NeedsNoOtherEdge) {
  for (std::uint32_t edge = 1; edge <= kEdgeFreeCoverage; edge <<= 1) {
    if (edge == GetParam().edge) continue;
    World world(edge);
    GetParam().tell(world);
    EXPECT_EQ(world.faults(), "") << edge;
  }
}

INSTANTIATE_TEST_SUITE_P(Edges, Stories, testing::ValuesIn(kStories),
                         [](const testing::TestParamInfo<Story>& made) {
                           return std::string(made.param.name);
                         });

// kEdgeFreeCoverage changes only the blame: whether a use ordered before the free counts as
// announced.
TEST(Detector, AUseOrderedBeforeTheFreeNeedsNoAnnouncement) {
  for (const std::uint32_t dropped : {std::uint32_t{0}, std::uint32_t{kEdgeFreeCoverage}}) {
    World w(dropped);
    w.allocate(1, w.a);
    w.kernel(w.b, 1);
    w.wait(w.a, w.record(w.b));
    w.free(1);
    w.allocate(2, w.a);
    EXPECT_EQ(w.faults(), "");
    w.free(2);
    w.allocate(3, w.c);
    EXPECT_EQ(w.faults(), dropped == 0 ? "allocator early-reuse; " : "caller unannounced-use; ");
  }
}

TEST(Detector, AnEarlyHandoverToAnotherStreamIsTheAllocatorsFault) {
  World w;
  w.use_and_free(1, w.a);
  w.allocate(2, w.b);
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
}

TEST(Detector, AnAnnouncedUseMustBeWaitedForEvenOnTheOwnStream) {
  World w;
  w.allocate(1, w.a);
  w.kernel(w.b, 1);
  w.sim.on_use_announced(1, w.b);
  w.free(1);
  w.allocate(2, w.a);
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
}

TEST(Detector, AnUnannouncedUseIsTheCallersFault) {
  World w;
  w.allocate(1, w.a);
  w.kernel(w.b, 1);
  w.free(1);
  w.allocate(2, w.a);
  EXPECT_EQ(w.faults(), "caller unannounced-use; ");
}

TEST(Detector, AFirstUseOnAnotherStreamMustBeOrderedAfterTheAllocation) {
  World w;
  w.use_and_free(1, w.a);
  w.allocate(2, w.a);  // legal: stream order
  w.kernel(w.b, 2);    // races with allocation 1's kernel
  EXPECT_EQ(w.faults(), "caller unordered-use; ");
  w.kernel(w.b, 2);
  EXPECT_EQ(w.faults(), "");  // reported once

  World ordered;
  ordered.use_and_free(1, ordered.a);
  ordered.allocate(2, ordered.a);
  ordered.wait(ordered.b, ordered.record(ordered.a));
  ordered.kernel(ordered.b, 2);
  EXPECT_EQ(ordered.faults(), "");
}

TEST(Detector, StampsPassThroughOwnersThatNeverUsedTheBytes) {
  World w;
  w.use_and_free(1, w.a);
  w.allocate(2, w.a);
  w.free(2);
  w.allocate(3, w.b);
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
}

TEST(Detector, StampsPassThroughSplitsAndMerges) {
  World w;
  w.allocate(1, w.a, kAt, Bytes{8192});
  w.kernel(w.a, 1, kAt, Bytes{8192});
  w.free(1);
  w.allocate(2, w.a, kAt, kSize);          // the front half
  w.allocate(3, w.b, kAt + kSize, kSize);  // the back half: still in use by 1
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
  w.allocate(4, w.b, kAt + Bytes{8192}, kSize);  // behind it: never used
  w.kernel(w.b, 4, kAt + Bytes{8192});
  w.free(4);
  w.free(3);
  w.free(2);
  // merged: 1's use on a (the front half) and 4's on b
  w.allocate(5, w.c, kAt, Bytes{3 * 4096});
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
  EXPECT_TRUE(w.sim.drain_all().is_ok());
  w.free(5);
  w.allocate(6, w.c, kAt, Bytes{3 * 4096});
  EXPECT_EQ(w.faults(), "");
}

TEST(Detector, ARecycledHandleIsNotTheEarlierStream) {
  World w;
  w.use_and_free(1, w.a);
  EXPECT_TRUE(w.sim.destroy_stream(w.a).is_ok());
  const Stream again = w.sim.create_stream(DeviceId{0}).value();
  EXPECT_EQ(again.handle, w.a.handle);
  w.allocate(2, again);
  EXPECT_EQ(w.faults(), "allocator early-reuse; ");
}

TEST(Detector, OverlapsUsesAfterFreeAndOutOfBoundsAreReported) {
  World w;
  w.allocate(1, w.a);
  w.allocate(2, w.a, kAt + Bytes{4095}, 1_B);
  EXPECT_EQ(w.faults(), "allocator overlap; ");
  w.kernel(w.a, 1, kAt + 1_B);
  EXPECT_EQ(w.faults(), "caller out-of-bounds; ");
  w.free(1);
  w.kernel(w.a, 1);
  EXPECT_EQ(w.faults(), "caller use-after-free; ");
}

TEST(Detector, MemoryMustNotBeReturnedUnderALiveAllocation) {
  World w;
  const Address at = w.gpu.segment_alloc(kSize).value();
  w.allocate(1, w.a, at + 512_B, 512_B);
  EXPECT_TRUE(w.gpu.segment_free(at).is_ok());
  EXPECT_EQ(w.faults(), "allocator live-unmapped; ");
}

// Strict form: it is not enough that the work is done; the allocator must have asked.
TEST(Detector, MemoryMustNotBeReturnedUnderAKernelNotKnownToBeDone) {
  for (const bool asks : {false, true}) {
    World w(kEdgeCompletion);
    const Address at = w.gpu.segment_alloc(kSize).value();
    w.allocate(1, w.a, at);
    w.kernel(w.a, 1, at);
    w.free(1);
    const EventHandle e = w.record(w.a);
    EXPECT_TRUE(w.sim.drain_all().is_ok());
    if (asks) {
      EXPECT_TRUE(w.gpu.event_query(e).is_ok());
    }
    EXPECT_TRUE(w.gpu.segment_free(at).is_ok());
    EXPECT_EQ(w.faults(), asks ? "" : "allocator in-flight; ");
  }
}

}  // namespace
}  // namespace ashlar::spec
