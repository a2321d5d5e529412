// NotedMemory: a device's memory by address, as events of a history change it.
//
// Purpose: step (d) of a snapshot that agrees with its history (history_snapshot.h). What is copied of the heaps may
// show some of the changes that the events tell of and not others; the last event of a byte says what it is.
// A range of addresses that gets its memory page by page has no event of its own. One that was copied is known in
// full, its addresses without memory included. Of one that came later, only what was mapped is known: it
// consists of a segment for each run of mapped addresses.
// Thread safety: one thread.
//
// Invariants:
//   (1) No two segments overlap, but for ones of the copy that are ranges without memory; the first map or
//       allocation in such a range drops it.
//   (2) What is taken does not overlap.
#pragma once

#include <map>

#include <ashlar/cache/history.h>

namespace ashlar::inline v0::cache {

class NotedMemory {
 public:
  /// Begins with a copy of the heaps. Throws std::bad_alloc. Cost: O(n log n).
  explicit NotedMemory(const Snapshot& from);
  /// Changes the memory as the event says. Throws std::bad_alloc. Cost: O(log n), and what it drops.
  void apply(const HistoryEvent& event);
  /// Replaces the segments and blocks of `*out`. Throws std::bad_alloc. Cost: linear.
  void write(Snapshot* out) const;

 private:
  using Segments = std::map<Address, SnapshotSegment>;

  void allocate(const HistoryEvent& event);
  void map(const HistoryEvent& event);
  void unmap(const HistoryEvent& event);
  void add_segment(const HistoryEvent& event, bool is_paged);
  /// Drops the segments that share addresses with the range.
  void drop_segments(Address begin, Bytes size);
  /// The segment that holds the address; its end() if none does.
  Segments::iterator segment_of(Address address);
  /// Has the segment memory anywhere?
  bool has_memory(const SnapshotSegment& segment) const;
  /// Takes the range out of a segment of which only what is mapped is known.
  void cut(Segments::iterator at, Address begin, Address end);
  void join_neighbours(Segments::iterator at);
  /// Drops what is taken in the range, and what reaches into it.
  void drop_taken(Address begin, Bytes size);
  void add_hole(Address begin, Bytes size);
  void drop_holes(Address begin, Bytes size);
  /// The blocks of the segment: those that are taken, holes, and what is free between them.
  void write_segment(const SnapshotSegment& segment, Snapshot* out) const;

  Segments segments_;
  std::map<Address, SnapshotBlock> taken_;  ///< live or pending
  std::map<Address, Bytes> holes_;  ///< of paged segments of the copy: addresses without memory
};

/// Is it a state of memory that an owner has?
inline bool is_taken(BlockState state) noexcept {
  return state == BlockState::kLive || state == BlockState::kPending;
}

}  // namespace ashlar::inline v0::cache
