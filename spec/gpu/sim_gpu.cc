#include "spec/gpu/sim_gpu.h"

#include <utility>

#include "spec/gpu/machine.h"

namespace ashlar::spec {
namespace {

using Lock = std::lock_guard<std::mutex>;

void add(Ledger& sum, const Ledger& one) {
  for (unsigned i = 0; i < kHeldKinds; ++i) {
    const auto kind = static_cast<HeldKind>(i);
    sum.of(kind).count += one.of(kind).count;
    sum.of(kind).bytes += one.of(kind).bytes;
  }
  sum.device_bytes_peak += one.device_bytes_peak;
}

}  // namespace

SimGpu::SimGpu(const Options& options) : SimGpu(std::make_unique<Machine>(options)) {}
SimGpu::SimGpu(std::unique_ptr<Machine> machine)
    : SimCaller(*machine),
      SimControl(*machine),
      SimNetwork(*machine),
      machine_(std::move(machine)) {}
SimGpu::~SimGpu() = default;

std::uint32_t SimGpu::device_count() const { return machine_->device_count(); }

device::Device& SimGpu::device(DeviceId id) { return machine_->device(index_of(id)); }

// The account.

Ledger SimGpu::ledger() const {
  const Lock lock(machine_->mutex());
  Ledger sum;
  for (std::uint32_t i = 0; i < device_count(); ++i) add(sum, machine_->state().memory.ledger(i));
  return sum;
}

Ledger SimGpu::ledger(DeviceId id) const {
  const Lock lock(machine_->mutex());
  return machine_->state().memory.ledger(index_of(id));
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
  return machine_->state().gate.account();
}

void SimGpu::mark_step() {
  const Lock lock(machine_->mutex());
  machine_->state().gate.mark_step();
}

void SimGpu::reset_account() {
  const Lock lock(machine_->mutex());
  machine_->state().gate.reset_account();
}

std::size_t SimGpu::fault_count() const {
  const Lock lock(machine_->mutex());
  return machine_->state().faults.count();
}

std::vector<Fault> SimGpu::take_faults() {
  const Lock lock(machine_->mutex());
  return machine_->state().faults.take();
}

// The detector.

void SimGpu::on_allocate(AllocationTag tag, Address at, Bytes size, const Stream& stream,
                         GraphGroup group, const Stream* body) {
  const Lock lock(machine_->mutex());
  MachineState& state = machine_->state();
  const std::uint32_t body_lane = lane_of(body == nullptr ? stream : *body);
  state.detector.on_allocate(tag, at, size, lane_of(stream), state.threads.current(), group,
                             body_lane);
}

void SimGpu::on_pass(AllocationTag tag, const Stream& stream) {
  const Lock lock(machine_->mutex());
  machine_->state().detector.on_pass(tag, lane_of(stream));
}

void SimGpu::on_use_announced(AllocationTag tag, const Stream& stream) {
  const Lock lock(machine_->mutex());
  machine_->state().detector.on_use_announced(tag, lane_of(stream));
}

void SimGpu::on_free(AllocationTag tag) {
  const Lock lock(machine_->mutex());
  MachineState& state = machine_->state();
  state.detector.on_free(tag, state.threads.current());
}

void SimGpu::queue_contents(std::vector<std::uint64_t>* out) const {
  const Lock lock(machine_->mutex());
  machine_->state().scheduler.queue_contents(out);
}

std::uint64_t SimGpu::entries_until(EventHandle event) const {
  const Lock lock(machine_->mutex());
  return machine_->events().entries_until(event);
}

SharedBytes SimGpu::shared_bytes(Address at) const {
  const Lock lock(machine_->mutex());
  return machine_->state().sharing.shared_bytes(at);
}

int SimGpu::file_of(PageHandle page) const {
  const Lock lock(machine_->mutex());
  return machine_->state().sharing.file_of(page);
}

std::vector<MemoryPlace> SimGpu::places_of(PageHandle page) const {
  const Lock lock(machine_->mutex());
  return machine_->state().sharing.places_of(page);
}

Bytes SimGpu::segment_size(Address base) const {
  const Lock lock(machine_->mutex());
  return machine_->state().sharing.segment_size(base);
}

std::string SimGpu::describe() const {
  const Lock lock(machine_->mutex());
  return machine_->state().scheduler.describe();
}

}  // namespace ashlar::spec
