#include "spec/gpu/machine.h"

#include <algorithm>
#include <tuple>

namespace ashlar::spec {

Machine::Machine(const SimGpuOptions& options) : state_(options) {
  ASHLAR_ASSERT(options.capacities.size() <= Memory::kDevicesMax, "sim: too many devices");
  devices_.reserve(options.capacities.size());
  for (std::uint32_t i = 0; i < options.capacities.size(); ++i) devices_.emplace_back(*this, i);
}

Machine::~Machine() = default;

Status Machine::refuse_in_capture() {
  const std::uint32_t capture = state_.captures.any_open();
  if (capture == 0) return Status::ok();
  return state_.captures.violate(
      capture, "device synchronize while capturing (cudaErrorStreamCaptureUnsupported)");
}

Status Machine::synchronize(std::uint32_t device) {
  if (const Status refused = refuse_in_capture(); !refused.is_ok()) return refused;
  if (state_.scheduler.pending_on_device(device) > 0) state_.gate.count_wait();
  if (!state_.scheduler.drain(device)) {
    state_.faults.misuse(FaultKind::kDeadlock, "synchronize would wait for ever:\n",
                         state_.scheduler.describe());
    return Status{Code::kDeadlock, "the device's work can never be done"};
  }
  return learn_all_done(device);
}

Status Machine::synchronize_for(std::uint32_t device, std::uint32_t timeout_ms) {
  if (timeout_ms == device::kWaitForever) return synchronize(device);
  if (const Status refused = refuse_in_capture(); !refused.is_ok()) return refused;
  const std::uint64_t start_ns = state_.time.now_ns();
  for (std::uint32_t lane = 0; lane < state_.clocks.lanes(); ++lane) {
    if (streams_.device_of(lane) != device) continue;
    const std::uint64_t passed_ms = (state_.time.now_ns() - start_ns) / 1'000'000;
    const auto left_ms =
        static_cast<std::uint32_t>(timeout_ms - std::min<std::uint64_t>(timeout_ms, passed_ms));
    const Status done = events_.wait_for(lane, state_.scheduler.enqueued(lane), left_ms);
    if (!done.is_ok()) return done;
  }
  return learn_all_done(device);
}

Status Machine::learn_all_done(std::uint32_t device) {
  const Status alive = state_.gate.check_alive(device);
  if (!alive.is_ok()) return alive;
  for (std::uint32_t lane = 0; lane < state_.clocks.lanes(); ++lane) {
    if (streams_.device_of(lane) != device) continue;
    state_.clocks.learn(state_.threads.current(), state_.clocks.clock(lane),
                        kEdgeDeviceSynchronize);
  }
  return Status::ok();
}

bool Machine::leak_check(bool streams) {
  bool clean = true;
  for (std::uint32_t device = 0; device < devices_.size(); ++device) {
    if (state_.scheduler.is_lost(device)) continue;
    for (unsigned i = 0; i < kHeldKinds; ++i) {
      const auto kind = static_cast<HeldKind>(i);
      const HeldCount& count = state_.memory.ledger(device).of(kind);
      if (count.count == 0 || (kind == HeldKind::kStream && !streams)) continue;
      clean = false;
      state_.faults.report(FaultKind::kLeak,
                           kind == HeldKind::kStream ? Blame::kCaller : Blame::kAllocator,
                           "C14: device ", device, " still holds ", count.count, " ",
                           held_name(kind), "s, ", count.bytes.count(), " bytes");
    }
  }
  return clean;
}

std::vector<HeldHandle> Machine::held() const {
  std::vector<HeldHandle> all;
  const auto add_handle = [&](HeldKind kind, std::uint32_t device, std::uint64_t value) {
    all.push_back(HeldHandle{kind, DeviceId{static_cast<std::int32_t>(device)}, value, Bytes{0}});
  };
  state_.memory.for_each_held([&](const HeldHandle& handle) { all.push_back(handle); });
  events_.for_each([&](std::uint64_t value, std::uint32_t device) {
    add_handle(HeldKind::kEvent, device, value);
  });
  streams_.for_each([&](std::uint64_t value, std::uint32_t device) {
    add_handle(HeldKind::kStream, device, value);
  });
  std::sort(all.begin(), all.end(), [](const HeldHandle& a, const HeldHandle& b) {
    return std::tie(a.kind, a.value) < std::tie(b.kind, b.value);
  });
  return all;
}

}  // namespace ashlar::spec
