// Another stream's idle memory: a whole segment changes heaps (adopted), part of one is lent.
//
// A memory pool in use gives nothing to a heap outside it (C8), except one that overflows: in place of an
// out-of-memory it lends a free block. A memory pool's heap takes whole idle segments of dead streams, of its own pool
// or of none; such a segment holds no block of any other stream. In place of an out-of-memory it also borrows parts of
// a dead stream's heap of its own pool; not before, because a pool with memory on loan has no checkpoints
// (memory_pools.h).
//
// C6: a block passes to another stream only when its stamp is complete, or (reuse:ordered) behind a
// wait of the asking stream on an event that covers it.
// Thread safety: by the role `reclaiming`; takes one heap's lock at a time.
#pragma once

#include <atomic>

#include <ashlar/cache/epochs.h>
#include <ashlar/cache/segment_supply.h>

namespace ashlar::inline v0::cache {

/// Whose memory a stream may take.
enum class Reach : std::uint8_t {
  kAll,   ///< with Reuse::kOwn likewise only dead streams'
  kDead,  ///< that of dead streams only
};

class StreamReuse {
 public:
  StreamReuse(Driver& driver, const Config& config, UseTracker& uses, Epochs& epochs,
              SegmentSupply& supply) noexcept
      : driver_(driver), config_(config), uses_(uses), epochs_(epochs), supply_(supply) {}

  /// Serves the request from the memory of another heap of the list; the null address if none has
  /// any in reach. Asks at most `refreshes_max` heaps for the completion of their work, other ones
  /// at the next call. With Reuse::kOwn only a dead stream's memory is in reach. For a memory pool's
  /// heap it may be called while a capture is announced, and asks the device nothing then.
  /// In each heap it looks at the kLooksPerHold best fits, so that a miss costs little; with
  /// `refreshes_max` 0, in a reclaim, at all of them. So a reclaim finds a block whose work is
  /// complete behind more smaller ones whose work is not.
  Address steal(HeapList& heaps, StreamHeap& to, const Request& request, Reach reach,
                unsigned refreshes_max) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(to.lock);

  /// Serves the request, of a heap outside of memory pools, with a free block of a memory pool that
  /// overflows; the null address if none has one whose work is known complete. The block stays the pool's.
  Address borrow_overflow(HeapList& heaps, StreamHeap& to, const Request& request) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(to.lock);
  /// With Reuse::kOwn, or for a memory pool's heap: asks the device whether the streams whose heaps may
  /// serve the request, of the pool or of none, still exist. The memory of one destroyed without an
  /// announcement is in reach then (C27). Otherwise nobody would notice, because no event is recorded on
  /// a stream without work. Else no effect: such memory is in reach anyway.
  void notice_destroyed(HeapList& heaps, StreamHeap& to, const Request& request) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(to.lock);

  std::uint64_t steals() const noexcept { return steals_.load(std::memory_order_relaxed); }
  void reset_steals() noexcept { steals_.store(0, std::memory_order_relaxed); }

 private:
  Address find(HeapList& heaps, StreamHeap& to, const Request& request, Reach reach,
               unsigned refreshes_max) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(to.lock);
  /// Asks heaps that may have a fit, and takes it where the answer makes it free.
  Address ask_and_steal(HeapList& heaps, StreamHeap& to, const Request& request, Reach reach,
                        unsigned refreshes_max) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(to.lock);
  /// May memory of `from` go to another stream?
  bool is_in_reach(const StreamHeap& from, const StreamHeap& to, Reach reach) const noexcept {
    if (&from == &to) return false;
    if (to.is_reserved()) return !from.life.is_alive() && is_in_reach_of_pool(from, to);
    const bool is_any = reach == Reach::kAll && config_.reuse != Reuse::kOwn;
    return !from.is_reserved() && (is_any || !from.life.is_alive());  // C8
  }
  static bool is_same_pool(const StreamHeap& from, const StreamHeap& to) noexcept {
    return from.is_reserved() && from.membership.id == to.membership.id;
  }
  /// Of a dead stream's heap: the same pool's, or nobody's. A pool with a growth device of its own has
  /// memory of that device alone.
  static bool is_in_reach_of_pool(const StreamHeap& from, const StreamHeap& to) noexcept {
    if (from.is_reserved()) return is_same_pool(from, to);  // C8
    return to.membership.options.growth == nullptr;
  }
  void poll_lender(StreamHeap& from) noexcept ASHLAR_EXCLUDES(from.lock);
  /// Has the heap a free block that fits, complete or not, or blocks that wait for uses?
  static bool may_have_fit(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  static bool has_fit(StreamHeap& heap, const Request& request) noexcept ASHLAR_EXCLUDES(heap.lock);
  /// The best fit of the heap that is accepted, of the looks_max_ best ones, or kNoBlock. Lets go of
  /// the lock between slices and takes it again.
  template <class Accepts>
  block::BlockIndex best_accepted_fit(StreamHeap& from, const Request& request,
                                      Accepts&& accepts) const noexcept
      ASHLAR_REQUIRES(reclaiming, from.lock);
  /// best_accepted_fit() whose stamp is at most `covers`.
  block::BlockIndex complete_fit(StreamHeap& from, const Request& request,
                                 std::uint64_t covers) const noexcept
      ASHLAR_REQUIRES(reclaiming, from.lock);
  /// best_accepted_fit() that is a whole segment of `segment_max` bytes at most and complete.
  block::BlockIndex whole_fit(StreamHeap& from, const Request& request,
                              Bytes segment_max) const noexcept
      ASHLAR_REQUIRES(reclaiming, from.lock);
  /// What a memory pool may take of a dead stream's heap: a whole segment that is complete; in a reclaim also
  /// part of one of the same pool.
  block::BlockIndex fit_for_pool(StreamHeap& from, const StreamHeap& to,
                                 const Request& request) const noexcept
      ASHLAR_REQUIRES(reclaiming, from.lock);
  Address steal_from(StreamHeap& from, StreamHeap& to, const Request& request) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(from.lock, to.lock);
  Address steal_ordered(StreamHeap& from, StreamHeap& to, const Request& request) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(from.lock, to.lock);
  /// A block of `from` lent to the stream of `borrower`, which is that stream's own heap: it stays in its
  /// segment, and its free waits for the event of the borrower, as for any other stream's use. The null address
  /// if the host has no memory (noted), or the borrower is dead and forgotten.
  static Address lend(StreamHeap& from, StreamHeap& borrower, const Request& request,
                      block::BlockIndex block) noexcept ASHLAR_REQUIRES(from.lock);
  /// A whole idle segment changes heaps. The lock of `from` is let go and taken again.
  Address adopt(StreamHeap& from, StreamHeap& to, const Request& request,
                block::BlockIndex block) noexcept ASHLAR_REQUIRES(reclaiming, from.lock);

  Driver& driver_;
  const Config& config_;
  UseTracker& uses_;
  Epochs& epochs_;
  SegmentSupply& supply_;
  StreamHeap* asked_ ASHLAR_GUARDED_BY(reclaiming) = nullptr;  ///< the heap that was asked last
  /// the most free blocks of one heap that the steal under way looks at
  unsigned looks_max_ ASHLAR_GUARDED_BY(reclaiming) = kLooksPerHold;
  std::atomic<std::uint64_t> steals_{0};
};

}  // namespace ashlar::inline v0::cache
