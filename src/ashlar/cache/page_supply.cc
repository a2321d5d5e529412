#include <ashlar/cache/page_supply.h>

#include <algorithm>
#include <optional>

#include <ashlar/base/checked.h>
#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/host_refusals.h>
#include <ashlar/cache/segment_supply.h>
#include <ashlar/cache/stream_heap_inl.h>

namespace ashlar::inline v0::cache {
namespace {

/// The addresses of a heap's first paged segment, and the most of a later one, which has as many as all
/// before it. Addresses cost no memory; a page map entry for each page does.
constexpr Bytes kAddressesFirst = 4_GiB;
constexpr Bytes kAddressesMax = 256_GiB;
/// For so many pages and more a growth asks whether the device has them, before it creates the first: one that
/// must fail would otherwise take all that others could have.
constexpr std::uint64_t kPagesAskedFor = 2;

}  // namespace

PageSupply::PageSupply(Driver& driver, SharedState& shared, SegmentLedger& ledger,
                       Headroom& headroom) noexcept
    : driver_(driver),
      shared_(shared),
      ledger_(ledger),
      headroom_(headroom),
      is_paged_(shared.config.backing == Backing::kPages && driver.traits().has_virtual_memory),
      page_(round_up(kSegmentBytesMin, driver.traits().page_granularity)) {}

Result<Address> PageSupply::grow(StreamHeap& heap, const Request& request) noexcept {
  Lifted lifted;
  for (;;) {
    const Status found = lift(heap, request, &lifted);
    if (found.is_ok()) break;
    if (found.code() != Code::kOutOfAddresses) return found;
    // Once more if another thread takes the room of the new segment.
    if (const Status added = add_segment(heap, request); !added.is_ok()) return added;
  }
  const Status mapped = map(lifted);
  const Guard guard(heap.lock);
  block::BlockPool& pool = heap.pool(request.pool);
  const HeapStats::Values before = HeapStats::current(pool.counts());
  Result<Address> got{kShortOfHostMemory};
  if (mapped.is_ok()) {
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
  lifted->room = find_room(pool, request.size, page_);
  ASHLAR_REQUIRE(lifted->room.is_found(), Code::kOutOfAddresses, "no paged segment has room");
  if (!lift_room(pool, lifted->room)) return kShortOfHostMemory;
  lifted->segment = record_of(pool.view(pool.segment(lifted->room.unmapped)));
  return Status::ok();
}

Status PageSupply::add_segment(StreamHeap& heap, const Request& request) noexcept {
  Bytes size = kAddressesFirst;
  {
    const Guard guard(heap.lock);
    size = std::clamp(heap.pool(request.pool).counts().segment_bytes, size, kAddressesMax);
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
  segment->source = nullptr;
  segment->pool = request.pool;
  segment->heap.store(&heap, std::memory_order_release);
  const bool has_table = segment->page_table.make(size / page_);
  if (has_table) shared_.pages.insert(*segment);
  block::SegmentIndex index = block::kNoSegment;
  if (has_table) {
    const Guard guard(heap.lock);
    index = block::UnmappedRanges(heap.pool(request.pool))
                .add_segment(segment->base, size, segment->position, StreamHeap::as_word(segment));
    segment->index = static_cast<std::uint32_t>(index);
  }
  if (index != block::kNoSegment) {
    ledger_.commit(Bytes{}, request.pool);
    return Status::ok();
  }
  if (has_table) shared_.pages.erase(*segment);
  ledger_.recycle(segment);
  return undo(kShortOfHostMemory);
}

Status PageSupply::map(const Lifted& lifted) noexcept {
  DeviceSegment& segment = *lifted.segment;
  Growth growth;
  growth.first = (lifted.room.begin - segment.base) / page_;
  growth.count = lifted.room.missing / page_;
  // So that undo() can put each page there.
  if (!stock_.reserve(growth.count)) return kShortOfHostMemory;
  Status status = find_handles(segment.page_table, &growth);
  for (std::uint64_t i = growth.first; i < growth.end() && status.is_ok(); ++i) {
    PageTable::Slot& slot = segment.page_table[i];
    if (slot.is_mapped) continue;
    status = driver_.page_map(address_of(segment, i), page_, PageHandle{slot.handle});
    slot.is_mapped = status.is_ok();
  }
  if (status.is_ok()) status = give_access(lifted.room.begin, lifted.room.missing);
  if (status.is_ok()) {
    stock_.give_up(growth.count);
    ledger_.commit_pages(lifted.room.missing, segment.pool);
  } else {
    undo(segment, growth);
  }
  return status;
}

Status PageSupply::give_access(Address at, Bytes size) noexcept {
  const Status own = driver_.page_access(at, size);
  if (!own.is_ok()) return own;
  // A stream of another device may use any block. Where the two are no peers it cannot, and one that is
  // gone will not.
  for (std::uint32_t i = 0; i < shared_.unrecorded.devices(); ++i) {
    Driver& peer = shared_.caches[i]->driver();
    if (&peer == &driver_) continue;
    const Status given = peer.page_access(at, size);
    if (!given.is_ok() && given.code() != Code::kUnsupported && peer.health().is_ok()) return given;
  }
  return driver_.health();  // by another device's answer this one may be gone too
}

Status PageSupply::find_handles(PageTable& table, Growth* growth) noexcept {
  std::uint64_t missing = 0;
  for (std::uint64_t i = growth->first; i < growth->end(); ++i) {
    PageTable::Slot& slot = table[i];
    if (slot.is_mapped) {
      stuck_.fetch_sub(1, std::memory_order_relaxed);
    } else if (const std::optional<PageHandle> spare = stock_.take()) {
      slot.handle = spare->value();
    } else {
      missing += 1;
    }
  }
  if (missing == 0) return Status::ok();
  if (const Status charged = ledger_.charge(page_ * missing); !charged.is_ok()) {
    const Status health = driver_.health();
    return health.is_ok() ? charged : health;
  }
  Status created = check_free(missing);
  if (created.is_ok()) {
    created =
        headroom_.within<Status>(page_ * missing, [&] { return create(table, growth, missing); });
  }
  ledger_.refund(page_ * (missing - growth->created));
  return created;
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
    PageTable::Slot& slot = table[i];
    if (slot.handle != 0) continue;
    const Result<PageHandle> made = driver_.page_create(page_);
    if (!made.is_ok()) return made.status();
    slot.handle = made.value().value();
    growth->created += 1;
  }
  return Status::ok();
}

void PageSupply::undo(DeviceSegment& segment, const Growth& growth) noexcept {
  std::uint64_t put = 0;
  for (std::uint64_t i = growth.first; i < growth.end(); ++i) {
    PageTable::Slot& slot = segment.page_table[i];
    if (slot.is_mapped) slot.is_mapped = !driver_.page_unmap(address_of(segment, i), page_).is_ok();
    if (slot.is_mapped) {
      stuck_.fetch_add(1, std::memory_order_relaxed);
    } else if (slot.handle != 0) {
      stock_.put(PageHandle{slot.handle});
      slot.handle = 0;
      put += 1;
    }
  }
  stock_.give_up(growth.count - put);
  static_cast<void>(release_from_stock(growth.created));
}

Status PageSupply::release_from_stock(std::uint64_t count) noexcept {
  for (; count > 0; --count) {
    const std::optional<PageHandle> page = stock_.take();
    if (!page) break;
    const Status released = driver_.page_release(*page);
    if (!released.is_ok()) {
      stock_.put_back(*page);
      return released;
    }
    ledger_.refund(page_);
    removals_.fetch_add(1, std::memory_order_relaxed);
  }
  return Status::ok();
}

Status PageSupply::unmap(StreamHeap& heap, DeviceSegment& segment,
                         block::BlockIndex block) noexcept {
  block::BlockView view{};
  {
    const Guard guard(heap.lock);
    view = heap.pool(segment.pool).view(block);
  }
  const std::uint64_t first = (view.address - segment.base) / page_;
  const std::uint64_t count = view.size / page_;
  Status unmapped = kShortOfHostMemory;
  if (!stock_.reserve(count)) {
    HostRefusals::note();
  } else {
    unmapped = driver_.page_unmap(view.address, view.size);
    if (!unmapped.is_ok()) stock_.give_up(count);
  }
  if (!unmapped.is_ok()) {
    const Guard guard(heap.lock);
    const HeapStats::Values before = HeapStats::current(heap.pool(segment.pool).counts());
    heap.pool(segment.pool).release(block, view.stamp);
    count_cuts(heap, segment.pool, before);
    return unmapped;
  }
  for (std::uint64_t i = first; i < first + count; ++i) {
    PageTable::Slot& slot = segment.page_table[i];
    stock_.put(PageHandle{slot.handle});
    slot = {};
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
  Status released = unmap_stuck(*segment, segment->base, segment->size);
  if (released.is_ok()) {
    shared_.pages.erase(*segment);
    released = driver_.address_release(segment->base, segment->size);
    if (!released.is_ok()) shared_.pages.insert(*segment);
  }
  {
    const Guard guard(heap.lock);
    block::BlockPool& pool = heap.pool(id);
    const auto index = static_cast<block::SegmentIndex>(segment->index);
    if (released.is_ok()) {
      pool.remove_segment(index);
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

Status PageSupply::unmap_stuck(DeviceSegment& segment, Address begin, Bytes size) noexcept {
  const std::uint64_t first = (begin - segment.base) / page_;
  for (std::uint64_t i = first; i < first + size / page_ && any_stuck(); ++i) {
    PageTable::Slot& slot = segment.page_table[i];
    if (!slot.is_mapped) continue;
    if (!stock_.reserve(1)) return HostRefusals::note(), kShortOfHostMemory;
    const Status unmapped = driver_.page_unmap(address_of(segment, i), page_);
    if (!unmapped.is_ok()) {
      stock_.give_up(1);
      return unmapped;
    }
    stuck_.fetch_sub(1, std::memory_order_relaxed);
    stock_.put(PageHandle{slot.handle});
    slot = {};
    if (const Status released = release_from_stock(1); !released.is_ok()) return released;
  }
  return Status::ok();
}

Bytes PageSupply::held_bytes() const noexcept {
  return page_ * (stock_.count() + stuck_.load(std::memory_order_relaxed));
}

const char* PageSupply::validate(const StreamHeap& heap) const noexcept {
  if (stock_.promised() != 0) return "page supply: a growth has kept room in the stock";
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
      const DeviceSegment* const segment = record_of(pool.view(at));
      if (!segment->page_table.is_made()) continue;
      for (auto b = pool.view(at).first; b != block::kNoBlock; b = pool.next(b)) {
        const block::BlockView view = pool.view(b);
        if (view.state == BlockState::kUnmapped) {
          if ((view.address - segment->base) % page_ != 0 || view.size % page_ != 0)
            return "page supply(1): an unmapped block is not whole pages";
          continue;
        }
        const std::uint64_t end = (view.address + (view.size - Bytes{1}) - segment->base) / page_;
        for (std::uint64_t i = (view.address - segment->base) / page_; i <= end; ++i) {
          if (!segment->page_table[i].is_mapped) return "page table(1): a block lacks a page";
        }
      }
    }
  }
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
