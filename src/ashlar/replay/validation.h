// Was a later run the recorded one?
//
// Purpose: row REC-4. Record the later run too, and ask: the first event at which the two differ,
// in time, says which allocation it was and how. What comes after it follows from it, mostly.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ashlar/replay/recording.h>

namespace ashlar::inline v0::replay {

struct Difference {
  enum class Kind : std::uint8_t {
    kSize,               ///< it has another size
    kExtraAllocation,    ///< the recording was over
    kMissingAllocation,  ///< the run was over
    kFreedEarly,         ///< at an event where something else was recorded
    kFreedLate,          ///< or never: not at the event recorded
    /// by another stream, in one of the two only. Looked for last: a use has no place among events
    kUsedElsewhere,
  };
  Kind kind = Kind::kSize;
  std::uint32_t allocation = 0;  ///< the same number in both
  plan::Time event = 0;          ///< where they differ; of kUsedElsewhere, the allocation
  Bytes recorded;                ///< its size in the recording, zero where it is not in it
  Bytes found;                   ///< its size in the run, zero where it is not in it
  friend constexpr bool operator==(const Difference&, const Difference&) = default;
};

/// The first difference; nothing when the runs agree. REQUIRES: check_recording() of both. Cost:
/// linear.
ASHLAR_API std::optional<Difference> first_difference(const Recording& recorded,
                                                      const Recording& run);

/// One line: "event 12: allocation 5 has 1024 bytes; recorded with 512".
ASHLAR_API std::string text_of(const Difference& difference);

}  // namespace ashlar::inline v0::replay
