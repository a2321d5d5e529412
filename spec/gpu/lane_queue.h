// LaneQueue: the entries of one stream's queue, and the ranges that they touch.
//
// Thread safety: none (the machine's lock). Cost: a push or a pop is O(touches); no allocation once
// the rings have reached their size.
// Invariants:
//   (1) The entries are at places done() + 1 .. enqueued(), and finish in that order.
//   (2) The touches of the entries are in the order of the entries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

enum class EntryKind : std::uint8_t {
  kKernel,
  kRecord,      // an event's place
  kWait,        // until lane `a` has finished place `b`
  kHost,        // until flag `a` is raised; runs body `b` - 1 if not 0
  kWriteValue,  // word `b` = `c`
  kWaitValue,   // until word `b` compares to `c` by `rule`
  kCollective,  // group `a` of `members`
  kFaulty,      // loses the device
};

struct Entry {
  EntryKind kind = EntryKind::kKernel;
  WaitRule rule = WaitRule::kEqual;
  std::uint32_t touches = 0;  // how many; set by push
  std::uint32_t a = 0;
  std::uint32_t members = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  std::uint64_t due = 0;       // the tick at which it finishes; set by the scheduler
  std::uint64_t sequence = 0;  // order of enqueues over the whole machine; set by the scheduler
};

class LaneQueue {
 public:
  std::uint64_t enqueued() const { return enqueued_; }
  std::uint64_t done() const { return done_; }
  std::uint64_t pending() const { return enqueued_ - done_; }

  /// Adds an entry at the next place.
  void push(Entry entry, std::span<const Touch> touches);
  /// The oldest entry. REQUIRES: pending() > 0.
  const Entry& head() const { return entries_[done_ & (entries_.size() - 1)]; }
  /// The i-th touch of the oldest entry. REQUIRES: i < head().touches.
  const Touch& touch(std::uint32_t i) const { return touch_at(touches_out_ + i); }
  /// The oldest entry is finished. REQUIRES: pending() > 0.
  void pop() {
    touches_out_ += head().touches;
    ++done_;
  }
  void drop_all() {
    done_ = enqueued_;
    touches_out_ = touches_in_;
  }

  /// Does a pending entry touch any of that range?
  bool touches(Address at, Bytes size) const;
  /// Appends the pending entries: how many, and of each its kind, what it names, and the ranges it
  /// touches.
  void append_contents(std::vector<std::uint64_t>* out) const;

 private:
  const Touch& touch_at(std::uint64_t number) const {
    return touches_[number & (touches_.size() - 1)];
  }

  std::vector<Entry> entries_;  // ring; its size is 0 or a power of two
  std::vector<Touch> touches_;  // ring, likewise
  std::uint64_t enqueued_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t touches_in_ = 0;   // touches pushed so far
  std::uint64_t touches_out_ = 0;  // touches popped so far
};

}  // namespace ashlar::spec
