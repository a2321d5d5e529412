// Which work a call waits for: any, or only what began before it.
//
// Purpose: a trim beside threads that go on using blocks would wait for their new work until its
// deadline. It waits for what was enqueued before its first search ended, and for what the end of
// that brings about: a block that comes back from another stream's use is stamped anew, and the
// event that covers the stamp is recorded then. So the border moves, a few times at most.
// Only the streams of the call's own device have a border; the numbers of other devices' recordings
// are not comparable with it.
// Thread safety: none; lives within one call.
#pragma once

#include <cstdint>

#include <ashlar/cache/stream_heap.h>
#include <ashlar/cache/synchronizer.h>

namespace ashlar::inline v0::cache {

class WaitedWork {
 public:
  enum class Which : std::uint8_t { kAny, kEarlier };

  /// `asking`: the heap that a reclaim is for.
  WaitedWork(Which which, Synchronizer& own, const StreamHeap* asking = nullptr) noexcept
      : own_(own), asking_(asking), is_limited_(which == Which::kEarlier) {}

  /// Is there anything to be gained from that heap's work? Of memory pools in use only from the asking
  /// heap's own, from what dead streams left in its pool, and, outside of pools, from that of one that
  /// overflows (C8).
  bool concerns(const StreamHeap& heap) const noexcept {
    if (!heap.is_reserved() || &heap == asking_) return true;
    if (asking_ == nullptr) return false;
    return asking_->is_reserved()
               ? heap.membership.id == asking_->membership.id && !heap.life.is_alive()
               : heap.overflows();
  }

  /// After the first search: what the device records from now on is later work.
  void begin() noexcept {
    if (generations_ == 0) static_cast<void>(move_border());
  }
  /// Moves the border to now. False where there is none, or it was moved often enough.
  bool move_border() noexcept {
    if (!is_limited_ || generations_ == kGenerationsMax) return false;
    ++generations_;
    later_from_ = own_.next_sequence();
    return true;
  }
  /// Does a recording with that number, on that device, stand for work to be waited for?
  bool concerns(const Synchronizer& device, std::uint64_t sequence) const noexcept {
    return !is_limited_ || &device != &own_ || sequence < later_from_;
  }
  /// Does the device's last synchronisation answer for all of its work that is to be waited for?
  bool is_covered(const Synchronizer& device) const noexcept {
    return is_limited_ && &device == &own_ && own_.is_covered(later_from_);
  }
  /// Is one more round to go by because another thread has uses in its hands? While threads go on,
  /// at any moment one of them may.
  bool may_wait_for_others() noexcept { return !is_limited_ || other_rounds_++ < kOtherRoundsMax; }
  /// Nothing is left to wait for: is there to be another search all the same, for what others
  /// finished after the last one began?
  bool may_look_again() noexcept { return !is_limited_ || looks_again_++ == 0; }

 private:
  /// A use without an event, the block that it holds, the block's own stream: each is known complete
  /// after the one before.
  static constexpr unsigned kGenerationsMax = 4;
  static constexpr unsigned kOtherRoundsMax = 64;

  Synchronizer& own_;
  const StreamHeap* const asking_;
  const bool is_limited_;
  std::uint64_t later_from_ = 0;
  unsigned generations_ = 0;
  unsigned other_rounds_ = 0;
  unsigned looks_again_ = 0;
};

}  // namespace ashlar::inline v0::cache
