// PoolLayout: what is live in a memory pool's heaps, read, and replaced by another set of allocations.
//
// Purpose: checkpoints of memory pools (pool_checkpoint.h). The live blocks determine the whole map: all
// other bytes are free blocks, coalesced (C4).
// Thread safety: on heaps of a memory pool in use that are suspended, with no allocation under way: so
// their segments stay. replace() needs the role `reclaiming`, for its way back: nobody else may take the
// use nodes that it has made spare. A heap's lock is let go after every few blocks (C31), so another
// thread may free meanwhile. That is its caller's mistake; whatever it changes, no block is lost, and
// replace() says kBusy where it found another state than read() did.
//
// Invariants:
//   (1) replace() has made exactly the blocks of the target live, or it has failed, and what was live
//       before is live again, with the statistics of before. The way back needs no host memory: the
//       heaps had room for it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/cache/heap_stats.h>
#include <ashlar/cache/pool_checkpoint.h>
#include <ashlar/cache/reclaim_lock.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

class PoolLayout {
 public:
  /// `heaps` are those of one memory pool.
  explicit PoolLayout(std::span<StreamHeap* const> heaps) noexcept : heaps_(heaps) {}

  /// Reads the heaps. kHostOutOfMemory; kBusy if a live block is on loan from a dead stream's heap, or other
  /// threads free blocks faster than they are read.
  Status read() noexcept;
  /// What read() found live, by segment and offset.
  std::vector<CheckpointBlock> take_live() && noexcept { return std::move(live_); }
  /// kNotReady if a block waits for uses. REQUIRES: read().
  Status check_replaceable() const noexcept;
  /// Ends what is live, makes the blocks of `target` live, and fills `*out`. kHostOutOfMemory; kBusy if
  /// a live block has uses on streams that are not finished, or another thread has changed the heaps. REQUIRES: check_replaceable() is ok; `target` is sorted, and
  /// its segments are the heaps'.
  Status replace(std::span<const CheckpointBlock> target, RestoredPool* out) noexcept
      ASHLAR_REQUIRES(reclaiming);

 private:
  /// A segment and where it is.
  struct Place {
    std::uint64_t ordinal;
    StreamHeap* heap;
    PoolId pool;
    block::SegmentIndex segment;
    Address base;
  };

  /// What each pool of a heap holds.
  using CountsByPool = std::array<HeapStats::Values, kPools>;

  /// Both throw std::bad_alloc.
  Status read_blocks();
  void read_places();
  const Place& place_of(std::uint64_t ordinal) const noexcept;
  /// Ends the blocks in order, up to the first that is not live any more or has a use. Returns how many it
  /// ended.
  std::size_t end(std::span<const CheckpointBlock> blocks) noexcept ASHLAR_REQUIRES(reclaiming);
  /// Makes the blocks live in order. Returns how many; if not all, `*failure` says why. REQUIRES: their
  /// bytes are free.
  std::size_t make(std::span<const CheckpointBlock> blocks, Status* failure) noexcept
      ASHLAR_REQUIRES(reclaiming);
  /// Counts what the cuts of make() left free in splits. before[i]: what the pools of heaps_[i] held when
  /// all was ended and nothing made yet.
  void count_cuts(const std::vector<CountsByPool>& before) noexcept;
  void count_oversize(std::span<const CheckpointBlock> blocks, int change) noexcept;
  /// replace() has failed after it ended so many blocks and made those.
  void go_back(std::size_t ended, std::span<const CheckpointBlock> made) noexcept
      ASHLAR_REQUIRES(reclaiming);

  std::span<StreamHeap* const> heaps_;
  std::vector<CheckpointBlock> live_;
  std::vector<Place> places_;  ///< by ordinal
  std::vector<HeapStats> stats_before_;
  bool has_pending_ = false;
};

}  // namespace ashlar::inline v0::cache
