// Goes back in a history: from the snapshot at its end to what was there before an event.
//
// Purpose: what was live before the oldest event is in no event; a viewer that shows memory at an
// earlier moment undoes events from the snapshot. This class does as PyTorch's viewer does, and says
// where that would fail, so that no writer makes a file on which it does.
// Thread safety: one thread at a time.
//
// Invariants:
//   (1) No two segments overlap, and no two blocks. A block lies in one segment.
//   (2) A segment here is a range with memory: the unmapped blocks of a snapshot's segment part it.
//   (3) After a failed undo() the state means nothing.
//
// What agrees, from the newest event to the oldest: an allocation's block is live at its address; a free
// that was requested and not completed has its block there, pending; one that was completed has none
// there; memory that was given is a segment, or is mapped as a part of one, and holds no block; memory
// that was taken back is no segment's. Ranges that are mapped next to each other for one stream become
// one segment.
#pragma once

#include <map>

#include <ashlar/base/status.h>
#include <ashlar/cache/history.h>

namespace ashlar::inline v0::exchange {

/// A range with memory, by its address.
struct RewoundSegment {
  Bytes size;
  StreamId stream;
  MemoryPoolId memory_pool{};
  PoolId pool = PoolId::kLarge;
  bool is_paged = false;  ///< its memory comes page by page
};

/// A block that is live or pending, by its address.
struct RewoundBlock {
  Bytes size;       ///< of the whole block
  Bytes requested;  ///< what was asked for
  StreamId stream;
  MemoryPoolId memory_pool{};
  /// of its allocation, if the snapshot or an event before (rewind_to) has it; else of the request that freed it
  cache::ContextId context;
  bool is_pending = false;
};

class Rewind {
 public:
  using Segments = std::map<Address, RewoundSegment>;
  using Blocks = std::map<Address, RewoundBlock>;

  /// Begins at the snapshot. kInvalidArgument: its segments or blocks overlap, or do not tile.
  /// Throws std::bad_alloc. Cost: O(n log n).
  Status begin(const cache::HistorySnapshot& record);
  /// Undoes the events from `last` - 1 down to `first`. kInvalidArgument: they do not agree with the
  /// state (above). Throws std::bad_alloc. Cost: O(log n) each.
  Status undo(const cache::History& history, std::size_t first, std::size_t last);

  const Segments& segments() const { return segments_; }
  const Blocks& blocks() const { return blocks_; }

 private:
  friend Status rewind_to(const cache::HistorySnapshot& record, std::size_t event, Rewind* state);
  void take_contexts(const cache::History& history, std::size_t last);
  Status add_tiles(const cache::HistorySnapshot& record, const cache::SnapshotSegment& segment);
  Status add_segment(Address base, const RewoundSegment& segment);
  Status add_block(Address address, const RewoundBlock& block);
  Status undo(const cache::HistoryEvent& event);
  Status bring_back_block(const cache::HistoryEvent& event);
  Status remove_block(const cache::HistoryEvent& event);
  Status bring_back_memory(const cache::HistoryEvent& event);
  Status remove_memory(const cache::HistoryEvent& event);
  void join_neighbours(Segments::iterator at);
  Segments::iterator segment_of(Address address, Bytes size);

  Segments segments_;
  Blocks blocks_;
};

/// The state before the event at that index; blocks whose allocation is an event before it have its context.
/// Errors, exceptions and cost as Rewind's, for all of the record.
Status rewind_to(const cache::HistorySnapshot& record, std::size_t event, Rewind* state);
/// The state before a record's oldest event.
Status rewind_all(const cache::HistorySnapshot& record, Rewind* state);

}  // namespace ashlar::inline v0::exchange
