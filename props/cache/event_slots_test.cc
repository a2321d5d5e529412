// Events in their slots: where an event goes when nobody waits for it any more, and where it stays
// (EventPool, UseNode).
//
// Imitates: a pool that is full; drivers that fail a creation or a destruction; devices that are
// gone; slots that hold another device's event. Does not prove: that nobody waits.
#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

using device::CallKind;
constexpr unsigned kPooledMax = 512;

class EventSlotsTest : public ::testing::Test {
 protected:
  EventPool& pool(std::size_t device = 0) { return parts_.uses(device).events(); }
  unsigned pooled(std::size_t device = 0) { return CachePeer::pooled_events(pool(device)); }
  std::uint64_t created(std::size_t device = 0) {
    return parts_.calls(CallKind::kEventCreate, device);
  }
  std::uint64_t destroyed(std::size_t device = 0) {
    return parts_.calls(CallKind::kEventDestroy, device);
  }
  std::vector<EventSlot> fill_pool(std::size_t device = 0) {
    std::vector<EventSlot> slots(kPooledMax + 3);
    for (EventSlot& slot : slots) EXPECT_TRUE(pool(device).fill(slot).is_ok());
    for (EventSlot& slot : slots) pool(device).give(slot);
    return slots;
  }

  ScriptedParts parts_{2};
};

TEST_F(EventSlotsTest, ThePoolKeeps512AndTheRestStaysInItsSlots) {
  std::vector<EventSlot> slots = fill_pool();
  EXPECT_EQ(created(), kPooledMax + 3);
  EXPECT_EQ(pooled(), kPooledMax);
  for (std::size_t i = 0; i < slots.size(); ++i)
    EXPECT_EQ(slots[i].pool, i < kPooledMax ? nullptr : &pool());
  const EventHandle own = slots.back().event;
  EXPECT_TRUE(pool().fill(slots.back()).is_ok());
  EXPECT_EQ(slots.back().event, own);
  EXPECT_EQ(pooled(), kPooledMax);
  EventSlot empty;
  EXPECT_TRUE(pool().fill(empty).is_ok());
  EXPECT_EQ(empty.pool, &pool());
  EXPECT_EQ(pooled(), kPooledMax - 1);
  EXPECT_EQ(created(), kPooledMax + 3);
  const EventHandle newest = empty.event;
  pool().give(empty);
  EXPECT_EQ(empty.pool, nullptr);
  EXPECT_EQ(empty.event, EventHandle{});
  pool().give(empty);  // nothing to give
  EXPECT_EQ(pooled(), kPooledMax);
  EXPECT_TRUE(pool().fill(empty).is_ok());
  EXPECT_EQ(empty.event, newest) << "the event that was given last";
  EXPECT_EQ(destroyed(), 0u);
  for (EventSlot* slot : {&empty, &slots[512], &slots[513], &slots[514]})
    EXPECT_TRUE(EventPool::destroy(*slot).is_ok());
  EXPECT_EQ(destroyed(), 4u);
  pool().clear();
  EXPECT_EQ(destroyed(), kPooledMax + 3);
  EXPECT_EQ(pooled(), 0u);
}

TEST_F(EventSlotsTest, AFillThatFailsLeavesTheSlotAsItWas) {
  EventSlot slot;
  parts_.device().on_create = [] { return Status{Code::kDriverError, "planted"}; };
  EXPECT_EQ(pool().fill(slot).code(), Code::kDriverError);
  EXPECT_EQ(slot.pool, nullptr);
  parts_.device().on_create = {};
  ASSERT_TRUE(pool().fill(slot).is_ok());
  EXPECT_EQ(slot.pool, &pool());
  EXPECT_EQ(created(), 2u);
  EXPECT_TRUE(EventPool::destroy(slot).is_ok());
}

TEST_F(EventSlotsTest, AnotherDevicesEventGoesToItsPoolElseIsDestroyedIfNobodyCanWaitForIt) {
  EventSlot slot;
  ASSERT_TRUE(pool(1).fill(slot).is_ok());
  parts_.shared().event_waiters = 1;
  EXPECT_TRUE(pool(0).fill(slot).is_ok());
  EXPECT_EQ(slot.pool, &pool(0));
  EXPECT_EQ(pooled(1), 1u);
  EXPECT_EQ(destroyed(1), 0u);
  EXPECT_TRUE(EventPool::destroy(slot).is_ok());

  std::vector<EventSlot> slots = fill_pool(1);
  EventSlot& foreign = slots.back();
  ASSERT_EQ(foreign.pool, &pool(1));
  const EventHandle event = foreign.event;
  EXPECT_EQ(pool(0).fill(foreign).code(), Code::kBusy);
  EXPECT_EQ(foreign.pool, &pool(1));
  EXPECT_EQ(foreign.event, event);
  parts_.shared().event_waiters = 0;
  parts_.device(1).on_destroy = [](EventHandle) { return Status{Code::kDriverError, "planted"}; };
  EXPECT_EQ(pool(0).fill(foreign).code(), Code::kDriverError);
  EXPECT_EQ(foreign.event, event);
  EXPECT_EQ(foreign.pool, &pool(1));
  parts_.device(1).on_destroy = {};
  EXPECT_TRUE(pool(0).fill(foreign).is_ok());
  EXPECT_EQ(foreign.pool, &pool(0));
  EXPECT_EQ(pooled(1), kPooledMax);
  for (EventSlot& each : slots) EXPECT_TRUE(EventPool::destroy(each).is_ok());
}

