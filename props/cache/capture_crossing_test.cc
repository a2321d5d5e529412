// A capture that is announced in the middle of another thread's call (C9): the call ends without a
// device call that the capture forbids, and the announcement waits for the one that is under way.
//
// Imitates: a thread that begins a capture while another trims, reclaims, grows or frees; the device
// call in which the announcement comes is chosen.
// Does not prove: anything about announcements at other points; cache_threads_test.cc runs threads.
#include "props/cache/crossing_fixture.h"

namespace ashlar {
namespace {

constexpr unsigned kHeaps = 40;  // a sweep lets others in after 16

class CaptureCrossingTest : public CrossingTest {
 protected:
  void expect_busy_trim() { EXPECT_EQ(allocator_->trim(kDevice).code(), Code::kBusy) << "C9"; }
  /// What a trim leaves behind, once no capture is left.
  std::uint64_t reserved_after_trim() {
    static_cast<void>(gpu_->drain_all());
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    return allocator_->stats(kDevice).value().reserved_bytes[0].current;
  }
};

TEST_F(CaptureCrossingTest, ATrimThatMarksManyStreamsEndsBetweenTwoOfThem) {
  make(Bytes{0});
  make_heaps(kHeaps, false);
  const std::uint64_t before = device_->calls(CallKind::kEventRecord);
  run_in({CallKind::kEventRecord}, [this] { announce(); });
  expect_busy_trim();
  EXPECT_LE(device_->calls(CallKind::kEventRecord), before + 16);
  end_capture();
  EXPECT_EQ(reserved_after_trim(), 0u);
}

TEST_F(CaptureCrossingTest, ATrimThatAsksManyStreamsAgainEndsBetweenTwoOfThem) {
  make(Bytes{0});
  make_heaps(kHeaps, true);
  // Each stream is asked once when it is marked, and again after its uses.
  const std::uint64_t before = device_->calls(CallKind::kEventQuery);
  run_in(std::vector<CallKind>(kHeaps + 2, CallKind::kEventQuery), [this] { announce(); });
  expect_busy_trim();
  EXPECT_LE(device_->calls(CallKind::kEventQuery), before + kHeaps + 17);
  end_capture();
}

TEST_F(CaptureCrossingTest, ATrimThatRecordsTheEventOfAnEarlierUseEndsBehindIt) {
  make(Bytes{0});
  const Address block = allocate(512_B, own_);
  gpu_->fail(CallKind::kEventRecord, 1, spec::FailMode::kOnce);
  EXPECT_TRUE(allocator_->free(block, stream()).is_ok());
  run_in({CallKind::kEventRecord}, [this] { announce(); });
  expect_busy_trim();
  end_capture();
  EXPECT_EQ(reserved_after_trim(), 0u);
}

TEST_F(CaptureCrossingTest, ATrimThatAsksManyEventsEndsBetweenTwoHandfuls) {
  make(Bytes{0});
  std::vector<Address> blocks;
  for (unsigned i = 0; i < kHeaps; ++i) blocks.push_back(allocate(512_B, own_));
  for (const Address block : blocks) EXPECT_TRUE(allocator_->free(block, stream()).is_ok());
  static_cast<void>(gpu_->drain_all());
  const auto pending = [this] { return allocator_->stats(kDevice).value().active[0].current; };
  EXPECT_EQ(pending(), kHeaps);
  run_in({CallKind::kEventQuery, CallKind::kEventQuery}, [this] { announce(); });
  expect_busy_trim();
  EXPECT_GE(pending(), kHeaps - 16);
  end_capture();
  EXPECT_EQ(reserved_after_trim(), 0u);
}

TEST_F(CaptureCrossingTest, ATrimThatWaitsForItsTurnGetsAnAnswerWhenItComes) {
  make(Bytes{0});
  make_heaps(kHeaps, false);
  run_in({CallKind::kEventRecord}, [this] {
    on_another_thread([this] { expect_busy_trim(); });
    wait_for_waiters(1);
    announce(2);
  });
  expect_busy_trim();
  end_capture();
}

TEST_F(CaptureCrossingTest, ATrimThatDestroysEventsStopsAndTheNodesStay) {
  make(Bytes{0}, "wait_ms:forever");
  const Stream user = stream();
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 1000; ++i) blocks.push_back(allocate(512_B, own_));
  for (const Address block : blocks) EXPECT_TRUE(allocator_->free(block, user).is_ok());
  static_cast<void>(gpu_->drain_all());
  run_in({CallKind::kEventDestroy}, [this] { announce(); });
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok()) << "the segments were back before";
  EXPECT_LE(device_->calls(CallKind::kEventDestroy), 2u) << "C9";
  end_capture();
  EXPECT_EQ(reserved_after_trim(), 0u);
  EXPECT_GE(device_->calls(CallKind::kEventDestroy), 400u) << "those beyond the pool's 512";
}

TEST_F(CaptureCrossingTest, AReclaimThatSweepsEndsBehindTheSweep) {
  make(kHeapSegment, "wait_ms:forever");
  make_heaps(1, true);
  cache::OutOfMemory account;
  run_in({CallKind::kSegmentAlloc, CallKind::kEventQuery}, [this] { announce(); });
  EXPECT_EQ(allocator_->allocate(1_MiB, own_, &account).code(), Code::kOutOfMemory);
  EXPECT_TRUE(account.capturing);
  EXPECT_EQ(device_->calls(CallKind::kSegmentFree), 0u) << "C9";
  end_capture();
}

