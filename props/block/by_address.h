// Segments whose positions are their addresses: for tests of a pool in which the two need not differ.
//
// Thread safety: none, as the pool.
#pragma once

#include <ashlar/block/block_pool.h>

namespace ashlar::inline v0::block {

/// Where the first segment of a pool lies, in tests that need just one place.
inline constexpr Address kBase{std::uint64_t{1} << 40};

inline SegmentIndex add_by_address(BlockPool& pool, Address base, Bytes size, std::uint64_t stamp,
                                   std::uint64_t user, BlockState state = BlockState::kFree) {
  return pool.add_segment(base, size, Position{base.value()}, stamp, user, state);
}

}  // namespace ashlar::inline v0::block
