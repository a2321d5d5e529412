// The block pool: segments divided into blocks; best fit, split and coalesce. Pure structure: no
// device, no lock, no clock.
//
// Purpose: everything the caching allocators know about *where* bytes are. They decide themselves
// who may use the bytes, and when.
// Thread safety: none; the pool's owner holds a lock. const members may run concurrently.
//
// Invariants (validate() checks all of them and names the broken one):
//   (1) C3  the blocks of a segment tile it exactly in address order, and neighbours agree;
//   (2) C4  no two adjacent blocks are both free, or both unmapped;
//   (3) C5  the free index holds exactly the free blocks, each in the place its size determines; a
//           second index holds the unmapped blocks likewise (unmapped_ranges.h);
//   (4)     the address map holds exactly the live and pending blocks, by their address;
//   (5)     every block's address, position and size are multiples of the granule, and its size is
//           not zero;
//   (6) C14 the pool's byte and block counters equal a recount;
//   (7)     every record is a block, a segment, or on the list of unused records, and is reached
//           exactly once;
//   (8) C1  a live or pending block has at least as many bytes as were requested; a user word in an
//           overflow record (block_records.h) is not zero;
//   (9)     every block names its segment.
//
// Every operation but validate() takes a bounded number of steps (C31), whatever the pool holds:
// tables grow in place or are small (growing_table.h), and what a growth or a new window rearranges
// moves a few entries at a time (address_map.h, free_index.h).
//
// Terms. A block is *unmapped* if it has addresses and no memory (unmapped_ranges.h). A *stamp* is a
// number that the owner gives with each release. Free and in-transfer blocks have one. A split copies
// it to both parts and a merge keeps the larger, so that a block's stamp is never older than the last
// use of any of its bytes. A *user word* is 64 bits of the owner's own, on each segment and on each
// live or pending block.
//
// A worked example (fit_classes.h states the rules; free_index_test checks every number).
//   Blocks   The granule is 512 bytes. The only segment is 2 MiB at position 2^40, so the window is
//            4 MiB, and the segment begins 1 MiB into it. The free blocks are A, 5 granules at
//            2^40 + 16 KiB; B, 6 granules at 2^40 + 4 KiB; C, the last 4000 granules; and D, 1
//            granule at 2^40. D was freed last and is not in a tree yet; a search compares it with
//            what the trees give.
//   Class    A has 2560 = 101000000000b bytes. 2^11 <= 2560 < 2^12 and a granule is 2^9 bytes, so A
//            is in group 11 - 9 = 2. Its place begins with the two size bits below the leading one,
//            01, followed by its offset in the window as 22 bits: 0100000100... The first five bits
//            of the place, 01010b = 10, choose the class in the group: class 2 x 32 + 10 = 74. B
//            has 3072 = 110000000000b bytes and the place 10 0100000001..., so its class is
//            64 + 10010b = 82. C is in group 11, class 382.
//   Key      The rest of the place is the key: in class 74, which holds the blocks of 5 granules in
//            one eighth of the window, the rest of the offset.
//   Search   For a request of 2100 bytes the owner calls best_fit(2560). The search starts at class
//            72, the class of the smallest place of this size, 01 0000..., and finds it empty. The
//            next bit set in the group's bitmap is class 74's, and the smallest key there is A's:
//            an exact fit. For 7 granules the search starts at class 88, place 11 0000... The group
//            has no class from there on, so the bitmap of groups leads to group 11 and to C, which
//            is then split.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include <ashlar/base/block_state.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/block/address_map.h>
#include <ashlar/block/block_records.h>
#include <ashlar/block/free_index.h>
#include <ashlar/block/position.h>
#include <ashlar/block/segment_records.h>

namespace ashlar::inline v0::block {

/// The number of a block's record, or of a segment's, within one pool. Reused once it is dropped.
enum class BlockIndex : std::uint32_t {};
enum class SegmentIndex : std::uint32_t {};
inline constexpr BlockIndex kNoBlock{kNone};
inline constexpr SegmentIndex kNoSegment{kNone};

/// The plain numbers that records hold.
constexpr std::uint32_t raw(BlockIndex block) { return static_cast<std::uint32_t>(block); }
constexpr std::uint32_t raw(SegmentIndex segment) { return static_cast<std::uint32_t>(segment); }
constexpr std::uint8_t raw(BlockState state) { return static_cast<std::uint8_t>(state); }

/// True for live and pending: the block has a request, a user word and an entry in the address map.
constexpr bool is_owned(std::uint8_t state) {
  return state == raw(BlockState::kLive) || state == raw(BlockState::kPending);
}

struct BlockView {
  Address address;
  Bytes size;
  Bytes requested;  ///< the bytes that the caller asked for; zero unless live or pending
  BlockState state;
  std::uint64_t stamp;  ///< zero unless free or in transfer
  std::uint64_t user;   ///< the user word; zero unless live or pending
  Position position;
};

struct SegmentView {
  Address base;
  Bytes size;
  Position position;
  std::uint64_t user;  ///< the user word
  BlockIndex first;    ///< the block at `base`; next() leads to the others
};

/// Counters, updated at every change of the pool (invariant 6).
struct PoolCounts {
  void add_block(BlockState state, std::uint64_t size) noexcept {
    blocks[static_cast<unsigned>(state)] += 1;
    bytes[static_cast<unsigned>(state)] += Bytes{size};
  }
  void remove_block(BlockState state, std::uint64_t size) noexcept {
    blocks[static_cast<unsigned>(state)] -= 1;
    bytes[static_cast<unsigned>(state)] -= Bytes{size};
  }

