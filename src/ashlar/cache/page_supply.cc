#include <ashlar/cache/page_supply.h>

#include <algorithm>
#include <limits>
#include <optional>

#include <ashlar/base/checked.h>
#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/history_notes.h>
#include <ashlar/cache/host_refusals.h>
#include <ashlar/cache/mapping_observers.h>
#include <ashlar/cache/segment_supply.h>
#include <ashlar/cache/stream_heap_inl.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::cache {
namespace {

/// The addresses of a heap's first paged segment, and the most of a later one, which has as many as all
/// before it. Addresses cost no memory; a page map entry for each page does.
constexpr Bytes kAddressesFirst = 4_GiB;
constexpr Bytes kAddressesMax = 256_GiB;
/// For so many pages and more a growth asks whether the device has them, before it creates the first: one that
/// must fail would otherwise take all that others could have.
constexpr std::uint64_t kPagesAskedFor = 2;
/// The maximum number of addresses that a page stays mapped at beside its home: each mapping is one more device call once
/// the page goes back.
constexpr std::uint32_t kMappingsMax = 4;

}  // namespace

PageSupply::PageSupply(Driver& driver, SharedState& shared, SegmentLedger& ledger,
                       Headroom& headroom) noexcept
    : driver_(driver),
      shared_(shared),
      ledger_(ledger),
      headroom_(headroom),
      is_paged_(shared.config.backing == Backing::kPages && driver.traits().has_virtual_memory),
      page_(round_up(kSegmentBytesMin, driver.traits().page_granularity)),
      pages_max_(shared.config.page_handles_max != 0 ? shared.config.page_handles_max
                                                     : std::numeric_limits<std::uint64_t>::max()),
      stock_(driver, page_) {}

Bytes PageSupply::lacking(StreamHeap& heap, const Request& request) noexcept {
  PageRoom room;
  {
    const Guard guard(heap.lock);
    room = find_room(heap, request, page_, shared_.is_capturing());
  }
  const Bytes missing = room.is_found() ? room.missing : round_up(request.size, page_);
  // Not under the heap's lock: whoever has the stock's may be inside a device call (C18).
  return missing - std::min(missing, stock_bytes());
}

Result<Address> PageSupply::grow(StreamHeap& heap, const Request& request) noexcept {
  for (;;) {
    Lifted lifted;
    const Status found = lift(heap, request, &lifted);
    if (found.code() == Code::kOutOfAddresses) {
      // Once more if another thread takes the room of the new segment.
      if (const Status added = add_segment(heap, request); !added.is_ok()) return added;
      continue;
    }
    if (!found.is_ok()) return found;
    bool is_barred = false;
    const Status mapped = map(lifted, &is_barred);
    const Result<Address> ended = end_growth(heap, request, lifted, mapped);
    // Again: each time at least one slot more is no room, and new addresses have none of those.
    if (!is_barred || !driver_.health().is_ok()) return ended;
  }
}

Result<Address> PageSupply::end_growth(StreamHeap& heap, const Request& request,
                                       const Lifted& lifted, Status mapped) noexcept {
  const Guard guard(heap.lock);
  block::BlockPool& pool = heap.pool(request.pool);
  const HeapStats::Values before = HeapStats::current(pool.counts());
  Result<Address> got{kShortOfHostMemory};
  if (mapped.is_ok()) {
    note_memory(heap, request.pool, lifted.room.begin, lifted.room.missing,
                HistoryAction::kSegmentMap);
    const Address address = heap.take_block(request, enter_room(pool, lifted.room), nullptr);
    if (!address.is_null()) got = address;
  } else {
    give_up_room(pool, lifted.room);
    got = mapped;
  }
  count_cuts(heap, request.pool, before);
  return got;
}

Status PageSupply::lift(StreamHeap& heap, const Request& request, Lifted* lifted) noexcept {
  const Guard guard(heap.lock);
  block::BlockPool& pool = heap.pool(request.pool);
  lifted->room = find_room(heap, request, page_, shared_.is_capturing());
  ASHLAR_REQUIRE(lifted->room.is_found(), Code::kOutOfAddresses, "no paged segment has room");
  if (!lift_room(pool, lifted->room)) return kShortOfHostMemory;
  lifted->segment = record_of(pool.view(pool.segment(lifted->room.unmapped)));
  set_gone(*lifted->segment, lifted->room.begin, true);
  for (const block::BlockIndex beside : {lifted->room.below, lifted->room.above}) {
    if (beside != block::kNoBlock) set_gone(*lifted->segment, pool.address(beside), false);
  }
  return Status::ok();
}

