#include "spec/gpu/sim_gpu.h"

#include "spec/gpu/machine.h"

namespace ashlar::spec {
namespace {

using Lock = std::lock_guard<std::mutex>;

std::uint32_t index_of(DeviceId id) { return static_cast<std::uint32_t>(id.value()); }

std::uint32_t lane_of(const Stream& stream) {
  return static_cast<std::uint32_t>(stream.id.value() - 1);
}

void add(Ledger& sum, const Ledger& one) {
  for (unsigned i = 0; i < kHeldKinds; ++i) {
    const auto kind = static_cast<HeldKind>(i);
    sum.of(kind).count += one.of(kind).count;
    sum.of(kind).bytes += one.of(kind).bytes;
  }
  sum.device_bytes_peak += one.device_bytes_peak;
}

}  // namespace

SimGpu::SimGpu(const Options& options) : machine_(std::make_unique<Machine>(options)) {}
SimGpu::~SimGpu() = default;

SimGpu::CallerScope::CallerScope() { ++FaultLog::caller_depth(); }
SimGpu::CallerScope::~CallerScope() { --FaultLog::caller_depth(); }

std::uint32_t SimGpu::device_count() const {
  return static_cast<std::uint32_t>(machine_->options().capacities.size());
}

device::Device& SimGpu::device(DeviceId id) { return machine_->device(index_of(id)); }

void SimGpu::set_capacity(DeviceId id, Bytes capacity) {
  const Lock lock(machine_->mutex());
  machine_->memory().set_capacity(index_of(id), capacity);
}

void SimGpu::act_as_thread(std::uint32_t n) {
  const Lock lock(machine_->mutex());
  machine_->act_as_thread(n);
}

// Streams.

Result<Stream> SimGpu::create_stream(DeviceId id, StreamKind kind) {
  const Lock lock(machine_->mutex());
  const Status alive = machine_->check_alive(index_of(id));
  if (!alive.is_ok()) return alive;
  return machine_->create_stream(index_of(id), kind);
}

Status SimGpu::destroy_stream(const Stream& stream) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->destroy_stream(stream);
}

Stream SimGpu::default_stream(DeviceId id, StreamHandle which) {
  const Lock lock(machine_->mutex());
  return machine_->default_stream(index_of(id), which);
}

std::uint64_t SimGpu::pending(const Stream& stream) const {
  const Lock lock(machine_->mutex());
  return machine_->knows(stream) ? machine_->scheduler().pending(lane_of(stream)) : 0;
}

std::uint64_t SimGpu::pending(DeviceId id) const {
  const Lock lock(machine_->mutex());
  return machine_->scheduler().pending_on_device(index_of(id));
}

// Work.

Status SimGpu::launch(const Stream& stream, std::span<const Touch> touches) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->enqueue(stream, Entry{EntryKind::kKernel}, touches);
}

Status SimGpu::host_function(const Stream& stream, HostFlag flag, std::function<void()> body) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  const std::uint64_t number = body ? machine_->scheduler().add_body(std::move(body)) : 0;
  return machine_->enqueue(stream, Entry{EntryKind::kHost, {}, 0, flag, 0, number});
}

HostFlag SimGpu::new_flag() {
  const Lock lock(machine_->mutex());
  return machine_->scheduler().new_flag();
}

void SimGpu::raise(HostFlag flag) {
  const Lock lock(machine_->mutex());
  machine_->scheduler().raise(flag);
}

Status SimGpu::write_value(const Stream& stream, Address at, std::uint64_t value) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->write_value(stream, at, value);
}

Status SimGpu::wait_value(const Stream& stream, Address at, std::uint64_t value, WaitRule rule) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->wait_value(stream, at, value, rule);
}

void SimGpu::host_write_value(Address at, std::uint64_t value) {
  const Lock lock(machine_->mutex());
  machine_->scheduler().write_word(at, value);
}

Status SimGpu::collective(const Stream& stream, std::uint32_t group, std::uint32_t members) {
  ASHLAR_REQUIRE(members > 0, Code::kInvalidArgument, "a collective has members");
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->enqueue(stream, Entry{EntryKind::kCollective, {}, 0, group, members});
}

Status SimGpu::launch_faulty(const Stream& stream) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->enqueue(stream, Entry{EntryKind::kFaulty});
}

// Progress.

std::uint64_t SimGpu::step(const Stream& stream, std::uint64_t n) {
  const Lock lock(machine_->mutex());
  return machine_->knows(stream) ? machine_->scheduler().step(lane_of(stream), n) : 0;
}

Status SimGpu::drain(DeviceId id) {
  const Lock lock(machine_->mutex());
  ASHLAR_REQUIRE(machine_->scheduler().drain(index_of(id)), Code::kDeadlock,
                 "some of the work can never run");
  return Status::ok();
}

