// The pages of a paged segment: which handle of physical memory is mapped where.
//
// Purpose: a paged segment is a range of addresses; memory is mapped into it page by page, and a page
// may serve another address later (docs/moving-pages.md).
// Thread safety: none as a whole. A slot belongs to whoever has lifted the block that covers its page
// (C18), so that two threads never touch one slot; the table itself does not move.
//
// Invariants:
//   (1) a page under a block that is neither unmapped nor in transfer is mapped, with access;
//   (2) a page under an unmapped block is not, unless the driver refused to take a mapping back: such a
//       page is *stuck*. It has no access, and the next growth there finds it mapped.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

class PageTable {
 public:
  struct Slot {
    std::uint64_t handle;  ///< a PageHandle's value, while is_mapped or in a growth's hands
    bool is_mapped;
  };

  bool is_made() const noexcept { return slots_ != nullptr; }
  /// Makes a table of `pages` empty slots. False if the host has no memory.
  bool make(std::uint64_t pages) noexcept {
    // Zero bytes that the host provides as they are written: most pages never are.
    slots_.reset(static_cast<Slot*>(std::calloc(pages, sizeof(Slot))));
    return is_made();
  }
  void drop() noexcept { slots_.reset(); }
  Slot& operator[](std::uint64_t page) noexcept { return slots_.get()[page]; }
  const Slot& operator[](std::uint64_t page) const noexcept { return slots_.get()[page]; }

 private:
  struct Free {
    void operator()(Slot* slots) const noexcept { std::free(slots); }
  };
  std::unique_ptr<Slot, Free> slots_;
};

}  // namespace ashlar::inline v0::cache
