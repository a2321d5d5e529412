// How a heap of pages grows: first by segments, within a budget of pages, and by pages that move before there is a
// shortage.
//
// Imitates: a device whose streams are done at once, or not. What an allocation may be given is judged in lockstep.
// Does not imitate: a driver's cost (spec/gpu/cost_model.h).
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

class PageGrowthTest : public LivenessTest {
 protected:
  std::uint64_t calls(CallKind kind) {
    return allocator_->stats(kDevice).value().device_calls[static_cast<unsigned>(kind)];
  }
  void free(Address address) { EXPECT_TRUE(allocator_->free(address).is_ok()); }
  /// All work so far is done, and a miss has learnt so: at each miss a heap records an event, and asks for those
  /// of earlier ones.
  void finish(const Stream& on) {
    free(allocate(2_MiB, on));
    gpu_->step(own_, 99);
    gpu_->step(on, 99);
  }
  /// A new stream, when `own_` has 20 free pages whose work is known done.
  Stream stream_beside_free_pages() {
    const Stream other = stream();
    free(allocate(40_MiB, own_));
    EXPECT_TRUE(gpu_->drain_all().is_ok());
    finish(other);
    return other;
  }
};

TEST_F(PageGrowthTest, TheFirstGrowthsAreSegmentsUpToAQuarterOfTheDevice) {
  make(256_MiB, "backing:pages,first_growth_mb:16");
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(allocate(16_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 4u);
  EXPECT_EQ(calls(CallKind::kPageCreate), 0u);
  EXPECT_FALSE(allocate(2_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 4u) << "a quarter is in use";
  EXPECT_EQ(calls(CallKind::kPageCreate), 1u);
}

TEST_F(PageGrowthTest, AFirstGrowthServesSeveralRequestsAndALargeOneGetsAsMuchAsItNeeds) {
  make(1_GiB, "backing:pages,first_growth_mb:32");
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(allocate(8_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 1u);
  EXPECT_FALSE(allocate(99_MiB, own_).is_null());
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, (132_MiB).count());
  EXPECT_FALSE(allocate(1_KiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 2u) << "the small pool grows by pages";
}

TEST_F(PageGrowthTest, AQuarterOfTheLimitBoundsFirstGrowthsToo) {
  make(1_GiB, "backing:pages,first_growth_mb:16");
  ASSERT_TRUE(allocator_->set_memory_limit(kDevice, 64_MiB).is_ok());
  EXPECT_FALSE(allocate(16_MiB, own_).is_null());
  EXPECT_FALSE(allocate(16_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 1u);
}

TEST_F(PageGrowthTest, AfterAShortageNoGrowthIsAFirstOne) {
  make(64_MiB, "backing:pages,first_growth_mb:2,wait_ms:0");
  EXPECT_EQ(allocator_->allocate(65_MiB, own_).code(), Code::kOutOfMemory);
  const Address block = allocate(2_MiB, own_);
  EXPECT_FALSE(block.is_null());
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 0u);
  EXPECT_EQ(calls(CallKind::kPageCreate), 1u);
}

TEST_F(PageGrowthTest, AFirstGrowthThatTheDriverRefusesIsMadeInPages) {
  make(1_GiB, "backing:pages,first_growth_mb:128");
  const Address others = device_->segment_alloc(1_GiB - 64_MiB).value();
  EXPECT_FALSE(allocate(16_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kPageCreate), 8u);
  EXPECT_EQ(allocator_->stats(kDevice).value().alloc_retries, 0u);
  EXPECT_TRUE(device_->segment_free(others).is_ok());
}

// Access costs a call most where it is set page by page: 36 us each (docs/moving-pages.md).
TEST_F(PageGrowthTest, AccessIsSetOnceForARunOfPages) {
  make(1_GiB, "backing:pages");
  free(allocate(64_MiB, own_));
  EXPECT_EQ(calls(CallKind::kPageMap), 32u);
  EXPECT_EQ(calls(CallKind::kPageAccess), 1u);
  EXPECT_FALSE(allocate(80_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kPageMap), 40u) << "only what is lacking";
  EXPECT_EQ(calls(CallKind::kPageAccess), 2u);
}

TEST_F(PageGrowthTest, BeyondTheBudgetOfPagesMemoryComesInSegments) {
  make(256_MiB, "backing:pages,page_handles_max:8");
  EXPECT_FALSE(allocate(12_MiB, own_).is_null());
  EXPECT_FALSE(allocate(5_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kPageCreate), 6u) << "six pages, and three would be nine";
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 1u);
  const Address last = allocate(4_MiB, own_);
  EXPECT_EQ(calls(CallKind::kPageCreate), 8u) << "two more are within it";
  free(last);
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_FALSE(allocate(4_MiB, own_).is_null());
  EXPECT_EQ(calls(CallKind::kPageCreate), 10u) << "what went back to the driver is not counted";
}

TEST_F(PageGrowthTest, EagerMovesTakeThePlaceOfNewPages) {
  make(1_GiB, "backing:pages,move:eager,reuse:own");
  const Stream other = stream_beside_free_pages();
  EXPECT_FALSE(allocate(30_MiB, other).is_null());
  EXPECT_EQ(calls(CallKind::kPageCreate), 21u) << "15 of the 20 pages moved";
  EXPECT_EQ(calls(CallKind::kPageRelease), 0u);
  EXPECT_EQ(allocator_->stats(kDevice).value().alloc_retries, 0u);
}

TEST_F(PageGrowthTest, AnEagerMoveBeyondItsBudgetOfTimeIsNotMade) {
  make(1_GiB, "backing:pages,move:eager,move_us_max:640,reuse:own");
  const Stream other = stream_beside_free_pages();
  EXPECT_FALSE(allocate(30_MiB, other).is_null());
  EXPECT_EQ(calls(CallKind::kPageCreate), 35u) << "14 pages more: at 64 us each they cost 896 us";
  EXPECT_FALSE(allocate(20_MiB, other).is_null());
  EXPECT_EQ(calls(CallKind::kPageCreate), 35u) << "ten cost 640";
}

TEST_F(PageGrowthTest, WorkThatIsNotDoneKeepsItsPagesFromAnEagerMove) {
  make(1_GiB, "backing:pages,move:eager,reuse:own");
  const Stream stuck = stuck_stream();
  const Stream other = stream();
  free(allocate(40_MiB, stuck));
  finish(other);
  EXPECT_FALSE(allocate(30_MiB, other).is_null());
  EXPECT_EQ(calls(CallKind::kPageMap), calls(CallKind::kPageCreate)) << "none moved";
}

// C20: after two moves a heap takes memory of its own. So heaps whose needs alternate come to an end.
TEST_F(PageGrowthTest, TwoStreamsThatMovePagesInTurnSettle) {
  make(1_GiB, "backing:pages,move:eager,reuse:own");
  const Stream other = stream();
  std::uint64_t before = 0;
  for (int step = 0; step < 12; ++step) {
    before = calls(CallKind::kPageMap);
    for (const Stream& on : {own_, other}) {
      free(allocate(30_MiB, on));
      EXPECT_TRUE(gpu_->drain_all().is_ok());
    }
  }
  EXPECT_EQ(calls(CallKind::kPageMap), before) << "the last step moved pages";
  EXPECT_LE(allocator_->stats(kDevice).value().reserved_bytes[0].current, (60_MiB).count());
}

}  // namespace
}  // namespace ashlar::cache
