// What one run asked for, in order.
//
// Purpose: the plain types that a recorder makes, and that planning, validation and replay take.
// Thread safety: plain values and pure functions.
//
// An event is an allocation or the free of one; the events of a run are numbered from 0 without a
// hole, and an allocation's life is two such numbers. What is never freed within the recording is
// not managed: a plan could not say for how long its bytes are taken. Neither is what other streams
// use: its bytes come back when that stream's work is done, which no order of allocations and frees
// tells.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::replay {

inline constexpr plan::Time kNeverFreed = -1;

struct RecordedAllocation {
  Bytes size;                      ///< as requested; never zero
  plan::Time allocated = 0;        ///< the event
  plan::Time freed = kNeverFreed;  ///< the event
  bool is_used_elsewhere = false;

  /// Does a plan say where it goes?
  constexpr bool is_managed() const { return freed != kNeverFreed && !is_used_elsewhere; }
  friend constexpr bool operator==(const RecordedAllocation&, const RecordedAllocation&) = default;
};

struct Recording {
  std::vector<RecordedAllocation> allocations;  ///< in order
  plan::Time events = 0;                        ///< allocations and frees together
  friend bool operator==(const Recording&, const Recording&) = default;
};

struct RecordedEvent {
  std::uint32_t allocation = 0;
  bool is_free = false;
  friend constexpr bool operator==(const RecordedEvent&, const RecordedEvent&) = default;
};

/// Is it what a run could have been, and can it be planned? kInvalidArgument: a size of zero,
/// allocations out of order, a free before its allocation, an event number that is left out, taken
/// twice or past the end. kSizeOverflow: over kBuffersMax allocations, or sizes that together pass
/// kPlanBytesMax. Cost: linear.
ASHLAR_API Status check_recording(const Recording& recording);

/// The events, by their numbers. REQUIRES: check_recording(recording). Cost: linear.
ASHLAR_API std::vector<RecordedEvent> events_of(const Recording& recording);

/// Alignment of what a plan gives out, unless said otherwise: that of the caching allocator's
/// blocks.
inline constexpr Bytes kReplayAlignment{512};
inline constexpr Bytes kReplayAlignmentMax{std::uint64_t{1} << 30};

/// The managed allocations as buffers, in order, in one space. REQUIRES:
/// check_recording(recording); `alignment` is a power of two up to kReplayAlignmentMax. Cost:
/// linear.
ASHLAR_API plan::Problem problem_of(const Recording& recording, Bytes alignment = kReplayAlignment);

}  // namespace ashlar::inline v0::replay
