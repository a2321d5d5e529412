// An answer to a planning problem.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

/// What is known of one space.
struct SpaceAnswer {
  Bytes peak;                    ///< the highest end of a buffer; zero when the space is empty
  Bytes lower_bound;             ///< no valid plan has a lower peak
  bool is_proved_optimal = false;///< peak is the least possible
  /// With a capacity: whether a plan within it is known to exist, known not to exist, or neither.
  enum class Fits : std::uint8_t { kUnknown, kYes, kNo };
  Fits fits = Fits::kUnknown;
};

struct Plan {
  std::vector<Bytes> offsets;        ///< by buffer
  std::vector<SpaceAnswer> spaces;   ///< by space
  /// When a space does not fit: buffers of it that cannot fit within its capacity together. Small, not always smallest.
  std::vector<std::uint32_t> cannot_fit;
};

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
