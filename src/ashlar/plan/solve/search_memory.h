// What one run of a search learns for the later runs over the same items.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/failed_parts.h>

namespace ashlar::inline v0::plan::solve {

struct SearchMemory {
  FailedParts failed;
  /// By item: how often there was no room left for it, or above one of its sections. Empty before
  /// the first run.
  std::vector<std::uint64_t> blames;
};

}  // namespace ashlar::inline v0::plan::solve
