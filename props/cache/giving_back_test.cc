// Idle segments go back one at a time, and other threads get in between (C30, C28).
//
// Imitates: a driver that takes milliseconds for each segment, or refuses some; threads that retire
// a stream, announce a capture or allocate meanwhile.
// Does not prove: how long a thread waits on a busy machine; it counts segments, not time.
#include <map>
#include <mutex>

#include "props/cache/liveness_fixture.h"

namespace ashlar {
namespace {

/// Takes 3 ms of real time to take a segment back. Refuses some, and may give out none.
class SlowFree final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::atomic<unsigned> asked{0};
  unsigned refuses = 0;  ///< so many of those asked
  std::thread::id refused_thread;
  std::atomic<bool> is_full{false};
  std::function<void()> on_taken_back;

  Result<Address> segment_alloc(Bytes size) noexcept override {
    if (is_full) return Status{Code::kOutOfMemory, "planted"};
    return ForwardingDevice::segment_alloc(size);
  }
  Status segment_free(Address base) noexcept override {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    {
      const std::lock_guard lock(lock_);
      ++asked_of_[base.value()];
    }
    if (asked++ < refuses || std::this_thread::get_id() == refused_thread)
      return {Code::kDriverError, "planted"};
    const Status freed = ForwardingDevice::segment_free(base);
    if (on_taken_back) on_taken_back();
    return freed;
  }
  unsigned asked_most_of_one() {
    const std::lock_guard lock(lock_);
    unsigned most = 0;
    for (const auto& [base, count] : asked_of_) most = std::max(most, count);
    return most;
  }

 private:
  std::mutex lock_;
  std::map<std::uint64_t, unsigned> asked_of_;
};

class GivingBackTest : public ::testing::Test {
 protected:
  static constexpr unsigned kSegments = 100;

  void SetUp() override {
    spec::SimGpuOptions options;
    options.capacities = {Bytes{kSegments * (40_MiB).count()}};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<SlowFree>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, "wait_ms:0");
    own_ = gpu_->create_stream(kDevice).value();
    other_ = gpu_->create_stream(kDevice).value();
    ASSERT_TRUE(allocator_->free(allocator_->allocate(Bytes{512}, other_).value()).is_ok());
    ASSERT_TRUE(allocator_->trim(kDevice).is_ok());
    std::vector<Address> blocks;
    for (unsigned i = 0; i < kSegments; ++i)
      blocks.push_back(allocator_->allocate(40_MiB, own_).value());
    for (const Address block : blocks) ASSERT_TRUE(allocator_->free(block).is_ok());
    static_cast<void>(gpu_->drain_all());
    before_ = device_->asked;
  }
  /// The next allocation that misses may give the segments back: their streams' work is known done.
  void mark_idle() {
    // It records an event on the stream, which completes when the device goes on.
    ASSERT_FALSE(allocator_->allocate(80_MiB, other_).is_ok());
    static_cast<void>(gpu_->drain_all());
    ASSERT_EQ(device_->asked, before_);
  }
  /// Calls `call` while another thread trims. Returns how many segments the driver was asked to take
  /// back meanwhile.
  template <class F>
  unsigned segments_during(F&& call) {
    std::thread trims([this] { trimmed_ = allocator_->trim(kDevice); });
    while (device_->asked < before_ + 4) std::this_thread::yield();
    const unsigned begin = device_->asked;
    call();
    const unsigned end = device_->asked;
    trims.join();
    return end - begin;
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<SlowFree> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream own_;
  Stream other_;
  unsigned before_ = 0;
  Status trimmed_;
};

TEST_F(GivingBackTest, ARetirementGetsInBetweenTwoSegments) {
  const unsigned segments =
      segments_during([this] { EXPECT_TRUE(allocator_->retire_stream(other_).is_ok()); });
  EXPECT_LT(segments, kSegments / 2) << "C30";
  EXPECT_TRUE(trimmed_.is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, 0u) << "C28";
}

TEST_F(GivingBackTest, ACaptureIsAnnouncedBetweenTwoSegmentsAndEndsTheTrim) {
  const unsigned segments =
      segments_during([this] { EXPECT_TRUE(allocator_->begin_capture(other_).is_ok()); });
  EXPECT_LT(segments, kSegments / 2) << "C30";
  EXPECT_EQ(trimmed_.code(), Code::kBusy) << "C9";
  EXPECT_NE(allocator_->stats(kDevice).value().reserved_bytes[0].current, 0u);
  EXPECT_TRUE(allocator_->end_capture(other_).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, 0u) << "C28";
}

TEST_F(GivingBackTest, RoomIsMadeThoughOthersTakeWhatComesBack) {
  unsigned taken = 0;
  device_->on_taken_back = [&] {
    if (++taken > 3) return;
    std::thread([this] { EXPECT_TRUE(allocator_->allocate(40_MiB, other_).is_ok()); }).join();
  };
  EXPECT_TRUE(allocator_->make_room(kDevice, 40_MiB).is_ok());
  EXPECT_EQ(taken, 4u);
  device_->on_taken_back = nullptr;  // the allocator's end gives segments back too
}

/// Lets the thread that asks for a segment first wait until another has one, or a moment has passed.
class SlowGrowth final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::function<void()> on_first_growth;

