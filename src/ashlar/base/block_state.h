// What state a block is in, as a snapshot shows it.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace ashlar::inline v0 {

/// As wide as it is so that a snapshot's blocks have no padding, and whole runs of them compare as
/// bytes.
enum class BlockState : std::uint32_t {
  kFree,       ///< in the free index; merges with free neighbours
  kLive,       ///< owned by a caller
  kPending,    ///< freed by its owner, uses not yet complete: not free, not live
  kInTransfer  ///< lifted out by a slow path (C18): findable by nobody
};

}  // namespace ashlar::inline v0
