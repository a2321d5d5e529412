// The pages of a paged segment: which page of physical memory is mapped where, and who pins it.
//
// Purpose: a paged segment is a range of addresses; memory is mapped into it page by page. A page may be
// mapped at several addresses at once. At one of them a block may have its memory: that is the page's
// *home*. At the others it left its mapping behind when it moved, so that it can come back without a driver
// call (docs/moving-pages.md).
// Thread safety: `has_access`, `was_left` and `left_stamp` belong to whoever has lifted the block that covers
// the address (C18), or has that heap's lock while the block is free or unmapped; a page's home belongs to the
// same, who writes it under the page stock's lock; the rest is the page stock's (page_stock.h). The counts of
// pins are atomic: pins.h says who changes them. The table itself does not move.
//
// Invariants:
//   (1) the slot of a page's worth of addresses under blocks that are neither unmapped nor in transfer is
//       its page's home: mapped, with access;
//   (2) a slot under an unmapped block is nobody's home;
//   (3) what used a page through an address that is not its home is complete by the time when its home's
//       block is: the block's stamp is not below `left_stamp` if both are of one heap, and only pages
//       without work under way go to another heap, to the stock or to the driver.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include <ashlar/base/step_count.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

struct PageSlot;

/// A page of physical memory.
struct PhysicalPage {
  PageHandle handle;
  PageSlot* home = nullptr;      ///< nullptr: in the stock, or on its way
  PageSlot* mappings = nullptr;  ///< where it is mapped, linked by PageSlot::next
  std::uint32_t mapping_count = 0;
  bool is_in_stock = false;
  PhysicalPage* newer = nullptr;  ///< in the stock, or among spare records
  PhysicalPage* older = nullptr;  ///< in the stock
};

/// A page's worth of addresses.
struct PageSlot {
  /// The `left_stamp` where the driver refused to take a mapping back: no other page is mapped there.
  static constexpr std::uint64_t kBarred = ~std::uint64_t{0};

  PhysicalPage* page;        ///< mapped here, or to be
  PageSlot* next;            ///< where that page is mapped besides
  std::uint64_t at;          ///< the address; known once a page was mapped
  std::uint64_t generation;  ///< of the mapping (Mappings::next_generation), while is_mapped
  bool is_mapped;            ///< is `page` mapped here?
  bool has_access;           ///< may every device of the allocator use the mapping?
  bool is_coming;            ///< a growth makes it the page's home
  /// Of the first page of a block in transfer: a history says that the heap has no memory there. Guarded by
  /// the heap's lock.
  bool is_gone;
  bool was_left;  ///< a page went to another home, and may still be mapped here
  /// The stamp of the heap's last use through this address, from when that page left on.
  std::uint64_t left_stamp;
};

class PageTable {
 public:
  using PinCount = std::atomic<std::uint32_t>;
  /// Pages [first, end).
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };

  bool is_made() const noexcept { return slots_ != nullptr; }
  /// Makes a table of `pages` empty slots. False if the host has no memory.
  bool make(std::uint64_t pages) noexcept {
    // Zero bytes that the host provides as they are written: most pages never are.
    slots_.reset(static_cast<PageSlot*>(std::calloc(pages, sizeof(PageSlot))));
    pins_.reset(new (std::nothrow) PinCount[pages]());
    if (pins_ == nullptr) slots_.reset();
    return is_made();
  }
  void drop() noexcept {
    slots_.reset();
    pins_.reset();
    was_left_.store(false, std::memory_order_relaxed);
  }
  /// Did a page ever leave one of the slots (PageSlot::was_left)? Any thread.
  bool was_left() const noexcept { return was_left_.load(std::memory_order_relaxed); }
  /// A page leaves the slot, or cannot be taken from it.
  void note_left(PageSlot& slot, std::uint64_t stamp) noexcept {
    slot.was_left = true;
    slot.left_stamp = stamp;
    was_left_.store(true, std::memory_order_relaxed);
  }
  PageSlot& operator[](std::uint64_t page) noexcept { return slots_.get()[page]; }
  const PageSlot& operator[](std::uint64_t page) const noexcept { return slots_.get()[page]; }

  /// The newest generation of the pages. REQUIRES: they are mapped, and nobody lifts their blocks.
  std::uint64_t newest_generation(Run pages) const noexcept {
    std::uint64_t newest = 0;
    for (std::uint64_t i = pages.first; i < pages.end; ++i)
      newest = std::max(newest, (*this)[i].generation);
    return newest;
  }

  // Pins.
  PinCount& pins_of(std::uint64_t page) noexcept { return pins_[page]; }
  bool is_pinned(std::uint64_t page) const noexcept {
    return pins_[page].load(std::memory_order_acquire) != 0;
  }
  /// The same of a slot of this table.
  bool is_pinned(const PageSlot& slot) const noexcept {
    return is_pinned(static_cast<std::uint64_t>(&slot - slots_.get()));
  }
  /// The last pages in a row of the range that nobody pins, at most `most`; none if all are pinned.
  Run last_unpinned(Run in, std::uint64_t most) const noexcept {
    constexpr std::uint64_t kCountsPerStep = 16;  // of a cache line
    Run found{in.end, in.end};
    while (found.end > in.first && is_pinned(found.end - 1)) --found.end;
    found.first = found.end;
    while (found.first > in.first && found.end - found.first < most && !is_pinned(found.first - 1))
      --found.first;
    count_steps((in.end - found.first) / kCountsPerStep + 1);
    return found;
  }

 private:
  struct Free {
    void operator()(PageSlot* slots) const noexcept { std::free(slots); }
  };
  std::unique_ptr<PageSlot, Free> slots_;
  std::unique_ptr<PinCount[]> pins_;
  std::atomic<bool> was_left_{false};
};

}  // namespace ashlar::inline v0::cache
