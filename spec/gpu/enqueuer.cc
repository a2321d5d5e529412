#include "spec/gpu/enqueuer.h"

namespace ashlar::spec {

void Enqueuer::push(std::uint32_t lane, const Entry& entry, std::span<const Touch> touches) {
  state_.clocks.enqueue(lane, state_.threads.current());
  state_.scheduler.push(lane, entry, touches);
}

Status Enqueuer::make_room(std::uint32_t lane) {
  Scheduler& scheduler = state_.scheduler;
  if (!scheduler.is_full(lane)) return Status::ok();
  state_.gate.count_wait();
  while (scheduler.is_full(lane)) {
    if (scheduler.help(lane)) continue;
    state_.faults.misuse(FaultKind::kDeadlock, "an enqueue on a full queue that nothing can empty");
    return Status{Code::kDeadlock, "the stream's queue is full for ever"};
  }
  return state_.gate.check_alive(streams_.device_of(lane));
}

// CUDA: work on the legacy default stream waits for all earlier work of blocking streams, and their
// later work waits for it.
Status Enqueuer::order_with_legacy(std::uint32_t lane) {
  const std::uint32_t device = streams_.device_of(lane);
  const std::optional<std::uint32_t> legacy = streams_.legacy_lane(device);
  if (!legacy) return Status::ok();
  if (lane == *legacy) {
    const Status safe = state_.captures.refuse_implicit(streams_.blocking_lanes(device));
    if (!safe.is_ok()) return safe;
  } else if (!streams_.is_blocking(lane)) {
    return Status::ok();
  }
  const auto follow = [&](std::uint32_t before) {
    state_.clocks.join_lane(lane, before, kEdgeLegacyStream);
    if (before == lane || state_.scheduler.pending(before) == 0) return Status::ok();
    const Status room = make_room(lane);
    if (room.is_ok())
      push(lane, Entry{EntryKind::kWait, {}, 0, before, 0, state_.scheduler.enqueued(before)});
    return room;
  };
  if (lane != *legacy) return follow(*legacy);
  for (const std::uint32_t before : streams_.blocking_lanes(device)) {
    const Status followed = follow(before);
    if (!followed.is_ok()) return followed;
  }
  return Status::ok();
}

Status Enqueuer::enqueue_on(std::uint32_t lane, const Entry& entry,
                            std::span<const Touch> touches) {
  const Status alive = state_.gate.check_alive(streams_.device_of(lane));
  if (!alive.is_ok()) return alive;
  if (state_.captures.of_lane(lane) != 0) {
    if (state_.captures.status(lane) == device::CaptureStatus::kActive) {
      for (const Touch& touch : touches) state_.detector.on_captured_touch(touch, lane);
    }
    return state_.captures.add_node(lane, touches);
  }
  Status ready = order_with_legacy(lane);
  if (ready.is_ok()) ready = make_room(lane);
  if (!ready.is_ok()) return ready;
  touched_.assign(touches.begin(), touches.end());
  for (Touch& touch : touched_) {
    if (!state_.detector.on_touch(touch, lane, state_.threads.current())) touch.tag = kNoTag;
  }
  push(lane, entry, touched_);
  return Status::ok();
}

Status Enqueuer::enqueue(const Stream& stream, const Entry& entry, std::span<const Touch> touches) {
  const Result<std::uint32_t> lane = streams_.resolve(stream);
  return lane.is_ok() ? enqueue_on(lane.value(), entry, touches) : lane.status();
}

Status Enqueuer::write_value(const Stream& stream, Address at, std::uint64_t value) {
  const Result<std::uint32_t> lane = streams_.resolve(stream);
  if (!lane.is_ok()) return lane.status();
  const Status queued =
      enqueue_on(lane.value(), Entry{EntryKind::kWriteValue, {}, 0, 0, 0, at.value(), value});
  if (!queued.is_ok()) return queued;
  const Clock& written = state_.clocks.clock(lane.value());
  const std::uint64_t byte = state_.memory.byte_at(at);
  for (WordClock& word : word_clocks_) {
    if (word.byte != byte) continue;
    word.clock = written;
    return queued;
  }
  word_clocks_.push_back(WordClock{byte, written});
  return queued;
}

Status Enqueuer::wait_value(const Stream& stream, Address at, std::uint64_t value, WaitRule rule) {
  const Result<std::uint32_t> lane = streams_.resolve(stream);
  if (!lane.is_ok()) return lane.status();
  const Status queued =
      enqueue_on(lane.value(), Entry{EntryKind::kWaitValue, rule, 0, 0, 0, at.value(), value});
  if (!queued.is_ok()) return queued;
  const std::uint64_t byte = state_.memory.byte_at(at);
  for (const WordClock& word : word_clocks_) {
    if (word.byte == byte) state_.clocks.join(lane.value(), word.clock, kEdgeMemoryValue);
  }
  return queued;
}

}  // namespace ashlar::spec
