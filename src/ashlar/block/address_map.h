// The address map: a hash table from a block's address to its record, with chains threaded through
// the records.
//
// Purpose: free(p) starts from an address; the map finds its block with one cell and one record.
// Thread safety: none; the pool's owner holds a lock. const members may run concurrently.
//
// Invariants:
//   (1) The chain of a cell holds exactly the entries whose address hashes to the cell, and ends in
//       kNone. An entry's tag is that of its address.
//   (2) A small table has at least four times as many cells as entries, a larger one at least as
//       many. In a small table the cost of a walk is the mispredicted branch of a second step, so
//       chains are kept to one entry nearly always; in a large one it is cache misses, so the table
//       is kept small (measured: with a quarter of the cells, no loss at 10^4 live blocks and 13 %
//       saved at 10^5).
//
// Chains rather than open addressing: an insertion takes two stores and an erasure nearly always
// one. With open addressing, the search for an empty cell and the closing of the gap an entry
// leaves were branches on the hash, mispredicted as often as cells are full.
//
// An entry is a record's index and, in its upper five bits, a tag: five further bits of the
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

#include <cstdint>
#include <memory>
#include <utility>

#include <ashlar/base/host_table.h>
#include <ashlar/block/block_records.h>

namespace ashlar::inline v0::block {

class AddressMap {
 public:
  using Records = BlockRecords;

  std::uint32_t count() const { return count_; }
  std::uint64_t capacity() const {
    return cells_ == nullptr ? 0 : std::uint64_t{1} << (64 - shift_);
  }

  /// Guarantees that one insert() succeeds. False if the host has no memory (nothing changed).
  /// Amortised O(1).
  bool reserve_one(Records& records) noexcept { return count_ < limit_ || grow(records); }

  /// Adds record `index`, whose address is `address`. REQUIRES: reserve_one() returned true; the
  /// address is not in the table.
  void insert(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    ASHLAR_ASSERT(count_ < limit_, "address map(2): insert() without a reserved cell");
    link_in(records, index, address);
    count_ += 1;
  }

  /// The record at `address`, or kNone.
  std::uint32_t find(const Records& records, std::uint64_t address) const noexcept {
    if (count_ == 0) return kNone;
    const std::uint64_t hash = hash_of(address);
    const std::uint32_t tag = tag_of(hash);
    for (std::uint32_t entry = cells_[cell_of(hash)]; entry != kNone;
         entry = records.link(index_of(entry)).to) {
      const std::uint32_t index = entry ^ tag;  // below kRecordsMax only if the tags are equal
      if (index < kRecordsMax && records.address(index) == address) return index;
    }
    return kNone;
  }

  /// Removes the entry of record `index`. REQUIRES: it is in the table, with that address.
  void erase(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    const std::uint32_t entry = entry_of(index, hash);
    std::uint32_t* link = &cells_[cell_of(hash)];
    while (*link != entry) {
      ASHLAR_ASSERT(*link != kNone, "address map(1): an entry is missing");
      link = &records.link(index_of(*link)).to;
    }
    *link = records.link(index).to;
    count_ -= 1;
  }

  /// True if the chains hold count() entries, each in the chain of its cell. Cost: O(capacity).
  bool is_consistent(const Records& records) const noexcept {
    std::uint32_t found = 0;
    for (std::uint64_t i = 0; i < capacity(); ++i) {
      for (std::uint32_t entry = cells_[i]; entry != kNone;) {
        const std::uint32_t index = index_of(entry);
        if (index == kNone || index >= records.capacity() || ++found > count_) return false;
        const std::uint64_t hash = hash_of(records.address(index));
        if (cell_of(hash) != i || entry != entry_of(index, hash)) return false;
        entry = records.link(index).to;
      }
    }
    return found == count_ && count_ <= limit_;
  }

 private:
  friend struct PoolPeer;

  static constexpr unsigned kFoldBits = 13;
  static constexpr unsigned kCapacityBitsFirst = 6;
  static constexpr unsigned kSmallCapacityBitsMax = 14;  ///< a small table has at most 64 KiB
  static constexpr unsigned kSmallLoadBits = 2;          ///< its load is at most 2^-2 (invariant 2)

  static constexpr unsigned kTagBits = 5;
  static_assert(kRecordsMax == std::uint32_t{1} << (32 - kTagBits), "index and tag fill an entry");

  static std::uint64_t hash_of(std::uint64_t address) {
    return (address ^ address >> kFoldBits) * 0x9e3779b97f4a7c15u;
  }
  /// The number of the address's cell: the hash's upper bits, 27 at most.
  std::uint32_t cell_of(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash >> shift_);
  }
  /// The tag, in the upper five bits of a word: the hash bits below the 27 that choose the cell.
  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> kTagBits) & ~(kRecordsMax - 1);
  }
  static std::uint32_t entry_of(std::uint32_t index, std::uint64_t hash) {
    return index | tag_of(hash);
  }
  static std::uint32_t index_of(std::uint32_t entry) { return entry & (kRecordsMax - 1); }

  void link_in(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    std::uint32_t& cell = cells_[cell_of(hash)];
    records.link(index).to = cell;
    cell = entry_of(index, hash);
  }

  [[gnu::cold]] bool grow(Records& records) noexcept {
    // At most 27, because a slab has at most 2^27 records.
    const unsigned bits = cells_ == nullptr ? kCapacityBitsFirst : 65 - shift_;
    const std::uint64_t capacity_before = capacity();
    const std::uint64_t capacity_after = std::uint64_t{1} << bits;
    HostTable<std::uint32_t> cells = make_host_table<std::uint32_t>(capacity_after);
    if (cells == nullptr) return false;
    std::uninitialized_fill_n(cells.get(), capacity_after, kNone);
    std::swap(cells_, cells);
    shift_ = 64 - bits;
    limit_ = static_cast<std::uint32_t>(capacity_after >>
                                        (bits <= kSmallCapacityBitsMax ? kSmallLoadBits : 0));
    for (std::uint64_t i = 0; i < capacity_before; ++i) {
      for (std::uint32_t entry = cells[i]; entry != kNone;) {
        const std::uint32_t index = index_of(entry);
        entry = records.link(index).to;
        link_in(records, index, records.address(index));
      }
    }
    return true;
  }

  HostTable<std::uint32_t> cells_;
  std::uint32_t limit_ = 0;
  std::uint32_t count_ = 0;
  unsigned shift_ = 0;
};

}  // namespace ashlar::inline v0::block