  std::uint64_t segments = 0;
  std::uint64_t blocks[kBlockStates] = {};  ///< by BlockState
  Bytes segment_bytes;
  Bytes bytes[kBlockStates];        ///< by BlockState
  Bytes requested_bytes;            ///< of live and pending blocks
  std::uint64_t idle_segments = 0;  ///< segments that are one free block
  Bytes idle_bytes;
};

class BlockPool {
 public:
  /// An empty pool whose sizes and addresses are multiples of `granule`.
  /// REQUIRES: a power of two, 16 B to 64 KiB.
  explicit BlockPool(Bytes granule);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Segments.
  /// Adds [base, base + size) as one block, free or in transfer. kNoSegment if the host has no
  /// memory for the records (nothing changed).
  /// REQUIRES: disjoint from every other segment of this pool that is not one block in transfer, and
  /// so are its positions; size < 2^63.
  /// Cost: O(1) plus the index.
  SegmentIndex add_segment(Address base, Bytes size, Position position, std::uint64_t stamp,
                           std::uint64_t user, BlockState state = BlockState::kFree) noexcept;
  /// Removes a segment. REQUIRES: it is one block, in transfer. Cost: O(1).
  void remove_segment(SegmentIndex segment) noexcept;
  /// True if the segment is one free block. Cost: O(1).
  bool is_idle(SegmentIndex segment) const noexcept;

  // The operations.
  /// The smallest free block with size in [size, size_end), at the lowest position among equals;
  /// kNoBlock if there is none. REQUIRES: size is a positive multiple of the granule.
  /// Cost: O(1) to the size class, then at most kFitStepsMax steps.
  BlockIndex best_fit(Bytes size, Bytes size_end) const noexcept;
  /// The free block after `block` in (size, position) order, or kNoBlock.
  /// REQUIRES: `block` is free. Cost: as best_fit.
  BlockIndex next_fit(BlockIndex block) const noexcept;
  /// The first free block behind that (size, position), whether or not there is a block there: so a
  /// walk goes on after the pool has changed. REQUIRES: size is a positive multiple of the granule.
  /// Cost: twice best_fit's.
  BlockIndex next_fit(Bytes size, Position position) const noexcept;
  /// Makes a free block live. With `split`, a block larger than `size` is split: its front `size`
  /// bytes become the live block, the rest a free block with the same stamp. Returns the live
  /// block; kNoBlock if the host has no memory for a record (nothing changed).
  /// REQUIRES: `block` is free; size is a positive multiple of the granule, at most the block's
  /// size; requested is at most size. Cost: O(1) plus the index.
  BlockIndex take(BlockIndex block, Bytes size, bool split, Bytes requested,
                  std::uint64_t user) noexcept;
  /// Makes a live, pending or in-transfer block free with that stamp, and merges it with free
  /// neighbours. Returns the merged block. Never allocates. Cost: O(1) plus the index.
  BlockIndex release(BlockIndex block, std::uint64_t stamp) noexcept;
  /// Makes a live block pending. Cost: O(1).
  void defer(BlockIndex block) noexcept;
  /// Makes a pending block live again: the inverse of defer. Cost: O(1).
  void undefer(BlockIndex block) noexcept;
  /// Takes a free block out of the index and makes it in transfer. Cost: the index.
  void lift(BlockIndex block) noexcept;
  /// Divides a block in transfer: its front `size` bytes stay that block, the rest becomes another one
  /// in transfer, with the same stamp. Returns the rest; kNoBlock if the host has no memory for a record
  /// (nothing changed). REQUIRES: size is a positive multiple of the granule, less than the block's.
  /// Cost: O(1).
  BlockIndex divide(BlockIndex block, Bytes size) noexcept;
  /// Makes a block in transfer live: the inverse of release, of a lifted block. False if the host has
  /// no memory for its entry in the address map (nothing changed). REQUIRES: requested is at most the
  /// block's size. Cost: O(1).
  bool take_lifted(BlockIndex block, Bytes requested, std::uint64_t user) noexcept;

