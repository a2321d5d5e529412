// From a block's address to its record: a hash table whose chains are threaded through the records.
//
// Purpose: free(p) begins with an address; this finds the block in one cell and the record it
// names.
// Thread safety: none; the pool's owner brings the lock. const members may run together.
//
// Chains rather than open addressing: an entry is put in with two stores and, nearly always, taken
// out with one. Looking for an empty cell, and closing the gap an entry leaves, were branches on
// the hash, and wrong as often as cells are full.
//
// An entry is a record's index and five more bits of its address's hash, the tag. Where there are
// as many entries as cells every third find passes another's entry on its way: by the tag it knows
// so without that record, which is in memory more often than this is (counted with 10^5 blocks live
// and a cache of 4 MiB: a sixth of all misses).
//
// Invariants:
//   (1) A cell leads to every entry whose address hashes to it, and to nothing else; a chain ends
//       in kNone. An entry's tag is its address's.
//   (2) In a small table there are at least four times as many cells as entries, in a larger one as
//       many. So a chain is nearly always one entry long where what a walk costs is the
//       mispredicted branch of going on; and where it is waiting for memory, the table is small
//       (measured: a quarter of the cells costs nothing with 10^4 blocks live and saves 13 % with
//       10^5).
//
// Addresses are folded before they are multiplied: blocks of one size lie at equal strides, and the
// product alone puts many a stride's addresses into few cells (4096 blocks of 14.19 MiB: a find
// visits 60 records on average). Folded by 13 bits none of the strides tried was far from what
// random addresses give (address_map_test tries them).
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

  /// Makes sure that one insert() succeeds. False if the host has no memory (nothing changed).
  /// Amortised O(1).
  bool reserve_one(Records& records) noexcept { return count_ < limit_ || grow(records); }

  /// Adds `index`, whose record has that address. REQUIRES: reserve_one() held; the address is not
  /// in the table.
  void insert(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    ASHLAR_ASSERT(count_ < limit_, "address map(2): insert() without a reserved cell");
    put(records, index, address);
    count_ += 1;
  }

  /// The record at `address`, or kNone.
  std::uint32_t find(const Records& records, std::uint64_t address) const noexcept {
    if (count_ == 0) return kNone;
    const std::uint64_t hash = hash_of(address);
    const std::uint32_t tag = tag_of(hash);
    for (std::uint32_t entry = cells_[home(hash)]; entry != kNone;
         entry = records.link(index_of(entry)).to) {
      const std::uint32_t index = entry ^ tag;  // where the tags are the same
      if (index < kRecordsMax && records.address(index) == address) return index;
    }
    return kNone;
  }

  /// Drops the entry of `index`. REQUIRES: it is in the table, at that address.
  void erase(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    const std::uint32_t entry = entry_of(index, hash);
    std::uint32_t* link = &cells_[home(hash)];
    while (*link != entry) {
      ASHLAR_ASSERT(*link != kNone, "address map(1): an entry is missing");
      link = &records.link(index_of(*link)).to;
    }
    *link = records.link(index).to;
    count_ -= 1;
  }

  /// Do the chains hold as many entries as were put in, each in its own cell's? Cost: O(capacity).
  bool is_consistent(const Records& records) const noexcept {
    std::uint32_t full = 0;
    for (std::uint64_t i = 0; i < capacity(); ++i) {
      for (std::uint32_t entry = cells_[i]; entry != kNone;) {
        const std::uint32_t index = index_of(entry);
        if (index == kNone || index >= records.capacity() || ++full > count_) return false;
        const std::uint64_t hash = hash_of(records.address(index));
        if (home(hash) != i || entry != entry_of(index, hash)) return false;
        entry = records.link(index).to;
      }
    }
    return full == count_ && count_ <= limit_;
  }

 private:
  friend struct PoolPeer;

  static constexpr unsigned kFold = 13;
  static constexpr unsigned kCapacityBitsFirst = 6;
  static constexpr unsigned kSmallBitsMax = 14;  ///< 64 KiB
  static constexpr unsigned kSmallLoadBits = 2;  ///< invariant (2): a quarter

  static constexpr unsigned kTagBits = 5;
  static_assert(kRecordsMax == std::uint32_t{1} << (32 - kTagBits),
                "what an index leaves free is the tag's");

  static std::uint64_t hash_of(std::uint64_t address) {
    return (address ^ address >> kFold) * 0x9e3779b97f4a7c15u;
  }
  /// The hash's upper bits, 27 at most.
  std::uint32_t home(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash >> shift_);
  }
  /// The five bits below those, in the place where an entry has them.
  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> kTagBits) & ~(kRecordsMax - 1);
  }
  static std::uint32_t entry_of(std::uint32_t index, std::uint64_t hash) {
    return index | tag_of(hash);
  }
  static std::uint32_t index_of(std::uint32_t entry) { return entry & (kRecordsMax - 1); }

  void put(Records& records, std::uint32_t index, std::uint64_t address) noexcept {
    const std::uint64_t hash = hash_of(address);
    std::uint32_t& cell = cells_[home(hash)];
    records.link(index).to = cell;
    cell = entry_of(index, hash);
  }

  [[gnu::cold]] bool grow(Records& records) noexcept {
    // 27 at most: there are no more records
    const unsigned bits = cells_ == nullptr ? kCapacityBitsFirst : 65 - shift_;
    const std::uint64_t capacity_before = capacity();
    const std::uint64_t capacity_after = std::uint64_t{1} << bits;
    HostTable<std::uint32_t> cells = make_host_table<std::uint32_t>(capacity_after);
    if (cells == nullptr) return false;
    std::uninitialized_fill_n(cells.get(), capacity_after, kNone);
    std::swap(cells_, cells);
    shift_ = 64 - bits;
    limit_ =
        static_cast<std::uint32_t>(capacity_after >> (bits <= kSmallBitsMax ? kSmallLoadBits : 0));
    for (std::uint64_t i = 0; i < capacity_before; ++i) {
      for (std::uint32_t entry = cells[i]; entry != kNone;) {
        const std::uint32_t index = index_of(entry);
        entry = records.link(index).to;
        put(records, index, records.address(index));
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
