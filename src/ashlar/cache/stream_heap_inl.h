// Taking and releasing a block: the part of a hit and of a plain free that a heap does.
//
// Always inline: without a function call at each step a pair of both takes a quarter less time.
// Included by the front door, and by stream_heap.cc, which gives the slow paths their out-of-line
// copies.
// Thread safety and invariants: stream_heap.h.
#pragma once

#include <ashlar/cache/history_notes.h>
#include <ashlar/cache/rounding.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

/// The heap's other pool, for what statistics count over both.
constexpr PoolId other_pool(PoolId pool) noexcept {
  static_assert(kPools == 2);
  return pool == PoolId::kSmall ? PoolId::kLarge : PoolId::kSmall;
}

[[gnu::always_inline]] inline Address StreamHeap::take_now(block::BlockPool& in,
                                                           const Request& request,
                                                           const Config& config,
                                                           block::BlockIndex block,
                                                           UseNode* owner) noexcept {
  const Bytes had = in.size(block);
  const Address address = in.address(block);
  const bool split = request.may_split && should_split(config, request.size, had);
  const bool was_whole = in.is_whole(block);
  const block::BlockIndex taken =
      in.take(block, request.size, split, request.requested, as_word(owner));
  if (taken == block::kNoBlock) [[unlikely]] {
    HostRefusals::note();
    return Address{};
  }
  const Bytes got = in.size(taken);
  const block::PoolCounts& other = pool(other_pool(request.pool)).counts();
  stats.on_allocate(request.pool, got, request.requested, in.counts(), other);
  const Bytes rest = had - got;
  if (was_whole && rest != Bytes{}) {  // from now on the segment is split
    stats.on_split(request.pool, rest, true, in.counts(), other);
  }
  if (owner != nullptr) {
    owner->block = taken;
    owner->pool = request.pool;
  }
  note_if_on(*this, request.pool, taken, HistoryAction::kAllocate);
  if (got >= config.max_split_size) count_oversize(+1);
  ASHLAR_VALIDATE(in);
  return address;
}

[[gnu::always_inline]] inline Address StreamHeap::take_fit(const Request& request,
                                                           const Config& config) noexcept {
  // reserve_nodes() comes before the search: after it, the compiler would read again what the
  // search has read.
  if (!reserve_nodes(1)) return Address{};
  block::BlockPool& in = pool(request.pool);
  const block::BlockIndex block = in.best_fit(request.size, request.fit_end);
  return block == block::kNoBlock ? Address{} : take_now(in, request, config, block, nullptr);
}

/// Serves the request from the free block `from`, at its address `begin`, which is the place that the heap's
/// log expects. The null address if the host has no memory for a record (noted). The caller counts the cuts.
/// REQUIRES: a spare node.
Address take_at_place(StreamHeap& heap, const Request& request, block::BlockIndex from,
                      Address begin, block::Position place) noexcept ASHLAR_REQUIRES(heap.lock);

/// StreamHeap::take_fit() of a heap that remembers places: the place that its log expects, if that is free; if
/// the log expects none, or Request::tries_place is not set, the best fit. Cost: looks at a bounded number of
/// free blocks.
Address take_remembered(StreamHeap& heap, const Request& request) noexcept
    ASHLAR_REQUIRES(heap.lock);

/// HeapStats::on_cuts() of a pool that was `before`, as HeapStats::current() says.
inline void count_cuts(StreamHeap& heap, PoolId which, const HeapStats::Values& before) noexcept
    ASHLAR_REQUIRES(heap.lock) {
  heap.stats.on_cuts(which, before, heap.pool(which).counts(),
                     heap.pool(other_pool(which)).counts());
}

inline void StreamHeap::release(PoolId which, block::BlockIndex block) noexcept {
  block::BlockPool& in = pool(which);
  const block::PoolCounts& counts = in.counts();
  const Bytes size = in.size(block);
  const std::uint64_t free_blocks = counts.blocks[kFree];
  const block::BlockIndex merged = in.release(block, clock.stamp_release());
  if (in.is_whole(merged)) return;  // the segment is not split any more
  const bool is_one_more = counts.blocks[kFree] > free_blocks;
  stats.on_split(which, size, is_one_more, counts, pool(other_pool(which)).counts());
}

}  // namespace ashlar::inline v0::cache
