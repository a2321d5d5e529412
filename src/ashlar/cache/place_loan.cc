#include <ashlar/cache/place_loan.h>

#include <algorithm>
#include <array>
#include <optional>

#include <ashlar/base/assert.h>
#include <ashlar/base/step_count.h>
#include <ashlar/block/unmapped_ranges.h>
#include <ashlar/cache/page_room.h>
#include <ashlar/cache/place_events.h>
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

  /// Is the page there one of those that the place has bytes of?
  bool contains(Address at) const noexcept { return page_floor(begin) <= at && at < end; }
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

/// The loan fails, for that reason.
bool refuse(PlaceEvent why) noexcept {
  count_place_event(why);
  return false;
}

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

/// May the page that is mapped there come home, as far as its own fields say?
bool may_come(const Place& place, const PageSlot& slot) noexcept {
  if (slot.page == nullptr || !slot.has_access) return refuse(PlaceEvent::kNothingMapped);
  if (slot.page->home == nullptr) return refuse(PlaceEvent::kHomeless);
  const Address home{slot.page->home->at};
  if (place.contains(home)) return refuse(PlaceEvent::kHomeInPlace);
  return place.map.find(home).leads_to(place.owner) || refuse(PlaceEvent::kOtherHeap);
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

/// A loan in the making. The addresses that the place lacks, and the pages' present homes, are in transfer
/// until all of them are: so a loan that fails has moved nothing, and a request that some free block fits is
/// served without a device call (C17).
class Loan {
 public:
  /// `first`: the block with the place's first byte.
  Loan(BlockPool& pool, const Place& place, BlockIndex first) noexcept
      : pool_(pool), place_(place), first_(first) {}

  /// Lifts all of it. If a page cannot come, false, and all is as before.
  bool lift() noexcept {
    for (BlockIndex at = first_; at != kNoBlock && pool_.address(at) < place_.end;
         at = pool_.next(at)) {
      count_steps(1);
      if (pool_.state(at) == BlockState::kFree) continue;
      const bool is_unmapped = pool_.state(at) == BlockState::kUnmapped;
      at = is_unmapped ? lift_lacking(at) : kNoBlock;
      if (!is_unmapped) count_place_event(PlaceEvent::kOccupied);
      if (at == kNoBlock) return undo(), false;
    }
    return true;
  }

  /// The pages come home; `heap` has the place. The free block that has all of the place.
  BlockIndex bring(StreamHeap& heap) noexcept ASHLAR_REQUIRES(heap.lock) {
    std::uint64_t newest = 0;
    for (std::uint64_t i = 0; i < count_; ++i)
      newest = std::max(newest, pool_.view(coming_[i].home).stamp);
    BlockIndex have = first_;
    while (pool_.address(have) + pool_.size(have) <= place_.begin) have = pool_.next(have);
    for (;; have = pool_.next(have)) {
      if (pool_.state(have) == BlockState::kInTransfer) have = pool_.release(have, newest);
      if (pool_.address(have) + pool_.size(have) >= place_.end) break;
    }
    for (std::uint64_t i = 0; i < count_; ++i) move_home(heap, coming_[i]);
    return have;
  }

 private:
  /// A page that is to come.
  struct Coming {
    PageSlot* slot;   ///< of the place
    BlockIndex home;  ///< where it is at home now, in transfer
  };

  /// Lifts what the place lacks of an unmapped block, and the homes of the pages for it. The lifted block;
  /// kNoBlock if a page cannot come.
  BlockIndex lift_lacking(BlockIndex unmapped) noexcept {
    const Address begin = place_.page_floor(std::max(pool_.address(unmapped), place_.begin));
    const Address end =
        std::min(pool_.address(unmapped) + pool_.size(unmapped), place_.page_ceil(place_.end));
    for (Address at = begin; at < end; at = at + place_.page) {
      if (!lift_home(place_.slot_at(at))) return kNoBlock;
    }
    const BlockIndex lacking = block::UnmappedRanges(pool_).lift_part(unmapped, begin, end - begin);
    if (lacking == kNoBlock) count_place_event(PlaceEvent::kNoRecord);
    return lacking;
  }
  bool lift_home(PageSlot& slot) noexcept {
    count_steps(1);
    if (count_ == kLoanPagesMax) return refuse(PlaceEvent::kTooManyPages);
    if (!may_come(place_, slot)) return false;
    const Address at{slot.page->home->at};
    // Of a page that is wanted twice the home is in transfer by now.
    const BlockIndex from = free_block_of(pool_, at, place_.page);
    if (from == kNoBlock) return refuse(PlaceEvent::kHomeNotFree);
    // C21. While it is free nobody pins it (pins.h).
    const PageTable& table = record_of(pool_.view(pool_.segment(from)))->page_table;
    if (table.is_pinned(*slot.page->home)) return refuse(PlaceEvent::kHomeNotFree);
    const BlockIndex home = block::lift_part(pool_, from, at, place_.page);
    if (home == kNoBlock) return refuse(PlaceEvent::kNoRecord);
    coming_[count_++] = {&slot, home};
    return true;
  }
  void move_home(StreamHeap& heap, const Coming& coming) noexcept ASHLAR_REQUIRES(heap.lock) {
    const block::SegmentIndex segment = pool_.segment(coming.home);
    PageTable& table = record_of(pool_.view(segment))->page_table;
    PageSlot& left = *coming.slot->page->home;
    table.note_left(left, pool_.view(coming.home).stamp);
    const PoolId id = place_.owner.pool();
    note_memory(heap, id, Address{left.at}, place_.page, HistoryAction::kSegmentUnmap);
    note_memory(heap, id, Address{coming.slot->at}, place_.page, HistoryAction::kSegmentMap);
    block::UnmappedRanges(pool_).unmap(coming.home);
    coming.slot->was_left = false;
    coming.slot->page->home = coming.slot;
    count_place_event(PlaceEvent::kPageCame);
  }
  /// The homes first: one of them may be a part of the block with the place's first byte.
  void undo() noexcept {
    for (std::uint64_t i = 0; i < count_; ++i)
      pool_.release(coming_[i].home, pool_.view(coming_[i].home).stamp);
    for (BlockIndex at = first_; at != kNoBlock && pool_.address(at) < place_.end;
         at = pool_.next(at)) {
      if (pool_.state(at) == BlockState::kInTransfer) at = block::UnmappedRanges(pool_).unmap(at);
    }
  }

  BlockPool& pool_;
  const Place& place_;
  const BlockIndex first_;
  std::array<Coming, kLoanPagesMax> coming_;
  std::uint64_t count_ = 0;
};

}  // namespace

