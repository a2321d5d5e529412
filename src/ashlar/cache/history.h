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
//   (3) What a history and the snapshot of the same call (HistorySnapshot) say agrees, whatever other calls
//       run: undoing the events in the snapshot, newest first, never undoes what is not there.
//   (4) A segment that passes to another stream's heap is freed and allocated, with nothing in between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ashlar/base/memory_pool.h>
#include <ashlar/base/pool_id.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/snapshot.h>

namespace ashlar::inline v0::cache {

/// What a history's event says.
enum class HistoryAction : unsigned char {
  kAllocate,         ///< memory was handed out; `size` is what was asked for
  kFreeRequested,    ///< its owner gave it back; `size` as of kAllocate
  kFreeCompleted,    ///< no work uses it any more, and it can be handed out; `size` as of kAllocate
  kSegmentAllocate,  ///< the device gave a segment, or another stream's heap did
  kSegmentFree,      ///< a segment goes back to the device, or to another stream's heap
  kSegmentMap,       ///< pages came under addresses
  kSegmentUnmap,     ///< pages go away from under addresses
  kSnapshot,         ///< a snapshot was taken; `size` is what was reserved
  kOutOfMemory,      ///< an allocation failed; `size` is what was asked for
  kUserDefined,      ///< annotate(): HistoryEvent::context tells which text
};
/// The number of actions.
inline constexpr unsigned kHistoryActions = 10;

/// What a user's recorder says about the moment of an event; the library does not look into it. 0: nothing.
using ContextId = Id<struct ContextIdTag, std::uint64_t>;

/// One event.
struct HistoryEvent {
  std::uint64_t sequence = 0;  ///< counts the events since the device's history began, from 0
  std::uint64_t time_us = 0;   ///< microseconds since 1970; never less than of the event before
  Address address;             ///< of the memory; null where there is none
  Bytes size;                  ///< HistoryAction says of what
  Bytes
      block_size;  ///< of an allocation and its frees: of the whole block; of kSnapshot 0; else `size`
  Bytes device_free;           ///< of kOutOfMemory: what the device had left
  StreamId stream;             ///< that the allocation is of, or whose heap holds the memory
  MemoryPoolId memory_pool{};  ///< whose memory it is
  /// what the recorder said (of kFreeCompleted: in the call that found the free complete), or which text of
  /// kUserDefined
  ContextId context;
  HistoryAction action = HistoryAction::kSnapshot;  ///< what happened
  PoolId pool = PoolId::kSmall;                     ///< the pool of the memory, where there is any
};

/// Tells where in the user's program an event comes from, such as its call stack.
class ContextRecorder {
 public:
  /// Called by the thread that makes a call of the allocator, before memory changes hands and with no lock
  /// held. Calls of the allocator that it makes itself have no context. It must not throw.
  virtual ContextId gather() noexcept = 0;
  ContextRecorder(const ContextRecorder&) = delete;
  ContextRecorder& operator=(const ContextRecorder&) = delete;

 protected:
  ContextRecorder() = default;
  ~ContextRecorder() = default;
};

/// How a history is recorded.
struct HistoryOptions {
  std::uint64_t events_max = 100'000;  ///< how many are kept, the newest; 88 bytes each
  /// gathers a context for each allocation; nullptr: events have none. It must outlive the allocator
  ContextRecorder* recorder = nullptr;
  bool has_free_contexts = false;  ///< the recorder is asked at each free too
  /// for how many live allocations the context is kept beyond `events_max`; 22 to 43 bytes each. Those of others
  /// are forgotten with their event
  std::uint64_t live_contexts_max = 131'072;
};

/// The events that a device still has, oldest first.
struct History {
  std::vector<HistoryEvent> events;  ///< invariants (1) and (2)
  std::uint64_t lost = 0;            ///< how many older events were overwritten
  /// of the kUserDefined events among them, in their order; HistoryEvent::context counts them from 1
  std::vector<std::string> texts;
};

/// A snapshot, and the history until the moment at which it was taken.
struct HistorySnapshot {
  /// all memory of the device; a segment that came after its copy began has the ordinal 2^64 - 1 and the heap 0
  Snapshot snapshot;
  History history;  ///< ends with a kSnapshot event; empty if the history is not on
  /// of each block of the snapshot, the context of its allocation; empty if no recorder gathers any
  std::vector<ContextId> block_contexts;
};

}  // namespace ashlar::inline v0::cache
