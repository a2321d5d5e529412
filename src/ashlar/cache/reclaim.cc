// The slow rungs, under the device's reclaim lock: what other streams' heaps can give, and what
// must be waited for.
//
// Epochs (design: page-remapping, "Order"): a plain free records no event, it stamps the block with
// its heap's epoch. When somebody needs to know, the epoch is advanced first and an event recorded
// after: every block stamped before was freed, and its work enqueued, before the event, so the
// event's completion completes them all.
//
// C6: a block passes to another stream only when its stamp is complete (or behind a wait,
// `ordered`). D4: a segment goes back only so. C18: each device call here is made with no heap lock
// held.
#include <algorithm>
#include <utility>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

namespace {
DeviceSegment* record_of(const block::SegmentView& segment) noexcept {
  return reinterpret_cast<DeviceSegment*>(static_cast<std::uintptr_t>(segment.user));
}
/// Enough for everything that can be pending.
constexpr unsigned kPollAll = 0xffffffffu;
}  // namespace

void DeviceCache::mark_epoch(StreamHeap& heap) noexcept {
  std::uint64_t covers = 0;
  {
    const Guard guard(heap.lock);
    const bool covered =
        heap.mark_count > 0 && heap.marks[heap.mark_count - 1].covers >= heap.newest_release;
    if (heap.newest_release <= heap.completed || covered) return;
    covers = heap.epoch++;  // before the record: what is stamped from now on is not covered
  }
  EpochMark& mark = heap.marks[kEpochMarksMax];
  heap.mark_failed = !record_on(heap, mark.slot).is_ok();
  if (heap.mark_failed) return;
  mark.covers = covers;
  mark.sequence = sequence_.fetch_add(1, std::memory_order_relaxed);
  // Where the row is full its newest gives way: this one covers the same work.
  if (heap.mark_count < kEpochMarksMax) ++heap.mark_count;
  std::swap(mark, heap.marks[heap.mark_count - 1]);
  events_.give(mark.slot);
}

void DeviceCache::query_marks(StreamHeap& heap) noexcept {
  unsigned done = 0;
  while (done < heap.mark_count && driver_.event_query(heap.marks[done].slot.event).is_ok()) ++done;
  complete_marks(heap, done);
}

void DeviceCache::ask_last_event(StreamHeap& heap) noexcept {
  // Whoever reclaims there now asks its marks itself; and to wait for it here could be to wait for
  // each other.
  const std::unique_lock reclaiming(reclaim_, std::try_to_lock);
  if (reclaiming && !is_capturing()) query_marks(heap);
}

void DeviceCache::complete_marks(StreamHeap& heap, unsigned n) noexcept {
  if (n == 0) return;
  const std::uint64_t covers = heap.marks[n - 1].covers;
  for (unsigned i = 0; i < n; ++i) events_.give(heap.marks[i].slot);
  std::rotate(heap.marks, heap.marks + n, heap.marks + heap.mark_count);
  heap.mark_count -= n;
  const Guard guard(heap.lock);
  heap.completed = std::max(heap.completed, covers);
}

void DeviceCache::sweep_all() noexcept {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    mark_epoch(*heap);
    query_marks(*heap);
  }
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    retry_unrecorded(*heap);
    {
      Guard guard(heap->lock);
      poll(*heap, guard, kPollAll);
    }
    // A pending block that has just come back carries the newest stamp: ask once more, now that its
    // stream may be done too.
    mark_epoch(*heap);
    query_marks(*heap);
  }
}

Address DeviceCache::steal(StreamHeap& heap, const Request& request, unsigned sweeps_max) noexcept {
  const Address address = find_to_steal(heap, request, sweeps_max);
  if (!address.is_null()) steals_.fetch_add(1, std::memory_order_relaxed);
  return address;
}

Address DeviceCache::find_to_steal(StreamHeap& heap, const Request& request,
                                   unsigned sweeps_max) noexcept {
  for (StreamHeap* from = first_heap_.load(); from != nullptr; from = from->next_heap.load()) {
    if (from == &heap) continue;
    Address address = steal_from(*from, heap, request);
    if (address.is_null() && sweeps_max > 0 && has_fit(*from, request)) {
      --sweeps_max;
      mark_epoch(*from);
      query_marks(*from);
      address = steal_from(*from, heap, request);
    }
    if (!address.is_null()) return address;
  }
  if (config_.reuse != Reuse::kOrdered) return Address{};
  for (StreamHeap* from = first_heap_.load(); from != nullptr; from = from->next_heap.load()) {
    if (from == &heap || !has_fit(*from, request)) continue;
    if (const Address address = steal_ordered(*from, heap, request); !address.is_null())
      return address;
  }
  return Address{};
}

bool DeviceCache::has_fit(StreamHeap& heap, const Request& request) noexcept {
  const Guard guard(heap.lock);
  return heap.pool(request.is_small).best_fit(request.size, request.fit_end) != block::kNoBlock;
}

Address DeviceCache::steal_from(StreamHeap& from, StreamHeap& to, const Request& request) noexcept {
  Guard guard(from.lock);
  block::BlockPool& pool = from.pool(request.is_small);
  for (BlockIndex block = pool.best_fit(request.size, request.fit_end); block != block::kNoBlock;
       block = pool.next_fit(block)) {
    const block::BlockView view = pool.view(block);
    if (view.size >= request.fit_end) break;
    if (view.stamp > from.completed) continue;
    if (pool.is_whole(block)) return adopt(from, to, request, guard, block);
    return lend(from, to, request, block);
  }
  return Address{};
}

