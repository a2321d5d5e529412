// Statistics, snapshot, account and self-check: what the cache says about itself (rows DEV-14, 16,
// 17, 19; clause C15).
#include <algorithm>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

namespace {
void reset_peak(Stat& stat) noexcept { stat.peak = stat.current; }
void reset_totals(Stat& stat) noexcept { stat.increased = stat.decreased = 0; }

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
    if (use->is_owner) out->stream = use->stream->stream.id;
    else ++out->other_uses;
  }
}
}  // namespace

void DeviceCache::stats(DeviceStats* out) const noexcept {
  HeapStats::Sums sums;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    heap->add_stats(&sums);
  }
  sums.write(Figure::kAllocations, &out->allocations);
  sums.write(Figure::kAllocatedBytes, &out->allocated_bytes);
  sums.write(Figure::kRequestedBytes, &out->requested_bytes);
  sums.write(Figure::kActive, &out->active);
  sums.write(Figure::kActiveBytes, &out->active_bytes);
  sums.write(Figure::kSplits, &out->inactive_splits);
  sums.write(Figure::kSplitBytes, &out->inactive_split_bytes);
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    out->device_calls[kind] = driver_.calls(static_cast<device::CallKind>(kind));
  out->alloc_retries = retries_.load(std::memory_order_relaxed);
  out->ooms = ooms_.load(std::memory_order_relaxed);
  out->waits = waits_.load(std::memory_order_relaxed);
  out->steals = steals_.load(std::memory_order_relaxed);
  const Guard guard(reserve_lock_);
  out->segments = segments_;
  out->reserved_bytes = reserved_bytes_;
  out->oversize_allocations = oversize_allocations_;
  out->oversize_segments = oversize_segments_;
}

template <class F>
void DeviceCache::for_reserve_stats(F&& f) noexcept {
  const Guard guard(reserve_lock_);
  for (unsigned pool = 0; pool < kStatPools; ++pool) {
    f(segments_[pool]);
    f(reserved_bytes_[pool]);
  }
  f(oversize_allocations_);
  f(oversize_segments_);
}

void DeviceCache::reset_peaks() noexcept {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    heap->stats.reset_peaks(heap->pool(true).counts(), heap->pool(false).counts());
  }
  for_reserve_stats(reset_peak);
}

void DeviceCache::reset_accumulated() noexcept {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    heap->stats.reset_accumulated(heap->pool(true).counts(), heap->pool(false).counts());
  }
  for_reserve_stats(reset_totals);
  for (auto* counter : {&retries_, &ooms_, &waits_, &steals_})
    counter->store(0, std::memory_order_relaxed);
  driver_.reset_calls();
}

void DeviceCache::fill_account(OutOfMemory* account) const noexcept {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    for (const bool is_small : {false, true}) {
      const block::PoolCounts& counts = heap->pool(is_small).counts();
      const auto bytes = [&](BlockState state) {
        return counts.bytes[static_cast<unsigned>(state)];
      };
      account->allocated += bytes(BlockState::kLive);
      account->pending += bytes(BlockState::kPending);
      account->in_transfer += bytes(BlockState::kInTransfer);
      account->free_cached += bytes(BlockState::kFree);
      account->largest_free = std::max(account->largest_free, heap->pool(is_small).largest_free());
    }
  }
  const Guard guard(reserve_lock_);
  account->reserved = Bytes{reserved_bytes_[0].current};
  account->limit = limit_;
}

Bytes DeviceCache::largest_free(Stream stream) const noexcept {
  Bytes largest;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const bool own = heap->id.load(std::memory_order_relaxed) == stream.id.value();
    if (!own && config_.reuse == Reuse::kOwn) continue;
    const Guard guard(heap->lock);
    for (const bool is_small : {false, true}) {
      const block::BlockPool& pool = heap->pool(is_small);
      if (own || heap->newest_release <= heap->completed || config_.reuse == Reuse::kOrdered) {
        largest = std::max(largest, pool.largest_free());
        continue;
      }
      for (BlockIndex block = pool.best_fit(pool.granule(), Bytes::max()); block != block::kNoBlock;
           block = pool.next_fit(block)) {
        if (pool.view(block).stamp <= heap->completed)
          largest = std::max(largest, pool.size(block));
      }
    }
  }
  return largest;
}

