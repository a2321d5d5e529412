// Records of blocks: what a pool knows of each.
//
// Purpose: with 10^5 blocks live an operation waits for the caches, and the less memory the records
// take, the more of them are there. So addresses and sizes are kept in 32 bits each, and 25 bytes
// are all of most blocks, in places by what is looked at together (measured with 10^5 blocks live,
// beside addresses and sizes of 64 bits and 41 bytes a block: half of the misses of a cache of 4
// MiB):
// - the record: where the block lies, and its neighbours;
// - the note: how it is found, and what its caller or its owner said of it;
// - the state, a byte: a free looks at both neighbours' and, where neither is free, at nothing else
// of theirs. What does not fit there stands apart, in 32 bytes more: a number too large for its 32
// bits, an address that is no multiple of the unit above the origin, or too far from it, and the
// owner's word, which a block without a recorded use has not.
// Thread safety: none; the pool's owner brings the lock.
//
// Invariants:
//   (1) A field is kApart when and only when its value stands apart.
//   (2) A note's number is, while the block is live or pending, twice the bytes that the request
//       left, and one where the owner's word is more than zero (else no word was written, and none
//       is to be read); while it is free or in transfer, its stamp.
//   (3) What addresses are counted from, the origin, does not change while there are blocks.
#pragma once

#include <bit>
#include <cstdint>

#include <ashlar/block/slab.h>

namespace ashlar::inline v0::block {

/// A block, nobody, or an unused record on the slab's list.
struct alignas(16) BlockRecord {
  std::uint32_t address = 0;   ///< in units above the origin
  std::uint32_t size = 0;      ///< in units
  std::uint32_t prev = kNone;  ///< of the same segment, by address
  std::uint32_t next = kNone;
};
static_assert(sizeof(BlockRecord) == 16, "four blocks' records are one cache line");

/// How a block is found, by its size while it is in a tree of the free index: its place there
/// (fit_tree.h); by its address while it is live or pending: the next entry in the chain of its
/// cell (address_map.h). While it is all of its segment and in transfer: the segment. Else not to
/// be read.
struct Link {
  std::uint32_t to;
};

struct alignas(8) BlockNote {
  static constexpr bool kIsSeldom = false;
  Link link;
  std::uint32_t number;
};

/// What does not fit the record and the note.
struct Apart {
  static constexpr bool kIsSeldom = true;
  std::uint64_t address;  ///< in bytes
  std::uint64_t size;     ///< in bytes
  std::uint64_t number;   ///< the note's, but with the request itself, not with what it left
  std::uint64_t word;
};

class BlockRecords {
 public:
  static constexpr std::uint32_t kApart = 0xffffffffu;
  /// What addresses above the origin, and sizes, are counted in. The granule of the caching
  /// allocators in use; a pool of smaller ones pays with memory.
  static constexpr unsigned kUnitBits = 9;

  BlockRecord& operator[](std::uint32_t index) { return slab_[index]; }
  const BlockRecord& operator[](std::uint32_t index) const { return slab_[index]; }
  std::uint8_t& state(std::uint32_t index) { return slab_.state(index); }
  std::uint8_t state(std::uint32_t index) const { return slab_.state(index); }
  Link& link(std::uint32_t index) { return note(index).link; }
  Link link(std::uint32_t index) const { return note(index).link; }

  /// In bytes.
  std::uint64_t address(std::uint32_t index) const {
    const std::uint32_t units = slab_[index].address;
    if (units == kApart) [[unlikely]]
      return apart(index).address;
    return origin_ + (std::uint64_t{units} << kUnitBits);
  }
  std::uint64_t size(std::uint32_t index) const {
    const std::uint32_t units = slab_[index].size;
    if (units == kApart) [[unlikely]]
      return apart(index).size;
    return std::uint64_t{units} << kUnitBits;
  }
  void set_address(std::uint32_t index, std::uint64_t address) {
    const std::uint64_t units = units_of(address - origin_);
    if (units < kApart) [[likely]] {
      slab_[index].address = static_cast<std::uint32_t>(units);
    } else {
      slab_[index].address = kApart;
      write_apart(index).address = address;
    }
  }
  void set_size(std::uint32_t index, std::uint64_t size) {
    const std::uint64_t units = units_of(size);
    if (units < kApart) [[likely]] {
      slab_[index].size = static_cast<std::uint32_t>(units);
    } else {
      slab_[index].size = kApart;
      write_apart(index).size = size;
    }
  }

