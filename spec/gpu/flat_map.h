// FlatMap: an open-addressing map from non-zero 64-bit keys to 32-bit values.
//
// Thread safety: none. Cost: O(1) expected; no allocation once it has reached its size; erase
// leaves no tombstone.
// Source: linear probing with backward-shift deletion (Knuth, vol. 3, 6.4, algorithm R).
#pragma once

#include <cstdint>
#include <vector>

namespace ashlar::spec {

class FlatMap {
 public:
  static constexpr std::uint32_t kAbsent = 0xffffffff;

  /// The key's value, or kAbsent.
  std::uint32_t find(std::uint64_t key) const {
    if (cells_.empty()) return kAbsent;
    for (std::size_t i = home(key);; i = (i + 1) & mask()) {
      if (cells_[i].key == key) return cells_[i].value;
      if (cells_[i].key == 0) return kAbsent;
    }
  }
  /// REQUIRES: key is not 0 and absent.
  void insert(std::uint64_t key, std::uint32_t value) {
    if ((count_ + 1) * 2 > cells_.size()) grow();
    put(key, value);
    ++count_;
  }
  void erase(std::uint64_t key) {
    if (cells_.empty()) return;
    std::size_t hole = home(key);
    while (cells_[hole].key != key) {
      if (cells_[hole].key == 0) return;
      hole = (hole + 1) & mask();
    }
    --count_;
    for (std::size_t i = (hole + 1) & mask(); cells_[i].key != 0; i = (i + 1) & mask()) {
      // Move i's cell back unless its home lies cyclically after the hole.
      if (((i - home(cells_[i].key)) & mask()) >= ((i - hole) & mask())) {
        cells_[hole] = cells_[i];
        hole = i;
      }
    }
    cells_[hole] = Cell{};
  }

 private:
  struct Cell {
    std::uint64_t key = 0;
    std::uint32_t value = 0;
  };
  std::size_t mask() const { return cells_.size() - 1; }
  std::size_t home(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & mask();
  }
  void put(std::uint64_t key, std::uint32_t value) {
    std::size_t i = home(key);
    while (cells_[i].key != 0) i = (i + 1) & mask();
    cells_[i] = Cell{key, value};
  }
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 32 : cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.key != 0) put(cell.key, cell.value);
    }
  }

  std::vector<Cell> cells_;
  std::size_t count_ = 0;
};

}  // namespace ashlar::spec
