// The least possible peak of a small problem, by trying everything.
//
// Every order of placing is tried, each unit at its lowest offset that is still free (placing.h),
// pinned units first. That is enough. Take any valid plan, and place its units in the order of
// their offsets, pinned ones first. Each lands no higher than the plan has it, by induction: were u
// put at the plan's offset o(u), then a pinned unit is where the plan has it too, and does not
// disturb; and a member of an unpinned unit v placed before, that has to be apart from a member of
// u, ends by o(u) in the plan (v begins no higher than u, and both have bytes), hence also where it
// was placed, which is no higher. So o(u) was free for u, and its lowest free offset is no higher.
// The peak then is no higher either; an optimal plan's order gives an optimal plan.
//
// Thread safety: pure functions. REQUIRES: the problem is sound as plan/problem.h says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::spec {

inline constexpr std::size_t kBruteForceUnitsMax = 9;

struct LeastPeaks {
  std::vector<Bytes> peaks;    ///< by space
  std::vector<Bytes> offsets;  ///< by buffer: a plan that has them
};

/// REQUIRES: at most kBruteForceUnitsMax groups and lone buffers in a space. Cost: the factorial of
/// their number, at worst.
LeastPeaks brute_force(const plan::Problem& problem);

/// Do these buffers of one space, and no others, have no plan within its capacity? REQUIRES: as
/// brute_force().
bool cannot_fit(const plan::Problem& problem, const std::vector<std::uint32_t>& buffers);

/// By space, the most bytes that are live at one time, a group counting as its largest live buffer:
/// no peak is lower.
std::vector<Bytes> live_peaks(const plan::Problem& problem);

}  // namespace ashlar::spec
