// Segments from the driver, and back to it.
//
// Thread safety: any thread; a segment that is on its way is in transfer in its pool, where nobody
// finds it. D4: a segment goes back only when its last use is known complete. C18: each device call
// is made with no heap lock held.
//
// Invariants:
//   (1) a segment is in the page map exactly while the device considers it ours and no
//       give-back holds it.
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

  /// Serves the request from a new segment. kOutOfMemory if the limit or the driver refuses, or the
  /// host has no memory for the records; the driver's error otherwise. In a capture it runs under
  /// the relaxed mode (C9).
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// Waits until no growth that began earlier is still on its way (C9).
  void wait_for_growths() const noexcept;

  /// A whole idle segment, lifted out of the pool of `from`, moves to the heap `to` and serves the
  /// request there. The null address, and nothing has changed, if the host has no memory.
  Address move(DeviceSegment* segment, StreamHeap& from, StreamHeap& to,
               const Request& request) noexcept ASHLAR_EXCLUDES(from.lock, to.lock);

  /// Gives back idle, complete segments of at least `at_least` bytes each until `need` bytes are
  /// back; returns how many are. One segment that is enough by itself is preferred. `*refused`, if
  /// not null, is the first error of the device, which then keeps that segment with us.
  Bytes release_idle(HeapList& heaps, Bytes need, Bytes at_least,
                     Status* refused = nullptr) noexcept ASHLAR_REQUIRES(reclaiming);

  /// nullptr, or the invariant that the heap's segments break. Quiescent.
  const char* validate(const StreamHeap& heap) const noexcept ASHLAR_REQUIRES(heap.lock);

 private:
  /// Enters the segment into the heap's pool and serves the request from it. The null address, and
  /// the pool is as before, if the host has no memory.
  Address enter(StreamHeap& heap, const Request& request, DeviceSegment* segment) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  enum class Match : std::uint8_t { kEnoughByItself, kAny };
  /// Lifts idle, complete segments out of the heap's pools: a list by DeviceSegment::next.
  static DeviceSegment* lift_idle(StreamHeap& heap, Bytes need, Bytes at_least,
                                  Match match) noexcept ASHLAR_EXCLUDES(heap.lock);
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
