// From a block's address to its record: an open-addressing hash table of record indices.
//
// Purpose: free(p) begins with an address; this finds the block in one cell and the record it names.
// Thread safety: none; the pool's owner brings the lock. const members may run together.
//
// Invariants:
//   (1) At most a quarter of the cells are full, so every probe ends, nearly always at its first cell: what a probe
//       costs is the mispredicted branch of going on (measured), and 4-byte cells pay for the room.
//   (2) No empty cell lies between an entry's home and the entry (linear probing; deletion shifts entries back, so
//       there are no tombstones and the table does not decay).
//
// Source: D. Knuth, The Art of Computer Programming vol. 3, 6.4, algorithms L and R; multiplier 2^64 / golden ratio.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <ashlar/block/record.h>

namespace ashlar {
inline namespace v0 {
namespace block {

class AddressMap {
 public:
  using Records = Slab<BlockRecord>;

  std::uint32_t count() const { return count_; }
  std::uint64_t capacity() const { return cells_ == nullptr ? 0 : std::uint64_t{mask_} + 1; }

  /// Makes sure that one insert() succeeds. False if the host has no memory (nothing changed). Amortised O(1).
  bool reserve_one(const Records& records) noexcept { return count_ < limit_ || grow(records); }

  /// Adds `index`, whose record has its address. REQUIRES: reserve_one() held; the address is not in the table.
  void insert(const Records& records, std::uint32_t index) noexcept {
    ASHLAR_ASSERT(count_ < limit_, "address map(1): insert() without a reserved cell");
    put(records[index].address, index);
    count_ += 1;
  }

  /// The record at `address`, or kNone.
  std::uint32_t find(const Records& records, std::uint64_t address) const noexcept {
    if (count_ == 0) return kNone;
    for (std::uint32_t at = home(address);; at = (at + 1) & mask_) {
      const std::uint32_t index = cells_[at];
      if (index == kNone || records[index].address == address) return index;
    }
  }

  /// Drops the entry of `index`. REQUIRES: it is in the table, and its record has the address it had then.
  void erase(const Records& records, std::uint32_t index) noexcept {
    std::uint32_t hole = home(records[index].address);
    while (cells_[hole] != index) {
      ASHLAR_ASSERT(cells_[hole] != kNone, "address map(2): an entry is missing");
      hole = (hole + 1) & mask_;
    }
    for (std::uint32_t at = (hole + 1) & mask_; cells_[at] != kNone; at = (at + 1) & mask_) {
      // The entry at `at` may fill the hole unless its home lies in (hole, at], cyclically.
      if (((at - home(records[cells_[at]].address)) & mask_) >= ((at - hole) & mask_)) {
        cells_[hole] = cells_[at];
        hole = at;
      }
    }
    cells_[hole] = kNone;
    count_ -= 1;
  }

  /// Do the cells and the count agree? Cost: O(capacity).
  bool is_consistent() const noexcept {
    std::uint32_t full = 0;
    for (std::uint64_t i = 0; i < capacity(); ++i) full += cells_[i] != kNone;
    return full == count_ && count_ <= limit_;
  }

 private:
  friend struct PoolPeer;

  static constexpr unsigned kCapacityBitsFirst = 6;
  static constexpr unsigned kCapacityBitsMax = 32;
  static constexpr unsigned kLoadBits = 2;  ///< invariant (1): a quarter

  std::uint32_t home(std::uint64_t address) const {
    return static_cast<std::uint32_t>((address * 0x9e3779b97f4a7c15u) >> shift_);
  }

  void put(std::uint64_t address, std::uint32_t index) noexcept {
    std::uint32_t at = home(address);
    while (cells_[at] != kNone) at = (at + 1) & mask_;
    cells_[at] = index;
  }

  [[gnu::cold]] bool grow(const Records& records) noexcept {
    const unsigned bits = cells_ == nullptr ? kCapacityBitsFirst : 65 - shift_;
    if (bits > kCapacityBitsMax) return false;
    const std::uint64_t capacity_before = capacity();
    const std::uint64_t capacity_after = std::uint64_t{1} << bits;
    std::unique_ptr<std::uint32_t[]> cells(new (std::nothrow) std::uint32_t[capacity_after]);
    if (cells == nullptr) return false;
    std::fill(cells.get(), cells.get() + capacity_after, kNone);
    std::swap(cells_, cells);
    shift_ = 64 - bits;
    mask_ = static_cast<std::uint32_t>(capacity_after - 1);
    limit_ = static_cast<std::uint32_t>(capacity_after >> kLoadBits);
    for (std::uint64_t i = 0; i < capacity_before; ++i) {
      if (cells[i] != kNone) put(records[cells[i]].address, cells[i]);
    }
    return true;
  }

  std::unique_ptr<std::uint32_t[]> cells_;
  std::uint32_t mask_ = 0;
  std::uint32_t limit_ = 0;
  std::uint32_t count_ = 0;
  unsigned shift_ = 0;
};

}  // namespace block
}  // namespace v0
}  // namespace ashlar