Address borrow_place(StreamHeap& heap, const Request& request, PageStock& stock, const PageMap& map,
                     Bytes page) noexcept {
  const Guard guard(heap.lock);
  if (heap.is_reserved()) return count_place_event(PlaceEvent::kReserved), Address{};
  if (!heap.reserve_nodes(1)) return count_place_event(PlaceEvent::kNoRecord), Address{};
  const std::optional<block::Position> expected =
      heap.misses.places[index_of(request.pool)]->expected(request.size);
  if (!expected) return count_place_event(PlaceEvent::kNotExpected), Address{};
  BlockPool& pool = heap.pool(request.pool);
  const BlockIndex first = first_block(pool, *expected, page);
  if (first == kNoBlock) return count_place_event(PlaceEvent::kNotUnmapped), Address{};
  const PageStock::Reading reading(stock);
  if (!reading.is_open()) return count_place_event(PlaceEvent::kStockBusy), Address{};
  const block::BlockView view = pool.view(first);
  DeviceSegment* const segment = record_of(pool.view(pool.segment(first)));
  const Address begin = view.address + Bytes{raw(*expected) - raw(view.position)};
  const Place place{map, {&heap, request.pool}, segment, begin, begin + request.size, page};
  ASHLAR_ASSERT(place.end <= segment->base + segment->size,
                "place log(1): a place ends behind its segment");
  const HeapStats::Values before = HeapStats::current(pool.counts());
  Loan loan(pool, place, first);
  if (!loan.lift()) return Address{};
  const Address address = take_at_place(heap, request, loan.bring(heap), begin, *expected);
  count_cuts(heap, request.pool, before);
  if (!address.is_null()) count_place_event(PlaceEvent::kLoan);
  return address;
}

}  // namespace ashlar::inline v0::cache
