// The machine's own: threads, streams' handles, enqueueing, failures, the account.
#include "spec/gpu/machine.h"

#include <algorithm>
#include <atomic>

namespace ashlar::spec {
namespace {

constexpr std::uint8_t kStreamMark = 0x10;
constexpr std::uint8_t kEventMark = 0x20;
// What most worlds stay below: theirs is made at once, without growing.
constexpr std::size_t kStreamsUsual = 8;
constexpr std::size_t kEventsUsual = 32;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

// The calling thread's number on the machine it called last.
struct ThreadSlot {
  std::uint64_t serial = 0;
  std::uint32_t number = 0;
};
thread_local ThreadSlot thread_slot;

}  // namespace

Machine::Machine(const SimGpuOptions& options)
    : options_(options),
      serial_(next_serial()),
      clocks_(options.drop_edges),
      memory_(options_, faults_),
      scheduler_(options_, memory_, clocks_, faults_),
      captures_(faults_),
      detector_(clocks_, faults_),
      rng_(options.seed ^ 0xace),
      defaults_(options.capacities.size()),
      streams_(kStreamMark, options.adversarial, kStreamsUsual),
      events_(kEventMark, options.adversarial, kEventsUsual) {
  ASHLAR_ASSERT(options.capacities.size() <= Memory::kDevicesMax, "sim: too many devices");
  devices_.reserve(options.capacities.size());
  lane_info_.reserve(kStreamsUsual);
  for (std::uint32_t i = 0; i < options.capacities.size(); ++i) devices_.emplace_back(*this, i);
}

Machine::~Machine() = default;

std::uint32_t Machine::thread() {
  if (thread_slot.serial == serial_) return thread_slot.number;
  const std::thread::id self = std::this_thread::get_id();
  for (const auto& [id, number] : threads_) {
    if (id != self) continue;
    thread_slot = ThreadSlot{serial_, number};
    return number;
  }
  const auto number = static_cast<std::uint32_t>(threads_.size());
  threads_.emplace_back(self, number);
  thread_slot = ThreadSlot{serial_, number};
  return number;
}

void Machine::act_as_thread(std::uint32_t n) {
  thread();
  for (auto& [id, number] : threads_) {
    if (id == std::this_thread::get_id()) number = n;
  }
  thread_slot = ThreadSlot{serial_, n};
}

device::CaptureMode& Machine::capture_mode() {
  const std::uint32_t self = thread();
  if (capture_modes_.size() <= self) capture_modes_.resize(self + 1, device::CaptureMode::kGlobal);
  return capture_modes_[self];
}

Status Machine::check_alive(std::uint32_t device) const {
  ASHLAR_REQUIRE(!torn_down_, Code::kTornDown, "the driver is unloaded");
  ASHLAR_REQUIRE(!scheduler_.is_lost(device), Code::kDeviceLost, "the device is lost");
  return Status::ok();
}

Status Machine::enter(std::uint32_t device, device::CallKind kind, Bytes size) {
  if (torn_down_) faults_.misuse(FaultKind::kCallAfterTeardown, "C25: ", device::call_name(kind));
  if (options_.pace > 0) {
    for (std::uint64_t n = rng_.below(std::uint64_t{options_.pace} + 1); n > 0; --n)
      scheduler_.run_any();
  }
  const bool callers_own = FaultLog::current_blame() == Blame::kCaller;
  if (!callers_own) account_.charge(kind, options_.cost.of(kind, size));
  const Status alive = check_alive(device);
  if (!alive.is_ok() || callers_own) return alive;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    Plan& plan = plans_[i];
    if (plan.kind != kind) continue;
    if (plan.left > 1) {
      --plan.left;
      continue;
    }
    const Code code = plan.code;
    if (plan.mode == FailMode::kOnce) plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(i));
    leave(kind, code);
    if (code == Code::kDeviceLost) scheduler_.lose(device);
    return Status{code, "a planned failure"};
  }
  return Status::ok();
}

void Machine::leave(device::CallKind kind, Code code) {
  if (code == Code::kOk || code == Code::kNotReady || FaultLog::current_blame() == Blame::kCaller)
    return;
  ++account_.by_kind[static_cast<unsigned>(kind)].failed;
}

Status Machine::refuse_in_host_function() {
  faults_.misuse(FaultKind::kCalledFromHostFunction,
                 "a device call inside a host function (cudaErrorNotPermitted)");
  return Status{Code::kDriverError, "not permitted inside a host function"};
}

Status Machine::check_safe() {
  if (captures_.none_open() || !captures_.forbids_unsafe_call(thread(), capture_mode()))
    return Status::ok();
  return Status{Code::kCaptureUnsafe, "an unsafe call while capturing"};
}

CallAccount Machine::account() const {
  CallAccount account = account_;
  account.entries_run = scheduler_.entries_run();
  return account;
}

void Machine::reset_account() { account_ = CallAccount{}; }

// Streams.

std::uint32_t Machine::add_lane(std::uint32_t device, StreamHandle handle, bool blocking,
                                bool thread_bound) {
  const std::uint32_t lane = scheduler_.add_lane(device);
  lane_info_.push_back(LaneInfo{device, handle, blocking, thread_bound});
  return lane;
}

Stream Machine::stream_of(std::uint32_t lane) const {
  const LaneInfo& info = lane_info_[lane];
  return Stream{info.handle, StreamId{std::uint64_t{lane} + 1},
                DeviceId{static_cast<std::int32_t>(info.device)}, info.thread_bound};
}

