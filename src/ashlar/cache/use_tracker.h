// Uses by other streams: events recorded at a free, polled at an allocation (rows DEV-6, DEV-7's
// deferral). One tracker a device; it owns the device's events.
//
// C7: a block is findable only when every use is known complete. H4: its event is recorded before
// anybody can poll it. H8: queues are per stream, and those polled go behind the others, so one
// stuck event holds back its own stream alone.
// Thread safety: any thread; members say which heap's lock they need. No device call is made under
// a heap's lock (C18).
#pragma once

#include <atomic>
#include <cstdint>

#include <ashlar/cache/shared_state.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

class UseTracker {
 public:
  UseTracker(Driver& driver, const SharedState& shared) noexcept
      : driver_(driver), shared_(shared), events_(driver) {}

  // Of a heap of this device.
  /// Polls at most `budget` events, letting the lock go around the device calls. This device's
  /// sticky error, if it has ended.
  Status poll(StreamHeap& heap, unsigned budget) noexcept ASHLAR_REQUIRES(heap.lock);
  /// A live block with uses ends: its uses get their events, and it waits for them.
  static void free_pending(StreamHeap& heap, PoolId pool, block::BlockIndex block) noexcept
      ASHLAR_RELEASE(heap.lock);
  /// Tries again to record what could not be recorded earlier.
  static void retry_unrecorded(StreamHeap& heap) noexcept ASHLAR_EXCLUDES(heap.lock);
  /// Is the use, by `user`, of a block of this device over because the device of `user` is lost, so
  /// that its work touches nothing any more (D8)? If this device is lost, every call fails and
  /// nothing needs to come back.
  bool is_over(const StreamHeap& user) const noexcept;

  // Of a stream of this device.
  /// Records the slot's event on the stream's handle; any error if that may not or cannot be done
  /// now.
  Status record_on(StreamHeap& user, EventSlot& slot) noexcept;
  /// May an event be recorded, or a wait enqueued, on the stream's handle now? Asks the device.
  bool may_record(StreamHeap& stream) noexcept;
  /// The device's order of recordings. Taken before the record, so that of two that cross, the one
  /// whose event was there first mostly goes first in the queue.
  std::uint64_t next_sequence() noexcept {
    return sequence_.fetch_add(1, std::memory_order_relaxed);
  }

  EventPool& events() noexcept { return events_; }
  bool is_lost() const noexcept { return driver_.health().code() == Code::kDeviceLost; }

 private:
  enum class Recorded : std::uint8_t { kYes, kComplete, kDeferred };
  /// Records the node's event on its stream, if that is allowed now.
  static Recorded record_use(const StreamHeap& heap, UseNode& node) noexcept;
  enum class Link : std::uint8_t { kSibling, kNext };
  /// Records the events of the nodes of a list, and files each in its queue. REQUIRES: the nodes
  /// are in hand (PendingUses::begin_in_hand); they are not when this returns.
  static void settle(StreamHeap& heap, UseNode* list, Link link) noexcept
      ASHLAR_EXCLUDES(heap.lock);

  Driver& driver_;
  const SharedState& shared_;
  EventPool events_;
  alignas(64) std::atomic<std::uint64_t> sequence_{0};  // written at every recorded event
};

}  // namespace ashlar::inline v0::cache
