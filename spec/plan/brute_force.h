// The least possible peak of a small problem, by trying every order.
//
// Every order of placing is tried: pinned units first, then each unit at its lowest free offset
// (placing.h). This finds an optimal plan, since some order gives a plan with the peak of an
// optimal one. Proof: take any valid plan, and place its units in the order of their offsets,
// pinned units first. By induction every unit u lands no higher than the plan's offset o(u),
// because o(u) is free for u when u is placed:
//   - a pinned unit is where the plan has it, and the plan keeps it apart from u at o(u);
//   - let v be an unpinned unit placed before u, with a member that must be apart from a member of
//     u. In the plan that member of v ends at or below o(u), since v begins no higher than u and
//     both have bytes. It was placed no higher than the plan has it, so it ends at or below o(u)
//     there too.
// So the peak is no higher than the plan's.
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

/// True if these buffers of one space, alone, have no plan within the space's capacity. REQUIRES:
/// as brute_force().
bool cannot_fit(const plan::Problem& problem, const std::vector<std::uint32_t>& buffers);

/// By space, the maximum of the bytes that are live at one time; a group counts as its largest live
/// buffer. No plan has a lower peak.
std::vector<Bytes> live_peaks(const plan::Problem& problem);

}  // namespace ashlar::spec
