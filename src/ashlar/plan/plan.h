// A plan: the answer to a planning problem.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// Whether a plan within some capacity exists: not known, known to exist, known not to exist.
enum class Fits : std::uint8_t {
  kUnknown,  ///< neither a plan nor a proof was found
  kYes,      ///< the plan fits
  kNo        ///< it is proved that no plan fits
};

/// What is known of one space. Every proof is a lower bound: a peak is proved least when the lower
/// bound equals it, and a capacity is proved too small when the lower bound is above it. So the two
/// numbers say everything, and no flag can contradict them.
struct SpaceAnswer {
  Bytes peak;         ///< the highest end of a buffer; zero if the space is empty
  Bytes lower_bound;  ///< no valid plan has a lower peak; never above peak

  /// Whether the peak is proved to be the least possible.
  constexpr bool is_proved_optimal() const { return lower_bound == peak; }
  /// Whether a plan of at most `capacity` bytes exists.
  constexpr Fits fits(Bytes capacity) const {
    if (peak <= capacity) return Fits::kYes;
    return lower_bound > capacity ? Fits::kNo : Fits::kUnknown;
  }
  /// Equal if both numbers are.
  friend constexpr bool operator==(const SpaceAnswer&, const SpaceAnswer&) = default;
};

/// Offsets for the buffers of a problem, and what is known of each space.
struct Plan {
  std::vector<Bytes> offsets;       ///< by buffer of the problem, in bytes from its space's start
  std::vector<SpaceAnswer> spaces;  ///< by space of the problem
  /// For each space whose capacity is proved too small: numbers of some of its buffers that have no
  /// plan within the capacity together. They are few, but not always the fewest.
  std::vector<std::uint32_t> cannot_fit;
};

}  // namespace ashlar::inline v0::plan