  /// What the caller of a live or pending block of that size requested, and the owner's word.
  void set_request(std::uint32_t index, std::uint64_t size, std::uint64_t requested,
                   std::uint64_t word) {
    const std::uint64_t has_word = word != 0 ? 1 : 0;
    if (word != 0) write_apart(index).word = word;
    const std::uint64_t left = size - requested;
    if (left < kApart >> 1) [[likely]] {
      note(index).number = static_cast<std::uint32_t>(left << 1 | has_word);
    } else {
      note(index).number = kApart;
      write_apart(index).number = requested << 1 | has_word;
    }
  }
  /// REQUIRES: live or pending, as for word(); of that size.
  std::uint64_t requested(std::uint32_t index, std::uint64_t size) const {
    const std::uint32_t number = note(index).number;
    if (number == kApart) [[unlikely]]
      return apart(index).number >> 1;
    return size - (number >> 1);
  }
  std::uint64_t word(std::uint32_t index) const { return has_word(index) ? apart(index).word : 0; }
  bool has_word(std::uint32_t index) const {
    const std::uint32_t number = note(index).number;
    return (number & 1) != 0 && (number != kApart || (apart(index).number & 1) != 0);
  }

  /// REQUIRES: free or in transfer, as for set_stamp().
  std::uint64_t stamp(std::uint32_t index) const {
    const std::uint32_t number = note(index).number;
    if (number == kApart) [[unlikely]]
      return apart(index).number;
    return number;
  }
  void set_stamp(std::uint32_t index, std::uint64_t stamp) {
    if (stamp < kApart) [[likely]] {
      note(index).number = static_cast<std::uint32_t>(stamp);
    } else {
      note(index).number = kApart;
      write_apart(index).number = stamp;
    }
  }

  /// From now on addresses that are whole units from this one, 2^31 below it to 2^31 - 2 above, do
  /// not stand apart. REQUIRES: no block is in use.
  void come_near(std::uint64_t address) {
    origin_ = address - (std::uint64_t{1} << 31 << kUnitBits);
  }

  // As the slab's.
  std::uint32_t capacity() const { return slab_.capacity(); }
  bool holds(std::uint64_t used) const noexcept { return slab_.holds(used); }
  bool has_unused() const noexcept { return slab_.has_unused(); }
  bool reserve_one() noexcept { return slab_.reserve_one(); }
  std::uint32_t capacity_next() const noexcept { return slab_.capacity_next(); }
  std::uint32_t take(std::uint8_t state) noexcept { return slab_.take(state); }
  void put(std::uint32_t index) noexcept { slab_.put(index); }

 private:
  friend struct PoolPeer;

  /// Of what is no multiple of the unit, a number that is too large for a record.
  static std::uint64_t units_of(std::uint64_t bytes) { return std::rotr(bytes, kUnitBits); }

  BlockNote& note(std::uint32_t index) { return slab_.template side<BlockNote>(index); }
  const BlockNote& note(std::uint32_t index) const { return slab_.template side<BlockNote>(index); }
  const Apart& apart(std::uint32_t index) const { return slab_.template side<Apart>(index); }
  Apart& write_apart(std::uint32_t index) { return slab_.template write_seldom<Apart>(index); }

  std::uint64_t origin_ = 0;
  Slab<BlockRecord, Apart, BlockNote> slab_;
};

}  // namespace ashlar::inline v0::block
