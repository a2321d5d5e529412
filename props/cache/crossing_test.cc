// A call in whose middle another one comes, or the device is lost: what was found before may be gone,
// and what is new is not missed.
//
// Imitates: a free, an allocation or a walk at a chosen device call of another thread's trim, reclaim
// or growth; a driver that answers that the device is gone where it is asked for memory.
// Does not prove: anything about other points; cache_threads_test.cc runs threads.
#include <ashlar/cache/live_allocations.h>

#include <span>

#include "props/cache/crossing_fixture.h"

namespace ashlar {
namespace {

class CacheCrossingTest : public CrossingTest {};

TEST_F(CacheCrossingTest, AUseThatAnotherThreadTookAfterTheSearchBeganIsLookedForOnceMore) {
  make(60_MiB, "wait_ms:0");
  const Stream user = stream();
  const Address block = allocate(40_MiB, own_);
  std::atomic<bool> is_recording{false};
  std::atomic<bool> may_end{false};
  // The first segment is asked for by the miss itself, the second by its reclaim.
  unsigned asked = 0;
  const std::thread::id caller = std::this_thread::get_id();
  device_->in_call = [&, caller](CallKind kind) {
    if (std::this_thread::get_id() != caller) {
      is_recording = is_recording || kind == CallKind::kEventRecord;
      while (is_recording && !may_end) std::this_thread::yield();
    } else if (kind == CallKind::kSegmentAlloc && ++asked == 2) {
      on_another_thread([&] { EXPECT_TRUE(allocator_->free(block, user).is_ok()); });
      while (!is_recording) std::this_thread::yield();
    }
  };
  cache::OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(50_MiB, own_, &account).code(), Code::kOutOfMemory);
  EXPECT_TRUE(account.wait_ran_out) << "a use was in the other thread's hands";
  EXPECT_EQ(asked, 3u) << "one search more, though no wait is permitted";
  may_end = true;
  join();
  static_cast<void>(gpu_->drain_all());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_NE(allocate(50_MiB, own_), Address{});
}

TEST_F(CacheCrossingTest, ASweepEndsThoughUsesComeAsFastAsTheyAreFinished) {
  make(Bytes{0});
  const Stream user = stream();
  const Address first = allocate(512_B, own_);
  const Address second = allocate(512_B, own_);
  EXPECT_TRUE(allocator_->free(first, user).is_ok());
  static_cast<void>(gpu_->drain_all());
  const std::uint64_t before = device_->calls(CallKind::kEventQuery);
  run_in({CallKind::kEventQuery}, [&] {
    EXPECT_TRUE(allocator_->free(second, user).is_ok());
    static_cast<void>(gpu_->drain_all());
  });
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  device_->in_call = nullptr;
  EXPECT_GT(device_->calls(CallKind::kEventQuery), before);
  EXPECT_EQ(allocator_->validate(), nullptr);
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, 0u);
}