Address DeviceCache::lend(StreamHeap& from, StreamHeap& to, const Request& request,
                          BlockIndex block) noexcept {
  if (!from.reserve_nodes(2)) return Address{};
  UseNode* owner = from.take_node();
  [[maybe_unused]] const bool referred = to.refer(owner);
  ASHLAR_ASSERT(referred, "heap(6): a heap with an allocation on its way passes on");
  owner->is_owner = true;
  const Address address = take_block(from, request, block, owner);
  if (address.is_null()) from.give_node(owner);
  return address;
}

Address DeviceCache::adopt(StreamHeap& from, StreamHeap& to, const Request& request, Guard& guard,
                           BlockIndex block) noexcept {
  block::BlockPool& pool = from.pool(request.is_small);
  const block::SegmentIndex index = pool.segment(block);
  DeviceSegment* record = record_of(pool.view(index));
  // In transfer, and in both heaps, until `to` has found memory for its records: so that there is
  // nothing to undo that could fail.
  pool.lift(block);
  guard.unlock();
  Address address;
  if (shared_.pages.reserve(record->base, record->size, {&to, request.is_small})) {
    record->heap.store(&to, std::memory_order_release);
    shared_.pages.insert(*record);
    address = enter_segment(to, request, record);
    if (address.is_null()) {
      record->heap.store(&from, std::memory_order_release);
      shared_.pages.insert(*record);
    }
  }
  guard.relock();
  if (address.is_null()) {
    record->index = static_cast<std::uint32_t>(index);
    pool.release(block, pool.view(block).stamp);
  } else {
    pool.remove_segment(index);
  }
  return address;
}

Address DeviceCache::steal_ordered(StreamHeap& from, StreamHeap& to,
                                   const Request& request) noexcept {
  mark_epoch(from);
  if (from.mark_count == 0) return Address{};
  const EpochMark& mark = from.marks[from.mark_count - 1];
  // The wait goes in first: a block taken without it could not be given back unused.
  if (!may_record(to) || !driver_.stream_wait(to.stream.handle, mark.slot.event).is_ok())
    return Address{};
  const Guard guard(from.lock);
  block::BlockPool& pool = from.pool(request.is_small);
  for (BlockIndex block = pool.best_fit(request.size, request.fit_end); block != block::kNoBlock;
       block = pool.next_fit(block)) {
    const block::BlockView view = pool.view(block);
    if (view.size >= request.fit_end) break;
    if (view.stamp > mark.covers) continue;
    return lend(from, to, request, block);
  }
  return Address{};
}

DeviceSegment* DeviceCache::lift_idle(StreamHeap& heap, Bytes need, Bytes at_least,
                                      bool whole_need) noexcept {
  const Guard guard(heap.lock);
  DeviceSegment* lifted = nullptr;
  Bytes sum;
  for (const bool is_small : {false, true}) {
    block::BlockPool& pool = heap.pool(is_small);
    for (block::SegmentIndex at = pool.first_segment(); at != block::kNoSegment && sum < need;
         at = pool.next(at)) {
      const block::SegmentView segment = pool.view(at);
      if (!pool.is_idle(at) || segment.size < at_least || (whole_need && segment.size < need))
        continue;
      if (pool.view(segment.first).stamp > heap.completed) continue;
      pool.lift(segment.first);
      DeviceSegment* record = record_of(segment);
      record->next = lifted;
      lifted = record;
      sum += segment.size;
    }
  }
  return lifted;
}

Bytes DeviceCache::release_idle(Bytes need, Bytes at_least) noexcept {
  Bytes back;
  // One segment that is enough by itself, else as many as it takes.
  for (const bool whole_need : {true, false}) {
    if (whole_need && need == Bytes::max()) continue;
    for (StreamHeap* heap = first_heap_.load(); heap != nullptr && back < need;
         heap = heap->next_heap.load()) {
      DeviceSegment* list = lift_idle(*heap, need - back, at_least, whole_need);
      while (list != nullptr) {
        DeviceSegment* segment = list;
        list = list->next;
        const Bytes size = segment->size;
        if (give_segment_back(segment)) back += size;
      }
    }
    if (back > Bytes{}) break;
  }
  return back;
}

bool DeviceCache::give_segment_back(DeviceSegment* segment) noexcept {
  StreamHeap& heap = *segment->heap.load(std::memory_order_relaxed);
  const Bytes size = segment->size;
  const bool is_small = segment->is_small;
  // Out of the map first: once the driver has it back, the range may be somebody's segment again at
  // once.
  shared_.pages.erase(*segment);
  const Status freed = driver_.segment_free(segment->base);
  if (!freed.is_ok()) shared_.pages.insert(*segment);
  {
    const Guard guard(heap.lock);
    block::BlockPool& pool = heap.pool(is_small);
    const auto index = static_cast<block::SegmentIndex>(segment->index);
    if (freed.is_ok()) {
      pool.remove_segment(index);
    } else {
      const BlockIndex block = pool.view(index).first;
      pool.release(block, pool.view(block).stamp);
    }
  }
  if (!freed.is_ok()) return false;
  uncharge(size, is_small);
  recycle_segment_record(segment);
  return true;
}

}  // namespace ashlar::inline v0::cache
