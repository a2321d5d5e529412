// When a buffer is live: the pieces of its life between its gaps.
//
// Thread safety: pure functions. All REQUIRE that the buffer is sound.
#pragma once

#include <cstdint>

#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// How many pieces there are: one more than gaps.
inline std::uint32_t live_pieces(const Buffer& buffer) noexcept {
  return buffer.gaps_end - buffer.gaps_begin + 1;
}

/// Piece k, from 0, in order of time. No piece is empty, and no two touch.
inline Lifetime live_piece(const Problem& problem, const Buffer& buffer, std::uint32_t k) noexcept {
  const std::uint32_t gap = buffer.gaps_begin + k;
  return {k == 0 ? buffer.life.lower : problem.gaps[gap - 1].upper,
          gap == buffer.gaps_end ? buffer.life.upper : problem.gaps[gap].lower};
}

}  // namespace ashlar::inline v0::plan
