// Epoch marks: the events, on a heap's own stream, that tell how far its work has come.
//
// Thread safety: none; a heap's are guarded by the role `reclaiming` (reclaim_lock.h).
//
// Invariants:
//   (1) marks stand in the order of their recording, and what they cover rises with it;
//   (2) the slot behind the last mark is where the next event is recorded.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <ashlar/cache/event_pool.h>

namespace ashlar::inline v0::cache {

/// An event on the heap's own stream: when it is done, every stamp up to `covers` is complete.
struct EpochMark {
  EventSlot slot;
  std::uint64_t covers = 0;
  std::uint64_t sequence = 0;  ///< of its recording on the device (UseTracker::next_sequence)
};

class EpochMarks {
 public:
  static constexpr unsigned kMarksMax = 4;

  unsigned count() const noexcept { return count_; }
  bool is_empty() const noexcept { return count_ == 0; }
  bool is_full() const noexcept { return count_ == kMarksMax; }
  const EpochMark& oldest() const noexcept { return marks_[0]; }
  const EpochMark& newest() const noexcept { return marks_[count_ - 1]; }
  const EpochMark& operator[](unsigned i) const noexcept { return marks_[i]; }
  /// What no event could be recorded for: every stamp up to `covers`, enqueued before the device's
  /// sequence was `sequence`. Only a synchronisation answers for it; covers is 0 if there is none.
  struct Unmarked {
    std::uint64_t covers = 0;
    std::uint64_t sequence = 0;
  };
  const Unmarked& unmarked() const noexcept { return unmarked_; }
  void set_unmarked(const Unmarked& unmarked) noexcept { unmarked_ = unmarked; }

  /// Where the next mark's event is recorded, before push().
  EventSlot& next_slot() noexcept { return marks_[kMarksMax].slot; }
  /// The event in next_slot() is a mark from now on. If the row is full, its newest gives way: the
  /// new one covers the same work, but is done later. So ask a full row first (Epochs::mark).
  void push(EventPool& events, std::uint64_t covers, std::uint64_t sequence) noexcept {
    EpochMark& mark = marks_[kMarksMax];
    mark.covers = covers;
    mark.sequence = sequence;
    if (count_ < kMarksMax) ++count_;
    std::swap(mark, marks_[count_ - 1]);
    events.give(mark.slot);
  }
  /// Drops all marks: another event covers what they did, or the stream's work is complete.
  void clear(EventPool& events) noexcept {
    for (unsigned i = 0; i < count_; ++i) events.give(marks_[i].slot);
    count_ = 0;
    unmarked_ = {};
  }
  /// The oldest `n` are complete: drops them and returns what they cover. REQUIRES: 0 < n <= count.
  std::uint64_t drop_oldest(EventPool& events, unsigned n) noexcept {
    const std::uint64_t covers = marks_[n - 1].covers;
    for (unsigned i = 0; i < n; ++i) events.give(marks_[i].slot);
    std::rotate(marks_.begin(), marks_.begin() + n, marks_.begin() + count_);
    count_ -= n;
    return covers;
  }
  /// nullptr, or the broken invariant.
  const char* validate() const noexcept {
    for (unsigned i = 1; i < count_; ++i) {
      if (marks_[i].covers <= marks_[i - 1].covers) return "marks(1): a later mark covers no more";
    }
    for (unsigned i = 0; i < count_; ++i) {
      if (marks_[i].slot.pool == nullptr) return "marks(1): a mark without an event";
    }
    return nullptr;
  }
  /// At the allocator's end: forgets the marks and destroys every event in a slot.
  void destroy_events() noexcept {
    count_ = 0;
    for (EpochMark& mark : marks_) static_cast<void>(EventPool::destroy(mark.slot));
  }

 private:
  friend struct CachePeer;
  std::array<EpochMark, kMarksMax + 1> marks_;  ///< [0, count_) stand; the last is the next slot
  unsigned count_ = 0;
  Unmarked unmarked_;
};

}  // namespace ashlar::inline v0::cache
