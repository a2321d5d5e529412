// Driver events kept for reuse, one pool per device (row DEV-6; an event is only ever used on its
// own device, H3 and H7).
//
// Each event is in a slot, of a use node, of an epoch mark or of a stream's last event. An event
// that nobody waits for any more goes to the pool, for any other slot. If the pool is full, it
// stays in its slot, for the next use of that slot. So every event has a place, and none is
// destroyed in a hit, where a device call is too much (C17), or where a failed call could lose the
// event (C14). Thread safety: any thread; a slot is guarded by what guards its owner. Never
// allocates.
#pragma once

#include <array>
#include <atomic>

#include <ashlar/base/spin_lock.h>
#include <ashlar/cache/driver.h>

namespace ashlar::inline v0::cache {

class EventPool;

struct EventSlot {
  EventHandle event;
  EventPool* pool = nullptr;  ///< of the event's device; null: the slot is empty
};

class EventPool {
 public:
  /// `waiters` counts the threads that may wait for an event which they do not hold.
  EventPool(Driver& driver, const std::atomic<unsigned>& waiters) noexcept
      : driver_(driver), waiters_(waiters) {}

  /// Makes sure that the slot holds an event of this device: its own, a pooled one, else a new one.
  /// On failure the slot keeps its event, or is empty if that was another device's and had been given
  /// up; kBusy if it holds another device's event, for which there is no room in the pool and which
  /// somebody may be waiting for.
  Status fill(EventSlot& slot) noexcept {
    if (slot.pool == this) return Status::ok();
    if (slot.pool != nullptr) {
      slot.pool->give(slot);
      ASHLAR_REQUIRE(slot.pool == nullptr || waiters_.load(std::memory_order_acquire) == 0,
                     Code::kBusy, "the event in the slot may be waited for");
      if (const Status emptied = destroy(slot); !emptied.is_ok()) return emptied;
    }
    if (!take_pooled(slot)) {
      const Result<EventHandle> made = driver_.event_create();
      if (!made.is_ok()) return made.status();
      slot.event = made.value();
    }
    slot.pool = this;
    return Status::ok();
  }
  /// Nobody waits for the slot's event any more: moves it to the pool, if that has room.
  void give(EventSlot& slot) noexcept {
    if (slot.pool == nullptr) return;
    ASHLAR_ASSERT(slot.pool == this, "H7: an event of another device's pool");
    const Guard guard(lock_);
    if (count_ == pooled_.size()) return;
    pooled_[count_++] = slot.event;
    slot = {};
  }
  /// Destroys the event in a slot, of whatever device.
  static Status destroy(EventSlot& slot) noexcept {
    if (slot.pool == nullptr) return Status::ok();
    const Status done = slot.pool->driver_.event_destroy(slot.event);
    // A device that is gone took its events with it.
    if (!done.is_ok() && slot.pool->driver_.health().is_ok()) return done;
    slot = {};
    return Status::ok();
  }
  /// At the allocator's end: destroys what is pooled. No other thread is left, and the device is
  /// called, so the lock is not held.
  void clear() noexcept ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    while (count_ > 0) static_cast<void>(driver_.event_destroy(pooled_[--count_]));
  }

 private:
  friend struct CachePeer;
  bool take_pooled(EventSlot& slot) noexcept {
    const Guard guard(lock_);
    if (count_ == 0) return false;
    slot.event = pooled_[--count_];
    return true;
  }

  static constexpr unsigned kPooledMax = 512;
  Driver& driver_;
  const std::atomic<unsigned>& waiters_ ASHLAR_UNGUARDED;
  SpinLock lock_;
  std::array<EventHandle, kPooledMax> pooled_ ASHLAR_GUARDED_BY(lock_);
  unsigned count_ ASHLAR_GUARDED_BY(lock_) = 0;
};

}  // namespace ashlar::inline v0::cache