TEST_F(CacheCrossingTest, AWalkInTheMiddleOfAGrowthSaysThatItHasNotEnded) {
  make(Bytes{0});
  const Stream later = stream();
  EXPECT_NE(allocate(512_B, own_), Address{});
  std::string found;
  run_in({CallKind::kSegmentAlloc}, [&] {
    const char* const broken = allocator_->validate();
    found = broken == nullptr ? "" : broken;
  });
  EXPECT_NE(allocate(40_MiB, later), Address{});
  EXPECT_EQ(found, "supply: a growth has not ended");
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(CacheCrossingTest, ASegmentThatIsTakenWhileATrimLetsOthersInStaysWithItsNewOwner) {
  make(Bytes{0});
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 3; ++i) blocks.push_back(allocate(40_MiB, own_));
  for (const Address block : blocks) EXPECT_TRUE(allocator_->free(block).is_ok());
  static_cast<void>(gpu_->drain_all());
  std::vector<Address> taken;
  std::mutex lock;
  const auto take = [&] {
    const Address got = allocate(40_MiB, own_);
    const std::lock_guard guard(lock);
    taken.push_back(got);
  };
  run_in({CallKind::kSegmentFree}, [&] {
    // It waits for the trim's lock, and takes all that is idle when it has it.
    on_another_thread([&] {
      const cache::ReclaimGuard turn(cache().reclaimer().lock());
      take();
      take();
    });
    wait_for_waiters(1);
  });
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  join();
  ASSERT_EQ(taken.size(), 2u);
  for (const Address block : taken) EXPECT_TRUE(allocator_->info(block).is_ok()) << "C1";
  EXPECT_EQ(device_->calls(CallKind::kSegmentFree), 1u);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(CacheCrossingTest, ACaptureIsNotAnnouncedBeforeItIsKnownWhomTheHandleNames) {
  make(Bytes{0});
  EXPECT_NE(allocate(512_B, captured_), Address{});
  Stream newer = captured_;
  newer.id = StreamId{1'000'000};
  const Address used = allocate(512_B, own_);
  const auto ask_first = [&] {
    EXPECT_EQ(allocator_->allocate(512_B, newer).code(), Code::kInvalidHandle);
  };
  const auto record = [&] { EXPECT_TRUE(allocator_->free(used, captured_).is_ok()); };
  for (const std::function<void()>& asks :
       {std::function<void()>(ask_first), std::function<void()>(record)}) {
    std::atomic<bool> is_announced{false};
    unsigned named = 0;
    const std::thread::id caller = std::this_thread::get_id();
    device_->in_call = [&, caller](CallKind kind) {
      if (kind != CallKind::kIdentify || std::this_thread::get_id() != caller || ++named > 1)
        return;
      on_another_thread([&] {
        EXPECT_TRUE(allocator_->begin_capture(captured_).is_ok());
        is_announced = true;
      });
      while (!cache().uses().is_capturing()) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(is_announced) << "C9";
    };
    asks();
    join();
    EXPECT_EQ(named, 1u);
    EXPECT_TRUE(is_announced);
    device_->in_call = nullptr;
    EXPECT_TRUE(allocator_->end_capture(captured_).is_ok());
  }
}

// Between the search for a pool's heap and the making of one, the allocator asks what dead streams' events say.
TEST_F(CacheCrossingTest, AnAllocationGoesByTheRoutesThatHoldOnceItsHeapIsMade) {
  constexpr MemoryPoolId kOuter{0, 7};
  constexpr MemoryPoolId kInner{0, 8};
  const auto any = [](const Stream&) { return true; };
  const auto begin_inner = [&] { return allocator_->begin_pool(kDevice, kInner, any); };
  const auto end_outer = [&] { return allocator_->end_pool(kDevice, kOuter); };
  for (const bool begins : {true, false}) {
    make(Bytes{0});
    const Stream dead = stuck_stream();
    EXPECT_NE(allocate(4_KiB, dead), Address{});
    EXPECT_TRUE(allocator_->retire_stream(dead).is_ok());
    ASSERT_TRUE(allocator_->begin_pool(kDevice, kOuter, any).is_ok());
    ASSERT_TRUE(allocator_->create_pool(kDevice, kInner, {}).is_ok());
    Code changed{};
    run_in({CallKind::kEventQuery}, [&] {
      on_another_thread([&] { changed = (begins ? begin_inner() : end_outer()).code(); });
      join();
    });
    const Address block = allocate(4_KiB, own_);
    EXPECT_EQ(changed, Code::kOk) << "the call came";
    cache::Snapshot seen;
    ASSERT_TRUE(allocator_->snapshot(kDevice, &seen).is_ok());
    EXPECT_EQ(compare_live(seen, begins ? kInner : MemoryPoolId{}, std::span(&block, 1)).missing,
              std::vector<Address>{});
    EXPECT_EQ(allocator_->validate(), nullptr);
    allocator_.reset();  // before its device
  }
}

/// Answers that the device is gone, in place of one call.
class LosingDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool is_full = false;
  bool loses_at_free = false;
  bool loses_at_wait = false;

  Result<Address> segment_alloc(Bytes size) noexcept override {
    if (is_full) return Status{Code::kOutOfMemory, "planted"};
    return ForwardingDevice::segment_alloc(size);
  }
  Status segment_free(Address base) noexcept override {
    if (loses_at_free) return {Code::kDeviceLost, "planted"};
    return ForwardingDevice::segment_free(base);
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    if (loses_at_wait) return {Code::kDeviceLost, "planted"};
    return ForwardingDevice::event_synchronize(event, timeout_ms);
  }
};

class LosingDeviceTest : public ::testing::Test {
 protected:
  LosingDeviceTest() {
    spec::SimGpuOptions options;
    options.capacities = {Bytes{0}};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<LosingDevice>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, "wait_ms:forever");
    own_ = gpu_->create_stream(kDevice).value();
    block_ = allocator_->allocate(20_MiB, own_).value_or(Address{});
  }
  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<LosingDevice> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream own_;
  Address block_;
};

TEST_F(LosingDeviceTest, AReclaimThatLearnsOfTheLossWhereItGivesBackReturnsIt) {
  EXPECT_TRUE(allocator_->free(block_).is_ok());
  static_cast<void>(gpu_->drain_all());
  device_->is_full = device_->loses_at_free = true;
  EXPECT_EQ(allocator_->allocate(40_MiB, own_).code(), Code::kDeviceLost) << "C26";
}

TEST_F(LosingDeviceTest, AReclaimThatLearnsOfTheLossWhereItWaitsReturnsIt) {
  const Stream user = gpu_->create_stream(kDevice).value();
  EXPECT_TRUE(gpu_->host_function(user, gpu_->new_flag()).is_ok());
  EXPECT_TRUE(allocator_->free(block_, user).is_ok());
  device_->is_full = device_->loses_at_wait = true;
  EXPECT_EQ(allocator_->allocate(40_MiB, own_).code(), Code::kDeviceLost) << "C26";
}

TEST_F(LosingDeviceTest, ATrimThatLearnsOfTheLossWhereItGivesBackReturnsIt) {
  EXPECT_TRUE(allocator_->free(block_).is_ok());
  static_cast<void>(gpu_->drain_all());
  device_->loses_at_free = true;
  EXPECT_EQ(allocator_->trim(kDevice).code(), Code::kDeviceLost) << "C26";
}

}  // namespace
}  // namespace ashlar
