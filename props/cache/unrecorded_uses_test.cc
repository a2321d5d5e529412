// Uses without an event: their list, their counts by device, and what a retry asks the device.
//
// Imitates: drivers that refuse to record, captures, handles that name another stream; nodes that
// keep another device's event. Does not prove: that a synchronisation answers for them.
#include <deque>
#include <list>
#include <random>

#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

TEST(UnrecordedUsesTest, EveryPairOfDevicesHasACountOfItsOwn) {
  for (const std::uint32_t devices : {1u, 2u, 3u, 5u, 8u}) {
    UnrecordedUses uses;
    ASSERT_TRUE(uses.make(devices));
    EXPECT_EQ(uses.devices(), devices);
    const auto id = [](std::uint32_t i) { return DeviceId{static_cast<std::int32_t>(i)}; };
    std::vector<std::uint64_t> expected(devices * devices);
    std::mt19937 random(devices);
    for (unsigned step = 0; step < 500; ++step) {
      const std::uint32_t blocks = static_cast<std::uint32_t>(random() % devices);
      const std::uint32_t users = static_cast<std::uint32_t>(random() % devices);
      std::uint64_t& count = expected[blocks * devices + users];
      const bool drops = count > 0 && random() % 3 == 0;
      drops ? uses.drop(id(blocks), id(users)) : uses.add(id(blocks), id(users));
      drops ? --count : ++count;
      for (std::uint32_t i = 0; i < devices * devices; ++i)
        ASSERT_EQ(uses.count(id(i / devices), id(i % devices)), expected[i]);
    }
  }
}

TEST(PendingUsesTest, TheListGivesItsOldestAndKeepsTheOrderOfTheRest) {
  std::mt19937 random(3);
  std::deque<UseNode> nodes;
  PendingUses uses;
  std::list<UseNode*> expected;
  for (unsigned step = 0; step < 3000; ++step) {
    if (random() % 4 != 0) {
      uses.add_unrecorded(&nodes.emplace_back());
      expected.push_back(&nodes.back());
    } else {
      const std::uint64_t n = random() % 4 == 0 ? kEverything : random() % 7;
      const std::size_t count = std::min<std::uint64_t>(n, expected.size());
      const UseNode* taken = uses.take_unrecorded(n);
      for (std::size_t i = 0; i < count; ++i, taken = taken->next) {
        ASSERT_EQ(taken, expected.front());
        expected.pop_front();
      }
      ASSERT_EQ(taken, nullptr);
    }
    ASSERT_EQ(uses.unrecorded_count(), expected.size());
    ASSERT_EQ(uses.work_left(), expected.size());
    ASSERT_EQ(uses.has_unrecorded(), !expected.empty());
    ASSERT_EQ(uses.is_empty(), expected.empty());
    const UseNode* at = uses.unrecorded();
    for (const UseNode* each : expected) {
      ASSERT_EQ(at, each);
      at = at->next;
    }
    ASSERT_EQ(at, nullptr);
  }
}

TEST(PendingUsesTest, HitsPollAtOnceThenEverMoreRarelyAndOnlyWhileSomethingIsQueued) {
  PendingUses uses;
  UseNode node;
  node.user = reinterpret_cast<StreamHeap*>(4096);
  for (int i = 0; i < 300; ++i) EXPECT_FALSE(uses.is_poll_due());
  uses.add_queued(&node);
  for (int round = 0; round < 2; ++round) {
    for (const unsigned delay : {1u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u, 256u}) {
      unsigned hits = 1;
      while (!uses.is_poll_due()) ++hits;
      EXPECT_EQ(hits, delay);
      uses.note_poll(false);
    }
    // Hits without a queue do not count.
    UseNode* taken[2];
    ASSERT_EQ(uses.queues().take(taken, 2), 1u);
    for (int i = 0; i < 300; ++i) EXPECT_FALSE(uses.is_poll_due());
    uses.queues().put(taken[0]);
    EXPECT_EQ(CachePeer::poll_due_in(uses), 256u);
    EXPECT_EQ(CachePeer::poll_delay(uses), 256u);
    uses.note_poll(true);
    EXPECT_TRUE(uses.is_poll_due());
    EXPECT_TRUE(uses.is_poll_due());
    uses.note_poll(true);
  }
  UseNode* taken[2];
  EXPECT_EQ(uses.queues().take(taken, 2), 1u);
}

