// What one device does under its reclaim lock: steal from other streams' heaps, reclaim, trim,
// retire streams, and find a dead stream's heap for a new stream.
//
// Thread safety: any thread; one holder of the lock at a time. A reclaim that gets it searches
// again first.
// C30: no wait for a stream's work holds the lock, so it is held for bounded work only.
// C9: while a capture is announced, a reclaim and a trim do nothing, and look for one again once they have the lock. So
// does a steal, unless it is for a memory pool's heap: then it serves, and asks the device nothing. A retirement
// records its event (D6 permits it), and no dead stream is asked.
#pragma once

#include <array>
#include <span>
#include <vector>

#include <ashlar/cache/bounded_wait.h>
#include <ashlar/cache/pool_checkpoint.h>
#include <ashlar/cache/segment_release.h>
#include <ashlar/cache/stream_reuse.h>

namespace ashlar::inline v0::cache {

/// Does a growth that answers so lack what a reclaim may regain: memory, or addresses?
constexpr bool is_short(Code code) noexcept {
  return code == Code::kOutOfMemory || code == Code::kOutOfAddresses;
}

/// A miss's answer when every rung has failed.
inline constexpr Status kShortOfMemory{Code::kOutOfMemory,
                                       "the device, or the limit set on it, has too little memory"};

class Reclaimer {
 public:
  Reclaimer(DeviceCache& cache, SharedState& shared, Driver& driver, UseTracker& uses,
            SegmentSupply& supply) noexcept;

  // Rungs of the ladder.
  /// Memory of the other streams in reach, if the lock is free; asks little.
  Address try_steal(StreamHeap& heap, const Request& request, Reach reach) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// The collection that comes before growth (row DEV-11), where Config::collection_threshold asks for one:
  /// learns which segments are done, and gives back the oldest idle ones. No effect while a capture is
  /// announced, or if another thread holds the lock.
  void collect() noexcept ASHLAR_EXCLUDES(reclaiming);
  /// The heaps that a call looks at beside its own and those that changed since the last call.
  static constexpr unsigned kOtherHeapsMax = 32;
  static constexpr unsigned kAllHeaps = ~0u;
  /// Without a cache (Config::caches): learns of finished work, and gives back every idle segment whose work is, of the heaps
  /// that a walk of the GiveBackList visits. `fresh`, if not null, is the heap that has just been given a block back: of the
  /// event that is recorded behind it the device is asked several times, as one of a stream that is idle takes a moment. No
  /// effect while a capture is announced, or once the device is gone. Cost: a question for each event that is pending, an
  /// event for each of the streams with memory to give back, and the driver's calls.
  void give_back_finished(StreamHeap* fresh, unsigned others_max) noexcept
      ASHLAR_EXCLUDES(reclaiming);
  /// Without a cache: the heap may have something to give back now, for the next give_back_finished().
  void note_freed(StreamHeap& heap) noexcept {
    if (!shared_.config.caches) give_back_.note(heap);
  }
  /// Rounds of a sweep and search_all(), each without limits of its own, with a bounded wait without the lock between
  /// two, until one serves the request or nothing is left to wait for. `shortage` is how the growth before this call
  /// failed. Errors: kOutOfMemory or kOutOfAddresses, as the last growth failed; kHostOutOfMemory; an error of the device
  /// that is neither. `*wait_ran_out` says whether the deadline ended it.
  Result<Address> reclaim(StreamHeap& heap, const Request& request, Status shortage,
                          Deadline& deadline, bool* wait_ran_out) noexcept
      ASHLAR_EXCLUDES(reclaiming, heap.lock);

