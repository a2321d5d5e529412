// Uses by other streams: events recorded at a free, polled at an allocation (rows DEV-6, DEV-7's
// deferral). One tracker per device; it owns the device's events and its synchronisations.
//
// What shows that a use is complete:
//   the stream is alive    the event recorded at the free
//   it was retired since   the same event, or the stream's last event (StreamHeap::last_event)
//   it was retired before  its last event
//   no event recorded      a later try, or a device synchronisation (Synchronizer)
//   announced in a capture of the stream, of a memory pool's block: the end of the capture
//                          (is_only_in_graph), or the order of the graph (is_over_in_graph)
//
// C7: a block is findable only when every use is known complete. H4: its event is recorded before
// anybody can poll it. H8: queues are per stream, and those polled go behind the others, so one
// stuck event holds back its own stream alone.
// Thread safety: any thread; members say which heap's lock they need. No device call is made under
// a heap's lock (C18).
#pragma once

#include <atomic>
#include <cstdint>

#include <ashlar/cache/shared_state.h>
#include <ashlar/cache/stream_heap.h>
#include <ashlar/cache/synchronizer.h>

namespace ashlar::inline v0::cache {

class RefusedStreams;

/// From this number of uses without an event on, a miss asks whether all work of a device is done.
inline constexpr std::uint64_t kUnrecordedMax = 32;

class UseTracker {
 public:
  UseTracker(Driver& driver, SharedState& shared) noexcept
      : driver_(driver),
        shared_(shared),
        events_(driver, shared.event_waiters),
        synchronizer_(driver, shared.captures) {}

  // Of a heap of this device.
  /// Polls at most `budget` events, letting the lock go around the device calls. Returns this
  /// device's sticky error, if it has one.
  Status poll(StreamHeap& heap, unsigned budget) noexcept ASHLAR_REQUIRES(heap.lock);
  /// A poll in several parts.
  struct PollState {
    std::uint64_t finishes_max = kEverything;  ///< it ends when it has finished so many
    std::uint64_t fruitless = 0;               ///< events asked in a row that are not complete
  };
  /// The next part: at most `budget` events. True if the poll goes on, false at its end: nothing
  /// more is complete, or the device is gone, or a capture announced.
  bool poll_part(StreamHeap& heap, unsigned budget, PollState& state) noexcept
      ASHLAR_REQUIRES(heap.lock);
  /// A live block with uses ends: its uses get their events, and it waits for them.
  static void free_pending(StreamHeap& heap, PoolId pool, block::BlockIndex block) noexcept
      ASHLAR_RELEASE(heap.lock);
  /// Looks again at the `n` uses that have waited longest for an event: records it, or finds them
  /// complete; the others go behind the rest.
  static void retry_unrecorded(StreamHeap& heap, std::uint64_t n) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// If the heap has uses without an event, asks without waiting whether the device of the one that
  /// has waited longest has done all of its work: where that many uses of blocks of this device
  /// wait for that device, and its last synchronisation does not answer already. They would pile up
  /// otherwise until memory runs out.
  static void ask_for_unrecorded(StreamHeap& heap, std::uint64_t at_least) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// Asks, without a wait, whether this device has done all of its work; not during a capture, nor once after a stream was met that
  /// captures unannounced.
  void ask_whether_done() noexcept;
  /// True if `user` belongs to another device and that device is lost: its work touches no memory
  /// any more (D8), so its uses of this device's blocks are over. If this device is lost, every
  /// call fails and nothing needs to come back.
  bool is_over(const StreamHeap& user) const noexcept;

  // Of a stream of this device.
  /// Records the slot's event on the stream's handle; any error if that may not or cannot be done
  /// now. During a capture only with `in_capture`, which the stream's retirement sets: D6 permits
  /// it.
  Status record_on(StreamHeap& user, EventSlot& slot, bool in_capture = false) noexcept;
  /// Whom the handle names now. kCaptureUnsafe, and the device is not asked, if that stream captures.
  Result<Stream> identify(StreamHandle handle) noexcept;
  /// Does the stream's handle still name the stream, so that an event may be recorded on it? Asks
  /// the device.
  bool may_record(StreamHeap& user) noexcept;
  /// The stream turns out to be destroyed without an announcement.
  void lose(StreamHeap& user) noexcept;
  /// Is all work of the dead stream complete? Asks its last event, or whether a synchronisation
  /// has covered a lost stream. At most one device call, none if the answer is known. REQUIRES: no
  /// capture is announced.
  bool ask_last_event(StreamHeap& user) noexcept ASHLAR_EXCLUDES(user.lock);
  /// All work of the dead stream is known complete.
  static void finish(StreamHeap& user) noexcept ASHLAR_EXCLUDES(user.lock);
  /// The next number in the device's order of recordings. Two threads that record at once can take
  /// their numbers in the opposite order of their events; that costs a wait in the wrong order,
  /// never an early reuse.
  std::uint64_t next_sequence() noexcept { return synchronizer_.next_sequence(); }

  Driver& driver() noexcept { return driver_; }
  EventPool& events() noexcept { return events_; }
  Synchronizer& synchronizer() noexcept { return synchronizer_; }
  bool is_capturing() const noexcept { return shared_.is_capturing(); }
  bool is_lost() const noexcept { return driver_.health().code() == Code::kDeviceLost; }

 private:
  /// May the stream be asked now, and does its handle name it? REQUIRES: a RecordingScope of the stream.
  bool is_named(StreamHeap& user) noexcept;
  enum class Recorded : std::uint8_t { kYes, kComplete, kDeferred };
  /// Records the node's event on its stream, if that is allowed now and the stream alive. A stream
  /// among `refused` (which may be null) is not asked about again.
  static Recorded record_event_of(const StreamHeap& heap, UseNode& node,
                                  RefusedStreams* refused) noexcept;
  /// Is the use, of a memory pool's block, a part of the graph that the heap's stream captures now too, and
  /// does what that stream captures from now on come after it (row DEV-7)? The first call, at the free, makes
  /// the mark. One device call at most. A use by a body that is over becomes one by its parent here.
  static bool is_over_in_graph(const StreamHeap& heap, UseNode& node) noexcept;
  /// Is the use at the head of a queue complete?
  bool ask(UseNode& node) noexcept;
  /// Counts that the use was, or is from now on, without an event.
  static void count_unrecorded(const StreamHeap& heap, const UseNode& node, bool was,
                               bool is) noexcept;
  enum class Link : std::uint8_t { kSibling, kNext };
  /// Records the events of the nodes of a list, and files each in its queue. REQUIRES: the nodes
  /// are in the hands of the taker that began in `phase` (PendingUses::takers); when this
  /// returns, it has ended.
  static void record_uses(StreamHeap& heap, UseNode* list, Link link, unsigned phase) noexcept
      ASHLAR_EXCLUDES(heap.lock);

  Driver& driver_;
  SharedState& shared_;
  EventPool events_;
  Synchronizer synchronizer_;
  /// A stream that captures unannounced was met since ask_whether_done() was last called: that question would invalidate the
  /// capture, and its next call asks nothing.
  std::atomic<bool> met_capture_{false};
};

}  // namespace ashlar::inline v0::cache
