// What a block is to whoever asks: the one type of block/ that users see, in a snapshot.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace ashlar {
inline namespace v0 {
namespace block {

/// As wide as it is so that a snapshot's blocks have no padding, and whole runs of them compare as bytes.
enum class State : std::uint32_t {
  kFree,       ///< in the free index; merges with free neighbours
  kLive,       ///< owned by a caller
  kPending,    ///< freed by its owner, uses not yet complete: not free, not live
  kInTransfer  ///< lifted out by a slow path (C18): findable by nobody
};

}  // namespace block
}  // namespace v0
}  // namespace ashlar