  /// CachingAllocator::trim: segments, pages and ranges of addresses, then use nodes and events beyond need. The
  /// device's first refusal to take something back; kNotReady if the time was too short; kBusy while a capture is
  /// announced.
  Status trim() noexcept ASHLAR_EXCLUDES(reclaiming);
  /// Gives idle segments back until the bytes reserved are within the limit (DEV-12): the smallest that
  /// is enough, else the largest first. While that is not enough it waits as trim() does, and ends as
  /// soon as it is. No effect while a capture is announced or once the device is gone. What the device
  /// refuses to take stays.
  void shrink_to_limit() noexcept ASHLAR_EXCLUDES(reclaiming);
  /// CachingAllocator::make_room: as shrink_to_limit(), until the device has that much free. Errors as there.
  Status make_room(Bytes free) noexcept ASHLAR_EXCLUDES(reclaiming);
  /// The heap of a stream that has none yet: a dead stream's heap, or a new one. kInvalidArgument
  /// for a stream without identity. kInvalidHandle if an alive stream that the allocator knows has
  /// the same handle, and the device says that it does not name this one. kHostOutOfMemory if the
  /// host has no memory. May ask the device whom the handle names, and whether dead streams are
  /// done.
  Result<StreamHeap*> make_heap(const Stream& stream) noexcept;
  /// The same for a stream that is named as the user of a live block; `alive` is ask_before()'s
  /// answer. If it is dead it has a heap all the same, as a lost stream: the block must not stay
  /// with its caller, and its work may run. Asks the device nothing.
  Result<StreamHeap*> make_user(const Stream& stream, Status alive) noexcept;
  /// All device calls that come before make_user(): whom the handle names, and whether dead streams
  /// are done. Not ok if the stream is dead; errors as make_heap.
  Status ask_before(const Stream& stream) noexcept;
  /// CachingAllocator::retire_stream: of the stream's own heap, and of those that memory pools have for
  /// it. Cost: a walk over all heaps.
  Status retire(const Stream& stream) noexcept ASHLAR_EXCLUDES(reclaiming);

  // Memory pools.
  /// A heap of that stream for that memory pool: a dead one, or a new one. kInvalidHandle if `own`, the
  /// stream's own heap, does not serve it any more, so that retire() finds every heap that the stream
  /// will ever have; kHostOutOfMemory. `others` are the pool's heaps; those of finished streams leave it
  /// when nothing is left in them (C29). REQUIRES: the pool has none for that stream.
  Result<StreamHeap*> add_pool_heap(StreamHeap& own, const Stream& stream, MemoryPoolId pool,
                                    const MemoryPoolOptions& options,
                                    std::vector<StreamHeap*>& others) noexcept
      ASHLAR_REQUIRES(reclaiming);
  /// Asks a few dead streams whether they are done, if no other thread holds the lock.
  void ask_some_dead() noexcept;
  /// A memory pool's heaps become those of retired streams: their memory is in reach of others when the
  /// work that their streams have now is done. With `may_have_graphs` they become those of lost streams:
  /// when all work that the device has now is done. What is live gets a use by its stream. kBusy if an
  /// allocation is underway in one of them, kHostOutOfMemory if the host has no memory for a use: then
  /// nothing has changed.
  /// Cost: a walk over the heaps' blocks, and a record of an event for each heap.
  Status release_reserved(std::span<StreamHeap* const> heaps, bool may_have_graphs) noexcept
      ASHLAR_EXCLUDES(reclaiming);