std::uint32_t Machine::default_lane(std::uint32_t device, StreamHandle which) {
  Defaults& defaults = defaults_[device];
  if (which != kPerThreadStream) {
    if (defaults.legacy == 0) defaults.legacy = add_lane(device, kLegacyStream, false, false) + 1;
    return defaults.legacy - 1;
  }
  const std::uint32_t self = thread();
  if (defaults.per_thread.size() <= self) defaults.per_thread.resize(self + 1, 0);
  if (defaults.per_thread[self] == 0) {
    const std::uint32_t lane = add_lane(device, kPerThreadStream, true, true);
    defaults.per_thread[self] = lane + 1;
    defaults.blocking.push_back(lane);
  }
  return defaults.per_thread[self] - 1;
}

Result<std::uint32_t> Machine::resolve(std::uint32_t device, StreamHandle handle) {
  if (handle.value() <= kPerThreadStream.value()) return default_lane(device, handle);
  const std::uint32_t* lane = streams_.find(handle.value());
  if (lane == nullptr) {
    faults_.misuse(FaultKind::kDeadStream, "D7: a dead or foreign stream handle ", handle.value());
    return Status{Code::kInvalidHandle, "no such stream"};
  }
  if (lane_info_[*lane].device != device) {
    faults_.misuse(FaultKind::kWrongDevice, "a stream of another device");
    return Status{Code::kWrongDevice, "a stream of another device"};
  }
  return *lane;
}

Stream Machine::create_stream(std::uint32_t device, StreamKind kind) {
  const std::uint64_t handle = streams_.add();
  const bool blocking = kind == StreamKind::kBlocking;
  const std::uint32_t lane = add_lane(device, StreamHandle{handle}, blocking, false);
  *streams_.find(handle) = lane;
  if (blocking) defaults_[device].blocking.push_back(lane);
  ++memory_.ledger(device).streams.count;
  return stream_of(lane);
}

Status Machine::destroy_stream(const Stream& stream) {
  ASHLAR_REQUIRE(stream.handle.value() > kPerThreadStream.value(), Code::kInvalidArgument,
                 "a default stream");
  const auto device = static_cast<std::uint32_t>(stream.device.value());
  const Result<std::uint32_t> lane = resolve(device, stream.handle);
  if (!lane.is_ok()) return lane.status();
  if (captures_.of_lane(lane.value()) != 0) {
    static_cast<void>(
        captures_.violate(captures_.of_lane(lane.value()), "a capturing stream was destroyed"));
  }
  std::vector<std::uint32_t>& blocking = defaults_[device].blocking;
  blocking.erase(std::remove(blocking.begin(), blocking.end(), lane.value()), blocking.end());
  streams_.remove(stream.handle.value());
  --memory_.ledger(device).streams.count;
  return Status::ok();
}

Stream Machine::default_stream(std::uint32_t device, StreamHandle which) {
  return stream_of(default_lane(device, which));
}

// Work.

void Machine::push(std::uint32_t lane, const Entry& entry, std::span<const Touch> touches) {
  clocks_.enqueue(lane, thread());
  scheduler_.push(lane, entry, touches);
}

Status Machine::make_room(std::uint32_t lane) {
  if (!scheduler_.is_full(lane)) return Status::ok();
  ++account_.waits;
  while (scheduler_.is_full(lane)) {
    if (scheduler_.help(lane)) continue;
    faults_.misuse(FaultKind::kDeadlock, "an enqueue on a full queue that nothing can empty");
    return Status{Code::kDeadlock, "the stream's queue is full for ever"};
  }
  return check_alive(lane_info_[lane].device);
}

// CUDA: work on the legacy default stream waits for all blocking streams' earlier work, and their
// later work for it.
Status Machine::order_with_legacy(std::uint32_t lane) {
  const Defaults& defaults = defaults_[lane_info_[lane].device];
  if (defaults.legacy == 0) return Status::ok();
  const std::uint32_t legacy = defaults.legacy - 1;
  if (lane == legacy) {
    const Status safe = captures_.refuse_implicit(defaults.blocking);
    if (!safe.is_ok()) return safe;
  } else if (!lane_info_[lane].blocking) {
    return Status::ok();
  }
  const auto follow = [&](std::uint32_t before) {
    clocks_.join_lane(lane, before, kEdgeLegacyStream);
    if (before == lane || scheduler_.pending(before) == 0) return Status::ok();
    const Status room = make_room(lane);
    if (room.is_ok())
      push(lane, Entry{EntryKind::kWait, {}, 0, before, 0, scheduler_.enqueued(before)});
    return room;
  };
  if (lane != legacy) return follow(legacy);
  for (const std::uint32_t before : defaults.blocking) {
    const Status followed = follow(before);
    if (!followed.is_ok()) return followed;
  }
  return Status::ok();
}

Status Machine::enqueue_on(std::uint32_t lane, const Entry& entry, std::span<const Touch> touches) {
  const Status alive = check_alive(lane_info_[lane].device);
  if (!alive.is_ok()) return alive;
  if (captures_.of_lane(lane) != 0) return captures_.add_node(lane, touches);
  Status ready = order_with_legacy(lane);
  if (ready.is_ok()) ready = make_room(lane);
  if (!ready.is_ok()) return ready;
  touched_.assign(touches.begin(), touches.end());
  for (Touch& touch : touched_) {
    if (!detector_.on_touch(touch, lane, thread())) touch.tag = kNoTag;
  }
  push(lane, entry, touched_);
  return Status::ok();
}

Status Machine::enqueue(const Stream& stream, const Entry& entry, std::span<const Touch> touches) {
  const Result<std::uint32_t> lane =
      resolve(static_cast<std::uint32_t>(stream.device.value()), stream.handle);
  return lane.is_ok() ? enqueue_on(lane.value(), entry, touches) : lane.status();
}

}  // namespace ashlar::spec