Status DeviceCache::snapshot(Snapshot* out) const {
  out->segments.clear();
  out->blocks.clear();
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    for (const bool is_small : {false, true}) append_pool(*heap, is_small, out);
  }
  std::sort(out->segments.begin(), out->segments.end(),
            [](const SnapshotSegment& a, const SnapshotSegment& b) { return a.base < b.base; });
  return Status::ok();
}

/// Locked `heap`.
void DeviceCache::append_pool(const StreamHeap& heap, bool is_small, Snapshot* out) {
  const block::BlockPool& pool = heap.pool(is_small);
  for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
    const block::SegmentView view = pool.view(at);
    const auto* record =
        reinterpret_cast<const DeviceSegment*>(static_cast<std::uintptr_t>(view.user));
    const std::size_t first = out->blocks.size();
    for (BlockIndex block = view.first; block != block::kNoBlock; block = pool.next(block)) {
      out->blocks.emplace_back();
      show(heap, pool.view(block), &out->blocks.back());
    }
    out->segments.push_back({view.base, view.size, heap.stream.id, record->ordinal,
                             static_cast<std::uint32_t>(first),
                             static_cast<std::uint32_t>(out->blocks.size() - first),
                             is_small ? PoolId::kSmall : PoolId::kLarge});
  }
}

Status DeviceCache::set_limit(Bytes limit) noexcept {
  const Guard guard(reserve_lock_);
  limit_ = limit;
  fraction_pending_.store(false, std::memory_order_relaxed);
  return Status::ok();
}

Result<Bytes> DeviceCache::limit_for(double fraction) noexcept {
  const Result<device::MemoryInfo> memory = driver_.memory_info();
  if (!memory.is_ok()) return memory.status();
  // Rounded up to a whole byte, so that a fraction is never one byte short of what it says
  // (py#179444).
  const long double bytes =
      static_cast<long double>(memory.value().total.count()) * static_cast<long double>(fraction);
  const auto whole = static_cast<std::uint64_t>(bytes);
  return Bytes{whole + (static_cast<long double>(whole) < bytes ? 1 : 0)};
}

Status DeviceCache::set_fraction(double fraction) noexcept {
  ASHLAR_REQUIRE(fraction > 0.0 && fraction <= 1.0, Code::kInvalidArgument,
                 "a memory fraction is over 0 and at most 1");
  const Result<Bytes> limit = limit_for(fraction);
  return limit.is_ok() ? set_limit(limit.value()) : limit.status();
}

const char* DeviceCache::validate() const noexcept {
  Bytes in_segments;
  std::uint64_t segments = 0;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    if (const char* broken = heap->validate()) return broken;
    for (const bool is_small : {false, true}) {
      const block::BlockPool& pool = heap->pool(is_small);
      in_segments += pool.counts().segment_bytes;
      segments += pool.counts().segments;
      for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
        const block::SegmentView view = pool.view(at);
        const auto* record =
            reinterpret_cast<const DeviceSegment*>(static_cast<std::uintptr_t>(view.user));
        if (record->heap.load() != heap || record->base != view.base || record->size != view.size) {
          return "cache(2): a segment's record is not its pool's";
        }
        for (const Address a : {view.base, view.base + (view.size - Bytes{1})}) {
          if (!shared_.pages.find(a).leads_to(record->owner()))
            return "cache(2): the page map does not lead to a segment";
        }
      }
    }
  }
  const Guard guard(reserve_lock_);
  if (in_segments.count() != reserved_bytes_[0].current)
    return "C14: reserved bytes are not the sum over segments";
  if (segments != segments_[0].current) return "C14: the segment count is not the sum over pools";
  if (charged_.count() != reserved_bytes_[0].current)
    return "cache(1): bytes charged against the limit are not the reserved";
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
