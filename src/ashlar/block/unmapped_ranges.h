// Addresses without memory: the operations of a block pool on segments of which only parts are mapped.
//
// Purpose: with virtual memory a segment is a range of addresses, and memory is mapped into parts of
// it. An unmapped block is such a part without memory. It is not free: no search for a free block
// finds it. Its owner lifts it out, maps memory there and releases it; the other way round, it lifts a
// free block, unmaps its memory and hands the block in here.
// Thread safety: that of the pool.
//
// Invariants: the pool's (2), that unmapped neighbours merge, and (3), that an index of their own holds
// the unmapped blocks. The index is made with the first segment of this kind, so that pools without
// virtual memory have none.
#pragma once

#include <ashlar/block/block_pool.h>

namespace ashlar::inline v0::block {

class UnmappedRanges {
 public:
  explicit UnmappedRanges(BlockPool& pool) noexcept : pool_(pool) {}

  /// Adds [base, base + size) as one unmapped block. kNoSegment if the host has no memory for the
  /// records (nothing changed). REQUIRES: as BlockPool::add_segment. Cost: as there.
  SegmentIndex add_segment(Address base, Bytes size, Position position,
                           std::uint64_t user) noexcept;
  /// Takes an unmapped block out of the index and makes it in transfer. Cost: the index.
  void lift(BlockIndex block) noexcept;
  /// Takes the bytes [begin, begin + size) out of an unmapped block and makes them a block in transfer; the
  /// rest stays unmapped. Returns that block; kNoBlock, and nothing has changed, if the host has no memory for
  /// a record. REQUIRES: as block::lift_part(). Cost: the index.
  BlockIndex lift_part(BlockIndex block, Address begin, Bytes size) noexcept;
  /// Makes a block in transfer unmapped, and merges it with unmapped neighbours. Returns the merged
  /// block. Never allocates. REQUIRES: its segment was added here. Cost: the index.
  BlockIndex unmap(BlockIndex block) noexcept;

  /// The smallest unmapped block of at least `size` bytes, at the lowest position among equals, or
  /// kNoBlock. REQUIRES: size is a positive multiple of the granule. Cost: as BlockPool::best_fit.
  BlockIndex smallest(Bytes size) const noexcept;
  /// The first unmapped block behind that (size, position), or kNoBlock. REQUIRES and cost: as
  /// BlockPool::next_fit.
  BlockIndex next(Bytes size, Position position) const noexcept;
  /// The neighbour below in the same segment, or kNoBlock.
  BlockIndex before(BlockIndex block) const noexcept;

 private:
  /// The index, made if there is none; nullptr if the host has no memory.
  FreeIndex* make_index() noexcept;
  /// Takes the next block, which is unmapped too, into the block at `index`.
  void absorb_next(std::uint32_t index) noexcept;

  BlockPool& pool_;
};

}  // namespace ashlar::inline v0::block
