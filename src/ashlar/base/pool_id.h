// Which pool of a heap a block or a segment belongs to.
//
// Purpose: the page map, statistics and snapshots name a pool by one type, so that a pool can be
// added in one place. The pools of a heap are numbered from 0; the page map's words have room for
// 32 pools.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>

namespace ashlar::inline v0 {

/// One pool of a heap.
enum class PoolId : std::uint8_t {
  kSmall = 0,  ///< requests up to Config::small_request_max
  kLarge = 1,  ///< larger requests
};
/// The number of pools of a heap.
inline constexpr unsigned kPools = 2;
/// Every pool of a heap, in the order in which memory is given back: large segments first.
inline constexpr std::array<PoolId, kPools> kPoolIds{PoolId::kLarge, PoolId::kSmall};
/// The maximum number of pools that a heap can have. A pool's number takes five of the six low bits
/// that the alignment of a heap leaves free in its address (cache/page_map.h).
inline constexpr unsigned kPoolsMax = 32;

/// The pool's number, as an index.
constexpr unsigned index_of(PoolId pool) noexcept { return static_cast<unsigned>(pool); }

}  // namespace ashlar::inline v0
