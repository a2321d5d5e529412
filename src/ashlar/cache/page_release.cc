#include <ashlar/cache/page_release.h>

#include <algorithm>
#include <optional>

#include <ashlar/base/checked.h>
#include <ashlar/cache/host_refusals.h>
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
  Bytes size = supply_.page();
  block::Position behind{};
  // The walk begins again where a pinned page parts a block: what is left of it is smaller.
  bool begins_again = false;
  for (bool is_first = true; pass.back < pass.need && !pass.is_over; is_first = begins_again) {
    DeviceSegment* segment = nullptr;
    Cut cut;
    Bytes taken;
    if (is_first) size = supply_.page();
    {
      const Guard guard(heap.lock);
      BlockPool& pool = heap.pool(id);
      BlockIndex at = is_first ? pool.best_fit(size, Bytes::max()) : pool.next_fit(size, behind);
      for (unsigned looks = 1; at != kNoBlock; at = next_fit(heap, id, at, looks), ++looks) {
        // Each time: the heap of a dead stream may have become a memory pool's meanwhile (C8).
        if (heap.is_reserved()) return;
        const block::BlockView view = pool.view(at);
        size = view.size;
        behind = view.position;
        segment = record_of(pool.view(pool.segment(at)));
        cut = cut_pages(heap, id, at, pass.need - pass.back);
        if (cut.pages != kNoBlock) break;
        if (cut.has_searched) looks = kLooksPerHold;  // lets others in
      }
      if (cut.pages == kNoBlock) return;
      taken = pool.size(cut.pages);
    }
    const Status unmapped = supply_.take_pages(heap, *segment, cut.pages, pass.to);
    begins_again = unmapped.is_ok() && cut.leaves_pages;
    if (unmapped.is_ok()) {
      pass.back += taken;
      if (pass.to == PagesTo::kDriver) drop(taken / supply_.page(), pass);
    } else if (pass.refused->is_ok()) {
      *pass.refused = unmapped;
    }
    let_others_in(pass);
  }
}

void PageRelease::drop(std::uint64_t pages, Pass& pass) noexcept {
  for (; pages > 0 && !pass.is_over; --pages) {
    const Status dropped = supply_.drop_page();
    if (!dropped.is_ok() && pass.refused->is_ok()) *pass.refused = dropped;
    let_others_in(pass);
  }
}

PageRelease::Cut PageRelease::cut_pages(StreamHeap& heap, PoolId id, BlockIndex from,
                                        Bytes most) const noexcept {
  Cut cut;
  BlockPool& pool = heap.pool(id);
  const block::BlockView view = pool.view(from);
  const DeviceSegment& segment = *record_of(pool.view(pool.segment(from)));
  if (!segment.page_table.is_made() || !heap.clock.is_complete(view.stamp)) return cut;
  const Bytes page = supply_.page();
  const Bytes offset = view.address - segment.base;
  const PageTable::Run whole{round_up(offset, page) / page, (offset + view.size) / page};
  if (whole.first >= whole.end) return cut;
  const std::uint64_t in_all = whole.end - whole.first;
  const std::optional<Bytes> rounded = checked_round_up(most, page);
  const std::uint64_t pages = rounded ? std::min(in_all, *rounded / page) : in_all;
  PageTable::Run run{whole.end - pages, whole.end};
  if (segment.is_held()) {
    run = segment.page_table.last_unpinned(whole, pages);
    cut = {.leaves_pages = run.first > whole.first, .has_searched = true};
    if (run.first == run.end) return cut;
  }
  const HeapStats::Values free_before = HeapStats::current(pool.counts());
  cut.pages =
      block::lift_part(pool, from, segment.base + page * run.first, page * (run.end - run.first));
  count_cuts(heap, id, free_before);
  if (cut.pages == kNoBlock) HostRefusals::note();
  else record_of(pool.view(pool.segment(cut.pages)))->page_table[run.first].is_gone = false;
  return cut;
}

Bytes PageRelease::drop_stock(Bytes most, Status* refused) noexcept {
  Pass pass;
  pass.refused = refused;
  pass.is_over = shared_.is_capturing();
  const Bytes before = supply_.stock_bytes();
  const auto back = [&] { return before - std::min(before, supply_.stock_bytes()); };
  // Each page is tried once: one that the driver refuses goes behind the others.
  for (std::uint64_t left = before / supply_.page(); left > 0 && back() < most; --left)
    drop(1, pass);
  return back();
}

void PageRelease::release_addresses(Status* refused) noexcept {
  for (StreamHeap& heap : heaps_) {
    for (const PoolId id : kPoolIds) {
      for (bool goes_on = true; goes_on && !shared_.is_capturing();) {
        goes_on = release_unmapped_segment(heap, id, refused);
        if (goes_on) lock_.let_others_in();
      }
    }
  }
}

bool PageRelease::release_unmapped_segment(StreamHeap& heap, PoolId id, Status* refused) noexcept {
  DeviceSegment* segment = nullptr;
  {
    const Guard guard(heap.lock);
    if (heap.is_reserved()) return false;
    BlockPool& pool = heap.pool(id);
    // A heap has few paged segments (page_supply.cc).
    for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
      const BlockIndex first = pool.view(at).first;
      if (!pool.is_whole(first) || pool.state(first) != BlockState::kUnmapped) continue;
      // A call that reads its pages may go on though its caller freed the allocation (pins.h).
      if (record_of(pool.view(at))->is_held()) continue;
      segment = record_of(pool.view(at));
      block::UnmappedRanges(pool).lift(first);
      segment->page_table[0].is_gone = true;
      break;
    }
  }
  if (segment == nullptr) return false;
  const Status released = supply_.give_back_addresses(segment);
  if (!released.is_ok() && refused->is_ok()) *refused = released;
  return released.is_ok();
}

}  // namespace ashlar::inline v0::cache
