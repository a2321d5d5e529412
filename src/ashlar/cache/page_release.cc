#include <ashlar/cache/page_release.h>

#include <algorithm>

#include <ashlar/base/checked.h>
#include <ashlar/cache/stream_heap_inl.h>

namespace ashlar::inline v0::cache {

using block::BlockIndex;
using block::BlockPool;
using block::kNoBlock;

Bytes PageRelease::release(StreamHeap* asking, Bytes need, PagesTo to, Status* refused) noexcept {
  Pass pass;
  pass.need = need;
  pass.to = to;
  pass.refused = refused;
  for (StreamHeap& heap : heaps_) {
    if (&heap == asking) continue;
    for (const PoolId id : kPoolIds) release_from(heap, id, pass);
  }
  if (asking != nullptr) {
    for (const PoolId id : kPoolIds) release_from(*asking, id, pass);
  }
  return pass.back;
}

void PageRelease::let_others_in(Pass& pass) noexcept {
  if (lock_.let_others_in()) pass.is_over = shared_.is_capturing();
}

void PageRelease::release_from(StreamHeap& heap, PoolId id, Pass& pass) noexcept {
  if (heap.is_reserved() || !supply_.serves(heap)) return;
  Bytes size = supply_.page();
  block::Position behind{};
  for (bool is_first = true; pass.back < pass.need && !pass.is_over; is_first = false) {
    DeviceSegment* segment = nullptr;
    BlockIndex pages = kNoBlock;
    {
      const Guard guard(heap.lock);
      BlockPool& pool = heap.pool(id);
      BlockIndex at = is_first ? pool.best_fit(size, Bytes::max()) : pool.next_fit(size, behind);
      for (unsigned looks = 1; at != kNoBlock; at = next_fit(heap, id, at, looks), ++looks) {
        const block::BlockView view = pool.view(at);
        size = view.size;
        behind = view.position;
        segment = record_of(pool.view(pool.segment(at)));
        pages = cut_pages(heap, id, at, pass.need - pass.back);
        if (pages != kNoBlock) break;
      }
      if (pages == kNoBlock) return;
    }
    Bytes taken;
    {
      const Guard guard(heap.lock);
      taken = heap.pool(id).size(pages);
    }
    const Status unmapped = supply_.unmap(heap, *segment, pages, pass.to);
    if (unmapped.is_ok()) {
      pass.back += taken;
    } else if (pass.refused != nullptr && pass.refused->is_ok()) {
      *pass.refused = unmapped;
    }
    let_others_in(pass);
  }
}

BlockIndex PageRelease::cut_pages(StreamHeap& heap, PoolId id, BlockIndex from,
                                  Bytes most) const noexcept {
  BlockPool& pool = heap.pool(id);
  const block::BlockView view = pool.view(from);
  const DeviceSegment& segment = *record_of(pool.view(pool.segment(from)));
  if (!segment.page_table.is_made() || !heap.clock.is_complete(view.stamp)) return kNoBlock;
  const Bytes page = supply_.page();
  const Bytes offset = view.address - segment.base;
  const Bytes first = round_up(offset, page);
  const Bytes end = round_down(offset + view.size, page);
  if (first >= end) return kNoBlock;
  const Bytes begin =
      end - std::min(end - first, checked_round_up(most, page).value_or(end - first));
  const HeapStats::Values free_before = HeapStats::current(pool.counts());
  pool.lift(from);
  const Bytes before = begin - offset;
  const BlockIndex pages = before == Bytes{} ? from : pool.divide(from, before);
  const Bytes behind = offset + view.size - end;
  const BlockIndex rest =
      pages == kNoBlock || behind == Bytes{} ? kNoBlock : pool.divide(pages, end - begin);
  const bool is_cut = pages != kNoBlock && (behind == Bytes{} || rest != kNoBlock);
  if (rest != kNoBlock) pool.release(rest, view.stamp);
  if (!is_cut && pages != kNoBlock && pages != from) pool.release(pages, view.stamp);
  if (!is_cut || pages != from) pool.release(from, view.stamp);
  count_cuts(heap, id, free_before);
  return is_cut ? pages : kNoBlock;
}

void PageRelease::release_addresses(Status* refused) noexcept {
  for (StreamHeap& heap : heaps_) {
    if (heap.is_reserved()) continue;
    for (const PoolId id : kPoolIds) {
      for (block::SegmentIndex at = block::kNoSegment, next = block::kNoSegment;; at = next) {
        DeviceSegment* segment = nullptr;
        {
          const Guard guard(heap.lock);
          BlockPool& pool = heap.pool(id);
          if (at == block::kNoSegment) at = pool.first_segment();
          // A heap has few paged segments (page_supply.cc), and nobody removes one meanwhile.
          for (; at != block::kNoSegment; at = pool.next(at)) {
            segment = record_of(pool.view(at));
            const BlockIndex first = pool.view(at).first;
            if (!segment->page_table.is_made() || !pool.is_whole(first) ||
                pool.state(first) != BlockState::kUnmapped)
              continue;
            block::UnmappedRanges(pool).lift(first);
            break;
          }
          if (at == block::kNoSegment) break;
          next = pool.next(at);
        }
        const Status released = supply_.give_back_addresses(segment);
        if (!released.is_ok() && refused != nullptr && refused->is_ok()) *refused = released;
        if (next == block::kNoSegment) break;
      }
    }
  }
}

}  // namespace ashlar::inline v0::cache
