// The address map: a hash table from a block's address to its record, with chains threaded through
// the records.
//
// Purpose: free(p) starts from an address; the map finds its block with one cell and one record.
// Thread safety: none; the pool's owner holds a lock. const members may run concurrently.
//
// Invariants:
//   (1) An entry is in the chain of the cell that its address hashes to, or, while the map is being
//       split, in the chain of that cell's lower half, if that is not split yet. Each chain ends in
//       kNone. An entry's tag is that of its address.
//   (2) A small table has at least four times as many cells as entries, a larger one at least as
//       many. In a small table the cost of a walk is the mispredicted branch of a second step, so
//       chains are kept to one entry nearly always; in a large one it is cache misses, so the table
//       is kept small (measured: with a quarter of the cells, no loss at 10^4 live blocks and 13 %
//       saved at 10^5).
//   (3) Cells [split_, half()) are not split yet; when there are none, no split is under way. A
//       split ends before the next growth: it takes an eighth of the cells in insertions, and the
//       growth waits for a quarter of them at least.
//
// The map grows by linear hashing (W. Litwin, VLDB 1980). The table doubles in place
// (growing_table.h); cell i of the lower half is split between itself and cell i + half(), a few
// cells at every insertion, so no insertion rehashes the whole map. An address's cell is the low
// bits of its hash, so only one bit decides. New entries go to the cells of the doubled table at
// once, and a find looks there first. Only where it finds nothing it asks whether the cell's lower
// half still waits to be split, so a find that hits costs nothing more. An insertion costs nothing
// more either while no split is under way: limit_ is zero during one, and so the comparison that
// guards the table's room leads to the cold path.
//
// Chains rather than open addressing: an insertion takes two stores and an erasure nearly always
// one. With open addressing, the search for an empty cell and the closing of the gap an entry
// leaves were branches on the hash, mispredicted as often as cells are full.
//
// An entry is a record's index and, in its upper five bits, a tag: the upper five bits of the
// address's hash. In a full large table every third find passes another block's entry. The tag
// tells it apart without a read of that block's record, which misses the cache more often than the
// map does (counted with 10^5 live blocks and a 4 MiB cache: a sixth of all misses).
//
// Addresses are folded before they are multiplied. Blocks of one size lie at equal strides, and for
// many strides the product alone puts the addresses into few cells (4096 blocks of 14.19 MiB: a
// find visits 60 records on average). With a fold by 13 bits, all strides tried come close to
// random addresses (address_map_test tries them).
//
// Source: D. Knuth, The Art of Computer Programming vol. 3, 6.4; multiplier 2^64 / golden ratio.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ashlar/base/growing_table.h>
#include <ashlar/base/step_count.h>
#include <ashlar/block/block_records.h>

namespace ashlar::inline v0::block {

class AddressMap {
 public:
  using Records = BlockRecords;

  std::uint32_t count() const { return count_; }
  std::uint64_t capacity() const { return room_ == 0 ? 0 : std::uint64_t{mask_} + 1; }
  /// True while cells wait to be split.
  bool is_splitting() const { return split_ < half(); }

  /// Guarantees that one insert() succeeds. False if the host has no memory (nothing changed).
  /// Splits a few cells while there are any to split. Cost: O(1).
  bool reserve_one(Records& records) noexcept { return count_ < limit_ || make_room(records); }

  /// Adds record `index`, whose address is `address`. REQUIRES: reserve_one() returned true; the
  /// address is not in the table.
  void insert(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    ASHLAR_ASSERT(count_ < room_, "address map(2): insert() without a reserved cell");
    const std::uint32_t hash = hash_of(address);
    link_in(records, cell_of(hash), index, hash);
    count_ += 1;
  }