Status PageSupply::add_segment(StreamHeap& heap, const Request& request) noexcept {
  Bytes size = kAddressesFirst;
  {
    const Guard guard(heap.lock);
    const Bytes so_far = heap.pool(request.pool).counts().segment_bytes;
    // Plain segments are of any size.
    size = std::clamp(round_down(so_far, page_), size, kAddressesMax);
  }
  const std::optional<Bytes> least = checked_round_up(request.size + page_, page_);
  ASHLAR_REQUIRE(least.has_value(), Code::kOutOfMemory, "more than any device has");
  // First: the limit is a part of what a failure says.
  if (const Status settled = ledger_.settle_limit(); !settled.is_ok()) return settled;
  const Result<device::MemoryInfo> memory = driver_.memory_info();
  if (!memory.is_ok()) return memory.status();
  ASHLAR_REQUIRE(request.size <= memory.value().total, Code::kOutOfMemory,
                 "more than the device has");
  size = std::max(size, *least);
  Result<Address> base = driver_.address_reserve(size, page_);
  while (base.code() == Code::kOutOfAddresses && size > *least) {
    size = std::max(round_down(Bytes{size.count() / 2}, page_), *least);
    base = driver_.address_reserve(size, page_);
  }
  if (base.code() == Code::kOutOfAddresses)
    address_shortages_.fetch_add(1, std::memory_order_relaxed);
  if (!base.is_ok()) return base.status();
  const auto undo = [&](Status status) {
    static_cast<void>(driver_.address_release(base.value(), size));
    return status;
  };
  const Status reserved = shared_.pages.reserve(base.value(), size, {&heap, request.pool});
  if (!reserved.is_ok()) return undo(reserved);
  DeviceSegment* const segment = ledger_.new_record(size);
  if (segment == nullptr) return undo(kShortOfHostMemory);
  segment->base = base.value();
  segment->origin = {};
  segment->pool = request.pool;
  segment->heap.store(&heap, std::memory_order_release);
  const bool has_table = segment->page_table.make(size / page_);
  if (has_table) shared_.pages.insert(*segment);
  block::SegmentIndex index = block::kNoSegment;
  if (has_table) {
    const Guard guard(heap.lock);
    index = block::UnmappedRanges(heap.pool(request.pool))
                .add_segment(segment->base, size, segment->position, StreamHeap::as_word(segment));
    segment->entry.index = static_cast<std::uint32_t>(index);
    segment->entry.shown_in.store(&heap);
  }
  if (index != block::kNoSegment) {
    ledger_.commit(Bytes{}, request.pool);
    return Status::ok();
  }
  if (has_table) shared_.pages.erase(*segment);
  ledger_.recycle(segment);
  return undo(kShortOfHostMemory);
}

Status PageSupply::map(const Lifted& lifted, bool* is_barred) noexcept {
  DeviceSegment& segment = *lifted.segment;
  Growth growth;
  growth.first = (lifted.room.begin - segment.base) / page_;
  growth.count = lifted.room.missing / page_;
  const std::uint64_t generation = shared_.mappings.next_generation();
  Status status = find_pages(segment, &growth);
  *is_barred = growth.is_barred;
  bool has_access = true;
  for (std::uint64_t i = growth.first; i < growth.end() && status.is_ok(); ++i) {
    PageSlot& slot = segment.page_table[i];
    if (!slot.is_mapped) {
      // Only here: whoever takes a mapping back reads it under the stock's lock alone.
      slot.at = address_of(segment, i).value();
      status = driver_.page_map(Address{slot.at}, page_, slot.page->handle);
      if (status.is_ok()) stock_.note_mapped(slot);
      slot.generation = generation;
    }
    has_access = has_access && slot.has_access;
  }
  if (status.is_ok() && !has_access) status = give_access(lifted.room.begin, lifted.room.missing);
  if (!status.is_ok()) return undo(segment, growth), status;
  for (std::uint64_t i = growth.first; i < growth.end(); ++i) {
    PageSlot& slot = segment.page_table[i];
    slot.has_access = true;
    slot.is_coming = slot.was_left = false;
    stock_.settle(slot);
  }
  ledger_.commit_pages(lifted.room.missing, segment.pool);
  tell_mapping(shared_, event_of(segment, lifted.room.begin, lifted.room.missing));
  return status;
}

bool PageSupply::may_reach(std::uint32_t other) noexcept {
  const std::uint64_t bit = other < 64 ? std::uint64_t{1} << other : 0;
  if ((non_peers_.load(std::memory_order_relaxed) & bit) != 0) return false;
  if ((peers_.load(std::memory_order_relaxed) & bit) != 0) return true;
  device::Sharing* const own = driver_.device().sharing();
  device::Sharing* const theirs = shared_.caches[other]->driver().device().sharing();
  if (own == nullptr || theirs == nullptr) return true;  // only an attempt can tell
  const Result<bool> can = theirs->can_reach(*own);
  if (!can.is_ok()) return true;
  (can.value() ? peers_ : non_peers_).fetch_or(bit, std::memory_order_relaxed);
  return can.value();
}