TEST(PendingUsesTest, TheHitBehindAUseThatJoinsPollsAndOnlyThatOne) {
  PendingUses uses;
  UseNode nodes[8];
  for (UseNode& node : nodes) node.user = reinterpret_cast<StreamHeap*>(4096);
  uses.add_queued(&nodes[0]);
  for (unsigned hit = 0; hit < 40; ++hit) {
    if (uses.is_poll_due()) uses.note_poll(false);
  }
  for (unsigned i = 1; i < 8; ++i) {
    const std::uint64_t due_in = CachePeer::poll_due_in(uses);
    const std::uint64_t delay = CachePeer::poll_delay(uses);
    ASSERT_GE(due_in, 2u);
    uses.add_queued(&nodes[i]);
    EXPECT_TRUE(uses.is_poll_due());
    uses.note_poll(false);
    EXPECT_EQ(CachePeer::poll_due_in(uses), due_in - 1);
    EXPECT_EQ(CachePeer::poll_delay(uses), delay);
  }
  EXPECT_FALSE(uses.is_poll_due());
  UseNode* taken[2];
  EXPECT_EQ(uses.queues().take(taken, 2), 1u);
}

TEST(PendingUsesTest, PollsOfAMissDoNotLengthenTheDelayOfHits) {
  PendingUses uses;
  UseNode node;
  node.user = reinterpret_cast<StreamHeap*>(4096);
  uses.add_queued(&node);
  ASSERT_TRUE(uses.is_poll_due());
  for (unsigned poll = 0; poll < 10; ++poll) uses.note_poll(false);
  EXPECT_EQ(CachePeer::poll_due_in(uses), 1u);
  EXPECT_EQ(CachePeer::poll_delay(uses), 2u);
  UseNode* taken[2];
  EXPECT_EQ(uses.queues().take(taken, 2), 1u);
}

class RetryTest : public ::testing::Test {
 protected:
  /// So many blocks of `own_` wait for the stream, whose driver refuses all records.
  void make_unrecorded(unsigned n, const Stream& user) {
    parts_.heap(user);
    std::vector<Address> blocks;
    for (unsigned i = 0; i < n; ++i) blocks.push_back(parts_.allocate(4_KiB, own_));
    ScriptedDevice& device = parts_.device(static_cast<std::size_t>(user.device.value()));
    device.on_record = [](StreamHandle) { return Status{Code::kDriverError, "planted"}; };
    for (const Address block : blocks) parts_.free(block, user);
    device.on_record = {};
  }
  std::uint64_t unrecorded() { return CachePeer::uses(heap_).unrecorded_count(); }
  std::uint64_t records(std::size_t device = 0) {
    return parts_.calls(CallKind::kEventRecord, device);
  }
  std::uint64_t counted(std::int32_t blocks, std::int32_t users) {
    return parts_.shared().unrecorded.count(DeviceId{blocks}, DeviceId{users});
  }

  ScriptedParts parts_{3};
  Stream own_ = parts_.stream();
  StreamHeap& heap_ = parts_.heap(own_);
};

TEST_F(RetryTest, ARetryLooksAtAsManyAsItIsToldAndCountsByDevice) {
  make_unrecorded(10, parts_.stream());
  make_unrecorded(40, parts_.stream(2));
  EXPECT_EQ(unrecorded(), 50u);
  EXPECT_EQ(counted(0, 0), 10u);
  EXPECT_EQ(counted(0, 2), 40u);
  EXPECT_EQ(counted(2, 0), 0u);
  parts_.expect_valid();
  const std::uint64_t before = records();
  UseTracker::retry_unrecorded(heap_, 7);
  EXPECT_EQ(records(), before + 7);
  EXPECT_EQ(unrecorded(), 43u);
  EXPECT_EQ(counted(0, 0), 3u);
  EXPECT_EQ(counted(0, 2), 40u);
  EXPECT_FALSE(CachePeer::uses(heap_).is_in_hand());
  parts_.expect_valid();
  UseTracker::retry_unrecorded(heap_, kEverything);
  EXPECT_EQ(records(), before + 10);
  EXPECT_EQ(records(2), 80u);
  EXPECT_EQ(unrecorded(), 0u);
  EXPECT_EQ(counted(0, 0) + counted(0, 2), 0u);
  EXPECT_EQ(CachePeer::uses(heap_).queues().count(), 2u);
  EXPECT_FALSE(CachePeer::uses(heap_).is_in_hand());
  parts_.expect_valid();
}

