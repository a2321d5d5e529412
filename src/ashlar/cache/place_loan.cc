#include <ashlar/cache/place_loan.h>

#include <algorithm>
#include <optional>

#include <ashlar/base/assert.h>
#include <ashlar/base/step_count.h>
#include <ashlar/block/unmapped_ranges.h>
#include <ashlar/cache/page_room.h>
#include <ashlar/cache/stream_heap_inl.h>

namespace ashlar::inline v0::cache {
namespace {

using block::BlockIndex;
using block::BlockPool;
using block::kNoBlock;

/// The maximum number of pages that come for one request, and of free blocks that are looked at for the
/// home of each (C31).
constexpr std::uint64_t kLoanPagesMax = 192;
constexpr unsigned kHomeLooksMax = 48;

/// The place, in addresses of one segment.
struct Place {
  const PageMap& map;
  Owner owner;  ///< of the segment
  DeviceSegment* segment;
  Address begin;
  Address end;
  Bytes page;

  bool contains(Address at) const noexcept { return begin <= at && at < end; }
  PageSlot& slot_at(Address at) const noexcept {
    return segment->page_table[(at - segment->base) / page];
  }
  Address page_floor(Address at) const noexcept {
    return segment->base + round_down(at - segment->base, page);
  }
  Address page_ceil(Address at) const noexcept {
    return segment->base + round_up(at - segment->base, page);
  }
};

bool has_position(const BlockPool& pool, BlockIndex block, block::Position at) noexcept {
  const block::BlockView view = pool.view(block);
  return raw(view.position) <= raw(at) && raw(at) < raw(view.position) + view.size.count();
}

/// The block with the place's first byte, if it is unmapped, or free with an unmapped one behind it.
BlockIndex first_block(BlockPool& pool, block::Position at, Bytes page) noexcept {
  const block::UnmappedRanges ranges(pool);
  BlockIndex unmapped = ranges.smallest(page);
  for (unsigned looks = 0; unmapped != kNoBlock && looks < kUnmappedLooksMax; ++looks) {
    count_steps(1);
    if (has_position(pool, unmapped, at)) return unmapped;
    const BlockIndex below = ranges.before(unmapped);
    const bool is_below = below != kNoBlock && pool.state(below) == BlockState::kFree;
    if (is_below && has_position(pool, below, at)) return below;
    const block::BlockView view = pool.view(unmapped);
    unmapped = ranges.next(view.size, view.position);
  }
  return kNoBlock;
}

/// The table of the pool that has the slot; nullptr while its segment is on the way from another heap. A pool has
/// few paged segments (page_supply.cc), and most pages are at home in the place's own.
const PageTable* table_of(const BlockPool& pool, const Place& place,
                          const PageSlot& slot) noexcept {
  const auto has_slot = [at = Address{slot.at}](const DeviceSegment& segment) {
    return segment.base <= at && at < segment.base + segment.size;
  };
  if (has_slot(*place.segment)) return &place.segment->page_table;
  for (auto i = pool.first_segment(); i != block::kNoSegment; i = pool.next(i)) {
    count_steps(1);
    const DeviceSegment& segment = *record_of(pool.view(i));
    if (has_slot(segment)) return &segment.page_table;
  }
  return nullptr;
}

/// May the page that is mapped there come home, as far as its own fields say? A pinned one may not (C21).
bool may_come(const BlockPool& pool, const Place& place, const PageSlot& slot) noexcept {
  if (slot.page == nullptr || !slot.has_access || slot.page->home == nullptr) return false;
  const PageSlot& home = *slot.page->home;
  const Address at{home.at};
  if (place.contains(at) || !place.map.find(at).leads_to(place.owner)) return false;
  const PageTable* const table = table_of(pool, place, home);
  return table != nullptr && !table->is_pinned(home);
}

/// Is the place free and unmapped, and may every page that it lacks come?
bool may_be_borrowed(const BlockPool& pool, const Place& place, BlockIndex first) noexcept {
  std::uint64_t pages = 0;
  for (BlockIndex at = first; at != kNoBlock && pool.address(at) < place.end; at = pool.next(at)) {
    count_steps(1);
    if (pool.state(at) == BlockState::kFree) continue;
    if (pool.state(at) != BlockState::kUnmapped) return false;
    const Address begin = place.page_floor(std::max(pool.address(at), place.begin));
    const Address end = std::min(pool.address(at) + pool.size(at), place.page_ceil(place.end));
    for (Address a = begin; a < end; a = a + place.page) {
      count_steps(1);
      if (++pages > kLoanPagesMax || !may_come(pool, place, place.slot_at(a))) return false;
    }
  }
  return true;
}

/// The free block that holds the page at that address, whole; kNoBlock if it is not found.
BlockIndex free_block_of(const BlockPool& pool, Address at, Bytes page) noexcept {
  BlockIndex block = pool.best_fit(page, Bytes::max());
  for (unsigned looks = 0; block != kNoBlock && looks < kHomeLooksMax; ++looks) {
    count_steps(1);
    const Address begin = pool.address(block);
    if (begin <= at && at + page <= begin + pool.size(block)) return block;
    block = pool.next_fit(block);
  }
  return kNoBlock;
}

/// The page that is mapped there comes home, out of a free block. The stamp of its last use; nothing, and all
/// is as before, if it is not free, or the host has no memory for a record. REQUIRES: may_come() of it.
std::optional<std::uint64_t> bring_page(BlockPool& pool, const Place& place,
                                        PageSlot& slot) noexcept {
  PageSlot& home = *slot.page->home;
  if (place.contains(Address{home.at})) return std::nullopt;  // it came for another slot
  const BlockIndex from = free_block_of(pool, Address{home.at}, place.page);
  if (from == kNoBlock) return std::nullopt;
  const std::uint64_t stamp = pool.view(from).stamp;
  PageTable& home_table = record_of(pool.view(pool.segment(from)))->page_table;
  // It is free under the heap's lock since may_come(), so nobody has pinned it (pins.h).
  ASHLAR_ASSERT(!home_table.is_pinned(home), "C21: a pinned page is to be lent");
  const BlockIndex part = block::lift_part(pool, from, Address{home.at}, place.page);
  if (part == kNoBlock) return std::nullopt;
  block::UnmappedRanges(pool).unmap(part);
  home_table.note_left(home, stamp);
  slot.was_left = false;
  slot.page->home = &slot;
  return stamp;
}

/// Pages come into the unmapped block, from `begin` on, up to the place's end or the block's. The free
/// block that they are in; kNoBlock if one cannot come.
BlockIndex fill(BlockPool& pool, const Place& place, BlockIndex unmapped, Address begin) noexcept {
  const Address end =
      std::min(pool.address(unmapped) + pool.size(unmapped), place.page_ceil(place.end));
  block::UnmappedRanges ranges(pool);
  BlockIndex piece = ranges.lift_part(unmapped, begin, end - begin);
  BlockIndex filled = kNoBlock;
  while (piece != kNoBlock) {
    const bool is_last = pool.size(piece) == place.page;
    const BlockIndex rest = is_last ? kNoBlock : pool.divide(piece, place.page);
    std::optional<std::uint64_t> stamp;
    if (is_last || rest != kNoBlock)
      stamp = bring_page(pool, place, place.slot_at(pool.address(piece)));
    if (!stamp) {
      ranges.unmap(piece);
      if (rest != kNoBlock) ranges.unmap(rest);
      return kNoBlock;
    }
    filled = pool.release(piece, *stamp);
    piece = rest;
  }
  return filled;
}

/// The free block that has all of the place, once every page has come; else kNoBlock.
BlockIndex gather(BlockPool& pool, const Place& place, BlockIndex first) noexcept {
  BlockIndex have = first;
  if (pool.state(first) == BlockState::kUnmapped)
    have = fill(pool, place, first, place.page_floor(place.begin));
  while (have != kNoBlock && pool.address(have) + pool.size(have) < place.end) {
    const BlockIndex next = pool.next(have);
    if (next == kNoBlock || pool.state(next) != BlockState::kUnmapped) return kNoBlock;
    have = fill(pool, place, next, pool.address(next));
  }
  return have;
}

}  // namespace

Address borrow_place(StreamHeap& heap, const Request& request, PageStock& stock, const PageMap& map,
                     Bytes page) noexcept {
  const Guard guard(heap.lock);
  if (heap.is_reserved() || !heap.reserve_nodes(1)) return Address{};
  const std::optional<block::Position> expected =
      heap.misses.places[index_of(request.pool)]->expected(request.size);
  if (!expected) return Address{};
  BlockPool& pool = heap.pool(request.pool);
  const BlockIndex first = first_block(pool, *expected, page);
  if (first == kNoBlock) return Address{};
  const PageStock::Reading reading(stock);
  if (!reading.is_open()) return Address{};
  const block::BlockView view = pool.view(first);
  DeviceSegment* const segment = record_of(pool.view(pool.segment(first)));
  const Address begin = view.address + Bytes{raw(*expected) - raw(view.position)};
  const Place place{map, {&heap, request.pool}, segment, begin, begin + request.size, page};
  if (place.end > segment->base + segment->size) return Address{};
  if (!may_be_borrowed(pool, place, first)) return Address{};
  const HeapStats::Values before = HeapStats::current(pool.counts());
  const BlockIndex have = gather(pool, place, first);
  const Address address =
      have == kNoBlock ? Address{} : take_at_place(heap, request, have, begin, *expected);
  count_cuts(heap, request.pool, before);
  return address;
}

}  // namespace ashlar::inline v0::cache