Status PageSupply::give_access(Address at, Bytes size) noexcept {
  const Status own = driver_.page_access(at, size);
  if (!own.is_ok()) return own;
  // A stream of another device may use any block. Where the two are no peers it cannot, and one that is
  // gone will not.
  for (std::uint32_t i = 0; i < shared_.unrecorded.devices(); ++i) {
    Driver& peer = shared_.caches[i]->driver();
    if (&peer == &driver_ || !may_reach(i)) continue;
    const Status given = peer.page_access(at, size);
    if (!given.is_ok() && given.code() != Code::kUnsupported && peer.health().is_ok()) return given;
  }
  return driver_.health();  // by another device's answer this one may be gone too
}

Status PageSupply::find_pages(DeviceSegment& segment, Growth* growth) noexcept {
  PageTable& table = segment.page_table;
  for (std::uint64_t i = growth->first; i < growth->end(); ++i) {
    Status failure;
    table[i].is_coming = stock_.claim(table[i], &failure);
    if (failure.is_ok()) continue;
    table.note_left(table[i], PageSlot::kBarred);
    growth->is_barred = true;
    return failure;
  }
  std::uint64_t missing = 0;
  for (std::uint64_t i = growth->first; i < growth->end(); ++i) {
    PageSlot& slot = table[i];
    if (slot.is_coming) continue;
    slot.page = stock_.take();
    slot.is_coming = slot.page != nullptr;
    missing += !slot.is_coming;
  }
  if (missing == 0) return Status::ok();
  ASHLAR_REQUIRE(reserve_pages(missing), Code::kOutOfMemory, "page_handles_max pages exist");
  if (const Status charged = ledger_.charge(page_ * missing); !charged.is_ok()) {
    pages_made_.fetch_sub(missing, std::memory_order_relaxed);
    const Status health = driver_.health();
    return health.is_ok() ? charged : health;
  }
  Status created = check_free(missing);
  if (created.is_ok()) {
    created =
        headroom_.within<Status>(page_ * missing, [&] { return create(table, growth, missing); });
  }
  ledger_.refund(page_ * (missing - growth->created));
  pages_made_.fetch_sub(missing - growth->created, std::memory_order_relaxed);
  return created;
}

bool PageSupply::reserve_pages(std::uint64_t count) noexcept {
  const std::uint64_t before = pages_made_.fetch_add(count, std::memory_order_relaxed);
  const bool is_within = before <= pages_max_ && count <= pages_max_ - before;
  if (!is_within) pages_made_.fetch_sub(count, std::memory_order_relaxed);
  return is_within;
}

Status PageSupply::check_free(std::uint64_t missing) noexcept {
  if (missing < kPagesAskedFor) return Status::ok();
  const Result<device::MemoryInfo> memory = driver_.memory_info();
  ASHLAR_REQUIRE(!memory.is_ok() || memory.value().free >= page_ * missing, Code::kOutOfMemory,
                 "the device has too little memory");
  return Status::ok();
}

Status PageSupply::create(PageTable& table, Growth* growth, std::uint64_t missing) noexcept {
  for (std::uint64_t i = growth->first; growth->created < missing; ++i) {
    PageSlot& slot = table[i];
    if (slot.is_coming) continue;
    PhysicalPage* const page = stock_.new_record();
    if (page == nullptr) return kShortOfHostMemory;
    const Result<PageHandle> made = driver_.page_create(page_);
    if (!made.is_ok()) return stock_.recycle(page), made.status();
    page->handle = made.value();
    slot.page = page;
    slot.is_coming = true;
    growth->created += 1;
  }
  return Status::ok();
}

void PageSupply::undo(DeviceSegment& segment, const Growth& growth) noexcept {
  for (std::uint64_t i = growth.first; i < growth.end(); ++i) {
    PageSlot& slot = segment.page_table[i];
    if (!slot.is_coming) continue;
    slot.is_coming = false;
    PhysicalPage* const page = slot.page;
    if (!slot.is_mapped) slot.page = nullptr;
    // A refusal leaves one mapping more, to be taken back with the page.
    if (!slot.has_access) static_cast<void>(stock_.unmap(slot));
    stock_.put(page);
  }
  static_cast<void>(release_from_stock(growth.created, DuringCapture::kReleases));
}

