// A heap's epochs: which releases are known complete.
//
// Purpose: a plain free records no event; it stamps its block with the current epoch. When somebody
// needs to know whether the block's last use is complete, the epoch is advanced first and an event
// recorded on the stream after: everything stamped before was enqueued before, so the event answers
// for it (epochs.h).
// Thread safety: none; guarded by the heap's lock.
//
// Invariants (heap(1), heap(2)):
//   (1) a free block's stamp is at most now(); work that used its bytes was enqueued before the
//       epoch passed the stamp;
//   (2) every stamp <= completed() belongs to work known complete. completed() falls at reopen() alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ashlar::inline v0::cache {

/// The stamp that covers all work, past and to come: of a stream that is dead.
inline constexpr std::uint64_t kEverything = ~std::uint64_t{0};

class EpochClock {
 public:
  std::uint64_t now() const noexcept { return now_; }
  std::uint64_t newest_release() const noexcept { return newest_release_; }
  std::uint64_t completed() const noexcept { return completed_; }
  bool is_complete(std::uint64_t stamp) const noexcept { return stamp <= completed_; }
  /// Is everything released so far known complete?
  bool is_all_complete() const noexcept { return newest_release_ <= completed_; }

  /// The stamp of a block that is released now.
  std::uint64_t stamp_release() noexcept { return newest_release_ = now_; }
  /// Ends the current epoch and returns it: the stamps that an event recorded from now on covers.
  std::uint64_t advance() noexcept { return now_++; }
  /// Work of every stamp up to `covers` is known complete.
  void complete(std::uint64_t covers) noexcept { completed_ = std::max(completed_, covers); }
  /// Work that no stamp tells of may still use what was released: nothing is known complete any more.
  void reopen() noexcept {
    completed_ = 0;
    newest_release_ = now_;
  }
  /// The heap serves another stream: all work so far is complete, what comes is not.
  void pass_on() noexcept { completed_ = now_++; }

  /// Without a cache: a walk that began at completed() `began` found a complete free segment, or none.
  void note_walk(std::uint64_t began, bool has_found) noexcept {
    none_left_at_ = has_found || began != completed_ ? 0 : completed_;
  }
  /// Is none left since? What was released after the walk is of a newer epoch, unless all work counts as complete.
  bool has_none_left() const noexcept {
    return completed_ == none_left_at_ && completed_ != kEverything;
  }

 private:
  friend struct CachePeer;
  std::uint64_t now_ = 1;
  std::uint64_t newest_release_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t none_left_at_ = 0;  ///< completed() at a walk that found none
};

}  // namespace ashlar::inline v0::cache
