// What one run allocated and freed, in order.
//
// Purpose: the plain types that a recorder makes, and that planning, validation and replay take.
// Thread safety: plain values and pure functions.
//
// An event is an allocation or the free of one. The events of a run are numbered from 0 without a
// hole, and an allocation's life is two of these numbers. Two kinds of allocations are not managed,
// that is, not planned: one that is not freed within the recording, because its life is not known;
// and one that another stream uses, because its bytes come back when that stream's work is done,
// which no order of allocations and frees tells.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::replay {

/// The event of a free that is not in the recording.
inline constexpr plan::Time kNeverFreed = -1;

/// One allocation of a run.
struct RecordedAllocation {
  Bytes size;                      ///< as requested; never zero
  plan::Time allocated = 0;        ///< the number of its event
  plan::Time freed = kNeverFreed;  ///< the number of its free's event
  bool is_used_elsewhere = false;  ///< another stream used it

  /// Whether a plan places it.
  constexpr bool is_managed() const { return freed != kNeverFreed && !is_used_elsewhere; }
  /// Equal if every field is.
  friend constexpr bool operator==(const RecordedAllocation&, const RecordedAllocation&) = default;
};

/// One run.
struct Recording {
  std::vector<RecordedAllocation> allocations;  ///< in order of their events
  plan::Time events = 0;                        ///< how many: allocations and frees together
  /// Equal if the runs are.
  friend bool operator==(const Recording&, const Recording&) = default;
};

/// One event of a run.
struct RecordedEvent {
  std::uint32_t allocation = 0;  ///< index into Recording::allocations
  bool is_free = false;          ///< its free; otherwise the allocation itself
  /// Equal if both fields are.
  friend constexpr bool operator==(const RecordedEvent&, const RecordedEvent&) = default;
};

/// Checks that a run can have made the recording, and that it can be planned. kInvalidArgument: a
/// size of zero, allocations out of order, a free before its allocation, an event number that is
/// missing, taken twice or past the end. kSizeOverflow: more than kBuffersMax allocations, or sizes
/// that with their padding add up to over kPlanBytesMax.
///
/// Cost: linear. Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API Status check_recording(const Recording& recording);

/// The events, by their numbers. REQUIRES: check_recording(recording).
///
/// Cost: linear. Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API std::vector<RecordedEvent> events_of(const Recording& recording);

/// The alignment of planned memory unless another is given: that of the caching allocator's blocks.
inline constexpr Bytes kReplayAlignment{512};
/// The largest alignment of planned memory.
inline constexpr Bytes kReplayAlignmentMax{std::uint64_t{1} << 30};

/// The planning problem of a recording: its managed allocations as buffers, in order, in one space,
/// aligned to `alignment` bytes. REQUIRES: check_recording(recording); `alignment` is a power of two
/// up to kReplayAlignmentMax.
///
/// Cost: linear. Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API plan::Problem problem_of(const Recording& recording, Bytes alignment = kReplayAlignment);

}  // namespace ashlar::inline v0::replay