Status PageSupply::release_from_stock(std::uint64_t count, DuringCapture during) noexcept {
  Status refused;
  for (; count > 0; --count) {
    PhysicalPage* const page = stock_.take();
    if (page == nullptr) break;
    Status released = stock_.unmap(*page);
    if (during == DuringCapture::kKeeps && shared_.is_capturing()) return stock_.put(page), refused;
    if (released.is_ok()) released = driver_.page_release(page->handle);
    if (released.is_ok()) {
      stock_.recycle(page);
      pages_made_.fetch_sub(1, std::memory_order_relaxed);
      ledger_.refund(page_);
      removals_.fetch_add(1, std::memory_order_relaxed);
    } else {
      stock_.put_last(page);
      if (refused.is_ok()) refused = released;
    }
  }
  return refused;
}

Status PageSupply::take_pages(StreamHeap& heap, DeviceSegment& segment, block::BlockIndex block,
                              PagesTo to) noexcept {
  block::BlockView view{};
  {
    const Guard guard(heap.lock);
    view = heap.pool(segment.pool).view(block);
    set_gone(segment, view.address, true);
    note_memory(heap, segment.pool, view.address, view.size, HistoryAction::kSegmentUnmap);
  }
  Status unmapped;
  {
    UnmappingScope unmapping(shared_, event_of(segment, view.address, view.size));
    if (to == PagesTo::kDriver) unmapped = driver_.page_unmap(view.address, view.size);
    if (unmapped.is_ok()) unmapping.set_gone();
  }
  if (!unmapped.is_ok()) {
    const Guard guard(heap.lock);
    const HeapStats::Values before = HeapStats::current(heap.pool(segment.pool).counts());
    note_memory(heap, segment.pool, view.address, view.size, HistoryAction::kSegmentMap);
    heap.pool(segment.pool).release(block, view.stamp);
    count_cuts(heap, segment.pool, before);
    return unmapped;
  }
  const std::uint64_t first = (view.address - segment.base) / page_;
  for (std::uint64_t i = first; i < first + view.size / page_; ++i) {
    PageSlot& slot = segment.page_table[i];
    PhysicalPage* const page = slot.page;
    if (to == PagesTo::kStock) segment.page_table.note_left(slot, view.stamp);
    if (to == PagesTo::kDriver) {
      stock_.note_unmapped(slot);
    } else {
      // A refusal leaves one mapping more than it should be, to be taken back with the page.
      stock_.limit_mappings(slot, kMappingsMax);
    }
    stock_.put(page);
  }
  ledger_.uncommit_pages(view.size, segment.pool);
  removals_.fetch_add(1, std::memory_order_relaxed);
  {
    const Guard guard(heap.lock);
    block::UnmappedRanges(heap.pool(segment.pool)).unmap(block);
  }
  return Status::ok();
}

Status PageSupply::give_back_addresses(DeviceSegment* segment) noexcept {
  StreamHeap& heap = *segment->heap.load(std::memory_order_relaxed);
  const PoolId id = segment->pool;
  Status released = unmap_all(*segment);
  if (released.is_ok()) {
    shared_.pages.erase(*segment);
    released = driver_.address_release(segment->base, segment->size);
    if (!released.is_ok()) shared_.pages.insert(*segment);
  }
  {
    const Guard guard(heap.lock);
    block::BlockPool& pool = heap.pool(id);
    const auto index = static_cast<block::SegmentIndex>(segment->entry.index);
    if (released.is_ok()) {
      pool.remove_segment(index);
      if (PlaceLog* const places = heap.misses.places[index_of(id)].get()) places->forget_places();
    } else {
      block::UnmappedRanges(pool).unmap(pool.view(index).first);
    }
  }
  if (!released.is_ok()) return released;
  ++segment_removals_;
  ledger_.uncharge(Bytes{}, id);
  ledger_.recycle(segment);
  return released;
}

Status PageSupply::unmap_all(DeviceSegment& segment) noexcept {
  for (std::uint64_t i = 0; i < segment.size / page_; ++i) {
    PageSlot& slot = segment.page_table[i];
    if (slot.at == 0) continue;
    if (const Status unmapped = stock_.unmap(slot); !unmapped.is_ok()) return unmapped;
  }
  return Status::ok();
}

MappingEvent PageSupply::event_of(const DeviceSegment& segment, Address at,
                                  Bytes size) const noexcept {
  const std::uint64_t first = (at - segment.base) / page_;
  MappingEvent event{driver_.traits().id, MappingChange::kMapped, at, size};
  event.generation = segment.page_table.newest_generation({first, first + size / page_});
  return event;
}

}  // namespace ashlar::inline v0::cache
