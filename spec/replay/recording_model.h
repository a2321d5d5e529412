// What a recording of a run must be, and where two runs first differ: by reading the run over, not
// by listening to it.
//
// Thread safety: none; plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/replay/recording.h>
#include <ashlar/replay/validation.h>

namespace ashlar::spec {

/// One call that succeeded, on the recorded stream; calls that failed or are of other streams are
/// not told.
struct RunEvent {
  enum class Kind : std::uint8_t { kAllocate, kFree, kUseElsewhere };
  Kind kind = Kind::kAllocate;
  std::uint64_t name = 0;  ///< of the allocation: one each
  Bytes size;
};

/// Frees and uses of names that were not allocated in the run are not its events. Cost: O(n^2).
replay::Recording recording_of(const std::vector<RunEvent>& run);

/// The first difference of two recordings, in time.
std::optional<replay::Difference> difference_of(const replay::Recording& recorded,
                                                const replay::Recording& run);

}  // namespace ashlar::spec
