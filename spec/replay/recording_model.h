// The model of recordings: what the recording of a run must be, and where two runs first differ. It
// reads a finished run, where the recorder listens to the calls.
//
// Thread safety: none; plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/replay/recording.h>
#include <ashlar/replay/validation.h>

namespace ashlar::spec {

/// One successful call on the recorded stream. A run has no events for calls that failed, or of
/// other streams.
struct RunEvent {
  enum class Kind : std::uint8_t { kAllocate, kFree, kUseElsewhere };
  Kind kind = Kind::kAllocate;
  std::uint64_t name = 0;  ///< of the allocation; unique
  Bytes size;
};

/// The recording of the run. Frees and uses of names that were not allocated in the run are
/// ignored.
/// Cost: O(n^2).
replay::Recording recording_of(const std::vector<RunEvent>& run);

/// The first difference of two recordings, in time.
std::optional<replay::Difference> difference_of(const replay::Recording& recorded,
                                                const replay::Recording& run);

}  // namespace ashlar::spec
