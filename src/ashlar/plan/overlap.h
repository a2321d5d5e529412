// Do offsets keep buffers that conflict apart?
//
// Purpose: what makes a pin or a stored plan acceptable. The library's own word; spec/plan judges
// solvers, by other code.
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// Two buffers that conflict and overlap.
struct Overlap {
  std::uint32_t earlier = 0;  ///< began to live, or came back from a gap, no later than the other
  std::uint32_t later = 0;
};

/// The first overlap in time, if any. Buffers at kNowhere are left out. REQUIRES: the buffers of
/// `problem` are each sound, those of a group are in one space and at one offset, and no offset or
/// end is over kPlanBytesMax. Cost: O(n log n).
std::optional<Overlap> first_overlap(const Problem& problem, const std::vector<Bytes>& offsets);

}  // namespace ashlar::inline v0::plan
