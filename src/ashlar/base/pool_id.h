// Which of a heap's two pools a block or a segment belongs to.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace ashlar::inline v0 {

enum class PoolId : std::uint8_t { kSmall = 0, kLarge = 1 };

}  // namespace ashlar::inline v0
