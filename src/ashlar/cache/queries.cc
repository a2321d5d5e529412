#include <ashlar/cache/queries.h>

#include <algorithm>

namespace ashlar::inline v0::cache {
namespace {

/// Field by field into its place: built elsewhere and copied, it would wait for its own stores
/// (measured: a fifth of a snapshot).
void show(const StreamHeap& heap, const block::BlockView& view, SnapshotBlock* out) noexcept {
  out->address = view.address;
  out->size = view.size;
  out->requested = view.requested;
  out->state = view.state;
  out->stream = heap.stream.id;
  out->other_uses = 0;
  // A block that is neither live nor pending has no user's word.
  for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr; use = use->sibling) {
    if (use->is_borrower) {
      out->stream = use->stream->stream.id;
    } else {
      ++out->other_uses;
    }
  }
}

void append_pool(const StreamHeap& heap, PoolId id, Snapshot* out) ASHLAR_REQUIRES(heap.lock) {
  const LongSectionScope walk;  // to be removed: C31 (step_count.h)
  const block::BlockPool& pool = heap.pool(id);
  for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
    const block::SegmentView view = pool.view(at);
    const std::size_t first = out->blocks.size();
    for (block::BlockIndex block = view.first; block != block::kNoBlock; block = pool.next(block)) {
      out->blocks.emplace_back();
      show(heap, pool.view(block), &out->blocks.back());
    }
    out->segments.push_back({view.base, view.size, heap.stream.id, record_of(view)->ordinal,
                             static_cast<std::uint32_t>(first),
                             static_cast<std::uint32_t>(out->blocks.size() - first), id});
  }
}

/// The largest free block of the pool whose work is complete.
Bytes largest_complete(const StreamHeap& heap, PoolId id) noexcept ASHLAR_REQUIRES(heap.lock) {
  const LongSectionScope walk;  // to be removed: C31 (step_count.h)
  const block::BlockPool& pool = heap.pool(id);
  Bytes largest;
  for (auto block = pool.best_fit(pool.granule(), Bytes::max()); block != block::kNoBlock;
       block = pool.next_fit(block)) {
    if (heap.clock.is_complete(pool.view(block).stamp))
      largest = std::max(largest, pool.size(block));
  }
  return largest;
}

}  // namespace

void write_stats(DeviceCache& cache, DeviceStats* out) noexcept {
  HeapStats::Sums sums;
  for (StreamHeap& heap : cache.heaps()) {
    const Guard guard(heap.lock);
    heap.add_stats(&sums);
  }
  sums.write(Figure::kAllocations, &out->allocations);
  sums.write(Figure::kAllocatedBytes, &out->allocated_bytes);
  sums.write(Figure::kRequestedBytes, &out->requested_bytes);
  sums.write(Figure::kActive, &out->active);
  sums.write(Figure::kActiveBytes, &out->active_bytes);
  sums.write(Figure::kSplits, &out->inactive_splits);
  sums.write(Figure::kSplitBytes, &out->inactive_split_bytes);
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    out->device_calls[kind] = cache.driver().calls(static_cast<device::CallKind>(kind));
  out->streams = cache.heaps().count();
  out->alloc_retries = cache.ladder().retries();
  out->ooms = cache.ladder().failures();
  out->waits = cache.reclaimer().waits();
  out->steals = cache.reclaimer().steals();
  cache.ledger().write(out);
}

void reset_peak_stats(DeviceCache& cache) noexcept {
  for (StreamHeap& heap : cache.heaps()) {
    const Guard guard(heap.lock);
    heap.reset_peak_stats();
  }
  cache.ledger().reset_peak_stats();
}

void reset_accumulated_stats(DeviceCache& cache) noexcept {
  for (StreamHeap& heap : cache.heaps()) {
    const Guard guard(heap.lock);
    heap.reset_accumulated_stats();
  }
  cache.ledger().reset_accumulated_stats();
  cache.ladder().reset_counts();
  cache.reclaimer().reset_counts();
  cache.driver().reset_calls();
}

void write_account(DeviceCache& cache, OutOfMemory* account) noexcept {
  for (StreamHeap& heap : cache.heaps()) {
    const Guard guard(heap.lock);
    for (const PoolId id : kPoolIds) {
      const block::PoolCounts& counts = heap.pool(id).counts();
      const auto bytes = [&](BlockState state) {
        return counts.bytes[static_cast<unsigned>(state)];
      };
      account->allocated += bytes(BlockState::kLive);
      account->pending += bytes(BlockState::kPending);
      account->in_transfer += bytes(BlockState::kInTransfer);
      account->free_cached += bytes(BlockState::kFree);
      account->largest_free = std::max(account->largest_free, heap.pool(id).largest_free());
    }
  }
  cache.ledger().write(account);
}

Bytes largest_free(DeviceCache& cache, const Stream& stream) noexcept {
  const Reuse reuse = cache.config().reuse;
  Bytes largest;
  for (StreamHeap& heap : cache.heaps()) {
    const bool own = heap.id.load(std::memory_order_relaxed) == stream.id.value();
    if (!own && reuse == Reuse::kOwn) continue;
    const Guard guard(heap.lock);
    const bool all = own || heap.clock.is_all_complete() || reuse == Reuse::kOrdered;
    for (const PoolId id : kPoolIds) {
      const Bytes of_pool = all ? heap.pool(id).largest_free() : largest_complete(heap, id);
      largest = std::max(largest, of_pool);
    }
  }
  return largest;
}

void write_snapshot(DeviceCache& cache, Snapshot* out) {
  out->segments.clear();
  out->blocks.clear();
  for (StreamHeap& heap : cache.heaps()) {
    const Guard guard(heap.lock);
    for (const PoolId id : kPoolIds) append_pool(heap, id, out);
  }
  std::sort(out->segments.begin(), out->segments.end(),
            [](const SnapshotSegment& a, const SnapshotSegment& b) { return a.base < b.base; });
}

}  // namespace ashlar::inline v0::cache