  // Queries.
  /// The live or pending block that starts at `address`, or kNoBlock. Cost: O(1).
  BlockIndex find(Address address) const noexcept;
  BlockView view(BlockIndex block) const noexcept;
  SegmentView view(SegmentIndex segment) const noexcept;
  /// The next block of the same segment in address order, or kNoBlock.
  BlockIndex next(BlockIndex block) const noexcept;
  /// first_segment(), then next(segment) until kNoSegment, visit all segments in no particular
  /// order. Cost: O(1) each.
  SegmentIndex first_segment() const noexcept;
  SegmentIndex next(SegmentIndex segment) const noexcept;
  BlockState state(BlockIndex block) const noexcept;
  Address address(BlockIndex block) const noexcept;
  Bytes size(BlockIndex block) const noexcept;
  std::uint64_t user(BlockIndex block) const noexcept;
  /// Sets the user word. REQUIRES: the block is live or pending.
  void set_user(BlockIndex block, std::uint64_t user) noexcept;
  /// The segment that contains the block. Cost: O(1).
  SegmentIndex segment(BlockIndex block) const noexcept;
  /// True if the block spans its whole segment. Cost: O(1).
  bool is_whole(BlockIndex block) const noexcept;
  void set_user(SegmentIndex segment, std::uint64_t user) noexcept;
  const PoolCounts& counts() const noexcept;
  Bytes granule() const noexcept;
  /// The largest free block's size, or zero.
  Bytes largest_free() const noexcept;

  /// Walks the whole structure. Returns nullptr, or the text of the broken invariant.
  /// Cost: O(blocks).
  const char* validate() const noexcept;

 private:
  // Tests damage a pool through it, to see validate() report each invariant.
  friend struct PoolPeer;
  friend class PoolWalk;
  friend class UnmappedRanges;

  void check_state(BlockIndex block, BlockState state) const noexcept;
  void count_idle(std::uint32_t index, std::uint64_t size, bool now_idle) noexcept;
  void own(std::uint32_t index, std::uint64_t address, std::uint64_t size, Bytes requested,
           std::uint64_t user) noexcept;
  bool reserve_record() noexcept;
  [[gnu::cold]] bool ready_records() noexcept;

  BlockRecords records_;
  AddressMap map_;
  PoolCounts counts_;
  Bytes granule_;
  std::uint32_t segments_first_ = kNone;
  FreeIndex index_;
  std::unique_ptr<FreeIndex> unmapped_;  ///< of the unmapped blocks; made for the first one
};

/// Of a block in transfer only the bytes [begin, begin + size) stay so: give_back() is called with what is
/// left on either side, or, if the host has no memory for a record, with all of it. Returns the part;
/// kNoBlock then. REQUIRES and cost: as lift_part().
template <class GiveBack>
BlockIndex part_of_lifted(BlockPool& pool, BlockIndex block, Address begin, Bytes size,
                          GiveBack&& give_back) noexcept {
  const Bytes before = begin - pool.address(block);
  const Bytes behind = pool.size(block) - before - size;
  const BlockIndex part = before == Bytes{} ? block : pool.divide(block, before);
  const BlockIndex rest =
      part == kNoBlock || behind == Bytes{} ? kNoBlock : pool.divide(part, size);
  const bool is_lifted = part != kNoBlock && (behind == Bytes{} || rest != kNoBlock);
  if (rest != kNoBlock) give_back(rest);
  if (!is_lifted && part != kNoBlock && part != block) give_back(part);
  if (!is_lifted || part != block) give_back(block);
  return is_lifted ? part : kNoBlock;
}

/// Takes the bytes [begin, begin + size) out of a free block and makes them a block in transfer; what is
/// left of the free block on either side stays free. Returns that block; kNoBlock if the host has no
/// memory for a record (nothing changed). REQUIRES: the bytes are in the block; begin and size are
/// multiples of the granule, and size is not zero. Cost: the index.
BlockIndex lift_part(BlockPool& pool, BlockIndex block, Address begin, Bytes size) noexcept;

/// The same, but the bytes become a live block with user word 0. REQUIRES: as lift_part(); requested <=
/// size.
BlockIndex take_part(BlockPool& pool, BlockIndex block, Address begin, Bytes size,
                     Bytes requested) noexcept;

}  // namespace ashlar::inline v0::block

#include <ashlar/block/block_pool_inl.h>
