// The slow rungs of one device, under its reclaim lock: what other streams' heaps can give, what
// must be waited for, what goes back to the driver.
//
// Thread safety: any thread; one slow rung at a time. Whoever gets the lock searches again first.
// C9: a slow rung does nothing while a capture is announced, and asks again once it has the lock.
#pragma once

#include <ashlar/cache/bounded_wait.h>
#include <ashlar/cache/stream_reuse.h>

namespace ashlar::inline v0::cache {

/// A miss's answer when every rung has failed.
inline constexpr Status kShortOfMemory{Code::kOutOfMemory,
                                       "the device, or the limit set on it, has too little memory"};

class Reclaimer {
 public:
  Reclaimer(DeviceCache& cache, SharedState& shared, Driver& driver, UseTracker& uses,
            SegmentSupply& supply) noexcept;

  // Rungs of the ladder.
  /// Another stream's memory, if no other slow rung is under way; asks little.
  Address try_steal(StreamHeap& heap, const Request& request) noexcept ASHLAR_EXCLUDES(heap.lock);
  /// Everything without limits: a sweep, other streams' memory, idle segments given back, a bounded
  /// wait, and again. kOutOfMemory when nothing is left; `*wait_ran_out` says whether the budget
  /// ended first.
  Result<Address> reclaim(StreamHeap& heap, const Request& request, bool* wait_ran_out) noexcept
      ASHLAR_EXCLUDES(reclaiming, heap.lock);

  /// CachingAllocator::trim.
  Status trim() noexcept ASHLAR_EXCLUDES(reclaiming);
  /// The heap of a stream that has none yet: a dead stream's heap, or a new one; nullptr if the
  /// host has no memory. Only if `may_ask` does it ask the device whether dead streams are done.
  StreamHeap* make_heap(const Stream& stream, bool may_ask) noexcept;
  /// CachingAllocator::retire_stream.
  Status retire(const Stream& stream) noexcept ASHLAR_EXCLUDES(reclaiming);
  /// Asks the marks of a dead stream of this device, unless somebody reclaims here now.
  void ask_last_event(StreamHeap& heap) noexcept ASHLAR_EXCLUDES(heap.lock);

  /// The allocator's end: destroys events, finishes what `is_settled` devices used, gives idle
  /// segments back.
  void give_everything_back(bool is_settled) noexcept ASHLAR_EXCLUDES(reclaiming);

  /// nullptr, or the invariant that a heap's marks break. Quiescent; takes the lock.
  const char* validate() const noexcept ASHLAR_EXCLUDES(reclaiming);

  ReclaimLock& lock() noexcept { return lock_; }
  Epochs& epochs() noexcept { return epochs_; }
  std::uint64_t waits() const noexcept { return waits_.load(std::memory_order_relaxed); }
  std::uint64_t steals() const noexcept { return reuse_.steals(); }
  void reset_counts() noexcept;

 private:
  /// One search of everything that is known to be free now; kOutOfMemory if it finds nothing.
  Result<Address> search_all(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// A dead stream's heap that may serve another, or nullptr.
  StreamHeap* find_forgotten(bool may_ask) noexcept ASHLAR_REQUIRES(reclaiming);
  void finish_uses_at_end(StreamHeap& heap, bool is_settled) noexcept ASHLAR_REQUIRES(heap.lock);

  DeviceCache& cache_;
  SharedState& shared_;
  Driver& driver_;
  SegmentSupply& supply_;
  mutable ReclaimLock lock_;
  Epochs epochs_ ASHLAR_UNGUARDED;      ///< its members need the role `reclaiming`
  StreamReuse reuse_ ASHLAR_UNGUARDED;  ///< likewise
  std::atomic<std::uint64_t> waits_{0};
};

}  // namespace ashlar::inline v0::cache
