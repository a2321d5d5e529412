// Serves a run from one segment, by the offsets of a plan.
//
// Purpose: row REC-5. A run equal to the recorded one costs an offset's look-up an allocation and fits in the plan's peak. A
// run that differs is still served: what is not as recorded falls back to the upstream, is counted by kind, and the replay
// finds its way back. The rule is in replay_rule.h; the model is spec/replay.
// Thread safety: any thread; one short lock, under which nobody is called. rewind() by one thread at a time.
//
// Invariants (R-clauses; checked at every step by spec/replay):
//   (R1) no two live allocations share a byte, whoever serves them; nor one and what is held;
//   (R2) what is served lies in the segment, at its planned offset from base();
//   (R3) what is not served goes upstream, and has upstream's answer;
//   (R4) every request is counted, by the rule;
//   (R5) when all is freed, the end leaves nothing upstream;
//   (R6) a run equal to the recording is served from the segment, all that is managed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ashlar/base/spin_lock.h>
#include <ashlar/plan/plan.h>
#include <ashlar/plan/recording.h>
#include <ashlar/plan/replay_rule.h>
#include <ashlar/plan/router.h>
#include <ashlar/plan/slot_set.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

class ASHLAR_API Replay final : public Route {
 public:
  /// Replays on `stream` what was recorded on it or on another. `plan` answers problem_of(recording, alignment). Asks
  /// upstream, which outlives this, for the segment: the peak and one alignment more. Where upstream has none, that is no
  /// error: everything falls back, and each rewind asks again. kInvalidArgument: not a sound recording (kSizeOverflow too), not
  /// a power of two up to kReplayAlignmentMax, not a valid plan. kOutOfMemory: the host has too little. Cost: O(n log n).
  static Result<std::unique_ptr<Replay>> create(Upstream& upstream, const Stream& stream, const Recording& recording,
                                                const Plan& plan, Bytes alignment = kReplayAlignment) noexcept;
  /// Gives the segment back. Where planned memory is still live, that is the caller's leak, and the segment stays upstream.
  ~Replay() override;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Cost: O(1) while the run is the recorded one; else a search of the next few allocations and of what is late.
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  /// For what is inside the segment: kDoubleFree where it is held, kUnknownPointer where nothing live begins; other addresses
  /// are upstream's. Never allocates. Cost: O(1) while the run is the recorded one; else O(log n).
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;
  bool owns(Address address) const noexcept override;

  /// The run begins anew. Ok, or why there is no segment, or why the old one, parts of it held, could not be given back. Cost:
  /// O(1) after a run equal to the recording; else linear.
  Status rewind() noexcept;

  ReplayCounts counts() const noexcept;
  /// Offsets count from here; null while there is no segment.
  Address base() const noexcept;
  /// What was asked for the segment: zero where nothing is managed.
  Bytes segment_size() const noexcept { return segment_size_; }

 private:
  static constexpr std::uint32_t kNoSlot = SlotSet::kNone;
  enum Flag : std::uint8_t { kLive = 1, kLate = 2, kUsed = 4, kHeld = 8 };

  struct Event {
    Bytes size;                    // of an allocation; zero of a free, and of the end, which stands behind the last
    Bytes offset;
    std::uint32_t slot = kNoSlot;  // none: unmanaged, or the end
    std::uint32_t allocation = 0;
    bool is_allocation() const { return size != Bytes{}; }
    bool is_end() const { return size == Bytes{} && slot == kNoSlot; }
  };
  /// A planned offset, and what is there now. Numbered in order of their offsets. One allocation at a time: those of a slot
  /// have their first byte in common.
  struct Slot {
    Bytes offset;
    Bytes size;
    std::uint32_t allocation = 0;
    std::uint8_t flags = 0;
  };

  Replay(Upstream& upstream, const Stream& stream, const Recording& recording, const Plan& plan, Bytes alignment);
  bool contains(Address address) const noexcept;
  bool is_on_time(const Event& free) const noexcept;
  Address occupy(const Event& event) noexcept;
  Address place(Bytes size) noexcept;
  std::size_t match(Bytes size) const noexcept;
  void pass_over(std::size_t end) noexcept;
  bool is_barred(const Event& event) const noexcept;
  Slot* live_at(Address address, Status* refusal) noexcept;
  void end_life(Slot& slot) noexcept;
  Status renew_segment() noexcept;
  void adopt_segment(Address segment) noexcept;

  Upstream& upstream_;
  const Stream stream_;
  const Bytes alignment_;
  const Bytes segment_size_;
  mutable SpinLock lock_;  // of what follows
  Address segment_;
  Address base_;
  std::vector<Event> events_;
  std::size_t cursor_ = 0;
  std::vector<Slot> slots_;
  SlotSet barred_;          // slots whose bytes are late or held
  std::uint64_t live_ = 0;  // in the segment
  std::uint64_t held_ = 0;
  ReplayCounts counts_;
};

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
