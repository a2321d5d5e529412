#include "spec/gpu/event_calls.h"

namespace ashlar::spec {
namespace {

constexpr std::uint8_t kEventMark = 0x20;
constexpr std::size_t kEventsUsual = 32;  // most worlds have fewer, and then nothing grows

}  // namespace

EventCalls::EventCalls(MachineState& state, SimStreams& streams, Enqueuer& work)
    : state_(state),
      streams_(streams),
      work_(work),
      events_(kEventMark, state.options.adversarial, kEventsUsual) {}

EventCalls::EventState* EventCalls::find(EventHandle event) {
  EventState* found = events_.find(event.value());
  if (found == nullptr) {
    state_.faults.misuse(FaultKind::kDeadEvent, "a dead or foreign event handle ", event.value());
  }
  return found;
}

std::uint64_t EventCalls::entries_until(EventHandle event) {
  const EventState& found = *find(event);
  return state_.scheduler.entries_until(found.lane, found.place);
}

Result<EventHandle> EventCalls::create(std::uint32_t device) {
  const std::uint64_t value = events_.add();
  EventState& event = *events_.find(value);
  event.device = device;
  event.place = 0;
  event.point.capture = 0;
  ++state_.memory.ledger(device).events.count;
  return EventHandle{value};
}

Status EventCalls::destroy(std::uint32_t device, EventHandle event) {
  const EventState* found = find(event);
  ASHLAR_REQUIRE(found != nullptr, Code::kInvalidHandle, "no such event");
  if (found->device != device) {
    state_.faults.misuse(FaultKind::kWrongDevice, "an event destroyed through another device");
    return Status{Code::kWrongDevice, "an event of another device"};
  }
  --state_.memory.ledger(device).events.count;
  events_.remove(event.value());
  return Status::ok();
}

Status EventCalls::record(std::uint32_t device, EventHandle event, StreamHandle stream) {
  EventState* found = find(event);
  ASHLAR_REQUIRE(found != nullptr, Code::kInvalidHandle, "no such event");
  const Result<std::uint32_t> lane = streams_.resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  if (found->device != device) {
    state_.faults.misuse(FaultKind::kWrongDevice,
                         "an event recorded on a stream of another device");
    return Status{Code::kWrongDevice, "an event of another device"};
  }
  if (state_.captures.of_lane(lane.value()) != 0)
    return state_.captures.record(lane.value(), found->point);
  const Status queued = work_.enqueue_on(lane.value(), Entry{EntryKind::kRecord});
  if (!queued.is_ok()) return queued;
  found->lane = lane.value();
  found->place = state_.scheduler.enqueued(lane.value());
  found->clock = state_.clocks.clock(lane.value());
  found->point.capture = 0;
  return Status::ok();
}

Status EventCalls::check_may_ask(const EventState& event, const char* call) {
  if (event.point.capture != 0) return state_.captures.query_captured(event.point);
  return state_.check_safe(call);
}

Status EventCalls::query(EventHandle event) {
  const EventState* found = find(event);
  ASHLAR_REQUIRE(found != nullptr, Code::kInvalidHandle, "no such event");
  const Status may_ask = check_may_ask(*found, "cudaEventQuery");
  if (!may_ask.is_ok()) return may_ask;
  const Status alive = state_.gate.check_alive(found->device);
  if (!alive.is_ok() || found->place == 0) return alive;
  ASHLAR_REQUIRE(state_.scheduler.is_done(found->lane, found->place), Code::kNotReady,
                 "the event's work is not done");
  state_.clocks.learn(state_.threads.current(), found->clock, kEdgeQuery);
  return Status::ok();
}

bool EventCalls::is_stuck_after(std::uint32_t waited_ms) {
  constexpr std::uint64_t kStuckMs = 10 * 60 * 1000;
  if (state_.scheduler.entries_run() != stood_still_at_) stood_still_ms_ = 0;
  stood_still_at_ = state_.scheduler.entries_run();
  stood_still_ms_ += waited_ms;
  if (stood_still_ms_ < kStuckMs) return false;
  stood_still_ms_ = 0;
  return true;
}

Status EventCalls::wait_for(std::uint32_t lane, std::uint64_t place, std::uint32_t timeout_ms) {
  Scheduler& scheduler = state_.scheduler;
  if (scheduler.is_done(lane, place)) return Status::ok();
  state_.gate.count_wait();
  const bool for_ever = timeout_ms == device::kWaitForever;
  std::uint64_t left = ~std::uint64_t{0};
  if (!for_ever && (state_.options.entries_per_ms > 0 || timeout_ms == 0)) {
    left = std::uint64_t{timeout_ms} * state_.options.entries_per_ms;
  }
  const std::uint64_t ran_before = scheduler.entries_run();
  for (; !scheduler.is_done(lane, place); --left) {
    const bool is_over = left == 0;
    if (!is_over && scheduler.help(lane)) continue;
    if (is_over || (!for_ever && !is_stuck_after(timeout_ms))) {
      state_.time.pass_ms(timeout_ms);
      return {Code::kNotReady, "the wait timed out"};
    }
    state_.faults.misuse(FaultKind::kDeadlock, "event_synchronize would wait for ever:\n",
                         scheduler.describe());
    return Status{Code::kDeadlock, "the event can never be done"};
  }
  state_.time.pass_entries(scheduler.entries_run() - ran_before, state_.options.entries_per_ms);
  return Status::ok();
}

Status EventCalls::synchronize(EventHandle event, std::uint32_t timeout_ms) {
  const EventState* found = find(event);
  ASHLAR_REQUIRE(found != nullptr, Code::kInvalidHandle, "no such event");
  const Status may_ask = check_may_ask(*found, "cudaEventSynchronize");
  if (!may_ask.is_ok()) return may_ask;
  if (found->place != 0) {
    const Status waited = wait_for(found->lane, found->place, timeout_ms);
    if (!waited.is_ok()) return waited;
  }
  const Status alive = state_.gate.check_alive(found->device);
  if (!alive.is_ok() || found->place == 0) return alive;
  state_.clocks.learn(state_.threads.current(), found->clock, kEdgeSynchronize);
  return Status::ok();
}

Status EventCalls::wait(std::uint32_t device, StreamHandle stream, EventHandle event) {
  const EventState* found = find(event);
  ASHLAR_REQUIRE(found != nullptr, Code::kInvalidHandle, "no such event");
  const Result<std::uint32_t> lane = streams_.resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  if (found->point.capture != 0) return state_.captures.wait(lane.value(), found->point);
  if (found->place == 0) return Status::ok();
  if (const std::uint32_t capture = state_.captures.of_lane(lane.value()); capture != 0) {
    return state_.captures.violate(
        capture,
        "a wait for an event recorded outside of the capture (cudaErrorStreamCaptureIsolation)");
  }
  const Status queued =
      work_.enqueue_on(lane.value(), Entry{EntryKind::kWait, {}, 0, found->lane, 0, found->place});
  if (!queued.is_ok()) return queued;
  state_.clocks.join(lane.value(), found->clock, kEdgeRecordWait);
  return Status::ok();
}

}  // namespace ashlar::spec
