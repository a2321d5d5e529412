// Compares a run with its recording.
//
// Purpose: row REC-4. Record the later run too, and ask for the first event at which the two differ:
// it names the allocation and how it differs. Later differences mostly follow from the first.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ashlar/replay/recording.h>

namespace ashlar::inline v0::replay {

/// How a run first differs from its recording.
struct Difference {
  /// What differs about the allocation.
  enum class Kind : std::uint8_t {
    kSize,               ///< it has another size
    kExtraAllocation,    ///< the recording has ended
    kMissingAllocation,  ///< the run has ended
    kFreedEarly,         ///< it is freed where something else was recorded
    kFreedLate,          ///< it is not freed where that was recorded, but later or never
    /// Another stream uses it in one of the two only. Found after all others: a use is no event.
    kUsedElsewhere,
  };
  Kind kind = Kind::kSize;       ///< what differs
  std::uint32_t allocation = 0;  ///< index into Recording::allocations, the same in both
  plan::Time event = 0;  ///< the number where they differ; for kUsedElsewhere, of the allocation
  Bytes recorded;        ///< its size in the recording; zero if it is not there
  Bytes found;           ///< its size in the run; zero if it is not there
  /// Equal if every field is.
  friend constexpr bool operator==(const Difference&, const Difference&) = default;
};

/// The first difference of `run` from `recorded`; nothing if they agree. REQUIRES:
/// check_recording() of both.
///
/// Cost: linear. Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API std::optional<Difference> first_difference(const Recording& recorded,
                                                      const Recording& run);

/// The difference in one line: "event 12: allocation 5 has 1024 bytes; recorded with 512 bytes".
///
/// Cost: O(1). Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API std::string text_of(const Difference& difference);

}  // namespace ashlar::inline v0::replay
