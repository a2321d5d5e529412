// Finds buffers that conflict and whose offsets overlap.
//
// Purpose: the library accepts pins and stored plans by it. The checker in spec/plan, which judges
// the solvers, shares no code with it.
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// Two buffers that conflict and overlap.
struct Overlap {
  std::uint32_t earlier = 0;  ///< became live, or live again after a gap, no later than the other
  std::uint32_t later = 0;
};

/// The first overlap in time, if there is one. Buffers at kNowhere are left out. REQUIRES: each
/// buffer of `problem` is sound, the buffers of a group are in one space and at one offset, and no
/// offset or end is over kPlanBytesMax. Cost: O(n log n). Throws std::bad_alloc.
std::optional<Overlap> first_overlap(const Problem& problem, const std::vector<Bytes>& offsets);

}  // namespace ashlar::inline v0::plan
