// The events kept for reuse (EventPool), and the two events of a use's node, over three devices.
//
// Imitates: a node that serves streams of one device after the other; a pool that is full; a thread
// that may be waiting for an event; a driver that refuses to make or to destroy one.
// Does not prove: that the right event is recorded (use_tracker.cc; the lockstep suites).
#include <gtest/gtest.h>

#include <vector>

#include "props/adapters/cache_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

constexpr unsigned kPooledMax = 512;

class EventPoolTest : public ::testing::Test {
 protected:
  EventPoolTest() {
    spec::SimGpuOptions options;
    options.capacities = {Bytes{0}, Bytes{0}, Bytes{0}};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    for (int i = 0; i < 3; ++i) {
      devices_.push_back(std::make_unique<WatchedDevice>(gpu_->device(i)));
      drivers_.push_back(std::make_unique<Driver>(*devices_.back(), first_));
      pools_.push_back(std::make_unique<EventPool>(*drivers_.back(), waiters_));
    }
  }
  ~EventPoolTest() override {
    for (EventSlot& slot : slots_) EXPECT_TRUE(EventPool::destroy(slot).is_ok());
    for (const auto& pool : pools_) pool->clear();
    EXPECT_TRUE(gpu_->leak_check()) << "C14";
  }
  EventPool& pool(std::size_t i) { return *pools_[i]; }
  unsigned pooled(std::size_t i) { return CachePeer::pooled_events(pool(i)); }
  std::uint64_t calls(std::size_t i) { return devices_[i]->calls; }
  void fill_pool(std::size_t i) {
    slots_.resize(kPooledMax);
    for (EventSlot& slot : slots_) EXPECT_TRUE(pool(i).fill(slot).is_ok());
    for (EventSlot& slot : slots_) pool(i).give(slot);
    EXPECT_EQ(pooled(i), kPooledMax);
    slots_.clear();
  }
  EventSlot slot_of(std::size_t i) {
    EventSlot slot;
    EXPECT_TRUE(pool(i).fill(slot).is_ok());
    return slot;
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  Driver* first_ = nullptr;
  std::atomic<unsigned> waiters_{0};
  std::vector<std::unique_ptr<WatchedDevice>> devices_;
  std::vector<std::unique_ptr<Driver>> drivers_;
  std::vector<std::unique_ptr<EventPool>> pools_;
  std::vector<EventSlot> slots_;
};

TEST_F(EventPoolTest, ASlotThatHoldsAnEventOfTheDeviceKeepsItWithoutACall) {
  EventSlot slot = slot_of(0);
  const EventHandle event = slot.event;
  const std::uint64_t before = calls(0);
  EXPECT_TRUE(pool(0).fill(slot).is_ok());
  EXPECT_EQ(slot.event, event);
  EXPECT_EQ(calls(0), before);
  slots_ = {slot};
}

TEST_F(EventPoolTest, AnotherDevicesEventGoesToItsPoolAndComesBackFromThere) {
  EventSlot slot = slot_of(0);
  const EventHandle event = slot.event;
  EXPECT_TRUE(pool(1).fill(slot).is_ok());
  EXPECT_EQ(slot.pool, &pool(1));
  EXPECT_EQ(pooled(0), 1u);
  const std::uint64_t before = calls(0);
  EventSlot next = slot_of(0);
  EXPECT_EQ(next.event, event);
  EXPECT_EQ(calls(0), before) << "C17: a pooled event needs no call";
  slots_ = {slot, next};
}

TEST_F(EventPoolTest, WhereItsPoolIsFullItStaysWhileSomebodyMayWaitForIt) {
  EventSlot slot = slot_of(0);
  const EventHandle event = slot.event;
  fill_pool(0);
  waiters_ = 1;
  EXPECT_EQ(pool(1).fill(slot).code(), Code::kBusy);
  EXPECT_EQ(slot.pool, &pool(0));
  EXPECT_EQ(slot.event, event);
  waiters_ = 0;
  EXPECT_TRUE(pool(1).fill(slot).is_ok());
  EXPECT_EQ(slot.pool, &pool(1));
  EXPECT_EQ(pooled(0), kPooledMax);
  slots_ = {slot};
}

TEST_F(EventPoolTest, AnEventThatTheDriverDoesNotDestroyStaysInItsSlot) {
  EventSlot slot = slot_of(0);
  const EventHandle event = slot.event;
  fill_pool(0);
  gpu_->fail(device::CallKind::kEventDestroy, 1, spec::FailMode::kOnce);
  EXPECT_EQ(pool(1).fill(slot).code(), Code::kDriverError);
  EXPECT_EQ(slot.pool, &pool(0));
  EXPECT_EQ(slot.event, event) << "C14";
  slots_ = {slot};
}

TEST_F(EventPoolTest, ALostDeviceTookItsEventWithIt) {
  EventSlot slot = slot_of(0);
  gpu_->lose(DeviceId{0});
  EXPECT_TRUE(EventPool::destroy(slot).is_ok());
  EXPECT_EQ(slot.pool, nullptr);
}

TEST_F(EventPoolTest, AnEventThatTheDriverDoesNotMakeLeavesTheSlotEmpty) {
  EventSlot slot;
  gpu_->fail(device::CallKind::kEventCreate, 1, spec::FailMode::kOnce);
  EXPECT_EQ(pool(0).fill(slot).code(), Code::kDriverError);
  EXPECT_EQ(slot.pool, nullptr);
}

TEST_F(EventPoolTest, ANodePrefersAnEventOfTheUsersDeviceAndKeepsTheOtherAside) {
  UseNode node;
  node.prefer_event_of(pool(0));
  EXPECT_EQ(node.slot.pool, nullptr) << "an empty slot is as good";
  node.slot = slot_of(0);
  node.prefer_event_of(pool(0));
  EXPECT_EQ(node.slot.pool, &pool(0));
  node.prefer_event_of(pool(1));
  EXPECT_EQ(node.slot.pool, nullptr);
  EXPECT_EQ(node.aside.pool, &pool(0));
  node.slot = slot_of(1);
  node.prefer_event_of(pool(0));
  EXPECT_EQ(node.slot.pool, &pool(0));
  EXPECT_EQ(node.aside.pool, &pool(1));
  // The two are of two devices, and the user is of a third: the slot's event has to make room.
  node.prefer_event_of(pool(2));
  EXPECT_EQ(node.slot.pool, &pool(0));
  EXPECT_EQ(node.aside.pool, &pool(1));
  EXPECT_TRUE(pool(2).fill(node.slot).is_ok());
  EXPECT_EQ(node.slot.pool, &pool(2));
  EXPECT_EQ(pooled(0), 1u);
  EXPECT_TRUE(node.destroy_events().is_ok());
}

}  // namespace
}  // namespace ashlar::cache