  Result<Address> segment_alloc(Bytes size) noexcept override {
    if (auto call = std::exchange(on_first_growth, nullptr)) call();
    return ForwardingDevice::segment_alloc(size);
  }
};

TEST(Headroom, HoldsForTwoGrowthsAtOnce) {
  spec::SimGpuOptions options;
  options.capacities = {100_MiB};
  spec::SimGpu gpu(options);
  SlowGrowth device(gpu.device(0));
  device::Device* devices[] = {&device};
  const auto allocator = make_allocator(devices, "headroom_mb:30,wait_ms:0");
  const Stream own = gpu.create_stream(kDevice).value();
  const Stream other = gpu.create_stream(kDevice).value();
  std::atomic<bool> is_done{false};
  std::thread second;
  device.on_first_growth = [&] {
    second = std::thread([&] {
      static_cast<void>(allocator->allocate(40_MiB, other));
      is_done = true;
    });
    // Without an order between the two the other one has its answer long before.
    for (unsigned ms = 0; ms < 300 && !is_done; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_TRUE(allocator->allocate(40_MiB, own).is_ok());
  second.join();
  EXPECT_EQ(gpu.device(0).memory_info().value().free, 60_MiB);
}

TEST_F(GivingBackTest, ACaptureThatIsAnnouncedEndsAReclaimToo) {
  mark_idle();
  // As large as all segments together: the reclaim would give back every one.
  device_->is_full = true;
  std::thread allocates([this] {
    const Bytes size{kSegments * (40_MiB).count()};
    EXPECT_EQ(allocator_->allocate(size, other_).code(), Code::kOutOfMemory);
  });
  while (device_->asked < before_ + 4) std::this_thread::yield();
  EXPECT_TRUE(allocator_->begin_capture(own_).is_ok());
  const unsigned announced = device_->asked;
  allocates.join();
  EXPECT_LT(announced - before_, kSegments / 2) << "C30";
  EXPECT_EQ(device_->asked, announced) << "C9: a segment went back in a capture";
  EXPECT_TRUE(allocator_->end_capture(own_).is_ok());
}

TEST_F(GivingBackTest, WhatAnotherThreadGivesBackMeanwhileServesAReclaim) {
  mark_idle();
  // The reclaim is refused every segment; the trim that it lets in gives back half of them.
  device_->refused_thread = std::this_thread::get_id();
  std::thread trims([this] {
    while (device_->asked == before_) std::this_thread::yield();
    static_cast<void>(allocator_->trim(kDevice));
  });
  EXPECT_TRUE(allocator_->allocate(80_MiB, other_).is_ok()) << "C12";
  trims.join();
}

TEST_F(GivingBackTest, AnAllocationTakesASegmentInBetweenAndNoneIsAskedAboutTwice) {
  device_->refuses = before_ + 3;
  device_->is_full = true;
  Result<Address> served = Address{};
  const unsigned segments = segments_during([&] { served = allocator_->allocate(40_MiB, other_); });
  EXPECT_LT(segments, kSegments / 2) << "C30";
  EXPECT_TRUE(served.is_ok()) << "C12";
  EXPECT_EQ(device_->asked_most_of_one(), 1u) << "release(1)";
  EXPECT_EQ(trimmed_.code(), Code::kDriverError) << "C28: a refusal is the trim's answer";
  EXPECT_EQ(allocator_->validate(), nullptr);
  // The three that were refused, and that of the block.
  EXPECT_EQ(allocator_->stats(kDevice).value().segments[0].current, 4u);
}

TEST_F(GivingBackTest, TwoTrimsAskAboutEverySegmentOnce) {
  device_->refuses = before_ + 3;
  Status second;
  static_cast<void>(segments_during([&] { second = allocator_->trim(kDevice); }));
  EXPECT_EQ(allocator_->stats(kDevice).value().segments[0].current, 0u) << "C28";
  EXPECT_LE(device_->asked_most_of_one(), 2u) << "release(1)";
  EXPECT_EQ(trimmed_.code(), Code::kDriverError) << "C28: a refusal is the trim's answer";
  EXPECT_TRUE(second.is_ok());
}

TEST_F(GivingBackTest, WhatTheDriverRefusesAnotherThreadMeanwhileIsTheTrimsAnswerToo) {
  device_->refused_thread = std::this_thread::get_id();
  Status second;
  static_cast<void>(segments_during([&] { second = allocator_->trim(kDevice); }));
  EXPECT_EQ(second.code(), Code::kDriverError);
  EXPECT_NE(allocator_->stats(kDevice).value().segments[0].current, 0u);
  EXPECT_EQ(trimmed_.code(), Code::kDriverError) << "C28";
}

}  // namespace
}  // namespace ashlar
