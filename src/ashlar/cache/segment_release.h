// Idle segments back to the driver: which, and in which order (rows DEV-13, DEV-19). Then pages of paged
// segments (page_release.h).
//
// Thread safety: by the role `reclaiming`; takes one heap's lock at a time. D4: a segment goes back
// only when its last use is known complete.
// C30: a driver may take long for one segment, so the reclaim lock is let go before the next one if
// a thread waits for it. One segment is in transfer at a time: when the lock is let go, none is.
// C9: if a capture is announced meanwhile, the rest stays.
//
// Invariants:
//   (1) one call asks the driver at most once about a segment, though other threads' calls run in
//       between (DeviceSegment::Idle::asked_in);
//   (2) a walk that let go of the reclaim lock goes on only if no segment left its pool meanwhile,
//       else it begins again.
#pragma once

#include <cstdint>
#include <span>

#include <ashlar/cache/give_back_list.h>
#include <ashlar/cache/idle_segments.h>
#include <ashlar/cache/page_release.h>
#include <ashlar/cache/reclaim_lock.h>

namespace ashlar::inline v0::cache {

class SegmentRelease {
 public:
  SegmentRelease(HeapList& heaps, SharedState& shared, SegmentSupply& supply,
                 ReclaimLock& lock) noexcept
      : heaps_(heaps),
        shared_(shared),
        supply_(supply),
        lock_(lock),
        pages_(heaps, shared, supply.pages(), lock) {}

  /// Gives back idle, complete segments of at least `at_least` bytes each until `need` bytes are
  /// back, for the heap that asks; returns how many are (row DEV-13). In this order:
  ///   the smallest one that is enough by itself, of that heap, else of any other;
  ///   the largest first until they are enough, of that heap, then of one other after the other.
  /// Of equally large ones that with the lowest ordinal. Cost, beside the driver's calls: for the
  /// smallest, the free blocks of its size and the smaller ones that would be enough but may not go
  /// back; for the largest, a walk over a heap's segments for every 32 that go back.
  /// If they are not enough, pages, whatever `at_least` is: into the stock if the heap that asks grows by pages,
  /// unless `move` is never; else to the driver.
  Bytes release_enough(StreamHeap& asking, Bytes need, Bytes at_least) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(asking.lock) {
    return release_enough_for(&asking, need, at_least, nullptr);
  }
  /// The same for no heap, of whatever size: the smallest one that is enough, else the largest first. Pages
  /// go to the driver. `*refused` is the first error of the device, which then keeps that segment with us.
  Bytes release_enough(Bytes need, Status* refused) noexcept ASHLAR_REQUIRES(reclaiming) {
    return release_enough_for(nullptr, need, Bytes{}, refused);
  }
  /// Gives back idle, complete segments of the large pools until `need` bytes are back (row DEV-11): those
  /// first that collections have seen idle longest, and of equals the oldest. Counts as a collection.
  /// Then pages, which have no age. Cost, beside the driver's calls: a walk over all segments for every
  /// 32 that go back.
  Bytes release_oldest(Bytes need) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Gives back every idle, complete segment and page; returns the bytes that are back. `*refused`, if not
  /// null, is the first error of the device, which then keeps that segment with us.
  Bytes release_all(Status* refused = nullptr) noexcept ASHLAR_REQUIRES(reclaiming);

  /// Gives back every idle, complete segment of those heaps, by the free blocks alone: for segments of one block. Cost,
  /// beside the driver's calls: for each, the smaller free blocks of its heap that may not go back.
  void release_finished(const GiveBackList& heaps) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Gives back every idle segment of those heaps that may go back behind its stream's work, done or not
  /// (AllocatorBackend::kCudaMallocAsync).
  void release_behind_work(const GiveBackList& heaps) noexcept ASHLAR_REQUIRES(reclaiming);
  /// SegmentSupply::grow(). Where the device has no addresses left, gives back the ranges without pages and asks
  /// again; then all idle memory, which leaves more ranges without pages, those ranges too, and asks once more. While
  /// a capture is announced no range goes back. Cost: up to three growths, a walk over all paged segments for each of
  /// the two releases, and that of release_all().
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Gives back the addresses of paged segments without pages. `*refused` as above.
  void release_addresses(Status* refused) noexcept ASHLAR_REQUIRES(reclaiming) {
    pages_.release_addresses(refused);
  }
  /// Gives back pages that were taken away and not mapped again (page_stock.h).
  void drop_stock() noexcept ASHLAR_REQUIRES(reclaiming) {
    Status refused;
    pages_.drop_stock(Bytes::max(), &refused);
  }

 private:
  /// One call's way over the segments.
  struct Pass {
    std::uint64_t number = 0;
    Bytes back;                  ///< given back so far
    Status refused;              ///< the driver's first error
    std::uint64_t removals = 0;  ///< SegmentSupply::removals when the walk began
    bool has_given = false;
    bool is_over = false;  ///< a capture was announced
  };

  /// Gives back, in order, the segments that `find()` returns, and those of the next call, until `need`
  /// bytes are back in the pass.
  template <class Find>
  void release_first(Bytes need, Pass& pass, Find&& find) noexcept ASHLAR_REQUIRES(reclaiming);
  FirstIdle find_oldest(std::uint64_t pass) noexcept ASHLAR_REQUIRES(reclaiming);
  Bytes release_enough_for(StreamHeap* asking, Bytes need, Bytes at_least, Status* refused) noexcept
      ASHLAR_REQUIRES(reclaiming);
  /// PageRelease::release() of what the pass lacks.
  Bytes release_pages(StreamHeap* asking, Bytes need, Pass& pass) noexcept
      ASHLAR_REQUIRES(reclaiming);
  Pass begin() noexcept ASHLAR_REQUIRES(reclaiming);
  /// Gives them back, as long as they may. False if there is no more to give back in the pass.
  bool give_back_batch(StreamHeap& heap, std::span<DeviceSegment* const> batch, Pass& pass,
                       Behind behind) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Before a segment is given back: lets waiting threads have the lock, if one was given back
  /// before. False if the walk has to begin again, or the pass is over.
  bool let_others_in(Pass& pass) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Gives the segment back if it is still idle and the driver was not asked in this pass or a later
  /// one. False otherwise.
  bool give_back(StreamHeap& heap, DeviceSegment* segment, Pass& pass,
                 Behind behind = Behind::kNone) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(heap.lock);
  /// Gives back the smallest idle, complete segment of the heap of at least `size` bytes, if it has
  /// one.
  void release_smallest(StreamHeap& heap, Bytes size, Pass& pass) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// The heap, other than `asking`, whose smallest such segment is the smallest; nullptr if none has
  /// one.
  StreamHeap* find_smallest_of_others(const StreamHeap* asking, Bytes size,
                                      const Pass& pass) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Gives back the heap's largest first until `need` bytes are back in this pass.
  void release_largest(StreamHeap& heap, Bytes need, Bytes at_least, Pass& pass) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  void release_all_of(StreamHeap& heap, Pass& pass) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(heap.lock);

  HeapList& heaps_;
  SharedState& shared_;
  SegmentSupply& supply_;
  ReclaimLock& lock_;
  PageRelease pages_ ASHLAR_UNGUARDED;  ///< its members need the role `reclaiming`
  std::uint64_t collections_ ASHLAR_GUARDED_BY(reclaiming) = 0;  ///< calls of release_oldest()
  std::uint64_t passes_ ASHLAR_GUARDED_BY(reclaiming) = 0;
  Status last_refusal_ ASHLAR_GUARDED_BY(reclaiming);  ///< of the driver, in any pass
};

}  // namespace ashlar::inline v0::cache