  /// The live allocations of a memory pool's heaps. kBusy, as release_reserved(); kHostOutOfMemory.
  Status read_reserved(std::span<StreamHeap* const> heaps,
                       std::vector<CheckpointBlock>* out) noexcept ASHLAR_EXCLUDES(reclaiming);
  /// Makes the blocks of `target`, and no others, live in a memory pool's heaps (PoolLayout::replace).
  /// Asks first, unless a capture is announced, about every use that a block there waits for. kBusy as
  /// release_reserved(), and if a live block has uses on other streams; kNotReady if a block waits for
  /// uses; kHostOutOfMemory. Then nothing has changed.
  Status restore_reserved(std::span<StreamHeap* const> heaps,
                          std::span<const CheckpointBlock> target, RestoredPool* out) noexcept
      ASHLAR_EXCLUDES(reclaiming);

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
  /// The stream of the heap is about to be destroyed. REQUIRES: its life is kAlive.
  void retire(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// What is live in the heaps gets a use by its stream. False, and nothing has changed, if the host has no
  /// memory for one.
  bool add_own_uses(std::span<StreamHeap* const> heaps) noexcept ASHLAR_REQUIRES(reclaiming);
  /// The end of release_reserved(), of a heap that launches of graphs may use.
  void lose_anew(StreamHeap& heap, std::uint64_t sequence) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(heap.lock);
  /// From now on no allocation begins in the memory pool's heaps, and their memory stays theirs. kBusy, and
  /// nothing has changed, if one is underway.
  Status suspend(std::span<StreamHeap* const> heaps) noexcept ASHLAR_REQUIRES(reclaiming);
  /// The end of suspend().
  static void resume(std::span<StreamHeap* const> heaps) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Calls round(wait, longest) with the lock held, each time after a sweep, until it returns true or an
  /// error; where it returns false it has chosen what is waited for before the next round. `longest` is the
  /// time after which no round may be added for other threads' sake. kBusy once a capture is announced.
  template <class Round>
  Status give_back_in_rounds(Round&& round) noexcept ASHLAR_EXCLUDES(reclaiming);
  /// Gives idle segments back until `missing()` is 0, or its error; waits as trim() does, no longer than is
  /// needed. kBusy once a capture is announced; the device's error if it refuses to take a segment back;
  /// kNotReady if the time was too short, kOutOfMemory if too much is in use.
  template <class Missing>
  Status give_back_until_none(Missing&& missing) noexcept ASHLAR_EXCLUDES(reclaiming);
  Status trim_segments() noexcept ASHLAR_EXCLUDES(reclaiming);
  /// One search of everything that is known to be free now, the driver's memory included; gives idle memory back where
  /// growth lacks it. kOutOfMemory or kOutOfAddresses if nothing serves; other errors of growth.
  Result<Address> search_all(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Ok if no other alive stream has the stream's handle. If one has, the device says which of the
  /// two the handle names: the other one is dead.
  Status check_handle(const Stream& stream) noexcept;
  /// A heap for a stream that has none; nullptr if the host has no memory.
  StreamHeap* add_heap(const Stream& stream) noexcept;
  /// A dead stream's heap that may serve another, or nullptr if none is known.
  StreamHeap* find_forgotten() noexcept ASHLAR_REQUIRES(reclaiming);
  /// Looks at a few heaps, round and round, and notes those that are forgotten.
  void look_for_forgotten() noexcept ASHLAR_REQUIRES(reclaiming);
  /// Asks for work of the dead stream, or of others with its blocks, that is not known complete.
  void ask_dead(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// give_back_finished() of the heaps that are noted.
  void give_back_noted(StreamHeap* fresh) noexcept ASHLAR_REQUIRES(reclaiming);

  DeviceCache& cache_;
  SharedState& shared_;
  Driver& driver_;
  SegmentSupply& supply_;
  mutable ReclaimLock lock_;
  Epochs epochs_ ASHLAR_UNGUARDED;           ///< its members need the role `reclaiming`
  StreamReuse reuse_ ASHLAR_UNGUARDED;       ///< likewise
  SegmentRelease release_ ASHLAR_UNGUARDED;  ///< likewise
  GiveBackList give_back_ ASHLAR_UNGUARDED;  ///< its comments say
  /// Found by look_for_forgotten() and not used yet: a stock for searches that pass a row of stuck
  /// streams and find none. The same heap may be in it twice.
  std::array<StreamHeap*, 32> forgotten_ ASHLAR_GUARDED_BY(reclaiming){};
  unsigned forgotten_count_ ASHLAR_GUARDED_BY(reclaiming) = 0;
  /// the heap that was looked at last
  StreamHeap* looked_at_ ASHLAR_GUARDED_BY(reclaiming) = nullptr;
  /// calls of look_for_forgotten()
  std::uint64_t searches_ ASHLAR_GUARDED_BY(reclaiming) = 0;
  std::atomic<std::uint64_t> waits_{0};
};

/// The body of a conditional begins: what is live in the memory pools' heaps that serve it gets a use by all of
/// the body (kAddOfBody; false if the host has no memory for one, and kDropOfBody undoes the rest). Or it is
/// over: kPassOn. Cost: a walk over the blocks of the device's memory pools.
bool change_body_uses(DeviceCache& cache, StreamHeap& body, LiveUses change) noexcept
    ASHLAR_EXCLUDES(reclaiming);

}  // namespace ashlar::inline v0::cache