  /// The record at `address`, or kNone.
  std::uint32_t find(const Records& records, std::uint64_t address) const noexcept {
    const std::uint32_t hash = hash_of(address);
    const std::uint32_t tag = tag_of(hash);
    for (std::uint32_t entry = cells_[cell_of(hash)]; entry != kNone;
         entry = records.link(index_of(entry)).to) {
      count_steps(1);
      const std::uint32_t index = entry ^ tag;  // below kRecordsMax only if the tags are equal
      if (index < kRecordsMax && records.address(index) == address) return index;
    }
    return find_waiting(records, hash, address);
  }

  /// Removes the entry of record `index`. REQUIRES: it is in the table, with that address.
  void erase(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    const std::uint32_t hash = hash_of(address);
    const std::uint32_t entry = entry_of(index, hash);
    std::uint32_t* link = &cells_[cell_of(hash)];
    while (*link != entry) {
      if (*link == kNone) [[unlikely]] {
        link = waiting_link(records, hash, entry);
        break;
      }
      count_steps(1);
      link = &records.link(index_of(*link)).to;
    }
    *link = records.link(index).to;
    count_ -= 1;
  }

  /// True if the chains hold count() entries, each in the chain of a cell that invariant 1 allows,
  /// and invariant 3 holds. Cost: O(capacity).
  bool is_consistent(const Records& records) const noexcept {
    if (count_ > room_ || split_ > half() || limit_ != (is_splitting() ? 0 : room_)) return false;
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < capacity(); ++i) {
      for (std::uint32_t entry = cells_[i]; entry != kNone;) {
        const std::uint32_t index = index_of(entry);
        if (index == kNone || index >= records.touched() || ++found > count_) return false;
        const std::uint32_t hash = hash_of(records.address(index));
        const std::uint32_t cell = cell_of(hash);
        const bool is_in_place = cell == i || (waits_in_lower(cell) && lower_of(cell) == i);
        if (!is_in_place || entry != entry_of(index, hash)) return false;
        entry = records.link(index).to;
      }
    }
    return found == count_;
  }

 private:
  friend struct PoolPeer;

  static constexpr unsigned kFoldBits = 13;
  static constexpr std::uint32_t kCellsFirst = 64;
  static constexpr std::uint32_t kSmallCellsMax = 1u << 14;  ///< a small table has at most 64 KiB
  static constexpr unsigned kSmallLoadBits = 2;  ///< its load is at most 2^-2 (invariant 2)
  static constexpr std::uint32_t kCellsSplitAtOnce = 8;

  static constexpr unsigned kTagBits = 5;
  static_assert(kRecordsMax == std::uint32_t{1} << (32 - kTagBits), "index and tag fill an entry");

  /// The upper half of the product, its bytes reversed: its best mixed bits choose the cell.
  static std::uint32_t hash_of(std::uint64_t address) {
    const std::uint64_t product = (address ^ address >> kFoldBits) * 0x9e3779b97f4a7c15u;
    return __builtin_bswap32(static_cast<std::uint32_t>(product >> 32));
  }
  /// The number of the address's cell: the hash's low bits, 27 at most.
  std::uint32_t cell_of(std::uint32_t hash) const { return hash & mask_; }
  /// The tag, in the upper five bits of a word.
  static std::uint32_t tag_of(std::uint32_t hash) { return hash & ~(kRecordsMax - 1); }
  static std::uint32_t entry_of(std::uint32_t index, std::uint32_t hash) {
    return index | tag_of(hash);
  }
  static std::uint32_t index_of(std::uint32_t entry) { return entry & (kRecordsMax - 1); }

  /// The cells of the lower half, which are those of the table before it doubled.
  std::uint32_t half() const { return (mask_ + 1) / 2; }
  std::uint32_t lower_of(std::uint32_t cell) const { return cell & (mask_ >> 1); }
  /// True if entries of this cell may still be in the chain of its lower half.
  bool waits_in_lower(std::uint32_t cell) const {
    return lower_of(cell) != cell && lower_of(cell) >= split_;
  }

