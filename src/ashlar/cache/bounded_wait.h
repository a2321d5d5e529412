// What a reclaim or a trim may wait for, one wait at a time: the oldest pending event, or a
// synchronisation of the device, until the deadline or until nothing is left to wait for.
//
// C12: an allocation fails only when nothing is left that a permitted wait would free. H8: the wait
// is cut into slices and everything is searched in between, so one stuck stream does not hide what
// others have finished. C30: it ends at the call's deadline, and no lock is held while it waits.
//
// A wait does not own the event that it waits for: another thread may find it done and record it
// again, for other work. Then this thread waits for that work instead, for no longer than a slice,
// and searches again. SharedState::event_waiters keeps the event from being destroyed.
// Thread safety: none; lives within one call.
#pragma once

#include <atomic>
#include <cstdint>

#include <ashlar/cache/deadline.h>
#include <ashlar/cache/epochs.h>
#include <ashlar/cache/heap_list.h>
#include <ashlar/cache/use_tracker.h>
#include <ashlar/cache/waited_work.h>

namespace ashlar::inline v0::cache {

class BoundedWait {
 public:
  /// `waits` counts the waits made. The deadline and the heaps are the call's and the device's.
  /// `asking`: the heap that a reclaim is for; nullptr for a trim, which waits for earlier work alone.
  BoundedWait(DeviceCache& cache, SharedState& shared, Deadline& deadline,
              std::atomic<std::uint64_t>& waits, const StreamHeap* asking) noexcept;
  ~BoundedWait() { end_hold(); }
  BoundedWait(const BoundedWait&) = delete;
  BoundedWait& operator=(const BoundedWait&) = delete;

  /// Before a search: notes what is unfinished now. What other threads finish after that, the
  /// search misses.
  void note_unfinished() noexcept ASHLAR_REQUIRES(reclaiming);
  /// After a search in vain: chooses what to wait for. False if there is no point in searching
  /// again.
  bool choose() noexcept ASHLAR_REQUIRES(reclaiming);
  /// Waits for what was chosen, for one slice at most. REQUIRES: choose() returned true; no lock is
  /// held.
  void wait() noexcept ASHLAR_EXCLUDES(reclaiming);
  /// Is the event that was chosen last done, as a wait found?
  bool has_progressed() const noexcept { return choice_.is_same_event(done_); }
  /// Did the time run out while work was unfinished?
  bool ran_out() const noexcept { return ran_out_; }

 private:
  /// What to wait for.
  struct Choice {
    enum class Kind : std::uint8_t {
      kNothing,
      kOtherThread,  ///< it is about to file or finish what it holds
      kEvent,
      kSynchronize,  ///< no event is recorded for the work
    } kind = Kind::kNothing;
    UseTracker* tracker = nullptr;  ///< of the device that is asked
    EventHandle event;
    std::uint64_t sequence = ~std::uint64_t{0};  ///< of the event's recording

    bool is_same_event(const Choice& other) const noexcept {
      return kind == Kind::kEvent && other.kind == Kind::kEvent && tracker == other.tracker &&
             sequence == other.sequence;
    }
  };

  void begin_hold() noexcept;
  void end_hold() noexcept;
  Choice find_oldest() noexcept ASHLAR_REQUIRES(reclaiming);
  /// The older of `than` and what the heap's own work and its blocks' uses wait for.
  Choice oldest_of(StreamHeap& heap, const Choice& than) const noexcept
      ASHLAR_REQUIRES(reclaiming, heap.lock);
  /// Does the synchronisation of that device answer for work that has no event: of a block's user,
  /// or of a stream of this device?
  bool needs(DeviceCache& device) const noexcept;
  /// The next such device after the one chosen last, so that none that is stuck hides another;
  /// nullptr if there is none.
  UseTracker* next_to_synchronize() noexcept;
  /// Asks each of them but `waited_for`, without a wait.
  void ask_others(const UseTracker* waited_for) noexcept;

  DeviceCache& cache_;
  SharedState& shared_;
  Deadline& deadline_;
  std::atomic<std::uint64_t>& waits_;
  WaitedWork work_;
  Choice choice_;
  Choice done_;              ///< the event whose wait ended well last
  bool is_holding_ = false;  ///< counted among the event waiters
  // As of note_unfinished():
  bool was_pending_ = false;        ///< was any use not complete,
  bool was_in_hand_ = false;        ///< or in the hands of another thread?
  bool has_looked_again_ = false;   ///< because another thread held uses
  bool has_unmarked_ = false;       ///< as Epochs::has_unmarked, of any heap, when last searched
  std::uint32_t synchronized_ = 0;  ///< the device that was chosen last
  bool has_asked_ = false;          ///< any device for a synchronisation
  bool ran_out_ = false;
};

}  // namespace ashlar::inline v0::cache
