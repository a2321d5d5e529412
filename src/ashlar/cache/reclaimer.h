// The slow rungs of one device, under its reclaim lock: what other streams' heaps can give, what
// must be waited for, what goes back to the driver.
//
// Thread safety: any thread; one slow rung at a time. Whoever gets the lock searches again first.
// C30: nobody waits for a stream's work with the lock held, so it is held for bounded work only.
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
  /// Everything without limits: a sweep, other streams' memory, idle segments given back, a wait
  /// without the lock, and again. kOutOfMemory when nothing is left; `*wait_ran_out` says whether
  /// the deadline came first.
  Result<Address> reclaim(StreamHeap& heap, const Request& request, Deadline& deadline,
                          bool* wait_ran_out) noexcept ASHLAR_EXCLUDES(reclaiming, heap.lock);

  /// CachingAllocator::trim.
  Status trim() noexcept ASHLAR_EXCLUDES(reclaiming);
  /// The heap of a stream that has none yet: a dead stream's heap, or a new one. kInvalidArgument
  /// for a stream without identity; kInvalidHandle if the stream's handle names another stream that
  /// the allocator knows, so that this one is dead; kHostOutOfMemory if the host has no memory. May ask
  /// the device whom the handle names, and whether dead streams are done.
  Result<StreamHeap*> make_heap(const Stream& stream) noexcept;
  /// CachingAllocator::retire_stream.
  Status retire(const Stream& stream) noexcept ASHLAR_EXCLUDES(reclaiming);

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
  /// Ok if no other alive stream has the stream's handle. If one has, the device says which of the
  /// two the handle names: the other one is dead.
  Status check_handle(const Stream& stream) noexcept;
  /// A dead stream's heap that may serve another, or nullptr if none is among those looked at: a
  /// few at a time, round and round.
  StreamHeap* find_forgotten() noexcept ASHLAR_REQUIRES(reclaiming);
  void finish_uses_at_end(StreamHeap& heap, bool is_settled) noexcept ASHLAR_EXCLUDES(heap.lock);

  DeviceCache& cache_;
  SharedState& shared_;
  Driver& driver_;
  SegmentSupply& supply_;
  mutable ReclaimLock lock_;
  Epochs epochs_ ASHLAR_UNGUARDED;      ///< its members need the role `reclaiming`
  StreamReuse reuse_ ASHLAR_UNGUARDED;  ///< likewise
  /// the heap that find_forgotten() looked at last
  StreamHeap* looked_at_ ASHLAR_GUARDED_BY(reclaiming) = nullptr;
  /// calls of find_forgotten()
  std::uint64_t searches_ ASHLAR_GUARDED_BY(reclaiming) = 0;
  std::atomic<std::uint64_t> waits_{0};
};

}  // namespace ashlar::inline v0::cache
