// An answer to a planning problem.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// Whether a plan within some capacity is known to exist, known not to exist, or neither.
enum class Fits : std::uint8_t { kUnknown, kYes, kNo };

/// What is known of one space. A proof, of either kind, is a lower bound: an optimal peak is its
/// own, and what cannot fit in C bytes has one above C. So the two numbers say all, and cannot
/// contradict a flag.
struct SpaceAnswer {
  Bytes peak;         ///< the highest end of a buffer; zero when the space is empty
  Bytes lower_bound;  ///< no valid plan has a lower peak; never above peak

  /// Is the peak the least possible?
  constexpr bool is_proved_optimal() const { return lower_bound == peak; }
  constexpr Fits fits(Bytes capacity) const {
    if (peak <= capacity) return Fits::kYes;
    return lower_bound > capacity ? Fits::kNo : Fits::kUnknown;
  }
  friend constexpr bool operator==(const SpaceAnswer&, const SpaceAnswer&) = default;
};

struct Plan {
  std::vector<Bytes> offsets;       ///< by buffer
  std::vector<SpaceAnswer> spaces;  ///< by space
  /// For each space that cannot fit: buffers of it that cannot fit within its capacity together.
  /// Few, not always fewest.
  std::vector<std::uint32_t> cannot_fit;
};

}  // namespace ashlar::inline v0::plan