  /// The record at `address` in a cell that waits to be split, or kNone. Out of line, as
  /// waiting_link() is, for the sake of what is short (measured: 2 % of a pair's instructions).
  [[gnu::cold, gnu::noinline]] std::uint32_t find_waiting(const Records& records,
                                                          std::uint32_t hash,
                                                          std::uint64_t address) const noexcept {
    if (!waits_in_lower(cell_of(hash))) return kNone;
    for (std::uint32_t entry = cells_[lower_of(cell_of(hash))]; entry != kNone;
         entry = records.link(index_of(entry)).to) {
      count_steps(1);
      const std::uint32_t index = index_of(entry);
      if (entry == entry_of(index, hash) && records.address(index) == address) return index;
    }
    return kNone;
  }
  /// What names the entry in the chain of a cell that waits to be split. REQUIRES: it is there.
  [[gnu::cold, gnu::noinline]] std::uint32_t* waiting_link(Records& records, std::uint32_t hash,
                                                           std::uint32_t entry) noexcept {
    ASHLAR_ASSERT(waits_in_lower(cell_of(hash)), "address map(1): an entry is missing");
    std::uint32_t* link = &cells_[lower_of(cell_of(hash))];
    while (*link != entry) {
      ASHLAR_ASSERT(*link != kNone, "address map(1): an entry is missing");
      count_steps(1);
      link = &records.link(index_of(*link)).to;
    }
    return link;
  }
  void link_in(Records& records, std::uint32_t cell, std::uint32_t index,
               std::uint32_t hash) noexcept {
    std::uint32_t& first = cells_[cell];
    records.link(index).to = first;
    first = entry_of(index, hash);
  }

  [[gnu::cold]] bool make_room(Records& records) noexcept {
    if (!is_splitting() && !grow()) return false;
    split_some(records);
    limit_ = is_splitting() ? 0 : room_;
    return true;
  }

  bool grow() noexcept {
    // At most 2^27, because a slab has at most 2^27 records.
    const std::uint32_t before = room_ == 0 ? 0 : mask_ + 1;
    const std::uint32_t cells = before == 0 ? kCellsFirst : before * 2;
    if (!table_.grow_zeroed(cells, before, kRecordsMax)) return false;
    static_assert(kNone == 0, "a cell of zero bytes is an empty chain");
    cells_ = table_.data();
    mask_ = cells - 1;
    split_ = before == 0 ? half() : 0;
    room_ = cells >> (cells <= kSmallCellsMax ? kSmallLoadBits : 0);
    return true;
  }

  /// Splits the next few cells.
  void split_some(Records& records) noexcept {
    const std::uint32_t end = std::min(half(), split_ + kCellsSplitAtOnce);
    count_steps(end - split_);
    for (; split_ < end; ++split_) {
      std::uint32_t* link = &cells_[split_];
      while (*link != kNone) {
        count_steps(1);
        const std::uint32_t entry = *link;
        const std::uint32_t index = index_of(entry);
        const std::uint32_t cell = cell_of(hash_of(records.address(index)));
        std::uint32_t& next = records.link(index).to;
        if (cell == split_) {
          link = &next;
        } else {
          *link = next;
          next = cells_[cell];
          cells_[cell] = entry;
        }
      }
    }
  }

  /// The only cell of a map that has no memory yet; it is never written.
  inline static const std::uint32_t no_entry_ = kNone;

  std::uint32_t* cells_ = const_cast<std::uint32_t*>(&no_entry_);
  std::uint32_t mask_ = 0;   ///< the number of cells less one
  std::uint32_t limit_ = 0;  ///< room_, or zero during a split
  std::uint32_t count_ = 0;
  std::uint32_t split_ = 0;  ///< the first cell that is not split (invariant 3)
  std::uint32_t room_ = 0;   ///< the most entries (invariant 2)
  GrowingTable<std::uint32_t> table_;
};

}  // namespace ashlar::inline v0::block