TEST_F(RetryTest, AStreamThatIsNotNamedHereIsAskedOnceAndOneWhoseDriverFailsEachTime) {
  const Stream user = parts_.stream();
  make_unrecorded(5, user);
  unsigned named = 0;
  parts_.device().on_identify = [&named](StreamHandle) {
    ++named;
    return Result<Stream>(Status{Code::kNotReady, "planted"});
  };
  const std::uint64_t before = records();
  UseTracker::retry_unrecorded(heap_, 5);
  EXPECT_EQ(named, 1u);
  EXPECT_EQ(records(), before);
  parts_.device().on_identify = {};
  parts_.device().on_record = [](StreamHandle) { return Status{Code::kDriverError, "planted"}; };
  UseTracker::retry_unrecorded(heap_, 5);
  EXPECT_EQ(records(), before + 5);
  EXPECT_EQ(unrecorded(), 5u);
  parts_.expect_valid();
}

TEST_F(RetryTest, ADeferredUseKeepsTheNumberOfItsFirstTryAndASynchronisationAfterItEndsIt) {
  make_unrecorded(2, parts_.stream());
  const UseNode* const first = CachePeer::uses(heap_).unrecorded();
  const std::uint64_t sequence = first->sequence;
  EXPECT_NE(sequence, 0u);
  parts_.device().on_record = [](StreamHandle) { return Status{Code::kDriverError, "planted"}; };
  UseTracker::retry_unrecorded(heap_, 2);
  ASSERT_EQ(CachePeer::uses(heap_).unrecorded(), first);
  EXPECT_EQ(first->sequence, sequence);
  ASSERT_TRUE(parts_.uses().synchronizer().run(1000).is_ok());
  const std::uint64_t before = records();
  UseTracker::retry_unrecorded(heap_, 2);
  EXPECT_EQ(records(), before);
  EXPECT_EQ(unrecorded(), 0u);
  EXPECT_EQ(CachePeer::uses(heap_).nodes().taken_count(), 0u) << "the blocks are free";
  EXPECT_EQ(counted(0, 0), 0u);
  parts_.expect_valid();
}

TEST_F(RetryTest, TheDeviceOfTheOldestUseIsAskedIfEnoughWaitForItAndItHasNotAnswered) {
  make_unrecorded(3, parts_.stream(1));
  make_unrecorded(5, parts_.stream());
  const auto asked = [this](std::uint64_t at_least) {
    const std::uint64_t before[] = {parts_.calls(CallKind::kSynchronize, 0),
                                    parts_.calls(CallKind::kSynchronize, 1)};
    UseTracker::ask_for_unrecorded(heap_, at_least);
    EXPECT_EQ(parts_.calls(CallKind::kSynchronize, 0), before[0]);
    return parts_.calls(CallKind::kSynchronize, 1) - before[1];
  };
  EXPECT_EQ(asked(4), 0u);
  parts_.shared().captures = 1;
  EXPECT_EQ(asked(3), 0u);
  parts_.shared().captures = 0;
  EXPECT_EQ(asked(3), 1u);
  EXPECT_EQ(asked(3), 0u) << "it has answered already";
  UseTracker::retry_unrecorded(heap_, 3);
  EXPECT_EQ(counted(0, 1), 0u);
  EXPECT_EQ(counted(0, 0), 5u);
  parts_.expect_valid();
}

TEST_F(RetryTest, AnEventOfAnotherDeviceInTheNodeIsPutAsideForOneOfTheStreams) {
  // The node keeps the event of device 1, because that device's pool is full.
  EventPool& full = parts_.uses(1).events();
  std::vector<EventSlot> slots(512);
  for (EventSlot& slot : slots) ASSERT_TRUE(full.fill(slot).is_ok());
  const Address first = parts_.allocate(4_KiB, own_);
  parts_.free(first, parts_.stream(1));
  for (EventSlot& slot : slots) full.give(slot);
  ASSERT_EQ(CachePeer::pooled_events(full), 512u);
  ASSERT_TRUE(parts_.gpu().drain_all().is_ok());
  {
    const Guard guard(heap_.lock);
    ASSERT_TRUE(parts_.uses().poll(heap_, 1).is_ok());
  }
  const UseNode* const node = CachePeer::spare(CachePeer::uses(heap_).nodes());
  ASSERT_EQ(node->slot.pool, &full);
  parts_.shared().event_waiters = 1;
  const Address second = parts_.allocate(4_KiB, own_);
  parts_.free(second, parts_.stream(2));
  EXPECT_EQ(node->slot.pool, &parts_.uses(2).events());
  EXPECT_EQ(node->aside.pool, &full);
  EXPECT_EQ(unrecorded(), 0u);
  parts_.shared().event_waiters = 0;
  parts_.expect_valid();
}

}  // namespace
}  // namespace ashlar::cache
