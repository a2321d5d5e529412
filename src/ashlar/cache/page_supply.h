// Pages from the driver, to an address and away from it: growth of paged segments, and what takes
// memory out of them.
//
// Purpose: with virtual memory a heap grows by the pages that a request lacks, next to free bytes where
// it can, and memory goes back page by page. A page that is taken away may be mapped at another address
// without going back to the driver (PageStock): it moves.
// Thread safety: any thread; blocks on their way are in transfer in their pool, where nobody finds them.
// C18: each device call is made with no heap lock held.
// D4: unmap() is called only for blocks whose last use is known complete.
//
// What can fail. Each of create, map, set access, unmap and release, at any page. After a growth that fails
// the room is as before, and as many pages as it created are the driver's again (C13). If the driver refuses
// that too, pages stay in the stock, mapped perhaps. They stay charged, and the next growth uses them first.
//
// Invariants:
//   (1) page_table.h's, of every paged segment of a heap;
//   (2) no more than Config::page_handles_max pages exist;
//   (3) bytes charged = bytes reserved + stock_bytes() + bytes of growths under way.
#pragma once

#include <atomic>

#include <ashlar/cache/headroom.h>
#include <ashlar/cache/heap_list.h>
#include <ashlar/cache/page_room.h>
#include <ashlar/cache/page_stock.h>
#include <ashlar/cache/segment_ledger.h>
#include <ashlar/cache/shared_state.h>

namespace ashlar::inline v0::cache {

/// Where pages go that are taken away.
enum class PagesTo : std::uint8_t {
  kDriver,
  kStock,  ///< to be at home elsewhere
};

class PageSupply {
 public:
  PageSupply(Driver& driver, SharedState& shared, SegmentLedger& ledger,
             Headroom& headroom) noexcept;

  /// Does the heap grow by pages? Not one of a memory pool without splits: free pages would merge into
  /// blocks of any size, which are handed out whole.
  bool serves(const StreamHeap& heap) const noexcept {
    const MemoryPoolOptions& options = heap.membership.options;
    return is_paged_ && options.growth == nullptr && !options.no_split;
  }
  Bytes page() const noexcept { return page_; }
  /// Would pages for so many bytes, all of them new, be more than Config::page_handles_max?
  bool is_over_budget(Bytes size) const noexcept {
    const std::uint64_t count = size / page_;
    return count > pages_max_ || pages_made_.load(std::memory_order_relaxed) > pages_max_ - count;
  }
  /// How many bytes of pages the request lacks, beside those of the stock.
  Bytes lacking(StreamHeap& heap, const Request& request) noexcept ASHLAR_EXCLUDES(heap.lock);

  /// Serves the request, which no free block of the heap fits, after mapping what it lacks. Errors as
  /// SegmentSupply::grow(); kOutOfAddresses if the device has no address range left. If the host has no
  /// memory for the allocation's own records, the pages stay as free memory of the heap.
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);

  /// Takes the pages of a block in transfer into the stock; the block gets the state kUnmapped. With PagesTo::kStock
  /// the driver's mapping stays (page_table.h), with PagesTo::kDriver it is taken back. If the driver refuses, its
  /// error: the block is free again, with its stamp. REQUIRES: the block is whole pages of a paged segment.
  Status take_pages(StreamHeap& heap, DeviceSegment& segment, block::BlockIndex block,
                    PagesTo to) noexcept ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Bytes of pages in the stock: charged, and no block has them.
  Bytes stock_bytes() const noexcept { return page_ * stock_.count(); }
  /// Gives a page of the stock, if there is one, back to the driver. If the driver refuses, its error: the
  /// page stays in the stock.
  Status drop_page() noexcept ASHLAR_REQUIRES(reclaiming) {
    return release_from_stock(1, DuringCapture::kKeeps);
  }
  /// Gives back the addresses of a segment that is one unmapped block, in transfer. If the driver
  /// refuses, its error: the block is unmapped again.
  Status give_back_addresses(DeviceSegment* segment) noexcept ASHLAR_REQUIRES(reclaiming);
  PageStock& stock() noexcept { return stock_; }

  /// How often a paged segment was given back: see SegmentSupply::removals().
  std::uint64_t segment_removals() const noexcept ASHLAR_REQUIRES(reclaiming) {
    return segment_removals_;
  }
  /// How often the device had no range of addresses for a growth so far.
  std::uint64_t address_shortages() const noexcept {
    return address_shortages_.load(std::memory_order_relaxed);
  }
  /// How often pages were taken away, or left the stock, so far.
  std::uint64_t removals() const noexcept { return removals_.load(std::memory_order_relaxed); }
  /// nullptr, or the broken invariant. Quiescent.
  const char* validate(const StreamHeap& heap) const noexcept ASHLAR_REQUIRES(heap.lock);

