// Pages that free blocks do not need, away from them: which, and in which order.
//
// Thread safety: by the role `reclaiming`; takes one heap's lock at a time. D4: pages go only when the
// last use of their block is known complete.
// C8: the pages of a memory pool in use stay. C21: so do pinned ones. C9: if a capture is announced meanwhile, the rest
// stays.
// C30: the reclaim lock is let go before the next pages if a thread waits for it. The pages of one block
// are in transfer at a time: when the lock is let go, none are.
//
// The order: heap by heap, the one that asks last, because its own free blocks may be a part of the room
// that its request gets; in a heap the smallest block first, so that those which serve large requests
// last longest, and of a block the pages at its end, so that what is in use stays dense.
#pragma once

#include <ashlar/cache/page_supply.h>
#include <ashlar/cache/reclaim_lock.h>

namespace ashlar::inline v0::cache {

class PageRelease {
 public:
  PageRelease(HeapList& heaps, SharedState& shared, PageSupply& supply, ReclaimLock& lock) noexcept
      : heaps_(heaps), shared_(shared), supply_(supply), lock_(lock) {}

  /// Takes pages away until they are `need` bytes, or none is left; returns how many are. `asking`: the
  /// heap that asks, or nullptr. `*refused` becomes the device's first error; not null.
  /// Cost, beside the driver's calls: the free blocks of a page or more.
  Bytes release(StreamHeap* asking, Bytes need, PagesTo to, Status* refused) noexcept
      ASHLAR_REQUIRES(reclaiming);
  /// Gives as many pages of the stock back to the driver as are `most` bytes, unless a capture is announced; returns how
  /// many bytes. `*refused` as above.
  Bytes drop_stock(Bytes most, Status* refused) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Gives back the addresses of paged segments without any page. `*refused` as above.
  void release_addresses(Status* refused) noexcept ASHLAR_REQUIRES(reclaiming);

 private:
  /// What one call is about.
  struct Pass {
    Bytes need;
    PagesTo to = PagesTo::kDriver;
    Status* refused = nullptr;
    Bytes back;
    bool is_over = false;  ///< a capture was announced
  };

  /// Pages cut off a free block.
  struct Cut {
    block::BlockIndex pages = block::kNoBlock;
    bool leaves_pages = false;  ///< the block had more, below pinned ones
    bool has_searched = false;  ///< among pinned ones, perhaps for long (C31)
  };

  void release_from(StreamHeap& heap, PoolId id, Pass& pass) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(heap.lock);
  /// Cuts whole pages that nobody pins, `most` bytes at most, off a free block: they are in transfer, what
  /// is left is free. None if it has none, its work is not known complete, or the host has no memory.
  Cut cut_pages(StreamHeap& heap, PoolId id, block::BlockIndex from, Bytes most) const noexcept
      ASHLAR_REQUIRES(reclaiming, heap.lock);
  /// The first one of the heap. False if it has none, or the device refused.
  bool release_unmapped_segment(StreamHeap& heap, PoolId id, Status* refused) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Gives so many pages of the stock back to the driver, until a capture is announced.
  void drop(std::uint64_t pages, Pass& pass) noexcept ASHLAR_REQUIRES(reclaiming);
  void let_others_in(Pass& pass) noexcept ASHLAR_REQUIRES(reclaiming);

  HeapList& heaps_;
  SharedState& shared_;
  PageSupply& supply_;
  ReclaimLock& lock_;
};

}  // namespace ashlar::inline v0::cache
