// Records of blocks: what a pool knows of each.
//
// Purpose: with 10^5 live blocks an operation waits for the caches, so the records are kept small.
// Addresses and sizes take 32 bits each, and most blocks need 29 bytes in all, grouped by what is
// read together (measured with 10^5 live blocks: half of the misses of a 4 MiB cache, compared with
// 64-bit addresses and sizes and 41 bytes a block):
// - BlockRecord, 16 bytes: where the block lies, and its neighbours;
// - BlockMeta, 8 bytes: how the block is found, and its request or its stamp;
// - SegmentOfBlock, 4 bytes, read at a split and at an insertion into a tree;
// - the state, 1 byte: a free reads both neighbours' states and, if neither is free, nothing else
//   of theirs.
// Values too wide for these compact fields go to a 32-byte OverflowRecord: a number over 32 bits,
// an address that is not a whole number of units above the origin or lies too far from it, and a
// user word that is not zero (a block without recorded uses has none).
// The records of segments stand beside those of blocks, because a block's position (position.h) is
// its address, shifted by as much as its segment's: two loads more where it is asked for. (With 10^5
// live blocks, simulated: a third more misses of a 4 MiB cache. The time is within the noise.)
// Thread safety: none; the pool's owner holds a lock.
//
// Invariants:
//   (1) A field is kInOverflow exactly when its value is in the OverflowRecord.
//   (2) request_or_stamp of a live or pending block is 2 x (size - requested), plus 1 if its user
//       word is not zero; without that 1 no user word was written, and none may be read. Of a
//       block that is free or in transfer it is the stamp.
//   (3) The origin, from which addresses are counted, does not change while there are blocks.
#pragma once

#include <bit>
#include <cstdint>

#include <ashlar/block/segment_records.h>
#include <ashlar/block/slab.h>

namespace ashlar::inline v0::block {

/// A block, the null sentinel, or an unused record on the slab's list.
struct alignas(16) BlockRecord {
  std::uint32_t address = 0;   ///< in units above the origin
  std::uint32_t size = 0;      ///< in units
  std::uint32_t prev = kNone;  ///< the neighbour below in the same segment
  std::uint32_t next = kNone;  ///< the neighbour above

  /// True if the block spans its whole segment: only kNone can be on both sides of a block.
  /// The fields are compared with each other. `(prev | next) == kNone` says the same, but a
  /// compiler reads both as one word for it, and that load stalls just after one of them was
  /// written (measured: 6 ns a pair).
  bool is_whole_segment() const { return prev == next; }
};
static_assert(sizeof(BlockRecord) == 16, "four blocks' records are one cache line");

/// What a block is found by, which depends on its state:
/// - free, in a tree of the free index: its leaf and slot (fit_tree.h);
/// - live or pending: the next entry in the chain of its hash cell (address_map.h).
/// Otherwise it is undefined and not read.
struct Link {
  std::uint32_t to;
};

struct alignas(8) BlockMeta {
  static constexpr bool kIsLazy = false;
  Link link;
  std::uint32_t request_or_stamp;  ///< invariant (2)
};

/// The number of a block's segment in the pool. A column of its own: 12 bytes of BlockMeta would cost
/// a multiplication wherever one is addressed (measured: a hundredth of a pair's instructions).
struct SegmentOfBlock {
  static constexpr bool kIsLazy = false;
  std::uint32_t number;
};

/// The values that do not fit BlockRecord and BlockMeta.
struct OverflowRecord {
  static constexpr bool kIsLazy = true;
  std::uint64_t address;  ///< in bytes
  std::uint64_t size;     ///< in bytes
  /// the stamp; or 2 x requested, plus 1 if the user word is not zero (invariant 2, but with the
  /// request itself in place of the difference)
  std::uint64_t request_or_stamp;
  std::uint64_t user;
};

class BlockRecords {
 public:
  static constexpr std::uint32_t kInOverflow = 0xffffffffu;
  /// The unit of sizes, and of addresses above the origin, is 2^kUnitBits bytes: the granule that
  /// the caching allocators use. A pool with a smaller granule uses more overflow records.
  static constexpr unsigned kUnitBits = 9;

