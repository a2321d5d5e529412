// Which pool of a heap a block or a segment belongs to.
//
// Purpose: one name for it in the page map, in statistics and in snapshots, so that a pool can be
// added in one place. A heap's pools are numbered from 0; the page map's words have room for 32.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>

namespace ashlar::inline v0 {

enum class PoolId : std::uint8_t {
  kSmall = 0,  ///< requests up to Config::small_request_max
  kLarge = 1,  ///< larger requests
};
inline constexpr unsigned kPools = 2;
/// Every pool of a heap, in the order in which memory is given back: large segments first.
inline constexpr std::array<PoolId, kPools> kPoolIds{PoolId::kLarge, PoolId::kSmall};
/// Most pools a heap can ever have: five of the six low bits that a heap's alignment leaves free
/// (cache/page_map.h).
inline constexpr unsigned kPoolsMax = 32;

/// The pool's number, as an index.
constexpr unsigned index_of(PoolId pool) noexcept { return static_cast<unsigned>(pool); }

}  // namespace ashlar::inline v0
