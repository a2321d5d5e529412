// What a search learns in one run for those to come.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/failed_parts.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

struct SearchMemory {
  FailedParts failed;
  /// By item: how often there was no room left for it, or over one of its sections. Empty before the first run.
  std::vector<std::uint64_t> blames;
};

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
