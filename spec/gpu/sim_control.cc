#include "spec/gpu/sim_control.h"

#include "spec/gpu/machine.h"

namespace ashlar::spec {
namespace {

using Lock = std::lock_guard<std::mutex>;

}  // namespace

void SimControl::set_capacity(DeviceId id, Bytes capacity) {
  const Lock lock(machine_.mutex());
  machine_.state().memory.set_capacity(index_of(id), capacity);
}

void SimControl::set_addresses(DeviceId id, Bytes most) {
  const Lock lock(machine_.mutex());
  machine_.state().memory.set_addresses(index_of(id), most == Bytes{} ? Bytes::max() : most);
}

void SimControl::act_as_thread(std::uint32_t n) {
  const Lock lock(machine_.mutex());
  machine_.state().threads.act_as(n);
}

// Progress.

std::uint64_t SimControl::step(const Stream& stream, std::uint64_t n) {
  const Lock lock(machine_.mutex());
  return machine_.streams().knows(stream) ? machine_.state().scheduler.step(lane_of(stream), n) : 0;
}

Status SimControl::drain(DeviceId id) {
  const Lock lock(machine_.mutex());
  ASHLAR_REQUIRE(machine_.state().scheduler.drain(index_of(id)), Code::kDeadlock,
                 "some of the work can never run");
  return Status::ok();
}

Status SimControl::drain_all() {
  const Lock lock(machine_.mutex());
  Scheduler& scheduler = machine_.state().scheduler;
  while (scheduler.run_any()) {
  }
  for (std::uint32_t i = 0; i < machine_.device_count(); ++i) {
    ASHLAR_REQUIRE(scheduler.pending_on_device(i) == 0, Code::kDeadlock,
                   "some of the work can never run");
  }
  return Status::ok();
}

std::uint64_t SimControl::progress(std::uint64_t n) {
  const Lock lock(machine_.mutex());
  std::uint64_t finished = 0;
  while (finished < n && machine_.state().scheduler.run_any()) ++finished;
  return finished;
}

void SimControl::set_lag(std::uint64_t ticks) {
  const Lock lock(machine_.mutex());
  machine_.state().scheduler.set_lag(ticks);
}

void SimControl::tick() {
  const Lock lock(machine_.mutex());
  machine_.state().scheduler.tick();
}

void SimControl::sleep_ns(std::uint64_t duration_ns) {
  const Lock lock(machine_.mutex());
  MachineState& state = machine_.state();
  const std::uint64_t pace = state.options.entries_per_ms;
  if (pace == 0) {
    if (!state.scheduler.run_any()) state.time.pass_ns(duration_ns);
    return;
  }
  const auto entries_by = [pace](std::uint64_t time_ns) { return time_ns * pace / 1'000'000; };
  const std::uint64_t before = entries_by(state.time.now_ns());
  state.time.pass_ns(duration_ns);
  state.scheduler.step_each(entries_by(state.time.now_ns()) - before);
}

// Failures.

void SimControl::fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code) {
  const Lock lock(machine_.mutex());
  machine_.state().gate.fail(kind, n, mode, code);
}

Code SimControl::usual_failure(device::CallKind kind) {
  switch (kind) {
    case device::CallKind::kSegmentAlloc:
    case device::CallKind::kStreamAlloc:
    case device::CallKind::kPinnedAlloc:
    case device::CallKind::kHostRegister:
    case device::CallKind::kPageCreate: return Code::kOutOfMemory;
    case device::CallKind::kAddressReserve: return Code::kOutOfAddresses;
    default: return Code::kDriverError;
  }
}

bool SimControl::has_planned_failures() const {
  const std::lock_guard<std::mutex> lock(machine_.mutex());
  return machine_.state().gate.has_plans();
}

void SimControl::heal() {
  const Lock lock(machine_.mutex());
  machine_.state().gate.heal();
}

bool SimControl::is_gone(DeviceId id) const {
  const std::lock_guard<std::mutex> lock(machine_.mutex());
  const auto& state = machine_.state();
  return state.gate.is_torn_down() || state.scheduler.is_lost(index_of(id));
}

void SimControl::lose(DeviceId id) {
  const Lock lock(machine_.mutex());
  machine_.state().scheduler.lose(index_of(id));
}

void SimControl::tear_down() {
  const Lock lock(machine_.mutex());
  machine_.state().gate.tear_down();
}

}  // namespace ashlar::spec
