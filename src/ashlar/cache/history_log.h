// The history of one device: a ring of events (row DEV-18).
//
// Purpose: what changes a block or a range of memory notes an event in the same hold of the lock that the
// change is made under. So events of one address stand in the order of its changes, and whoever sees a
// change under that lock finds its event in the log.
// Thread safety: any thread. `lock_` is a leaf: it is taken under a heap's lock, and nothing under it. note()
// allocates nothing.
// Cost: while the history is off, one load of a flag that nobody writes. While it is on, a clock read and a
// short lock for each event, which all streams of the device share.
//
// Invariants:
//   (1) the events [max(begin, next - capacity), next) are in the ring, each at its sequence number modulo
//       the capacity;
//   (2) their times do not decrease;
//   (3) the contexts kept are those of allocations that are not completely freed, and that were noted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ashlar/base/mutex.h>
#include <ashlar/base/spin_lock.h>
#include <ashlar/base/status.h>
#include <ashlar/cache/history.h>
#include <ashlar/cache/live_contexts.h>

namespace ashlar::inline v0::cache {

class StreamHeap;

class HistoryLog {
 public:
  HistoryLog() = default;
  HistoryLog(const HistoryLog&) = delete;
  HistoryLog& operator=(const HistoryLog&) = delete;

  /// Are events to be noted? For a holder of the lock of the heap that changes: once a history has begun,
  /// each such change is noted.
  bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }
  /// Whom to ask for the context of an allocation or, with `of_free`, of a free; nullptr: nobody.
  ContextRecorder* recorder(bool of_free) const noexcept {
    const auto& recorder = of_free ? free_recorder_ : recorder_;
    return recorder.load(std::memory_order_acquire);
  }

  // Control, by one thread at a time (Impl::history_lock).
  /// Events are noted from now on, perhaps not all of them yet. kInvalidArgument if no event is to be kept;
  /// kBusy if the history is on; kHostOutOfMemory.
  Status begin(const HistoryOptions& options) noexcept ASHLAR_EXCLUDES(lock_);
  /// Every change is noted by now: forgets what was noted so far. The history begins here.
  void restart() noexcept ASHLAR_EXCLUDES(lock_);
  /// No change that begins later is noted. What was noted can be read until the next begin().
  void end() noexcept ASHLAR_EXCLUDES(lock_);

  /// Appends an event; the log sets its sequence number, its time and, unless it has one, its context. The
  /// sequence number.
  std::uint64_t note(HistoryEvent event) noexcept ASHLAR_EXCLUDES(lock_);
  /// The same of up to two events, between which no other comes, and stores `holder` in `*shown_in` in the same hold
  /// of the lock. So whoever reads that between two calls of place() and still finds the former holder knows
  /// that the events are not before the first.
  void note_passing(std::span<const HistoryEvent> events, const StreamHeap* holder,
                    std::atomic<const StreamHeap*>* shown_in) noexcept ASHLAR_EXCLUDES(lock_);
  /// A user's text as an event. kHostOutOfMemory; kNotFound if the history is off.
  Status annotate(std::string_view text) noexcept ASHLAR_EXCLUDES(lock_, texts_lock_);

  /// Where the history is. Of two equal `run`s, every change between them was noted, and sequence numbers went on.
  struct Place {
    std::uint64_t run = 0;   ///< raised whenever a history begins or ends
    std::uint64_t next = 0;  ///< the sequence number of the next event
    bool is_whole = false;   ///< is every change noted?
  };
  Place place() const noexcept ASHLAR_EXCLUDES(lock_);
  /// Replaces `*out` by the events from `first` on, up to and without `end`, that the ring still has. Holds
  /// the lock for a few events at a time, the newest first; older ones may be overwritten meanwhile.
  /// Throws std::bad_alloc.
  void read(std::uint64_t first, std::uint64_t end, History* out) const
      ASHLAR_EXCLUDES(lock_, texts_lock_);
  /// The context of the allocation at the address that is live or pending; nothing if none is kept.
  ContextId context_of(Address address) const noexcept ASHLAR_EXCLUDES(lock_);
  /// Are contexts kept?
  bool has_contexts() const noexcept { return recorder(false) != nullptr; }

 private:
  friend struct CachePeer;
  /// A user's text, until its event is overwritten.
  using Text = std::pair<std::uint64_t, std::string>;

  /// The oldest event in the ring (invariant 1).
  std::uint64_t oldest() const noexcept ASHLAR_REQUIRES(lock_) {
    return next_ - std::min(next_, capacity_);
  }
  std::uint64_t append(HistoryEvent event, std::uint64_t now_us) noexcept ASHLAR_REQUIRES(lock_);
  /// Sets HistoryEvent::context of the user's texts among the events, and copies those.
  void read_texts(History* out) const ASHLAR_EXCLUDES(lock_, texts_lock_);

  // Read by every call; written by control alone.
  std::atomic<bool> is_on_{false};
  std::atomic<ContextRecorder*> recorder_{nullptr};
  std::atomic<ContextRecorder*> free_recorder_{nullptr};

  alignas(64) mutable SpinLock lock_;
  std::unique_ptr<HistoryEvent[]> ring_ ASHLAR_GUARDED_BY(lock_);
  std::uint64_t capacity_ ASHLAR_GUARDED_BY(lock_) = 0;
  std::uint64_t next_ ASHLAR_GUARDED_BY(lock_) = 0;
  std::uint64_t time_us_ ASHLAR_GUARDED_BY(lock_) = 0;  ///< of the newest event
  std::uint64_t run_ ASHLAR_GUARDED_BY(lock_) = 0;      ///< Place::run
  bool is_whole_ ASHLAR_GUARDED_BY(lock_) = false;      ///< Place::is_whole
  LiveContexts contexts_ ASHLAR_GUARDED_BY(lock_);

  mutable Mutex texts_lock_;
  /// by sequence number; a list, since a deque has host memory when it is empty, and the log cannot fail to be made
  std::list<Text> texts_ ASHLAR_GUARDED_BY(texts_lock_);
};

/// Says, for as long as it lives, what the context of the calling thread's events is. A scope inside another
/// one, such as of a call that the recorder makes, changes nothing.
class ContextScope {
 public:
  /// Asks the recorder; none if it is null.
  explicit ContextScope(ContextRecorder* recorder) noexcept : is_outermost_(!is_inside()) {
    if (!is_outermost_) return;
    is_inside() = true;
    if (recorder != nullptr) current() = recorder->gather();
  }
  ~ContextScope() {
    if (!is_outermost_) return;
    is_inside() = false;
    current() = ContextId{};
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  /// The calling thread's context.
  static ContextId& current() noexcept {
    thread_local ContextId context;
    return context;
  }

 private:
  static bool& is_inside() noexcept {
    thread_local bool inside = false;
    return inside;
  }
  const bool is_outermost_;
};

}  // namespace ashlar::inline v0::cache
