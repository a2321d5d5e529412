// EventCalls: the Device calls of events.
//
// Thread safety: none (the machine's lock).
// Invariant: an event's state is a place in one lane's order, or a point in a capture, or neither
// (never recorded).
#pragma once

#include <cstdint>

#include "spec/gpu/enqueuer.h"
#include "spec/gpu/handle_table.h"

namespace ashlar::spec {

class EventCalls {
 public:
  /// All arguments must outlive this.
  EventCalls(MachineState& state, SimStreams& streams, Enqueuer& work);

  Result<EventHandle> create(std::uint32_t device);
  Status destroy(std::uint32_t device, EventHandle event);
  Status record(std::uint32_t device, EventHandle event, StreamHandle stream);
  Status query(EventHandle event);
  Status synchronize(EventHandle event, std::uint32_t timeout_ms);
  /// Blocks until the entry is done. kNotReady after `timeout_ms`, kDeadlock when it can never be.
  Status wait_for(std::uint32_t lane, std::uint64_t place, std::uint32_t timeout_ms);
  /// The stream waits for the event.
  Status wait(std::uint32_t device, StreamHandle stream, EventHandle event);

  /// How many entries its stream must finish until the event's last record is done: 0 if it is, or
  /// the event was never recorded. REQUIRES: a live event.
  std::uint64_t entries_until(EventHandle event);

  /// visit(handle value, device) for every event held.
  template <class Visit>
  void for_each(Visit visit) const {
    events_.for_each(
        [&](std::uint64_t value, const EventState& event) { visit(value, event.device); });
  }

 private:
  struct EventState {
    std::uint32_t device = 0;
    std::uint32_t lane = 0;
    std::uint64_t place = 0;  // 0: never recorded
    Clock clock;
    CapturePoint point;
  };

  EventState* find(EventHandle event);
  /// A query of an event of a capture, or another unsafe call while capturing, is refused (D6). `call`: CUDA's name for it.
  Status check_may_ask(const EventState& event, const char* call);
  /// One more bounded wait ended with no entry able to run. True when such waits, with no entry
  /// finished between them, add up to ten minutes: a host that waits in slices for ever is as stuck
  /// as one that waits without a bound.
  bool is_stuck_after(std::uint32_t waited_ms);

  MachineState& state_;
  SimStreams& streams_;
  Enqueuer& work_;
  HandleTable<EventState> events_;
  std::uint64_t stood_still_at_ = 0;  // entries run when the last such wait ended
  std::uint64_t stood_still_ms_ = 0;
};

}  // namespace ashlar::spec
