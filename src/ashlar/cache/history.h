// A history: what happened to the memory of a device, event by event (row DEV-18).
//
// Thread safety: plain values.
//
// Invariants:
//   (1) Events are in the order in which they took effect: of one address, an allocation stands
//       before its free is requested, and that before the free is completed; memory stands in the
//       history before what is allocated in it.
//   (2) Sequence numbers of neighbours differ by one. Events are lost at the oldest end only;
//       `lost` counts them.
//   (3) What a history and the snapshot of the same call (HistorySnapshot) say agrees: undoing the
//       events in the snapshot, newest first, never undoes what is not there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ashlar/base/memory_pool.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/snapshot.h>

namespace ashlar::inline v0::cache {

/// What a history's event says.
enum class HistoryAction : unsigned char {
  kAllocate,         ///< memory was handed out; `size` is what was asked for
  kFreeRequested,    ///< its owner gave it back; `size` as of kAllocate
  kFreeCompleted,    ///< no work uses it any more, and it can be handed out; `size` as of kAllocate
  kSegmentAllocate,  ///< the device gave a segment
  kSegmentFree,      ///< and took it back
  kSegmentMap,       ///< pages came under addresses
  kSegmentUnmap,     ///< and went away
  kSnapshot,         ///< a snapshot was taken; `size` is what was reserved
  kOutOfMemory,      ///< an allocation failed; `size` is what was asked for
  kUserDefined,      ///< CachingAllocator::annotate(); `context` tells which text
};
/// The number of actions.
inline constexpr unsigned kHistoryActions = 10;

/// What a user's recorder says about the moment of an event; the library does not look into it. 0: nothing.
using ContextId = Id<struct ContextIdTag, std::uint64_t>;

/// One event.
struct HistoryEvent {
  std::uint64_t sequence = 0;  ///< counts the events of the device since its history began, from 0
  std::uint64_t time_us = 0;   ///< since 1970, in microseconds
  Address address;             ///< of the memory; null where there is none
  Bytes size;                  ///< HistoryAction says of what
  Bytes device_free;           ///< of kOutOfMemory: what the device had left
  StreamId stream;             ///< the stream that asked, or whose heap holds the memory
  MemoryPoolId memory_pool{};  ///< whose memory it is
  ContextId context;           ///< what the recorder said, or which text of kUserDefined
  HistoryAction action = HistoryAction::kSnapshot;  ///< what happened
};

/// The events that a device still has, oldest first.
struct History {
  std::vector<HistoryEvent> events;  ///< invariants (1) and (2)
  std::uint64_t lost = 0;  ///< older events, overwritten or never recorded for want of host memory
  std::vector<std::string>
      texts;  ///< of kUserDefined events: HistoryEvent::context counts them from 1
};

/// A snapshot, and the history until the moment at which it was taken.
struct HistorySnapshot {
  Snapshot snapshot;  ///< all memory of the device
  History history;    ///< ends with a kSnapshot event
  /// of each block of the snapshot, the context of its allocation; empty if the history was not on
  std::vector<ContextId> block_contexts;
};

}  // namespace ashlar::inline v0::cache
