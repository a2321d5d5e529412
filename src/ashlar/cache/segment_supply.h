// Segments from the driver, and back to it.
//
// Thread safety: any thread; a segment that is on its way is in transfer in its pool, where nobody
// finds it. D4: a segment goes back only when its last use is known complete. C18: each device call
// is made with no heap lock held.
//
// Invariants:
//   (1) the page map leads to every segment of a pool, except while give_back() or move() handles
//       it.
#pragma once

#include <atomic>

#include <ashlar/cache/heap_list.h>
#include <ashlar/cache/segment_ledger.h>
#include <ashlar/cache/shared_state.h>

namespace ashlar::inline v0::cache {

class SegmentSupply {
 public:
  SegmentSupply(Driver& driver, SharedState& shared, SegmentLedger& ledger) noexcept
      : driver_(driver), shared_(shared), ledger_(ledger) {}

  /// Serves the request from a new segment. kOutOfMemory if the limit or the driver refuses;
  /// kHostOutOfMemory if the host has no memory for the records, kUnsupported if the segment lies
  /// beyond the page map's 57 bits; in both cases it is back with the driver. The driver's error
  /// otherwise. In a capture it runs under the relaxed mode (C9).
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// Waits until no growth that began earlier is still on its way (C9).
  void wait_for_growths() const noexcept;

  /// A whole idle segment, lifted out of the pool of `from`, moves to the heap `to` and serves the
  /// request there. The null address, and nothing has changed, if the host has no memory (noted).
  Address move(DeviceSegment* segment, StreamHeap& from, StreamHeap& to,
               const Request& request) noexcept ASHLAR_EXCLUDES(from.lock, to.lock);

  /// Gives back idle, complete segments of at least `at_least` bytes each until `need` bytes are
  /// back, for the heap that asks; returns how many are (row DEV-13). In this order:
  ///   the smallest one that is enough by itself, of that heap, else of any other;
  ///   the largest first until they are enough, of that heap, then of one other after the other.
  /// Of equally large ones that with the lowest ordinal. Cost, beside the driver's calls: for the
  /// smallest, the free blocks of its size and the smaller ones that would be enough but may not go
  /// back; for the largest, a walk over a heap's segments for every 32 that go back.
  Bytes release_idle(HeapList& heaps, StreamHeap& asking, Bytes need, Bytes at_least) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(asking.lock);
  /// Gives back every idle, complete segment; returns the bytes that are back. `*refused`, if not
  /// null, is the first error of the device, which then keeps that segment with us.
  Bytes release_all(HeapList& heaps, Status* refused = nullptr) noexcept
      ASHLAR_REQUIRES(reclaiming);

  /// nullptr, or the invariant that the heap's segments break. Quiescent.
  const char* validate(const StreamHeap& heap) const noexcept ASHLAR_REQUIRES(heap.lock);

 private:
  /// Enters the segment into the heap's pool and serves the request from it. The null address, and
  /// the pool is as before, if the host has no memory (noted).
  Address enter(StreamHeap& heap, const Request& request, DeviceSegment* segment) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// Lifts the smallest idle, complete segment of at least `size` bytes of the heap; nullptr if it
  /// has none.
  static DeviceSegment* lift_smallest(StreamHeap& heap, Bytes size) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// The same of the heap, other than `asking`, that has the smallest.
  static DeviceSegment* lift_smallest_of_others(HeapList& heaps, const StreamHeap& asking,
                                                Bytes size) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Lifts the heap's largest idle, complete segments of at least `at_least` bytes, a few at a
  /// time, until they are `need` bytes: a list by DeviceSegment::next, the largest first.
  static DeviceSegment* lift_largest(StreamHeap& heap, Bytes need, Bytes at_least) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Lifts every idle, complete segment out of the heap's pools: a list by DeviceSegment::next.
  static DeviceSegment* lift_all(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(heap.lock);
  /// Gives back the largest first until `need` bytes are back; returns how many are.
  Bytes release_largest(StreamHeap& heap, Bytes need, Bytes at_least) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Gives back a list of lifted segments; returns the bytes that are back.
  /// `*refused`, if not null, is the first error of the driver.
  Bytes give_back_all(DeviceSegment* list, Status* refused = nullptr) noexcept;
  /// If the driver refuses, its error: the segment is idle in its pool again.
  Status give_back(DeviceSegment* segment) noexcept;

  Driver& driver_;
  SharedState& shared_;
  SegmentLedger& ledger_;
  std::atomic<unsigned> growing_{0};  ///< growths that may be under way
};

/// The record of a segment in a pool.
inline DeviceSegment* record_of(const block::SegmentView& segment) noexcept {
  return reinterpret_cast<DeviceSegment*>(static_cast<std::uintptr_t>(segment.user));
}

}  // namespace ashlar::inline v0::cache
