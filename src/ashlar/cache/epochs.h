// Epochs: how far the work of a device's streams is known complete.
//
// A plain free records no event, it stamps its block with its heap's epoch. When somebody needs to
// know, the epoch is advanced first and an event recorded after: every block stamped before was
// freed, and its work enqueued, before the event, so the event's completion completes them all. A
// dead stream has no marks: its last event covers all of its work (UseTracker::ask_last_event).
// Thread safety: by the role `reclaiming`; a heap's lock is taken where its clock is read. C18:
// each device call is made with no heap lock held.
#pragma once

#include <ashlar/cache/give_back_list.h>
#include <ashlar/cache/heap_list.h>
#include <ashlar/cache/reclaim_lock.h>
#include <ashlar/cache/use_tracker.h>

namespace ashlar::inline v0::cache {

class Epochs {
 public:
  Epochs(Driver& driver, UseTracker& uses) noexcept : driver_(driver), uses_(uses) {}

  /// Makes sure that an event covers everything that the heap has released so far. If none can be
  /// recorded now, notes what a synchronisation has to cover.
  void mark(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Asks the heap's marks, oldest first, or a dead stream's last event, and moves its clock.
  void query(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// mark(), then query().
  void refresh(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock) {
    mark(heap);
    query(heap);
  }
  /// The stream is about to be destroyed: the heap's last event, recorded now, covers everything.
  /// Without one (the device refuses) the heap's stream is lost; another heap of the stream, in a memory
  /// pool, may have one. REQUIRES: the heap's life is kAlive.
  void retire(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Does only a synchronisation of the device answer for some work of the heap's own stream?
  static bool has_unmarked(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming, heap.lock);
  /// Learns of all that is finished on the device: every mark, every use that is pending now (what
  /// other threads queue meanwhile may be left, so that it ends while they go on). Now and then lets
  /// threads in that wait for the reclaim lock (C30); ends early if a capture is announced.
  /// `Heaps` is HeapList or GiveBackList.
  template <class Heaps>
  void sweep(Heaps& heaps, ReclaimLock& lock) noexcept ASHLAR_REQUIRES(reclaiming);
  /// refresh() of every heap. As sweep() lets threads in; false if a capture is announced meanwhile.
  template <class Heaps>
  bool refresh_all(Heaps& heaps, ReclaimLock& lock) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Asks the device, without a wait, of those heaps' work that no event tells of: of lost streams and of other threads'
  /// default streams. Makes at most one call for it, and none if there is no such work.
  void ask_of_unmarked(const GiveBackList& heaps) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Looks again at the heap's uses without an event, then asks the events of the others. As sweep()
  /// lets threads in; false if a capture is announced meanwhile.
  bool ask_for_uses(StreamHeap& heap, ReclaimLock& lock) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(heap.lock);

 private:
  /// Every stamp of the heap up to `covers` is complete.
  static void complete(StreamHeap& heap, std::uint64_t covers) noexcept ASHLAR_EXCLUDES(heap.lock);

  /// Lets threads in that wait for the lock. False if a capture is announced meanwhile.
  bool let_others_in(ReclaimLock& lock) const noexcept ASHLAR_REQUIRES(reclaiming) {
    return !lock.let_others_in() || !uses_.is_capturing();
  }

  Driver& driver_;
  UseTracker& uses_;
};

}  // namespace ashlar::inline v0::cache
