// Serves a run from one segment, by the offsets of a plan.
//
// Purpose: row REC-5. A run equal to the recorded one costs an offset's look-up an allocation and
// fits in the plan's peak. A run that differs is still served: what is not as recorded falls back
// to the upstream, is counted by kind, and the replay finds its way back. The rule is in
// replay_rule.h; the model is spec/replay.
// Thread safety: any thread; one short lock, under which nobody is called. rewind() by one thread
// at a time.
//
// Invariants (R-clauses; checked at every step by spec/replay):
//   (R1) no two live allocations share a byte, whoever serves them; nor one and what is held;
//   (R2) what is served lies in the segment, at its planned offset from base();
//   (R3) what is not served goes upstream, and has upstream's answer;
//   (R4) every request is counted, by the rule;
//   (R5) when all is freed, the end leaves nothing upstream;
//   (R6) a run equal to the recording is served from the segment, all that is managed.
#pragma once

#include <memory>

#include <ashlar/plan/plan.h>
#include <ashlar/replay/recording.h>
#include <ashlar/replay/replay_counts.h>
#include <ashlar/replay/router.h>

namespace ashlar::inline v0::replay {

/// An interface with one implementation, which create() makes: its layout is not the user's affair.
class ASHLAR_API Replay : public Route {
 public:
  /// Replays on `stream` what was recorded on it or on another. `plan` answers
  /// problem_of(recording, alignment). Asks `upstream`, which outlives this, for the segment: the
  /// peak and one alignment more. If upstream has no memory for it, everything falls back to
  /// upstream, and each rewind asks again. kInvalidArgument: the recording is not sound
  /// (kSizeOverflow too), the alignment is not a power of two up to kReplayAlignmentMax, or the
  /// plan is not valid. kOutOfMemory: the host has too little. Cost: O(n log n).
  static Result<std::unique_ptr<Replay>> create(Upstream& upstream, const Stream& stream,
                                                const Recording& recording, const plan::Plan& plan,
                                                Bytes alignment = kReplayAlignment) noexcept;

  /// Cost: O(1) while the run is the recorded one; else a search of the next few allocations and of
  /// what is late.
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override = 0;
  /// Inside the segment: kDoubleFree for a held address, kUnknownPointer where nothing live begins;
  /// other addresses go upstream. Never allocates. Cost: O(1) while the run is the recorded one;
  /// else O(log n).
  Status free(Address address) noexcept override = 0;

  /// The run begins anew. Ok, or why there is no segment, or why the old one, parts of it held,
  /// could not be given back.
  /// Cost: O(1) after a run equal to the recording; else linear.
  virtual Status rewind() noexcept = 0;

  virtual ReplayCounts counts() const noexcept = 0;
  /// Offsets count from here; null while there is no segment.
  virtual Address base() const noexcept = 0;
  /// The size asked of upstream for the segment: zero if the plan manages nothing.
  virtual Bytes segment_size() const noexcept = 0;
};

}  // namespace ashlar::inline v0::replay
