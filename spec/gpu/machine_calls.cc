// The machine's side of each Device call (D1-D8).
#include "spec/gpu/machine.h"

namespace ashlar::spec {
namespace {

Status unsupported() { return Status{Code::kUnsupported, "no virtual memory on this device"}; }

}  // namespace

// The detector names the kernel and the guilty where it can; the queues catch the rest.
void Machine::about_to_unmap(Address at, Bytes size) {
  const std::size_t before = faults_.count();
  detector_.on_unmap(at, size, thread(), true);
  if (faults_.count() != before || !scheduler_.in_flight(at, size)) return;
  faults_.misuse(FaultKind::kInFlight, "D4: memory at ", at.value(), " + ", size.count(),
                 " returned or unmapped under a kernel");
}

Result<Address> Machine::segment_alloc(std::uint32_t device, Bytes size, HeldKind kind) {
  const Status safe = check_safe();
  if (!safe.is_ok()) return safe;
  return kind == HeldKind::kSegment ? memory_.segment_alloc(device, size)
                                    : memory_.pinned_alloc(device, size);
}

Status Machine::segment_free(std::uint32_t device, Address base, HeldKind kind) {
  const Status safe = check_safe();
  if (!safe.is_ok()) return safe;
  const std::optional<Bytes> size = memory_.size_to_free(device, base, kind);
  ASHLAR_REQUIRE(size.has_value(), Code::kInvalidArgument, "not an address this device handed out");
  about_to_unmap(base, *size);
  memory_.free(device, base, kind);
  return Status::ok();
}

Result<Address> Machine::address_reserve(std::uint32_t device, Bytes size, Bytes alignment) {
  if (!options_.virtual_memory) return unsupported();
  const Status safe = check_safe();
  if (!safe.is_ok()) return safe;
  return memory_.reserve(device, size, alignment);
}

Status Machine::address_release(std::uint32_t device, Address base, Bytes size) {
  if (!options_.virtual_memory) return unsupported();
  const Status safe = check_safe();
  return safe.is_ok() ? memory_.release_reservation(device, base, size) : safe;
}

Result<PageHandle> Machine::page_create(std::uint32_t device, Bytes size) {
  if (!options_.virtual_memory) return unsupported();
  const Status safe = check_safe();
  if (!safe.is_ok()) return safe;
  return memory_.create_page(device, size);
}

Status Machine::page_release(std::uint32_t device, PageHandle page) {
  if (!options_.virtual_memory) return unsupported();
  const Status safe = check_safe();
  return safe.is_ok() ? memory_.release_page(device, page) : safe;
}

Status Machine::page_map(std::uint32_t device, Address at, Bytes size, PageHandle page) {
  if (!options_.virtual_memory) return unsupported();
  const Status safe = check_safe();
  return safe.is_ok() ? memory_.map(device, at, size, page) : safe;
}

Status Machine::page_access(std::uint32_t device, Address at, Bytes size) {
  if (!options_.virtual_memory) return unsupported();
  const Status safe = check_safe();
  return safe.is_ok() ? memory_.set_access(device, at, size) : safe;
}

Status Machine::page_unmap(std::uint32_t device, Address at, Bytes size) {
  if (!options_.virtual_memory) return unsupported();
  Status status = check_safe();
  if (status.is_ok()) status = memory_.can_unmap(device, at, size);
  if (!status.is_ok()) return status;
  about_to_unmap(at, size);
  memory_.unmap(at, size);
  return Status::ok();
}

// Events.

Machine::EventState* Machine::find_event(EventHandle event) {
  EventState* found = events_.find(event.value());
  if (found == nullptr) {
    faults_.misuse(FaultKind::kDeadEvent, "a dead or foreign event handle ", event.value());
  }
  return found;
}

Result<EventHandle> Machine::event_create(std::uint32_t device) {
  const std::uint64_t value = events_.add();
  EventState& event = *events_.find(value);
  event.device = device;
  event.place = 0;
  event.point.capture = 0;
  ++memory_.ledger(device).events.count;
  return EventHandle{value};
}

Status Machine::event_destroy(std::uint32_t device, EventHandle event) {
  const EventState* state = find_event(event);
  ASHLAR_REQUIRE(state != nullptr, Code::kInvalidHandle, "no such event");
  if (state->device != device) {
    faults_.misuse(FaultKind::kWrongDevice, "an event destroyed through another device");
    return Status{Code::kWrongDevice, "an event of another device"};
  }
  --memory_.ledger(device).events.count;
  events_.remove(event.value());
  return Status::ok();
}

Status Machine::event_record(std::uint32_t device, EventHandle event, StreamHandle stream) {
  EventState* state = find_event(event);
  ASHLAR_REQUIRE(state != nullptr, Code::kInvalidHandle, "no such event");
  const Result<std::uint32_t> lane = resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  if (state->device != device) {
    faults_.misuse(FaultKind::kWrongDevice, "an event recorded on a stream of another device");
    return Status{Code::kWrongDevice, "an event of another device"};
  }
  if (captures_.of_lane(lane.value()) != 0) return captures_.record(lane.value(), state->point);
  const Status queued = enqueue_on(lane.value(), Entry{EntryKind::kRecord}, {});
  if (!queued.is_ok()) return queued;
  state = find_event(event);
  state->lane = lane.value();
  state->place = scheduler_.enqueued(lane.value());
  state->clock = clocks_.clock(lane.value());
  state->point.capture = 0;
  return Status::ok();
}

Status Machine::event_query(EventHandle event) {
  const EventState* state = find_event(event);
  ASHLAR_REQUIRE(state != nullptr, Code::kInvalidHandle, "no such event");
  if (state->point.capture != 0) return captures_.query_captured(state->point);
  const Status safe = check_safe();
  if (!safe.is_ok()) return safe;
  const Status alive = check_alive(state->device);
  if (!alive.is_ok() || state->place == 0) return alive;
  ASHLAR_REQUIRE(scheduler_.is_done(state->lane, state->place), Code::kNotReady,
                 "the event's work is not done");
  clocks_.learn(thread(), state->clock, kEdgeQuery);
  return Status::ok();
}

bool Machine::is_stuck_after(std::uint32_t waited_ms) {
  constexpr std::uint64_t kStuckMs = 10 * 60 * 1000;
  if (scheduler_.entries_run() != stood_still_at_) stood_still_ms_ = 0;
  stood_still_at_ = scheduler_.entries_run();
  stood_still_ms_ += waited_ms;
  if (stood_still_ms_ < kStuckMs) return false;
  stood_still_ms_ = 0;
  return true;
}

Status Machine::event_synchronize(EventHandle event, std::uint32_t timeout_ms) {
  const EventState* state = find_event(event);
  ASHLAR_REQUIRE(state != nullptr, Code::kInvalidHandle, "no such event");
  if (state->point.capture != 0) return captures_.query_captured(state->point);
  const Status safe = check_safe();
  if (!safe.is_ok()) return safe;
  const bool for_ever = timeout_ms == device::kWaitForever;
  std::uint64_t left = ~std::uint64_t{0};
  if (!for_ever && (options_.entries_per_ms > 0 || timeout_ms == 0)) {
    left = std::uint64_t{timeout_ms} * options_.entries_per_ms;
  }
  const std::uint32_t lane = state->lane;
  const std::uint64_t place = state->place;
  if (place != 0 && !scheduler_.is_done(lane, place)) ++account_.waits;
  for (; place != 0 && !scheduler_.is_done(lane, place); --left) {
    ASHLAR_REQUIRE(left > 0, Code::kNotReady, "the wait timed out");
    if (scheduler_.help(lane)) continue;
    ASHLAR_REQUIRE(for_ever || is_stuck_after(timeout_ms), Code::kNotReady, "the wait timed out");
    faults_.misuse(FaultKind::kDeadlock, "event_synchronize would wait for ever:\n",
                   scheduler_.describe());
    return Status{Code::kDeadlock, "the event can never be done"};
  }
  const Status alive = check_alive(state->device);
  if (!alive.is_ok() || place == 0) return alive;
  clocks_.learn(thread(), state->clock, kEdgeSynchronize);
  return Status::ok();
}

Status Machine::stream_wait(std::uint32_t device, StreamHandle stream, EventHandle event) {
  const EventState* state = find_event(event);
  ASHLAR_REQUIRE(state != nullptr, Code::kInvalidHandle, "no such event");
  const Result<std::uint32_t> lane = resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  if (state->point.capture != 0) return captures_.wait(lane.value(), state->point);
  if (state->place == 0) return Status::ok();
  if (captures_.of_lane(lane.value()) != 0) {
    return captures_.violate(
        captures_.of_lane(lane.value()),
        "a wait for an event recorded outside of the capture (cudaErrorStreamCaptureIsolation)");
  }
  const Status queued =
      enqueue_on(lane.value(), Entry{EntryKind::kWait, {}, 0, state->lane, 0, state->place}, {});
  if (!queued.is_ok()) return queued;
  clocks_.join(lane.value(), state->clock, kEdgeRecordWait);
  return Status::ok();
}

// Streams.

Result<Stream> Machine::identify(std::uint32_t device, StreamHandle stream) {
  const Result<std::uint32_t> lane = resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  return stream_of(lane.value());
}

Result<device::CaptureStatus> Machine::capture_status(std::uint32_t device, StreamHandle stream) {
  const Result<std::uint32_t> lane = resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  return captures_.status(lane.value());
}

device::CaptureMode Machine::exchange_capture_mode(device::CaptureMode mode) {
  return std::exchange(capture_mode(), mode);
}

Status Machine::synchronize(std::uint32_t device) {
  const std::uint32_t capture = captures_.any_open();
  if (capture != 0) {
    return captures_.violate(
        capture, "device synchronize while capturing (cudaErrorStreamCaptureUnsupported)");
  }
  if (scheduler_.pending_on_device(device) > 0) ++account_.waits;
  if (!scheduler_.drain(device)) {
    faults_.misuse(FaultKind::kDeadlock, "synchronize would wait for ever:\n",
                   scheduler_.describe());
    return Status{Code::kDeadlock, "the device's work can never be done"};
  }
  const Status alive = check_alive(device);
  if (!alive.is_ok()) return alive;
  for (std::uint32_t lane = 0; lane < lane_info_.size(); ++lane) {
    if (lane_info_[lane].device == device)
      clocks_.learn(thread(), clocks_.clock(lane), kEdgeDeviceSynchronize);
  }
  return Status::ok();
}

}  // namespace ashlar::spec
