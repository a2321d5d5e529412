// What a walk over a pool needs that goes on after the pool has changed: segments by number, and
// whether a block is still where it was seen.
//
// Purpose: a walk over all blocks is longer than a lock may be held (C31). It remembers numbers, not
// references, and looks whether they still mean what they meant.
// Thread safety: none; the pool's owner holds a lock. All members may run concurrently.
#pragma once

#include <ashlar/block/block_pool.h>

namespace ashlar::inline v0::block {

class PoolWalk {
 public:
  explicit PoolWalk(const BlockPool& pool) noexcept : pool_(pool) {}

  /// Every segment of the pool has a number from 1 to below this one, as long as it is in the pool.
  std::uint32_t segments_end() const noexcept { return pool_.records_.segments().touched(); }
  /// The segment with that number, or kNoSegment if none has it.
  SegmentIndex segment(std::uint32_t number) const noexcept {
    const bool is_used =
        number < segments_end() && pool_.records_.segments().state(number) != kUnused;
    return is_used ? SegmentIndex{number} : kNoSegment;
  }
  /// True if `block`, which was once a block of the pool, is one now, and begins at `address`.
  bool is_at(BlockIndex block, Address address) const noexcept {
    return pool_.records_.state(raw(block)) != kUnused && pool_.address(block) == address;
  }

 private:
  const BlockPool& pool_;
};

}  // namespace ashlar::inline v0::block
