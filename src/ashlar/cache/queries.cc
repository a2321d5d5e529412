#include <ashlar/cache/queries.h>

#include <algorithm>

#include <ashlar/cache/snapshot_copy.h>

namespace ashlar::inline v0::cache {
namespace {

/// The largest free block of the pool whose work is complete. Lets go of the lock between slices and
/// takes it again.
Bytes largest_complete(const StreamHeap& heap, PoolId id) noexcept ASHLAR_REQUIRES(heap.lock) {
  const block::BlockPool& pool = heap.pool(id);
  Bytes largest;
  block::BlockIndex block = pool.best_fit(pool.granule(), Bytes::max());
  for (unsigned looks = 1; block != block::kNoBlock; ++looks) {
    if (heap.clock.is_complete(pool.view(block).stamp)) largest = pool.size(block);
    block = next_fit(heap, id, block, looks);
  }
  return largest;
}

/// Is the memory of one of the two a memory pool's, and so not the other's?
bool is_apart(const StreamHeap& heap, const StreamHeap* asking) noexcept {
  return heap.is_reserved() || (asking != nullptr && asking->is_reserved());
}

/// The largest free block of the heap that an allocation from `asking` may be given now; nullptr: the
/// heap of a stream that has none yet. Lets go of the lock between slices and takes it again.
Bytes reachable_in(DeviceCache& cache, const StreamHeap& heap, const StreamHeap* asking) noexcept
    ASHLAR_REQUIRES(heap.lock) {
  if (!cache.config().caches) return Bytes{};
  const Reuse reuse = cache.config().reuse;
  const bool is_own = &heap == asking;
  const bool is_kept = is_apart(heap, asking) || (reuse == Reuse::kOwn && heap.life.is_alive());
  if (!is_own && (is_kept || cache.is_capturing())) return Bytes{};
  const bool all = is_own || reuse == Reuse::kOrdered || heap.clock.is_all_complete();
  Bytes largest;
  for (const PoolId id : kPoolIds) {
    largest = std::max(largest, all ? heap.pool(id).largest_free() : largest_complete(heap, id));
  }
  return largest;
}

/// Adds what the heap's pools hold.
void add_held(const StreamHeap& heap, HeldMemory* held) noexcept ASHLAR_REQUIRES(heap.lock) {
  for (const PoolId id : kPoolIds) {
    const block::PoolCounts& counts = heap.pool(id).counts();
    const auto bytes = [&](BlockState state) { return counts.bytes[static_cast<unsigned>(state)]; };
    held->allocated += bytes(BlockState::kLive);
    held->pending += bytes(BlockState::kPending);
    held->in_transfer += bytes(BlockState::kInTransfer);
    held->free_cached += bytes(BlockState::kFree);
    const HeapStats::Values figures = HeapStats::current(counts);
    held->free_splits += Bytes{figures[static_cast<unsigned>(Figure::kSplitBytes)]};
    held->largest_free = std::max(held->largest_free, heap.pool(id).largest_free());
  }
}

/// Counts the heap's best fit, complete or not, as another stream's.
void add_elsewhere(const StreamHeap& heap, const Request& request, OutOfMemory* account) noexcept
    ASHLAR_REQUIRES(heap.lock) {
  const block::BlockPool& pool = heap.pool(request.pool);
  const block::BlockIndex fit = pool.best_fit(request.size, request.fit_end);
  if (fit == block::kNoBlock) return;
  const Bytes size = pool.size(fit);
  const bool is_first = account->fits_elsewhere == Bytes{};
  if (is_first || size < account->fits_elsewhere) account->fits_elsewhere = size;
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

void write_account(const StreamHeap& asking, const Request& request,
                   OutOfMemory* account) noexcept {
  DeviceCache& cache = asking.cache;
  for (StreamHeap& heap : cache.heaps()) {
    const Guard guard(heap.lock);
    const Bytes free_before = account->free_cached;
    add_held(heap, account);
    if (&heap != &asking && heap.is_reserved())
      account->free_in_pools += account->free_cached - free_before;
    if (&heap != &asking && !is_apart(heap, &asking)) add_elsewhere(heap, request, account);
    account->largest_reachable =
        std::max(account->largest_reachable, reachable_in(cache, heap, &asking));
  }
  cache.ledger().write(account);
  account->pinned = cache.supply().pins().bytes();
}

Bytes largest_reachable(DeviceCache& cache, const Stream& stream) noexcept {
  const StreamHeap* const asking = cache.heaps().find(stream.id);
  Bytes largest;
  for (StreamHeap& heap : cache.heaps()) {
    const Guard guard(heap.lock);
    largest = std::max(largest, reachable_in(cache, heap, asking));
  }
  return largest;
}

Status write_snapshot(DeviceCache& cache, Snapshot* out, InTransfer in_transfer) {
  out->segments.clear();
  out->blocks.clear();
  for (const StreamHeap& heap : cache.heaps()) {
    for (const PoolId id : kPoolIds) {
      if (const Status copied = PoolCopy(heap, id, out, in_transfer).run(); !copied.is_ok())
        return copied;
    }
  }
  sort_segments(out);
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