TEST_F(CaptureCrossingTest, AReclaimKeepsThePagesThatItTookOnceACaptureIsAnnounced) {
  make(64_MiB, "backing:pages");
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 8; ++i) blocks.push_back(allocator_->allocate(8_MiB, own_).value());
  for (unsigned i = 0; i < 8; i += 2) EXPECT_TRUE(allocator_->free(blocks[i]).is_ok());
  run_in({CallKind::kPageUnmap}, [this] { announce(); });
  EXPECT_EQ(allocator_->allocate(40_MiB, own_).code(), Code::kOutOfMemory);
  EXPECT_EQ(device_->calls(CallKind::kPageRelease), 0u) << "C9";
  end_capture();
  for (unsigned i = 1; i < 8; i += 2) EXPECT_TRUE(allocator_->free(blocks[i]).is_ok());
  EXPECT_EQ(reserved_after_trim(), 0u);
  EXPECT_EQ(gpu_->device(0).memory_info().value().free, 64_MiB);
}

TEST_F(CaptureCrossingTest, AReclaimThatWaitsForItsTurnEndsWhenItComes) {
  make(500_MiB, "wait_ms:forever");
  make_heaps(kHeaps, false);
  std::uint64_t given_back = 0;
  std::uint64_t queries = 0;
  std::uint64_t records = 0;
  run_in({CallKind::kEventRecord}, [&] {
    const std::uint64_t asked = device_->calls(CallKind::kSegmentAlloc);
    on_another_thread([&] {
      cache::OutOfMemory account;
      EXPECT_EQ(allocator_->allocate(50_MiB, own_, &account).code(), Code::kOutOfMemory);
      EXPECT_TRUE(account.capturing);
      given_back = device_->calls(CallKind::kSegmentFree);
    });
    while (device_->calls(CallKind::kSegmentAlloc) == asked) std::this_thread::yield();
    wait_for_waiters(1);
    announce(2);
    queries = device_->calls(CallKind::kEventQuery);
    records = device_->calls(CallKind::kEventRecord);
  });
  expect_busy_trim();
  // The sweep that was under way ends its heap; the reclaim behind it asks nothing.
  EXPECT_LE(device_->calls(CallKind::kEventQuery), queries + 1) << "C9";
  EXPECT_LE(device_->calls(CallKind::kEventRecord), records + 1) << "C9";
  end_capture();
  EXPECT_EQ(given_back, 0u) << "C9";
  static_cast<void>(gpu_->drain_all());
  EXPECT_NE(allocate(50_MiB, own_), Address{});
}

TEST_F(CaptureCrossingTest, AReclaimThatTheDriverRefusesGivesNothingBackAndDoesNotWait) {
  make(60_MiB, "wait_ms:forever");
  EXPECT_TRUE(allocator_->free(allocate(20_MiB, own_)).is_ok());
  const Address used = allocate(20_MiB, captured_);
  EXPECT_TRUE(allocator_->free(used, stuck_stream()).is_ok());
  static_cast<void>(gpu_->drain_all());
  cache::OutOfMemory account;
  // The first is the miss's own, the second the reclaim's.
  run_in({CallKind::kSegmentAlloc, CallKind::kSegmentAlloc}, [this] { announce(); });
  EXPECT_EQ(allocator_->allocate(50_MiB, own_, &account).code(), Code::kOutOfMemory);
  EXPECT_TRUE(account.capturing);
  EXPECT_EQ(device_->calls(CallKind::kEventSynchronize), 0u) << "C9";
  EXPECT_EQ(device_->calls(CallKind::kSegmentFree), 0u) << "C9";
  end_capture();
  gpu_->raise(flag_);
  EXPECT_NE(allocate(50_MiB, own_), Address{});
}

TEST_F(CaptureCrossingTest, AnAnnouncementWaitsForAFreeThatRecordsAnEvent) {
  make(Bytes{0});
  const Address block = allocate(512_B, own_);
  const Stream user = stream();
  bool was_announced = true;
  run_in({CallKind::kEventRecord}, [&] {
    begin_announcement();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    was_announced = is_announced_;
  });
  EXPECT_TRUE(allocator_->free(block, user).is_ok());
  EXPECT_FALSE(was_announced) << "C9";
  end_capture();
}

TEST_F(CaptureCrossingTest, AnAnnouncementWaitsForAGrowth) {
  make(Bytes{0});
  bool was_announced = true;
  run_in({CallKind::kSegmentAlloc}, [&] {
    begin_announcement();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    was_announced = is_announced_;
  });
  EXPECT_NE(allocate(40_MiB, own_), Address{});
  EXPECT_FALSE(was_announced) << "C9";
  end_capture();
}

TEST_F(CaptureCrossingTest, APoolThatIsBeingReleasedIsBusy) {
  make(Bytes{0});
  constexpr MemoryPoolId kPool{0, 7};
  const auto any = [](const Stream&) { return true; };
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  const Address block = allocate(4_KiB, own_);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  Code retained{};
  Code begun{};
  Code released{};
  // The release records an event behind what the pool's streams have done.
  run_in({CallKind::kEventRecord}, [&] {
    on_another_thread([&] {
      retained = allocator_->retain_pool(kDevice, kPool).code();
      begun = allocator_->begin_pool(kDevice, kPool, any).code();
      released = allocator_->release_pool(kDevice, kPool).code();
    });
    join();
  });
  EXPECT_TRUE(allocator_->release_pool(kDevice, kPool).is_ok());
  EXPECT_EQ(retained, Code::kBusy);
  EXPECT_EQ(begun, Code::kBusy);
  EXPECT_EQ(released, Code::kBusy);
  EXPECT_TRUE(allocator_->free(block).is_ok());
}

}  // namespace
}  // namespace ashlar
