// StepSession: host memory for a program whose steps repeat, and the plan of such a step.
//
// Purpose: what ashlar_torch_cpu.h offers, without PyTorch: one host allocator, and on top of it the recorder, the
// planner and the replay (src/ashlar/replay), with guards around a step.
// Thread safety: allocate() and free() from any thread. A step begins and ends on one thread, and only what that
// thread allocates belongs to it; one step at a time.
//
// Invariants:
//   (1) an allocation made in a step is freed where it was made, whichever step, thread or none is under way then;
//   (2) a step that differs from its recording is served: what the plan does not place comes from the allocator,
//       and is counted;
//   (3) a replay stays until nothing is live in its segment.
// What must happen: the segment of a replay whose memory is all freed goes back at the end of the next recording.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/base/mutex.h>
#include <ashlar/device/host_device.h>
#include <ashlar/pinned/pinned_allocator.h>
#include <ashlar/replay/recorder.h>
#include <ashlar/replay/router.h>

#include "src/torch_cpu/step_parts.h"

namespace ashlar::torch_cpu {

/// What a plan is worth, in bytes.
struct StepPlan {
  std::uint64_t allocations = 0;  ///< of the recorded step
  std::uint64_t unmanaged = 0;  ///< of those, the ones that are still live at its end: not planned
  Bytes live_peak;              ///< the most bytes that its planned allocations ask for at a time
  Bytes lower_bound;            ///< no plan has less, with addresses aligned as ours
  Bytes peak;                   ///< the plan's
};

class StepSession {
 public:
  enum class Step : std::uint8_t { kNone, kRecord, kValidate, kReplay };

  /// Makes the allocator. `parts` puts checkers around what serves; the default none. Errors: those of
  /// PinnedAllocator::create.
  static Result<std::unique_ptr<StepSession>> create(const StepParts& parts = {}) noexcept;
  /// REQUIRES: no step is under way, and nothing that it handed out is used any more.
  ~StepSession();
  StepSession(const StepSession&) = delete;
  StepSession& operator=(const StepSession&) = delete;

  /// Allocates at least `size` bytes, aligned to 512; null for zero. Errors as PinnedAllocator::allocate.
  Result<Address> allocate(Bytes size) noexcept {
    return router_->allocate(size, memory_->arena());
  }
  /// Ends the allocation there. Null is a no-op. kUnknownPointer, kDoubleFree: it is not live; no effect.
  Status free(Address address) noexcept { return router_->free(address); }

  /// Begins a step on the calling thread: its allocations are recorded (kRecord, kValidate), or served by the plan
  /// (kReplay). kBusy: a step is under way, or too many replays have live memory; kNotFound: there is no
  /// recording to validate against, or no plan to replay.
  Status begin(Step step) noexcept ASHLAR_EXCLUDES(lock_);
  /// Ends the thread's step. After kRecord the step is planned for at most `plan_ms` milliseconds; after
  /// kValidate, difference() says whether it was as recorded; after kReplay the next may begin. kNotFound: no step is
  /// under way; kBusy: it is another thread's; otherwise errors of the recorder and the replay, and the step
  /// has ended.
  Status end(std::uint32_t plan_ms) noexcept ASHLAR_EXCLUDES(lock_);

  /// How the validated step first differs from the recorded one, in one line; empty if it does not.
  std::string difference() const ASHLAR_EXCLUDES(lock_);
  /// The plan of the recorded step; zeros while there is none.
  StepPlan plan() const noexcept ASHLAR_EXCLUDES(lock_);
  /// What replays have counted since the plan was made; zeros while there is none.
  replay::ReplayCounts counts() const noexcept ASHLAR_EXCLUDES(lock_);
  /// Gives idle memory back to the kernel: whole segments, and the pages of free blocks, whose addresses stay.
  /// Errors: as CachingAllocator::trim. Cost: linear in the blocks, and in the pages.
  Status trim() noexcept;
  /// The host memory that all of it comes from.
  pinned::PinnedAllocator& memory() noexcept { return *memory_; }

 private:
  explicit StepSession(const StepParts& parts);
  /// Throws std::bad_alloc.
  static std::unique_ptr<StepSession> make(const StepParts& parts);
  Status plan_run(replay::Recording run, std::uint32_t plan_ms) noexcept ASHLAR_REQUIRES(lock_);
  Status end_run(Step ended, std::uint32_t plan_ms) noexcept ASHLAR_REQUIRES(lock_);
  void drop_idle_replays() noexcept ASHLAR_REQUIRES(lock_);
  replay::Route& route_of(Step step) noexcept ASHLAR_REQUIRES(lock_);

  const StepParts parts_;
  device::HostDevice host_ ASHLAR_UNGUARDED;
  std::unique_ptr<pinned::PinnedAllocator> memory_ ASHLAR_UNGUARDED;
  std::unique_ptr<Upstream> base_ ASHLAR_UNGUARDED;
  std::unique_ptr<replay::Router> router_ ASHLAR_UNGUARDED;

  mutable Mutex lock_;
  Step step_ ASHLAR_GUARDED_BY(lock_) = Step::kNone;
  std::thread::id thread_ ASHLAR_GUARDED_BY(lock_);
  std::optional<replay::ThreadGuard> guard_ ASHLAR_GUARDED_BY(lock_);
  /// Of the thread whose step was recorded, on whose arena the replay serves.
  Stream stream_ ASHLAR_GUARDED_BY(lock_);
  std::unique_ptr<replay::Recorder> recorder_ ASHLAR_GUARDED_BY(lock_);
  std::optional<replay::Recording> recording_ ASHLAR_GUARDED_BY(lock_);
  std::vector<std::unique_ptr<replay::Replay>> replays_
      ASHLAR_GUARDED_BY(lock_);  ///< the last is used
  StepPlan plan_ ASHLAR_GUARDED_BY(lock_);
  std::string difference_ ASHLAR_GUARDED_BY(lock_);
};

}  // namespace ashlar::torch_cpu
