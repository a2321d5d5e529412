// From a block's address to its record: an open-addressing hash table of 8-byte cells.
//
// Purpose: free(p) begins with an address; this finds the block in one or two cache lines.
// Thread safety: none; the pool's owner brings the lock. const members may run together.
//
// Invariants:
//   (1) At most half of the cells are full, so every probe ends.
//   (2) No empty cell lies between an entry's home and the entry (linear probing; deletion shifts entries back, so there
//       are no tombstones and the table does not decay).
//   (3) A cell keeps 32 bits of its address's hash: its home is the top bits of that, and a shift reads no record. Equal
//       hashes are told apart by the records' addresses.
//
// Source: D. Knuth, The Art of Computer Programming vol. 3, 6.4, algorithms L and R; the multiplier is 2^64 / golden ratio.
#pragma once

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
  std::uint32_t count() const { return count_; }
  std::uint32_t capacity() const { return cells_ == nullptr ? 0 : mask_ + 1; }

  /// Makes sure that one insert() succeeds. False if the host has no memory (nothing changed). Amortised O(1).
  bool reserve_one() noexcept { return count_ < limit_ || grow(); }

  /// Adds `index` under `address`. REQUIRES: reserve_one() held; the address is not in the table.
  void insert(std::uint64_t address, std::uint32_t index) noexcept {
    ASHLAR_ASSERT(count_ < limit_, "address map(1): insert() without a reserved cell");
    put(Cell{hash(address), index});
    count_ += 1;
  }

  /// The record at `address`, or kNone.
  std::uint32_t find(std::uint64_t address, const Slab<BlockRecord>& records) const noexcept {
    const std::uint32_t cell = cell_of(address, records);
    return cell == kNone ? kNone : cells_[cell].index;
  }

  /// Drops the entry of `index`. REQUIRES: insert(address, index) came before. Never allocates.
  void erase(std::uint64_t address, std::uint32_t index) noexcept {
    const std::uint32_t h = hash(address);
    std::uint32_t hole = home(h);
    while (cells_[hole].index != index) {
      ASHLAR_ASSERT(cells_[hole].index != kNone, "address map(2): an entry is missing");
      hole = (hole + 1) & mask_;
    }
    for (std::uint32_t at = (hole + 1) & mask_; cells_[at].index != kNone; at = (at + 1) & mask_) {
      // The entry at `at` may fill the hole unless its home lies in (hole, at], cyclically.
      if (((at - home(cells_[at].hash)) & mask_) >= ((at - hole) & mask_)) {
        cells_[hole] = cells_[at];
        hole = at;
      }
    }
    cells_[hole].index = kNone;
    count_ -= 1;
  }

  /// Do the cells and the count agree? Cost: O(capacity).
  bool is_consistent() const noexcept {
    std::uint32_t full = 0;
    for (std::uint32_t i = 0; i < capacity(); ++i) full += cells_[i].index != kNone;
    return full == count_ && count_ <= limit_;
  }

 private:
  friend struct PoolPeer;

  struct Cell {
    std::uint32_t hash = 0;
    std::uint32_t index = kNone;
  };
  static constexpr unsigned kCapacityBitsFirst = 5;
  static constexpr unsigned kCapacityBitsMax = 31;

  static std::uint32_t hash(std::uint64_t address) {
    return static_cast<std::uint32_t>((address * 0x9e3779b97f4a7c15u) >> 32);
  }
  std::uint32_t home(std::uint32_t h) const { return h >> shift_; }

  std::uint32_t cell_of(std::uint64_t address, const Slab<BlockRecord>& records) const noexcept {
    if (count_ == 0) return kNone;
    const std::uint32_t h = hash(address);
    for (std::uint32_t at = home(h); cells_[at].index != kNone; at = (at + 1) & mask_) {
      if (cells_[at].hash == h && records[cells_[at].index].address == address) return at;
    }
    return kNone;
  }

  void put(Cell cell) noexcept {
    std::uint32_t at = home(cell.hash);
    while (cells_[at].index != kNone) at = (at + 1) & mask_;
    cells_[at] = cell;
  }

  bool grow() noexcept {
    const unsigned bits = cells_ == nullptr ? kCapacityBitsFirst : 33 - shift_;
    if (bits > kCapacityBitsMax) return false;
    const std::uint32_t capacity_before = capacity();
    std::unique_ptr<Cell[]> cells(new (std::nothrow) Cell[std::size_t{1} << bits]);
    if (cells == nullptr) return false;
    std::swap(cells_, cells);
    shift_ = 32 - bits;
    mask_ = (1u << bits) - 1;
    limit_ = 1u << (bits - 1);
    for (std::uint32_t i = 0; i < capacity_before; ++i) {
      if (cells[i].index != kNone) put(cells[i]);
    }
    return true;
  }

  std::unique_ptr<Cell[]> cells_;
  std::uint32_t mask_ = 0;
  std::uint32_t limit_ = 0;
  std::uint32_t count_ = 0;
  unsigned shift_ = 0;
};

}  // namespace block
}  // namespace v0
}  // namespace ashlar
