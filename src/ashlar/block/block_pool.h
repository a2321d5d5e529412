// The block pool: segments cut into blocks, best fit, split, coalesce. Pure structure: no device,
// no lock, no clock.
//
// Purpose: everything the caching allocators know about *where* bytes are. Who may use them, and
// when, is theirs.
// Thread safety: none; the owner brings the lock. const members may run together.
//
// Invariants (validate() walks all of them and names the one that broke):
//   (1) C3  the blocks of a segment tile it exactly in address order, and neighbours agree;
//   (2) C4  no two adjacent blocks are both free;
//   (3) C5  the free index holds exactly the free blocks, each where its size says;
//   (4)     the address map holds exactly the live and pending blocks, by their address;
//   (5)     every block's address and size are multiples of the granule, and its size is not zero;
//   (6) C14 the pool's byte and block counters equal a recount;
//   (7)     every record is a block, a segment, or on its list of unused ones, and is reached
//           exactly once;
//   (8) C1  a live or pending block has at least as many bytes as were requested; a user's word
//           that stands apart (block_records.h) is not zero;
//   (9)     the order of the segments by address has each of them once that is not one block in
//           transfer; the block of one that is names its segment.
//
// A free block carries a *stamp*, a number the owner gave when it was released. A split hands it to
// both parts and a merge takes the larger, so a block's stamp is never older than any of its bytes'
// last use.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ashlar/base/block_state.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/block/address_map.h>
#include <ashlar/block/block_records.h>
#include <ashlar/block/free_index.h>
#include <ashlar/block/segment_records.h>

namespace ashlar::inline v0::block {

/// Names a block's record, or a segment's, inside one pool. Reused after the record is dropped.
enum class BlockIndex : std::uint32_t {};
enum class SegmentIndex : std::uint32_t {};
inline constexpr BlockIndex kNoBlock{kNone};
inline constexpr SegmentIndex kNoSegment{kNone};

struct BlockView {
  Address address;
  Bytes size;
  Bytes requested;  ///< what the caller asked for; zero unless live or pending
  BlockState state;
  std::uint64_t stamp;  ///< zero unless free or in transfer
  std::uint64_t user;   ///< the owner's word; zero unless live or pending
};

struct SegmentView {
  Address base;
  Bytes size;
  std::uint64_t user;  ///< the owner's word
  BlockIndex first;    ///< its blocks follow by next()
};

/// Counters kept as the pool changes (invariant 6).
struct PoolCounts {
  std::uint64_t segments = 0;
  std::uint64_t blocks[4] = {};  ///< by BlockState
  Bytes segment_bytes;
  Bytes bytes[4];                   ///< by BlockState
  Bytes requested_bytes;            ///< of live and pending blocks
  std::uint64_t idle_segments = 0;  ///< segments that are one free block
  Bytes idle_bytes;
};

class BlockPool {
 public:
  /// Every size and address is a multiple of `granule`. REQUIRES: a power of two, 16..64 KiB.
  explicit BlockPool(Bytes granule);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Segments.
  /// Adds [base, base + size) as one block, free or in transfer. kNoSegment if the host has no
  /// memory for the records (nothing changed). REQUIRES: disjoint from every other segment of this
  /// pool that is not one block in transfer; size < 2^63.
  /// Cost: O(1) amortised, and as moving a number for each segment above it; so for lift() of a
  /// whole segment, and its release.
  SegmentIndex add_segment(Address base, Bytes size, std::uint64_t stamp, std::uint64_t user,
                           BlockState state = BlockState::kFree) noexcept;
  /// Drops a segment. REQUIRES: it is one block, in transfer. Cost: O(1).
  void remove_segment(SegmentIndex segment) noexcept;
  /// Is the whole segment one free block? Cost: O(1).
  bool is_idle(SegmentIndex segment) const noexcept;

