// The state of a block, as the block pool keeps it and a snapshot shows it.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace ashlar::inline v0 {

/// 32 bits wide, so that the blocks of a snapshot have no padding and runs of them can be compared
/// as bytes.
enum class BlockState : std::uint32_t {
  kFree,        ///< in the free index; merges with free neighbours
  kLive,        ///< owned by a caller
  kPending,     ///< freed by its owner while uses are incomplete: neither free nor live
  kInTransfer,  ///< taken out by a slow path (C18): no search finds it
  kUnmapped     ///< addresses without memory; merges with unmapped neighbours
};
inline constexpr unsigned kBlockStates = 5;

}  // namespace ashlar::inline v0
