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
// What can fail. Each of create, map, set access, unmap and release, at any page. A growth that fails
// takes back what it mapped: the room is as before, and pages that it created are with the driver (C13).
// If the driver refuses that too, a page stays mapped without access (page_table.h), or in the stock.
// Both stay charged, and the next growth uses them first.
//
// Invariants:
//   (1) page_table.h's, of every paged segment of a heap;
//   (2) bytes charged = bytes reserved + held_bytes() + bytes of growths under way.
#pragma once

#include <atomic>

#include <ashlar/cache/headroom.h>
#include <ashlar/cache/heap_list.h>
#include <ashlar/cache/page_room.h>
#include <ashlar/cache/page_stock.h>
#include <ashlar/cache/segment_ledger.h>
#include <ashlar/cache/shared_state.h>

namespace ashlar::inline v0::cache {

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

  /// Serves the request, which no free block of the heap fits, after mapping what it lacks. Errors as
  /// SegmentSupply::grow(); kOutOfAddresses if the device has no address range left. If the host has no
  /// memory for the allocation's own records, the pages stay as free memory of the heap.
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);

  /// Takes the memory away from a block in transfer that is whole pages of a paged segment: the block is
  /// unmapped, its pages are in the stock. If the driver refuses, its error: the block is free again,
  /// with its stamp.
  Status unmap(StreamHeap& heap, DeviceSegment& segment, block::BlockIndex block) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  Bytes stock_bytes() const noexcept { return page_ * stock_.count(); }
  /// Gives a page of the stock, if there is one, back to the driver. If the driver refuses, its error: the
  /// page stays in the stock.
  Status drop_page() noexcept ASHLAR_REQUIRES(reclaiming) { return release_from_stock(1); }
  /// Are pages stuck (page_table.h)?
  bool any_stuck() const noexcept { return stuck_.load(std::memory_order_relaxed) != 0; }
  /// Takes the stuck pages back that are under an unmapped block, in transfer; the driver's first error.
  Status unmap_stuck(DeviceSegment& segment, Address begin, Bytes size) noexcept
      ASHLAR_REQUIRES(reclaiming);
  /// Gives back the addresses of a segment that is one unmapped block, in transfer. If the driver
  /// refuses, its error: the block is unmapped again.
  Status give_back_addresses(DeviceSegment* segment) noexcept ASHLAR_REQUIRES(reclaiming);

  /// How often a paged segment was given back: see SegmentSupply::removals().
  std::uint64_t segment_removals() const noexcept ASHLAR_REQUIRES(reclaiming) {
    return segment_removals_;
  }
  /// How often pages were taken away, or left the stock, so far.
  std::uint64_t removals() const noexcept { return removals_.load(std::memory_order_relaxed); }
  /// Bytes charged that no block has: of pages in the stock, and of stuck ones.
  Bytes held_bytes() const noexcept;
  /// nullptr, or the broken invariant. Quiescent.
  const char* validate(const StreamHeap& heap) const noexcept ASHLAR_REQUIRES(heap.lock);

 private:
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
    std::uint64_t end() const noexcept { return first + count; }
  };

  /// Looks for room and lifts it. kOutOfAddresses if there is none; kHostOutOfMemory.
  Status lift(StreamHeap& heap, const Request& request, Lifted* lifted) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// A new paged segment, all of it unmapped, with room for the request.
  Status add_segment(StreamHeap& heap, const Request& request) noexcept ASHLAR_EXCLUDES(heap.lock);
  /// Maps pages over the room. If it fails, none is mapped there, but for stuck ones.
  Status map(const Lifted& lifted) noexcept;
  /// Lets every device of the allocator use the range.
  Status give_access(Address at, Bytes size) noexcept;
  /// Gives every page of the growth a handle: of stuck pages their own, then from the stock, then new ones.
  Status find_handles(PageTable& table, Growth* growth) noexcept;
  /// Has the device as many pages, for all that it says?
  Status check_free(std::uint64_t missing) noexcept;
  /// Creates the `missing` ones.
  Status create(PageTable& table, Growth* growth, std::uint64_t missing) noexcept;
  /// Takes the handles away again: unmaps, and gives back as many as were created.
  void undo(DeviceSegment& segment, const Growth& growth) noexcept;
  /// Gives so many pages of the stock back to the driver; its first error.
  Status release_from_stock(std::uint64_t count) noexcept;
  Address address_of(const DeviceSegment& segment, std::uint64_t page) const noexcept {
    return segment.base + page_ * page;
  }

  Driver& driver_;
  SharedState& shared_;
  SegmentLedger& ledger_;
  Headroom& headroom_;
  const bool is_paged_;
  const Bytes page_;
  PageStock stock_;
  std::atomic<std::uint64_t> stuck_{0};  ///< pages
  std::atomic<std::uint64_t> removals_{0};
  std::uint64_t segment_removals_ ASHLAR_GUARDED_BY(reclaiming) = 0;
};

}  // namespace ashlar::inline v0::cache