  // The operations.
  /// The free block with size in [size, size_end) that is smallest, and of those the one at the
  /// lowest address; kNoBlock when there is none. REQUIRES: size is a positive multiple of the
  /// granule. Cost: O(1) to the size class, then at most kFitStepsMax steps.
  BlockIndex best_fit(Bytes size, Bytes size_end) const noexcept;
  /// The free block after `block` in (size, address) order, or kNoBlock. REQUIRES: it is free.
  /// Cost: as best_fit.
  BlockIndex next_fit(BlockIndex block) const noexcept;
  /// Makes a free block live. When `split` and it is larger than `size`, the front `size` bytes
  /// become the live block and the rest a free one with the same stamp. kNoBlock if the host has no
  /// memory for a record (nothing changed).
  /// REQUIRES: free; size at most its size, a positive multiple of the granule; requested at most
  /// size. Cost: O(1) plus the index.
  BlockIndex take(BlockIndex block, Bytes size, bool split, Bytes requested,
                  std::uint64_t user) noexcept;
  /// A live, pending or in-transfer block becomes free with that stamp, and merges with free
  /// neighbours. Never allocates. Returns the merged block. Cost: O(1) plus the index.
  BlockIndex release(BlockIndex block, std::uint64_t stamp) noexcept;
  /// A live block becomes pending. Cost: O(1).
  void defer(BlockIndex block) noexcept;
  /// A pending block becomes live again (the undo of defer). Cost: O(1).
  void undefer(BlockIndex block) noexcept;
  /// A free block leaves the index, in transfer. Cost: the index.
  void lift(BlockIndex block) noexcept;

  // Queries.
  /// The live or pending block that starts at `address`, else kNoBlock. Cost: O(1).
  BlockIndex find(Address address) const noexcept;
  BlockView view(BlockIndex block) const noexcept;
  SegmentView view(SegmentIndex segment) const noexcept;
  /// The next block of the same segment in address order, or kNoBlock.
  BlockIndex next(BlockIndex block) const noexcept;
  /// Segments in no promised order: first_segment(), then next(segment) until kNoSegment. Cost:
  /// O(1) each.
  SegmentIndex first_segment() const noexcept;
  SegmentIndex next(SegmentIndex segment) const noexcept;
  BlockState state(BlockIndex block) const noexcept;
  Address address(BlockIndex block) const noexcept;
  Bytes size(BlockIndex block) const noexcept;
  std::uint64_t user(BlockIndex block) const noexcept;
  void set_user(BlockIndex block, std::uint64_t user) noexcept;
  /// Cost: O(log segments).
  SegmentIndex segment(BlockIndex block) const noexcept;
  /// Is the block all of its segment? Cost: O(1).
  bool is_whole(BlockIndex block) const noexcept;
  void set_user(SegmentIndex segment, std::uint64_t user) noexcept;
  const PoolCounts& counts() const noexcept;
  Bytes granule() const noexcept;
  /// The largest free block's size, or zero.
  Bytes largest_free() const noexcept;

  /// Walks everything: nullptr, or the text of the broken invariant. Cost: O(blocks). Never changes
  /// anything.
  const char* validate() const noexcept;

 private:
  // tests corrupt a pool through it, to see each invariant of validate() fire
  friend struct PoolPeer;

  static constexpr std::uint32_t raw(BlockIndex block) { return static_cast<std::uint32_t>(block); }
  static constexpr std::uint32_t raw(SegmentIndex segment) {
    return static_cast<std::uint32_t>(segment);
  }
  static constexpr std::uint8_t raw(BlockState state) { return static_cast<std::uint8_t>(state); }
  static constexpr bool is_owned(std::uint8_t state) {
    return state == raw(BlockState::kLive) || state == raw(BlockState::kPending);
  }

  void check_state(BlockIndex block, BlockState state) const noexcept;
  void check_in_use(BlockIndex block) const noexcept;
  void count_out(BlockState state, std::uint64_t size) noexcept;
  void count_in(BlockState state, std::uint64_t size) noexcept;
  static bool is_whole(const BlockRecord& record);
  void count_idle(std::uint32_t index, std::uint64_t size, bool now_idle) noexcept;
  void drop_next(std::uint32_t index) noexcept;
  bool is_away(std::uint32_t segment) const noexcept;
  void reindex() noexcept;
  bool reserve_record() noexcept;

  BlockRecords records_;
  AddressMap map_;
  PoolCounts counts_;
  Bytes granule_;
  std::uint32_t segments_first_ = kNone;
  SegmentSlab segments_;
  SegmentOrder order_;
  FreeIndex index_;
};

}  // namespace ashlar::inline v0::block

#include <ashlar/block/block_pool_inl.h>
