// Events and use nodes beyond need go back at a trim (C29).
//
// Imitates: many blocks that wait for one stream at once; a driver that does not destroy events; a
// thread that waits meanwhile.
// Does not prove: what the host's allocator keeps of the memory freed.
#include <malloc.h>

#include <vector>

#include "props/cache/liveness_fixture.h"

namespace ashlar {
namespace {

class EventCounter final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::atomic<bool> refuses_destroy{false};
  std::atomic<bool> is_slow{false};
  std::atomic<bool> is_stuck{false};  ///< every thread that waits but the test's
  std::atomic<bool> is_waiting{false};
  std::atomic<std::int64_t> events{0};

  Result<EventHandle> event_create() noexcept override {
    ++events;
    return ForwardingDevice::event_create();
  }
  Status event_destroy(EventHandle event) noexcept override {
    if (is_slow) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (refuses_destroy) return {Code::kDriverError, "planted"};
    --events;
    return ForwardingDevice::event_destroy(event);
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    if (std::this_thread::get_id() != main_thread_) {
      is_waiting = true;
      while (is_stuck) std::this_thread::yield();
    }
    return ForwardingDevice::event_synchronize(event, timeout_ms);
  }

 private:
  const std::thread::id main_thread_ = std::this_thread::get_id();
};

class NodeShrinkTest : public ::testing::Test {
 protected:
  static constexpr unsigned kPeak = 5'000;
  static constexpr std::int64_t kEventsKept = 700;  // those pooled, and of a few nodes and streams

  NodeShrinkTest() {
    spec::SimGpuOptions options;
    options.capacities = {256_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<EventCounter>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, "wait_ms:forever");
    own_ = gpu_->create_stream(kDevice).value();
  }
  /// So many blocks wait for one stream; all work is done when this returns.
  void make_peak(unsigned blocks = kPeak) {
    const Stream user = gpu_->create_stream(kDevice).value();
    const auto flag = gpu_->new_flag();
    ASSERT_TRUE(gpu_->host_function(user, flag).is_ok());
    std::vector<Address> held;
    for (unsigned i = 0; i < blocks; ++i) held.push_back(allocator_->allocate(512_B, own_).value());
    for (const Address block : held) ASSERT_TRUE(allocator_->free(block, user).is_ok());
    gpu_->raise(flag);
    static_cast<void>(gpu_->drain_all());
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<EventCounter> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream own_;
};

TEST_F(NodeShrinkTest, ATrimGivesBackWhatAPeakOfUsesLeft) {
  std::vector<Address> live;
  for (unsigned i = 0; i < 1000; ++i) live.push_back(allocator_->allocate(512_B, own_).value());
  make_peak();
  EXPECT_GE(device_->events, kPeak);
  const auto at_peak = ::mallinfo2().uordblks;
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  // Each live block has a spare node, and that one its event.
  EXPECT_LE(device_->events, kEventsKept + 1000);
  // A node has over 100 bytes. With a sanitizer both figures are 0.
  EXPECT_LE(::mallinfo2().uordblks, at_peak - (at_peak == 0 ? 0 : kPeak * 100));
  EXPECT_EQ(allocator_->validate(), nullptr);
  // What is left serves.
  make_peak(100);
  for (const Address block : live) EXPECT_TRUE(allocator_->free(block).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_LE(device_->events, kEventsKept);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(NodeShrinkTest, AnEventThatTheDriverKeepsStaysWithItsNode) {
  make_peak();
  device_->refuses_destroy = true;
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_GE(device_->events, kPeak);
  EXPECT_EQ(allocator_->validate(), nullptr);
  device_->refuses_destroy = false;
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_LE(device_->events, kEventsKept);
  allocator_.reset();
  EXPECT_EQ(device_->events, 0) << "C14";
}

TEST_F(NodeShrinkTest, TwoTrimsAtOnceFreeNoSlabTwice) {
  make_peak(5000);
  device_->is_slow = true;
  std::thread other([this] { EXPECT_TRUE(allocator_->trim(kDevice).is_ok()); });
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  other.join();
  EXPECT_LE(device_->events, kEventsKept);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(NodeShrinkTest, NoEventIsDestroyedWhileAThreadMayWaitForIt) {
  make_peak();
  const Stream stuck = gpu_->create_stream(kDevice).value();
  const auto flag = gpu_->new_flag();
  ASSERT_TRUE(gpu_->host_function(stuck, flag).is_ok());
  const Address large = allocator_->allocate(200_MiB, own_).value();
  ASSERT_TRUE(allocator_->free(large, stuck).is_ok());
  device_->is_stuck = true;
  std::thread waits([this] { EXPECT_TRUE(allocator_->allocate(200_MiB, own_).is_ok()); });
  while (!device_->is_waiting) std::this_thread::yield();
  EXPECT_EQ(allocator_->trim(kDevice).code(), Code::kNotReady);
  EXPECT_GE(device_->events, kPeak);
  gpu_->raise(flag);
  static_cast<void>(gpu_->drain_all());
  device_->is_stuck = false;
  waits.join();
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_LE(device_->events, kEventsKept);
}

}  // namespace
}  // namespace ashlar