 private:
  enum class DuringCapture : std::uint8_t { kKeeps, kReleases };
  /// A room of a segment, lifted out of its pool.
  struct Lifted {
    DeviceSegment* segment = nullptr;
    PageRoom room;
  };
  /// The pages of one growth.
  struct Growth {
    std::uint64_t first = 0;  ///< number in the segment
    std::uint64_t count = 0;
    std::uint64_t created = 0;
    bool is_barred = false;  ///< the driver refused to take a mapping back that is in the way
    std::uint64_t end() const noexcept { return first + count; }
  };

  /// Looks for room and lifts it. kOutOfAddresses if there is none; kHostOutOfMemory.
  Status lift(StreamHeap& heap, const Request& request, Lifted* lifted) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// A new paged segment, all of it unmapped, with room for the request.
  Status add_segment(StreamHeap& heap, const Request& request) noexcept ASHLAR_EXCLUDES(heap.lock);
  /// Makes the room the home of as many pages. If it fails, the room is no page's home; `*is_barred` says whether a
  /// mapping that the driver does not take back was in the way.
  Status map(const Lifted& lifted, bool* is_barred) noexcept;
  /// Serves the request from the room, or gives the room up if nothing could be mapped there.
  Result<Address> end_growth(StreamHeap& heap, const Request& request, const Lifted& lifted,
                             Status mapped) noexcept ASHLAR_EXCLUDES(heap.lock);
  /// A block that begins there is in transfer: PageSlot::is_gone of it.
  void set_gone(DeviceSegment& segment, Address at, bool is_gone) const noexcept {
    segment.page_table[(at - segment.base) / page_].is_gone = is_gone;
  }
  /// May the allocator's other device use this one's memory? Asks the driver until it knows, of the first 64 devices once: a driver
  /// refuses access to devices that are no peers with various errors.
  bool may_reach(std::uint32_t other) noexcept;
  /// Lets every device of the allocator use the range.
  Status give_access(Address at, Bytes size) noexcept;
  /// Gives every slot of the growth a page: that which is mapped there, if it is in the stock; another of
  /// the stock; a new one.
  Status find_pages(DeviceSegment& segment, Growth* growth) noexcept;
  /// Has the device as many pages, for all that it says?
  Status check_free(std::uint64_t missing) noexcept;
  /// Creates the `missing` ones.
  Status create(PageTable& table, Growth* growth, std::uint64_t missing) noexcept;
  /// Counts so many pages that are about to be created. False, and none is counted, if the budget has no room.
  bool reserve_pages(std::uint64_t count) noexcept;
  /// Puts the pages into the stock, and gives as many back to the driver as were created.
  void undo(DeviceSegment& segment, const Growth& growth) noexcept;
  /// Takes back what is mapped in a segment that is one unmapped block; the driver's first error.
  Status unmap_all(DeviceSegment& segment) noexcept;
  /// Gives so many pages of the stock back to the driver, those that it does not refuse; its first
  /// error. A growth does so under the relaxed mode, others leave the rest to a capture (C9).
  Status release_from_stock(std::uint64_t count, DuringCapture during) noexcept;
  /// Memory of whole pages in transfer, all of them mapped.
  MappingEvent event_of(const DeviceSegment& segment, Address at, Bytes size) const noexcept;
  Address address_of(const DeviceSegment& segment, std::uint64_t page) const noexcept {
    return segment.base + page_ * page;
  }

  Driver& driver_;
  SharedState& shared_;
  SegmentLedger& ledger_;
  Headroom& headroom_;
  // A bit for each of the first 64 devices, once the driver has said it.
  std::atomic<std::uint64_t> peers_{0};      ///< it can use this one's memory
  std::atomic<std::uint64_t> non_peers_{0};  ///< it cannot
  const bool is_paged_;
  const Bytes page_;
  const std::uint64_t pages_max_;
  PageStock stock_;
  std::atomic<std::uint64_t> pages_made_{0};  ///< those that exist, and those that are being made
  std::atomic<std::uint64_t> removals_{0};
  std::atomic<std::uint64_t> address_shortages_{0};
  std::uint64_t segment_removals_ ASHLAR_GUARDED_BY(reclaiming) = 0;
};

}  // namespace ashlar::inline v0::cache
