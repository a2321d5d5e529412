// Serves a run from one segment, at the offsets of a plan.
//
// Purpose: row REC-5. A run that is equal to the recorded one costs one look-up an allocation, and
// fits in the plan's peak. A run that differs is still served: allocations that are not as recorded
// fall back to the upstream and are counted by kind, and the replay finds its way back to the
// recording. The rule is in replay_rule.h; the model is spec/replay.
// Thread safety: any thread; one short lock, which is not held while the upstream is called.
// rewind() by one thread at a time.
//
// Invariants (the R clauses; checked at every step by spec/replay):
//   (R1) no two live allocations share a byte, whether the segment or the upstream serves them; and
//        none shares one with a held range;
//   (R2) a served allocation lies in the segment, at its planned offset from base();
//   (R3) a request that is not served goes upstream once, as it was made, and has upstream's answer;
//   (R4) every request is counted, as the rule says;
//   (R5) when everything is freed, the replay's end leaves nothing upstream;
//   (R6) in a run equal to the recording, every managed allocation is served from the segment.
#pragma once

#include <cstdint>
#include <memory>

#include <ashlar/plan/plan.h>
#include <ashlar/replay/recording.h>
#include <ashlar/replay/replay_counts.h>
#include <ashlar/replay/router.h>

namespace ashlar::inline v0::replay {

/// A replay of a plan. An interface whose one implementation create() makes, so that users do not
/// depend on its layout.
///
/// The destructor gives the segment back, unless planned memory is still live in it: then the
/// caller has leaked that memory, and the segment stays upstream.
class ASHLAR_API Replay : public Route {
 public:
  /// Makes a replay that serves requests on `stream`; the recording may be of another stream. `plan`
  /// answers problem_of(recording, alignment), with `alignment` in bytes. `upstream` outlives the
  /// replay, and is asked for the segment: the plan's peak and one alignment more. If it has no
  /// memory for that, every allocation falls back to it, and each rewind() asks again.
  ///
  /// kInvalidArgument, kSizeOverflow: check_recording() refuses the recording. kInvalidArgument: the
  /// alignment is not a power of two up to kReplayAlignmentMax, or the plan is not valid.
  /// kHostOutOfMemory: the host has too little memory. Cost: O(n log n). Never throws.
  /// Thread safety: any number of calls at the same time.
  static Result<std::unique_ptr<Replay>> create(Upstream& upstream, const Stream& stream,
                                                const Recording& recording, const plan::Plan& plan,
                                                Bytes alignment = kReplayAlignment) noexcept;

  /// Allocates `size` bytes: planned memory if the rule says so, else what upstream answers. Zero
  /// bytes are null. Cost: O(1) while the run is as recorded; otherwise a search of the next few
  /// recorded allocations and of late ranges. Never throws. Thread safety: any thread.
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override = 0;
  /// Frees planned memory; passes other addresses upstream. Freeing null is a no-op. Inside the
  /// segment: kDoubleFree for a held address, kUnknownPointer where no live allocation begins. Never
  /// allocates. Cost: O(1) while the run is as recorded; otherwise O(log n). Never throws.
  /// Thread safety: any thread.
  Status free(Address address) noexcept override = 0;

  /// Begins the run anew: the next request is compared with the first recorded one. Fails if there
  /// is no segment, or if the old one, which has held ranges, could not be given back: with
  /// upstream's status. The replay can be used all the same. Cost: O(1) after a run equal to the
  /// recording; otherwise linear. Never throws. Thread safety: one thread at a time.
  virtual Status rewind() noexcept = 0;

  /// What was counted since the replay was made. Thread safety: any thread.
  virtual ReplayCounts counts() const noexcept = 0;
  /// How many allocations are live in the segment: while there are any, it cannot go back. Thread safety: any thread.
  virtual std::uint64_t live() const noexcept = 0;
  /// The address of offset zero; null while there is no segment. Thread safety: any thread.
  virtual Address base() const noexcept = 0;
  /// The bytes asked of upstream for the segment; zero if the plan places nothing. Thread safety:
  /// any thread.
  virtual Bytes segment_size() const noexcept = 0;
};

}  // namespace ashlar::inline v0::replay
