#include "spec/gpu/sim_streams.h"

#include <algorithm>

namespace ashlar::spec {
namespace {

constexpr std::uint8_t kStreamMark = 0x10;
constexpr std::size_t kStreamsUsual = 8;  // most worlds have fewer, and then nothing grows

}  // namespace

SimStreams::SimStreams(MachineState& state)
    : state_(state),
      defaults_(state.options.capacities.size()),
      handles_(kStreamMark, state.options.adversarial, kStreamsUsual) {
  lanes_.reserve(kStreamsUsual);
}

std::uint32_t SimStreams::add_lane(const Lane& lane) {
  lanes_.push_back(lane);
  return state_.scheduler.add_lane(lane.device);
}

Stream SimStreams::stream_of(std::uint32_t lane) const {
  const Lane& info = lanes_[lane];
  return Stream{info.handle, StreamId{std::uint64_t{lane} + 1},
                DeviceId{static_cast<std::int32_t>(info.device)}, info.thread_bound};
}

std::uint32_t SimStreams::default_lane(std::uint32_t device, StreamHandle which) {
  Defaults& defaults = defaults_[device];
  if (which != kPerThreadStream) {
    if (!defaults.legacy) defaults.legacy = add_lane({device, kLegacyStream, false, false});
    return *defaults.legacy;
  }
  const std::uint32_t self = state_.threads.current();
  if (defaults.per_thread.size() <= self) defaults.per_thread.resize(self + 1);
  if (!defaults.per_thread[self]) {
    const std::uint32_t lane = add_lane({device, kPerThreadStream, true, true});
    defaults.per_thread[self] = lane;
    defaults.blocking.push_back(lane);
  }
  return *defaults.per_thread[self];
}

Result<std::uint32_t> SimStreams::resolve(std::uint32_t device, StreamHandle handle) {
  if (handle.value() <= kPerThreadStream.value()) return default_lane(device, handle);
  const std::uint32_t* lane = handles_.find(handle.value());
  if (lane == nullptr) {
    state_.faults.misuse(FaultKind::kDeadStream, "D7: a dead or foreign stream handle ",
                         handle.value());
    return Status{Code::kInvalidHandle, "no such stream"};
  }
  if (device_of(*lane) != device) {
    state_.faults.misuse(FaultKind::kWrongDevice, "a stream of another device");
    return Status{Code::kWrongDevice, "a stream of another device"};
  }
  return *lane;
}

Result<Stream> SimStreams::identify(std::uint32_t device, StreamHandle handle) {
  const Result<std::uint32_t> lane = resolve(device, handle);
  if (!lane.is_ok()) return lane.status();
  // As work on it would be (reports/driver_facts.md).
  if (const std::uint32_t capture = state_.captures.of_lane(lane.value()); capture != 0)
    return state_.captures.violate(capture, "a capturing stream was asked for its identity");
  if (lane.value() == legacy_lane(device)) {
    const Status safe = state_.captures.refuse_implicit(blocking_lanes(device));
    if (!safe.is_ok()) return safe;
  }
  return stream_of(lane.value());
}

Stream SimStreams::create(std::uint32_t device, StreamKind kind) {
  const std::uint64_t handle = handles_.add();
  const bool blocking = kind == StreamKind::kBlocking;
  const std::uint32_t lane = add_lane({device, StreamHandle{handle}, blocking, false});
  *handles_.find(handle) = lane;
  if (blocking) defaults_[device].blocking.push_back(lane);
  ++state_.memory.ledger(device).streams.count;
  return stream_of(lane);
}

Status SimStreams::destroy(const Stream& stream) {
  ASHLAR_REQUIRE(stream.handle.value() > kPerThreadStream.value(), Code::kInvalidArgument,
                 "a default stream");
  const Result<std::uint32_t> lane = resolve(stream);
  if (!lane.is_ok()) return lane.status();
  if (const std::uint32_t capture = state_.captures.of_lane(lane.value()); capture != 0)
    static_cast<void>(state_.captures.violate(capture, "a capturing stream was destroyed"));
  const std::uint32_t device = index_of(stream.device);
  std::vector<std::uint32_t>& blocking = defaults_[device].blocking;
  blocking.erase(std::remove(blocking.begin(), blocking.end(), lane.value()), blocking.end());
  handles_.remove(stream.handle.value());
  --state_.memory.ledger(device).streams.count;
  return Status::ok();
}

}  // namespace ashlar::spec
