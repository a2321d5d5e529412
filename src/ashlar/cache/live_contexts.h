// Contexts of live allocations, by address: a hash table of a fixed size.
//
// Purpose: an allocation outlives the event that says where it came from.
// Thread safety: none; guarded by the history's lock.
//
// Invariants:
//   (1) at most three quarters of the cells are used, so that a search ends; a context that finds no cell
//       is not kept;
//   (2) between an entry's cell and the cell that its address hashes to, none is empty (linear probing; an
//       erasure moves back what it would cut off).
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <ashlar/base/mix.h>
#include <ashlar/cache/history.h>

namespace ashlar::inline v0::cache {

class LiveContexts {
 public:
  /// Forgets all, and makes room for that many. False if the host has no memory.
  bool make(std::uint64_t entries_max) noexcept {
    std::uint64_t cells = 4;
    while (cells / 4 * 3 < entries_max) cells *= 2;
    cells_.reset(new (std::nothrow) Cell[cells]);
    mask_ = cells_ != nullptr ? cells - 1 : 0;
    used_ = 0;
    return cells_ != nullptr;
  }
  void swap(LiveContexts& other) noexcept {
    std::swap(cells_, other.cells_);
    std::swap(mask_, other.mask_);
    std::swap(used_, other.used_);
  }
  /// Sets the context of that address; null takes it away.
  void put(Address address, ContextId context) noexcept {
    if (cells_ == nullptr) return;
    const std::uint64_t at = find(address);
    const bool is_known = cells_[at].address == address;
    if (context == ContextId{}) {
      if (is_known) erase(at);
      return;
    }
    if (!is_known && used_ >= (mask_ + 1) / 4 * 3) return;  // invariant 1
    used_ += !is_known;
    cells_[at] = {address, context};
  }
  /// The context of that address; 0 if none is kept.
  ContextId of(Address address) const noexcept {
    return cells_ == nullptr ? ContextId{} : cells_[find(address)].context;
  }

 private:
  /// An entry; the null address: none.
  struct Cell {
    Address address;
    ContextId context;
  };
  std::uint64_t home_of(Address address) const noexcept { return mix(address.value()) & mask_; }
  /// The cell of that address, or the empty one where it would go.
  std::uint64_t find(Address address) const noexcept {
    std::uint64_t at = home_of(address);
    while (!cells_[at].address.is_null() && cells_[at].address != address) at = (at + 1) & mask_;
    return at;
  }
  void erase(std::uint64_t hole) noexcept {
    used_ -= 1;
    for (std::uint64_t at = (hole + 1) & mask_; !cells_[at].address.is_null();
         at = (at + 1) & mask_) {
      // Invariant 2: what hashes to behind the hole stays.
      const std::uint64_t from_home = (at - home_of(cells_[at].address)) & mask_;
      if (from_home < ((at - hole) & mask_)) continue;
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole] = Cell{};
  }

  std::unique_ptr<Cell[]> cells_;
  std::uint64_t mask_ = 0;
  std::uint64_t used_ = 0;
};

}  // namespace ashlar::inline v0::cache