TEST_F(EventSlotsTest, ADestructionThatFailsKeepsTheEventUnlessItsDeviceIsGone) {
  EventSlot slot;
  ASSERT_TRUE(pool().fill(slot).is_ok());
  parts_.device().on_destroy = [](EventHandle) { return Status{Code::kDriverError, "planted"}; };
  EXPECT_EQ(EventPool::destroy(slot).code(), Code::kDriverError);
  EXPECT_EQ(slot.pool, &pool());
  parts_.device().on_destroy = [](EventHandle) { return Status{Code::kDeviceLost, "planted"}; };
  EXPECT_TRUE(EventPool::destroy(slot).is_ok());
  EXPECT_EQ(slot.pool, nullptr);
  EXPECT_EQ(slot.event, EventHandle{});
  EXPECT_TRUE(EventPool::destroy(slot).is_ok()) << "an empty slot";
}

TEST_F(EventSlotsTest, ANodeDestroysBothItsEventsAndTellsTheFirstError) {
  for (const unsigned failing : {0u, 1u, 2u, 3u}) {
    UseNode node;
    ASSERT_TRUE(pool(0).fill(node.slot).is_ok());
    ASSERT_TRUE(pool(1).fill(node.aside).is_ok());
    parts_.device(0).on_destroy = [failing](EventHandle) {
      return (failing & 1) != 0 ? Status{Code::kDriverError, "planted"} : Status::ok();
    };
    parts_.device(1).on_destroy = [failing](EventHandle) {
      return (failing & 2) != 0 ? Status{Code::kBusy, "planted"} : Status::ok();
    };
    const Code expected = (failing & 1) != 0   ? Code::kDriverError
                          : (failing & 2) != 0 ? Code::kBusy
                                               : Code::kOk;
    EXPECT_EQ(node.destroy_events().code(), expected);
    EXPECT_EQ(node.slot.pool, (failing & 1) != 0 ? &pool(0) : nullptr);
    EXPECT_EQ(node.aside.pool, (failing & 2) != 0 ? &pool(1) : nullptr);
    parts_.device(0).clear();
    parts_.device(1).clear();
    EXPECT_TRUE(node.destroy_events().is_ok());
  }
}

TEST_F(EventSlotsTest, ANodePutsAForeignEventAsideOnlyForOneOfTheDeviceOrForNone) {
  EventPool* const own = &pool(0);
  EventPool* const other = &pool(1);
  ScriptedParts third;
  for (EventPool* slot : {static_cast<EventPool*>(nullptr), own, other}) {
    for (EventPool* aside :
         {static_cast<EventPool*>(nullptr), own, other, &third.uses().events()}) {
      UseNode node;
      node.slot = {EventHandle{1}, slot};
      node.aside = {EventHandle{2}, aside};
      node.prefer_event_of(*own);
      const bool swaps = slot == other && (aside == nullptr || aside == own);
      EXPECT_EQ(node.slot.pool, swaps ? aside : slot);
      EXPECT_EQ(node.aside.pool, swaps ? slot : aside);
      EXPECT_EQ(node.slot.event, EventHandle{swaps ? 2u : 1u});
      EXPECT_EQ(node.aside.event, EventHandle{swaps ? 1u : 2u});
    }
  }
}

TEST_F(EventSlotsTest, ANodeThatIsTakenIsAsItWasMadeButForItsEventsAndItsSlab) {
  NodeSlab slab;
  UseNode node;
  node.slot = {EventHandle{1}, &pool(0)};
  node.aside = {EventHandle{2}, &pool(1)};
  node.slab = &slab;
  node.user = &parts_.heap(parts_.stream());
  node.sequence = 7;
  node.sibling = node.sibling_before = node.next = &node;
  node.queue.last = node.queue.next = node.queue.prev = node.queue.child[0] = &node;
  node.block = block::BlockIndex{3};
  node.pool = PoolId::kSmall;
  node.is_borrower = node.has_event = true;
  node.reset();
  EXPECT_EQ(node.slot.event, EventHandle{1});
  EXPECT_EQ(node.slot.pool, &pool(0));
  EXPECT_EQ(node.aside.event, EventHandle{2});
  EXPECT_EQ(node.aside.pool, &pool(1));
  EXPECT_EQ(node.slab, &slab);
  EXPECT_EQ(node.user, nullptr);
  EXPECT_EQ(node.sequence, 0u);
  for (const UseNode* link : {node.sibling, node.sibling_before, node.next, node.queue.last,
                              node.queue.next, node.queue.prev, node.queue.child[0]})
    EXPECT_EQ(link, nullptr);
  EXPECT_EQ(node.block, block::kNoBlock);
  EXPECT_EQ(node.pool, PoolId::kLarge);
  EXPECT_FALSE(node.is_borrower);
  EXPECT_FALSE(node.has_event);
}

}  // namespace
}  // namespace ashlar::cache
