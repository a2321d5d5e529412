#include "spec/gpu/sim_caller.h"

#include <utility>

#include "spec/gpu/machine.h"

namespace ashlar::spec {
namespace {

// Locks the machine; what is done under it is the caller's own, not the allocator's.
class CallersLock {
 public:
  explicit CallersLock(Machine& machine) : lock_(machine.mutex()) {}

 private:
  CallerScope callers_own_;
  std::lock_guard<std::mutex> lock_;
};

using Lock = std::lock_guard<std::mutex>;

}  // namespace

Result<Stream> SimCaller::create_stream(DeviceId id, StreamKind kind) {
  const Lock lock(machine_.mutex());
  const Status alive = machine_.state().gate.check_alive(index_of(id));
  if (!alive.is_ok()) return alive;
  return machine_.streams().create(index_of(id), kind);
}

Status SimCaller::destroy_stream(const Stream& stream) {
  const CallersLock lock(machine_);
  return machine_.streams().destroy(stream);
}

Stream SimCaller::default_stream(DeviceId id, StreamHandle which) {
  const Lock lock(machine_.mutex());
  return machine_.streams().default_stream(index_of(id), which);
}

std::uint64_t SimCaller::pending(const Stream& stream) const {
  const Lock lock(machine_.mutex());
  return machine_.streams().knows(stream) ? machine_.state().scheduler.pending(lane_of(stream)) : 0;
}

std::uint64_t SimCaller::pending(DeviceId id) const {
  const Lock lock(machine_.mutex());
  return machine_.state().scheduler.pending_on_device(index_of(id));
}

// Work.

Status SimCaller::launch(const Stream& stream, std::span<const Touch> touches) {
  const CallersLock lock(machine_);
  return machine_.work().enqueue(stream, Entry{EntryKind::kKernel}, touches);
}

Status SimCaller::host_function(const Stream& stream, HostFlag flag, std::function<void()> body) {
  const CallersLock lock(machine_);
  HostFunctions& functions = machine_.state().scheduler.host_functions();
  const std::uint64_t number = body ? functions.add_body(std::move(body)) : 0;
  return machine_.work().enqueue(stream, Entry{EntryKind::kHost, {}, 0, flag, 0, number});
}

HostFlag SimCaller::new_flag() {
  const Lock lock(machine_.mutex());
  return machine_.state().scheduler.host_functions().new_flag();
}

void SimCaller::raise(HostFlag flag) {
  const Lock lock(machine_.mutex());
  machine_.state().scheduler.host_functions().raise(flag);
}

Status SimCaller::write_value(const Stream& stream, Address at, std::uint64_t value) {
  const CallersLock lock(machine_);
  return machine_.work().write_value(stream, at, value);
}

Status SimCaller::wait_value(const Stream& stream, Address at, std::uint64_t value, WaitRule rule) {
  const CallersLock lock(machine_);
  return machine_.work().wait_value(stream, at, value, rule);
}

void SimCaller::host_write_value(Address at, std::uint64_t value) {
  const Lock lock(machine_.mutex());
  MachineState& state = machine_.state();
  state.scheduler.words().at(state.memory.byte_at(at)) = value;
}

Status SimCaller::collective(const Stream& stream, std::uint32_t group, std::uint32_t members) {
  ASHLAR_REQUIRE(members > 0, Code::kInvalidArgument, "a collective has members");
  const CallersLock lock(machine_);
  return machine_.work().enqueue(stream, Entry{EntryKind::kCollective, {}, 0, group, members});
}

Status SimCaller::launch_faulty(const Stream& stream) {
  const CallersLock lock(machine_);
  return machine_.work().enqueue(stream, Entry{EntryKind::kFaulty});
}

// Capture.

Status SimCaller::begin_capture(const Stream& stream, device::CaptureMode mode) {
  const CallersLock lock(machine_);
  return machine_.captures().begin(stream, mode);
}

Result<GraphId> SimCaller::end_capture(const Stream& stream) {
  const CallersLock lock(machine_);
  return machine_.captures().end(stream);
}

Status SimCaller::begin_body(const Stream& stream, const Stream& parent) {
  const CallersLock lock(machine_);
  return machine_.captures().begin_body(stream, parent);
}

Status SimCaller::end_body(const Stream& stream) {
  const CallersLock lock(machine_);
  return machine_.captures().end_body(stream);
}

Status SimCaller::launch_graph(const Stream& stream, GraphId graph, BodyRuns runs) {
  const CallersLock lock(machine_);
  return machine_.captures().launch(stream, graph, runs);
}

CapturedGraph SimCaller::graph_contents(GraphId graph) const {
  const Lock lock(machine_.mutex());
  return machine_.captures().contents(graph);
}

Status SimCaller::destroy_graph(GraphId graph) {
  const Lock lock(machine_.mutex());
  return machine_.captures().destroy(graph);
}

}  // namespace ashlar::spec