Status SimGpu::drain_all() {
  const Lock lock(machine_->mutex());
  while (machine_->scheduler().run_any()) {
  }
  for (std::uint32_t i = 0; i < device_count(); ++i) {
    ASHLAR_REQUIRE(machine_->scheduler().pending_on_device(i) == 0, Code::kDeadlock,
                   "some of the work can never run");
  }
  return Status::ok();
}

std::uint64_t SimGpu::progress(std::uint64_t n) {
  const Lock lock(machine_->mutex());
  std::uint64_t finished = 0;
  while (finished < n && machine_->scheduler().run_any()) ++finished;
  return finished;
}

void SimGpu::set_lag(std::uint64_t ticks) {
  const Lock lock(machine_->mutex());
  machine_->scheduler().set_lag(ticks);
}

void SimGpu::tick() {
  const Lock lock(machine_->mutex());
  machine_->scheduler().tick();
}

// Capture.

Status SimGpu::begin_capture(const Stream& stream, device::CaptureMode mode) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->begin_capture(stream, mode);
}

Result<GraphId> SimGpu::end_capture(const Stream& stream) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->end_capture(stream);
}

Status SimGpu::launch_graph(const Stream& stream, GraphId graph) {
  const CallerScope callers_own;
  const Lock lock(machine_->mutex());
  return machine_->launch_graph(stream, graph);
}

Status SimGpu::destroy_graph(GraphId graph) {
  const Lock lock(machine_->mutex());
  return machine_->destroy_graph(graph);
}

// Failures.

void SimGpu::fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code) {
  const Lock lock(machine_->mutex());
  machine_->fail(kind, n, mode, code);
}

Code SimGpu::usual_failure(device::CallKind kind) {
  switch (kind) {
    case device::CallKind::kSegmentAlloc:
    case device::CallKind::kPinnedAlloc:
    case device::CallKind::kPageCreate: return Code::kOutOfMemory;
    case device::CallKind::kAddressReserve: return Code::kOutOfAddresses;
    default: return Code::kDriverError;
  }
}

void SimGpu::heal() {
  const Lock lock(machine_->mutex());
  machine_->heal();
}

void SimGpu::lose(DeviceId id) {
  const Lock lock(machine_->mutex());
  machine_->scheduler().lose(index_of(id));
}

void SimGpu::tear_down() {
  const Lock lock(machine_->mutex());
  machine_->tear_down();
}

// The account.

Ledger SimGpu::ledger() const {
  const Lock lock(machine_->mutex());
  Ledger sum;
  for (std::uint32_t i = 0; i < device_count(); ++i) add(sum, machine_->memory().ledger(i));
  return sum;
}

Ledger SimGpu::ledger(DeviceId id) const {
  const Lock lock(machine_->mutex());
  return machine_->memory().ledger(index_of(id));
}

std::vector<HeldHandle> SimGpu::held() const {
  const Lock lock(machine_->mutex());
  return machine_->held();
}

bool SimGpu::leak_check(bool streams) {
  const Lock lock(machine_->mutex());
  return machine_->leak_check(streams);
}

CallAccount SimGpu::account() const {
  const Lock lock(machine_->mutex());
  return machine_->account();
}

void SimGpu::mark_step() {
  const Lock lock(machine_->mutex());
  machine_->mark_step();
}

void SimGpu::reset_account() {
  const Lock lock(machine_->mutex());
  machine_->reset_account();
}

std::size_t SimGpu::fault_count() const {
  const Lock lock(machine_->mutex());
  return machine_->faults().count();
}

std::vector<Fault> SimGpu::take_faults() {
  const Lock lock(machine_->mutex());
  return machine_->faults().take();
}

// The detector.

void SimGpu::on_allocate(AllocationTag tag, Address at, Bytes size, const Stream& stream) {
  const Lock lock(machine_->mutex());
  machine_->detector().on_allocate(tag, at, size, lane_of(stream), machine_->thread());
}

void SimGpu::on_use_announced(AllocationTag tag, const Stream& stream) {
  const Lock lock(machine_->mutex());
  machine_->detector().on_use_announced(tag, lane_of(stream));
}

void SimGpu::on_free(AllocationTag tag) {
  const Lock lock(machine_->mutex());
  machine_->detector().on_free(tag, machine_->thread());
}

void SimGpu::queue_contents(std::vector<std::uint64_t>* out) const {
  const Lock lock(machine_->mutex());
  machine_->scheduler().queue_contents(out);
}

std::string SimGpu::describe() const {
  const Lock lock(machine_->mutex());
  return machine_->scheduler().describe();
}

}  // namespace ashlar::spec