  BlockRecord& operator[](std::uint32_t index) { return slab_[index]; }
  const BlockRecord& operator[](std::uint32_t index) const { return slab_[index]; }
  std::uint8_t& state(std::uint32_t index) { return slab_.state(index); }
  std::uint8_t state(std::uint32_t index) const { return slab_.state(index); }
  Link& link(std::uint32_t index) { return meta(index).link; }
  Link link(std::uint32_t index) const { return meta(index).link; }
  std::uint32_t segment(std::uint32_t index) const {
    return slab_.template column<SegmentOfBlock>(index).number;
  }
  void set_segment(std::uint32_t index, std::uint32_t segment) {
    slab_.template column<SegmentOfBlock>(index).number = segment;
  }

  /// In bytes.
  std::uint64_t address(std::uint32_t index) const {
    const std::uint32_t units = slab_[index].address;
    if (units == kInOverflow) [[unlikely]]
      return overflow(index).address;
    return origin_ + (std::uint64_t{units} << kUnitBits);
  }
  /// In bytes (position.h). REQUIRES: set_segment() was called.
  std::uint64_t position(std::uint32_t index) const {
    return address(index) + segments_.column<SegmentShift>(segment(index)).bytes;
  }
  std::uint64_t size(std::uint32_t index) const {
    const std::uint32_t units = slab_[index].size;
    if (units == kInOverflow) [[unlikely]]
      return overflow(index).size;
    return std::uint64_t{units} << kUnitBits;
  }
  void set_address(std::uint32_t index, std::uint64_t address) {
    const std::uint64_t units = units_of(address - origin_);
    if (units < kInOverflow) [[likely]] {
      slab_[index].address = static_cast<std::uint32_t>(units);
    } else {
      slab_[index].address = kInOverflow;
      write_overflow(index).address = address;
    }
  }
  void set_size(std::uint32_t index, std::uint64_t size) {
    const std::uint64_t units = units_of(size);
    if (units < kInOverflow) [[likely]] {
      slab_[index].size = static_cast<std::uint32_t>(units);
    } else {
      slab_[index].size = kInOverflow;
      write_overflow(index).size = size;
    }
  }

  /// Sets the request and the user word of a live or pending block of that size.
  void set_request(std::uint32_t index, std::uint64_t size, std::uint64_t requested,
                   std::uint64_t user) {
    const std::uint64_t has_user = user != 0 ? 1 : 0;
    if (user != 0) write_overflow(index).user = user;
    const std::uint64_t unrequested = size - requested;
    if (unrequested < kInOverflow >> 1) [[likely]] {
      meta(index).request_or_stamp = static_cast<std::uint32_t>(unrequested << 1 | has_user);
    } else {
      meta(index).request_or_stamp = kInOverflow;
      write_overflow(index).request_or_stamp = requested << 1 | has_user;
    }
  }
  /// The bytes requested. REQUIRES: live or pending, as for user() and has_user(); of that size.
  std::uint64_t requested(std::uint32_t index, std::uint64_t size) const {
    const std::uint32_t packed = meta(index).request_or_stamp;
    if (packed == kInOverflow) [[unlikely]]
      return overflow(index).request_or_stamp >> 1;
    return size - (packed >> 1);
  }
  std::uint64_t user(std::uint32_t index) const {
    return has_user(index) ? overflow(index).user : 0;
  }
  bool has_user(std::uint32_t index) const {
    const std::uint32_t packed = meta(index).request_or_stamp;
    return (packed & 1) != 0 &&
           (packed != kInOverflow || (overflow(index).request_or_stamp & 1) != 0);
  }

