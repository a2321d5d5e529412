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

#include <ashlar/cache/headroom.h>
#include <ashlar/cache/heap_list.h>
#include <ashlar/cache/page_supply.h>
#include <ashlar/cache/pins.h>
#include <ashlar/cache/segment_ledger.h>
#include <ashlar/cache/shared_state.h>

namespace ashlar::inline v0::cache {

/// Behind which work a segment goes back to the driver.
enum class Behind : std::uint8_t {
  kNone,       ///< all that uses it is known done (D4)
  kItsStream,  ///< what its heap's stream has; nothing else uses it (Device::stream_free)
};

class SegmentSupply {
 public:
  SegmentSupply(Driver& driver, SharedState& shared, SegmentLedger& ledger) noexcept
      : driver_(driver),
        shared_(shared),
        ledger_(ledger),
        headroom_(driver, shared.config),
        pages_(driver, shared, ledger, headroom_),
        pins_(pages_.page()) {}

  /// Serves the request from a new segment, or from new pages (page_supply.h). A heap of pages takes a segment
  /// too: as its first growth (Config::first_growth), and where the budget of pages is used up. kOutOfMemory if the
  /// limit, the headroom or the driver refuses; kHostOutOfMemory if the host has no memory for the records, or no position is left
  /// (SegmentLedger::new_record), kUnsupported if the segment lies beyond the page map's 57 bits; in
  /// these cases it is back with the driver. The driver's error otherwise. In a capture it runs under
  /// the relaxed mode (C9).
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// The most that grow() asks the driver for, but for a first growth, in place of which it can do with this.
  Bytes growth_size(const StreamHeap& heap, const Request& request) const noexcept;
  /// How much less than Config::headroom the device has free; 0 if it does not say.
  Bytes below_headroom() noexcept;
  /// An allocation found no memory: from now on no growth is a first one.
  void note_shortage() noexcept { was_short_.store(true, std::memory_order_relaxed); }
  /// Waits until no growth that began earlier is still on its way (C9).
  void wait_for_growths() noexcept;

  /// A whole idle segment, lifted out of the pool of `from`, moves to the heap `to` and serves the
  /// request there. The null address, and nothing has changed, if the host has no memory (noted).
  Address move(DeviceSegment* segment, StreamHeap& from, StreamHeap& to,
               const Request& request) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(from.lock, to.lock);

  /// Gives a whole idle segment, lifted out of its pool, back to the driver. If that refuses, its
  /// error: the segment is idle in its pool again.
  Status give_back(DeviceSegment* segment, Behind behind = Behind::kNone) noexcept
      ASHLAR_REQUIRES(reclaiming);
  /// The driver's pool of stream-ordered memory gives back what it can. No effect without one.
  void trim_driver_pool() noexcept {
    if (shared_.config.backend == AllocatorBackend::kCudaMallocAsync)
      static_cast<void>(driver_.stream_trim(Bytes{}));
  }
  /// How many segments were given back or moved so far: while it stays the same, a segment of a pool
  /// stays there.
  std::uint64_t removals() const noexcept ASHLAR_REQUIRES(reclaiming) {
    return removals_ + pages_.segment_removals();
  }

  PageSupply& pages() noexcept { return pages_; }
  const PageSupply& pages() const noexcept { return pages_; }
  /// What must not be given back.
  Pins& pins() noexcept { return pins_; }
  const Pins& pins() const noexcept { return pins_; }
  /// nullptr, or the invariant that the heap's segments break. Quiescent.
  const char* validate(const StreamHeap& heap) const noexcept ASHLAR_REQUIRES(heap.lock);

 private:
  /// grow() by a segment of the heap's own.
  Result<Address> grow_segment(StreamHeap& heap, const Request& request, Bytes size) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// grow() of a heap of pages.
  Result<Address> grow_pages(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// The size of the segment that a heap of pages grows by while little memory is used; 0 if it grows by
  /// pages (Config::first_growth).
  Bytes first_growth(const StreamHeap& heap, const Request& request) noexcept;
  /// Gives the segment back to the driver, or leaves all as it was.
  Status free_memory(const DeviceSegment& segment, Behind behind) noexcept;
  /// Does the heap's growth come from the driver's pool, in the order of its stream?
  bool takes_of_stream(StreamHeap& heap) const noexcept ASHLAR_EXCLUDES(heap.lock);
  /// take() from that pool.
  Result<Address> take_of_stream(Bytes size, const StreamHeap& heap) noexcept;
  /// The driver's pool keeps memory of the heap's until what is enqueued on its stream now is done: a call that lacks
  /// memory marks the heap, and waits for that.
  static void note_kept_by_driver(StreamHeap& heap) noexcept ASHLAR_EXCLUDES(heap.lock);
  MappingEvent event_of(const DeviceSegment& segment) const noexcept;
  /// What ask() gives, if it leaves Config::headroom free. Where freed memory is the driver's pool's, and there is none else, that
  /// is given back first.
  template <class Ask>
  Result<Address> take_within(Bytes size, Ask&& ask) noexcept;
  /// A segment of the driver's that leaves Config::headroom free. kOutOfMemory if there is none; another
  /// error of the driver is passed on.
  Result<Address> take(Bytes size, device::Device* source) noexcept;
  /// Enters the segment into the heap's pool and serves the request from it. The null address, and
  /// the pool is as before, if the host has no memory (noted). `former`: whose the segment is so far; nullptr: it is
  /// new.
  Address enter(StreamHeap& heap, const Request& request, DeviceSegment* segment,
                const StreamHeap* former) noexcept ASHLAR_EXCLUDES(heap.lock);

  Driver& driver_;
  SharedState& shared_;
  SegmentLedger& ledger_;
  Headroom headroom_ ASHLAR_UNGUARDED;                        ///< has a lock of its own
  PageSupply pages_ ASHLAR_UNGUARDED;                         ///< likewise
  Pins pins_ ASHLAR_UNGUARDED;                                ///< likewise
  UnderWay<std::atomic<unsigned>> growths_ ASHLAR_UNGUARDED;  ///< that may be under way
  std::uint64_t removals_ ASHLAR_GUARDED_BY(reclaiming) = 0;
  std::atomic<bool> was_short_{false};
};

}  // namespace ashlar::inline v0::cache