  /// REQUIRES: free or in transfer, as for set_stamp().
  std::uint64_t stamp(std::uint32_t index) const {
    const std::uint32_t stamp = meta(index).request_or_stamp;
    if (stamp == kInOverflow) [[unlikely]]
      return overflow(index).request_or_stamp;
    return stamp;
  }
  void set_stamp(std::uint32_t index, std::uint64_t stamp) {
    if (stamp < kInOverflow) [[likely]] {
      meta(index).request_or_stamp = static_cast<std::uint32_t>(stamp);
    } else {
      meta(index).request_or_stamp = kInOverflow;
      write_overflow(index).request_or_stamp = stamp;
    }
  }

  /// True if the block spans its segment and is in that state.
  bool is_whole_segment(std::uint32_t index, std::uint8_t in_state) const {
    return state(index) == in_state && slab_[index].is_whole_segment();
  }
  /// Cuts a block of `whole` bytes at `address` after `size` bytes: the rest gets a record of its own, in
  /// the block's state and with its stamp. Returns it. REQUIRES: reserve_one() returned true; the block
  /// has a stamp.
  std::uint32_t split(std::uint32_t index, std::uint64_t address, std::uint64_t whole,
                      std::uint64_t size) {
    const std::uint32_t rest = take(state(index));
    set_address(rest, address + size);
    set_size(rest, whole - size);
    set_stamp(rest, stamp(index));
    set_segment(rest, segment(index));
    const std::uint32_t next = slab_[index].next;
    slab_[rest].prev = index;
    slab_[rest].next = next;
    slab_[next].prev = rest;
    slab_[index].next = rest;
    set_size(index, size);
    return rest;
  }
  /// Gives back the record of the next block in the segment, whose bytes now belong to this one.
  /// REQUIRES: that block is in no index. The caller sets the new size.
  void absorb_next(std::uint32_t index) {
    const std::uint32_t absorbed = slab_[index].next;
    const std::uint32_t next = slab_[absorbed].next;
    slab_[index].next = next;
    slab_[next].prev = index;
    give_back(absorbed);
  }

  /// Sets the origin so that addresses a whole number of units from `address`, from 2^31 units
  /// below it to 2^31 - 2 above, fit the record. REQUIRES: no block is in use.
  void center_on(std::uint64_t address) {
    origin_ = address - (std::uint64_t{1} << 31 << kUnitBits);
  }

  SegmentRecords& segments() { return segments_; }
  const SegmentRecords& segments() const { return segments_; }

  // As the slab's.
  std::uint32_t touched() const { return slab_.touched(); }
  bool accounts_for(std::uint64_t used) const noexcept { return slab_.accounts_for(used); }
  bool has_unused() const noexcept { return slab_.has_unused(); }
  bool must_grow() const noexcept { return slab_.must_grow(); }
  bool reserve_one() noexcept { return slab_.reserve_one(); }
  bool is_nearly_full() const noexcept { return slab_.is_nearly_full(); }
  bool grow_ahead() noexcept { return slab_.grow_ahead(); }
  std::uint32_t capacity_next() const noexcept { return slab_.capacity_next(); }
  std::uint32_t take(std::uint8_t state) noexcept { return slab_.take(state); }
  void give_back(std::uint32_t index) noexcept { slab_.give_back(index); }

 private:
  friend struct PoolPeer;

  /// Bytes in units; for bytes that are not a multiple of the unit, a number too large for a
  /// record.
  static std::uint64_t units_of(std::uint64_t bytes) { return std::rotr(bytes, kUnitBits); }

  BlockMeta& meta(std::uint32_t index) { return slab_.template column<BlockMeta>(index); }
  const BlockMeta& meta(std::uint32_t index) const {
    return slab_.template column<BlockMeta>(index);
  }
  const OverflowRecord& overflow(std::uint32_t index) const {
    return slab_.template column<OverflowRecord>(index);
  }
  OverflowRecord& write_overflow(std::uint32_t index) {
    return slab_.template write_lazy<OverflowRecord>(index);
  }

  std::uint64_t origin_ = 0;
  SegmentRecords segments_;
  Slab<BlockRecord, OverflowRecord, BlockMeta, SegmentOfBlock> slab_;
};

}  // namespace ashlar::inline v0::block
