// The functions of the table: see cache_ops.h. What makes the caller lawful: cache_world.h.
#include "spec/lockstep/cache_ops.h"

#include <algorithm>
#include <array>

#include "spec/lockstep/capture_caller.h"
#include "spec/lockstep/history_ops.h"
#include "spec/lockstep/memory_pool_ops.h"
#include "spec/lockstep/pin_ops.h"
#include "spec/lockstep/reserve_ops.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

namespace {

using Pointer = CacheWorld::Pointer;

/// Addresses that no device gives out: free-foreign frees near one of them.
constexpr std::uint64_t kForeign[3] = {8, std::uint64_t{1} << 46, ~std::uint64_t{0} - (1u << 20)};
constexpr std::uint64_t kDevicesMax = 16;
constexpr std::uint64_t kThreadsMax = 16;

// Before the machine is made.

bool set_conf(WorldPlan& plan, const Op& op) {
  plan.conf = op.text;
  return true;
}

bool add_device(WorldPlan& plan, const Op& op) {
  if (op.arg[0] >= kDevicesMax) return false;
  std::vector<Bytes>& capacities = plan.machine.capacities;
  capacities.resize(std::max<std::size_t>(capacities.size(), op.arg[0] + 1), Bytes{0});
  capacities[op.arg[0]] = Bytes{op.arg[1]};
  return true;
}

bool set_seed(WorldPlan& plan, const Op& op) {
  plan.machine.seed = op.arg[0];
  plan.machine.pace = static_cast<std::uint32_t>(op.arg[0] % 4);
  return true;
}

bool set_observe(WorldPlan& plan, const Op&) {
  plan.observes_mappings = true;
  return true;
}

// Memory.

void run_alloc(CacheWorld& world, const Op& op) {
  const std::uint32_t on = world.stream(op.arg[2]);
  if (on == kNoStream || world.pointer(op.arg[0]).state == Pointer::kLive) return world.skip();
  world.allocate(op.arg[0], op.arg[1], on);
}

void run_free(CacheWorld& world, const Op& op) {
  if (world.pointer(op.arg[0]).state != Pointer::kLive) return world.skip();
  world.free(op.arg[0], kNoStream);
}

void run_free_on(CacheWorld& world, const Op& op) {
  const std::uint32_t on = world.stream(op.arg[1]);
  if (on == kNoStream || world.pointer(op.arg[0]).state != Pointer::kLive) return world.skip();
  world.free(op.arg[0], on);
}

void run_use(CacheWorld& world, const Op& op) {
  const std::uint32_t on = world.stream(op.arg[1]);
  if (on == kNoStream || world.pointer(op.arg[0]).state != Pointer::kLive) return world.skip();
  world.use(op.arg[0], on);
}

void run_kernel(CacheWorld& world, const Op& op) {
  const std::uint32_t on = stream_for_work(world, op.arg[0]);
  if (on == kNoStream || world.pointer(op.arg[1]).state != Pointer::kLive) return world.skip();
  world.launch(on, op.arg[1], static_cast<Access>(op.arg[2] % 3 + 1));
}

// Streams and captures.

void run_stream(CacheWorld& world, const Op& op) {
  if (world.stream(op.arg[0]) != kNoStream || !world.has_device(op.arg[1])) return world.skip();
  const Result<Stream> made = world.gpu().create_stream(device_id(op.arg[1]));
  if (!made.is_ok()) return world.skip();
  world.bind_stream(op.arg[0], made.value());
}

void run_thread(CacheWorld& world, const Op& op) {
  if (world.any_capture()) return world.skip();  // a capture belongs to its thread
  world.gpu().act_as_thread(static_cast<std::uint32_t>(op.arg[0] % kThreadsMax));
}

void run_thread_stream(CacheWorld& world, const Op& op) {
  if (world.stream(op.arg[0]) != kNoStream || !world.has_device(op.arg[1])) return world.skip();
  world.bind_stream(op.arg[0], world.gpu().default_stream(device_id(op.arg[1]), kPerThreadStream));
}

void end_stream(CacheWorld& world, const Op& op, bool is_announced) {
  const std::uint32_t s = world.stream(op.arg[0]);
  // A thread's default stream lasts as long as the thread.
  if (s == kNoStream || world.is_capturing(s) || world.stream_at(s).thread_bound)
    return world.skip();
  world.end_stream(s, op.arg[0], is_announced);
}
void run_retire(CacheWorld& world, const Op& op) { end_stream(world, op, true); }
void run_destroy(CacheWorld& world, const Op& op) { end_stream(world, op, false); }

void run_step(CacheWorld& world, const Op& op) {
  const std::uint32_t s = world.stream(op.arg[0]);
  if (s == kNoStream) return world.skip();
  world.gpu().step(world.stream_at(s), op.arg[1]);
}

void run_capture_begin(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[0]);
  if (s == kNoStream) return world.skip();
  CaptureCaller(world).begin(s, static_cast<device::CaptureMode>(op.arg[1] % 3));
}

void run_capture_end(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[0]);
  if (s == kNoStream) return world.skip();
  CaptureCaller(world).end(s);
}

void run_capture_wait(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[0]);
  const std::uint32_t before = stream_for_work(world, op.arg[1]);
  if (s == kNoStream || before == kNoStream || s == before) return world.skip();
  CaptureCaller(world).wait(s, before);
}

void run_capture_body(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[0]);
  const std::uint32_t parent = stream_for_work(world, op.arg[1]);
  if (s == kNoStream || parent == kNoStream) return world.skip();
  CaptureCaller(world).begin_body(s, parent);
}

// The caller's own events.

void run_record(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[1]);
  if (s == kNoStream || world.any_capture()) return world.skip();
  world.record_event(op.arg[0], s);
}

void run_wait(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[0]);
  const CacheWorld::NamedEvent& event = world.event(op.arg[1]);
  if (s == kNoStream || world.any_capture() || !event.is_bound) return world.skip();
  const Stream& stream = world.stream_at(s);
  static_cast<void>(world.gpu().device(stream.device).stream_wait(stream.handle, event.event));
}

void run_sync(CacheWorld& world, const Op& op) {
  const CacheWorld::NamedEvent& event = world.event(op.arg[0]);
  if (world.any_capture() || !event.is_bound) return world.skip();
  device::Device& on = world.gpu().device(event.device);
  static_cast<void>(on.event_synchronize(event.event, device::kWaitForever));
}

// Devices, limits, failures.

void run_drain(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  static_cast<void>(world.gpu().drain(device_id(op.arg[0])));
}

void run_capacity(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.gpu().set_capacity(device_id(op.arg[0]), Bytes{op.arg[1]});
  world.model().memory(device_id(op.arg[0])).capacity = op.arg[1];
}

void run_addresses(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.gpu().set_addresses(device_id(op.arg[0]), Bytes{op.arg[1]});
}

void run_lose(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.gpu().lose(device_id(op.arg[0]));
}

void run_teardown(CacheWorld& world, const Op&) { world.gpu().tear_down(); }

void run_reset_peaks(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.model().begin(device_id(op.arg[0]));
  const Status reset = world.subject().reset_peak_stats(device_id(op.arg[0]));
  world.model().judge_reset_peaks(world.answered(reset));
}

void run_reset_totals(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.model().begin(device_id(op.arg[0]));
  const Status reset = world.subject().reset_accumulated_stats(device_id(op.arg[0]));
  world.model().judge_reset_totals(world.answered(reset));
}

void run_largest(CacheWorld& world, const Op& op) {
  const std::uint32_t s = world.stream(op.arg[0]);
  if (s == kNoStream) return world.skip();
  const Stream& stream = world.stream_at(s);
  world.model().begin(stream.device);
  const Result<Bytes> largest = world.subject().largest_free_block(stream);
  static_cast<void>(world.answered(largest.status()));
  world.model().judge_largest(stream, largest);
}

void run_fail(CacheWorld& world, const Op& op) {
  world.gpu().fail(static_cast<device::CallKind>(op.arg[0] % device::kCallKinds),
                   std::max<std::uint64_t>(op.arg[1], 1),
                   op.arg[2] == 0 ? FailMode::kOnce : FailMode::kOn);
  world.model().told().plan_failures(true);
}

void run_fail_as(CacheWorld& world, const Op& op) {
  const auto kind = static_cast<device::CallKind>(op.arg[0] % device::kCallKinds);
  Code code = kFailureCodes[op.arg[3] % kFailureCodes.size()];
  // A device without synchronisations of limited time is served by a thread of the subject's, which
  // the judge, for one thread, cannot follow. One that says that it is no peer does not get access, and
  // the world's kernels would fault.
  const bool is_to_be_supported =
      kind == device::CallKind::kSynchronize || kind == device::CallKind::kPageAccess;
  if (is_to_be_supported && code == Code::kUnsupported) code = Code::kDriverError;
  world.gpu().fail(kind, std::max<std::uint64_t>(op.arg[1], 1),
                   op.arg[2] == 0 ? FailMode::kOnce : FailMode::kOn, code);
  world.model().told().plan_failures(true);
}

void run_heal(CacheWorld& world, const Op&) {
  world.gpu().heal();
  world.model().told().plan_failures(false);
}

void run_lag(CacheWorld& world, const Op& op) { world.set_lag(op.arg[0]); }

// Callbacks.

void run_on_oom(CacheWorld& world, const Op& op) {
  if (world.pointer(op.arg[0]).state != Pointer::kLive) return world.skip();
  world.free_in_callback(op.arg[0]);
}

void run_on_oom_alloc(CacheWorld& world, const Op&) { world.allocate_in_callback(); }

// Misuse.

void run_free_stale(CacheWorld& world, const Op& op) {
  const Pointer pointer = world.pointer(op.arg[0]);
  if (pointer.state != Pointer::kFreed) return world.skip();
  world.free_wrongly(pointer.address, world.device_of(pointer));
}

void run_free_interior(CacheWorld& world, const Op& op) {
  const Pointer pointer = world.pointer(op.arg[0]);
  if (pointer.state != Pointer::kLive || op.arg[1] % pointer.size == 0) return world.skip();
  world.free_wrongly(pointer.address + op.arg[1] % pointer.size, world.device_of(pointer));
}

void run_free_foreign(CacheWorld& world, const Op& op) {
  const std::uint64_t address = kForeign[op.arg[0] % 3] + op.arg[0] % (1u << 10) * 512;
  world.free_wrongly(address, world.device_of(Pointer{}));
}

void run_use_stale(CacheWorld& world, const Op& op) {
  const Pointer pointer = world.pointer(op.arg[0]);
  const std::uint32_t s = world.stream(op.arg[1]);
  if (pointer.state != Pointer::kFreed || s == kNoStream) return world.skip();
  if (world.model().is_live_anywhere(pointer.address)) return world.skip();
  const Stream& stream = world.stream_at(s);
  world.model().begin(world.device_of(pointer));
  const Status used = world.subject().record_use(Address{pointer.address}, stream);
  world.model().judge_use(pointer.address, stream, world.answered(used));
}

void run_name_dead(CacheWorld& world, const Op& op) { world.name_dead(op.arg[0], op.arg[1]); }

// Expectations.

void expect(CacheWorld& world, bool holds, const std::string& text) {
  if (!holds) world.model().report("expect", text);
}

void run_expect(CacheWorld& world, const Op& op) {
  const Code want = static_cast<Code>(op.arg[0]);
  expect(world, world.outcome() == want,
         std::string("the outcome was ") + code_name(world.outcome()) + ", not " + code_name(want));
}

void run_expect_same(CacheWorld& world, const Op& op) {
  const Pointer p = world.pointer(op.arg[0]);
  const Pointer q = world.pointer(op.arg[1]);
  if (p.state == Pointer::kUnbound || q.state == Pointer::kUnbound) return world.skip();
  expect(world, p.address == q.address, "the two pointers' addresses differ");
}

void run_expect_live(CacheWorld& world, const Op& op) {
  const std::uint64_t live = world.model().live_count();
  expect(world, live == op.arg[0], std::to_string(live) + " allocations are live");
}

void run_expect_reserved(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  const std::uint64_t reserved = world.model().reserved_bytes(device_id(op.arg[0]));
  expect(world, reserved == op.arg[1], std::to_string(reserved) + " bytes are reserved");
}

constexpr std::array<OpHandler, 256> make_table() {
  std::array<OpHandler, 256> table{};
  table[slot::kConf].set_up = set_conf;
  table[slot::kDevice].set_up = add_device;
  table[slot::kSeed].set_up = set_seed;
  table[slot::kObserve].set_up = set_observe;
  table[slot::kAlloc].run = run_alloc;
  table[slot::kFree].run = run_free;
  table[slot::kFreeOn].run = run_free_on;
  table[slot::kUse].run = run_use;
  table[slot::kKernel].run = run_kernel;
  table[slot::kStep].run = run_step;
  table[slot::kDrain].run = run_drain;
  table[slot::kRecord].run = run_record;
  table[slot::kWait].run = run_wait;
  table[slot::kSync].run = run_sync;
  table[slot::kStreamCreate].run = run_stream;
  table[slot::kStreamRetire].run = run_retire;
  table[slot::kStreamDestroy].run = run_destroy;
  table[slot::kThread].run = run_thread;
  table[slot::kThreadStream].run = run_thread_stream;
  table[slot::kFail].run = run_fail;
  table[slot::kFailAs].run = run_fail_as;
  table[slot::kHeal].run = run_heal;
  table[slot::kCapacity].run = run_capacity;
  table[slot::kAddresses].run = run_addresses;
  table[slot::kCaptureBegin].run = run_capture_begin;
  table[slot::kCaptureEnd].run = run_capture_end;
  table[slot::kCaptureWait].run = run_capture_wait;
  table[slot::kCaptureBody].run = run_capture_body;
  add_memory_pool_ops(table);
  add_pin_ops(table);
  add_reserve_ops(table);
  add_history_ops(table);
  table[slot::kFreeStale].run = run_free_stale;
  table[slot::kFreeInterior].run = run_free_interior;
  table[slot::kFreeForeign].run = run_free_foreign;
  table[slot::kLose].run = run_lose;
  table[slot::kTeardown].run = run_teardown;
  table[slot::kOnOutOfMemory].run = run_on_oom;
  table[slot::kOnOutOfMemoryAlloc].run = run_on_oom_alloc;
  table[slot::kResetPeaks].run = run_reset_peaks;
  table[slot::kResetTotals].run = run_reset_totals;
  table[slot::kLargest].run = run_largest;
  table[slot::kUseStale].run = run_use_stale;
  table[slot::kLag].run = run_lag;
  table[slot::kNameDead].run = run_name_dead;
  table[slot::kExpect].run = run_expect;
  table[slot::kExpectSame].run = run_expect_same;
  table[slot::kExpectLive].run = run_expect_live;
  table[slot::kExpectReserved].run = run_expect_reserved;
  return table;
}
constexpr std::array<OpHandler, 256> kTable = make_table();

}  // namespace

const OpHandler& cache_op(std::uint8_t slot) { return kTable[slot]; }

}  // namespace ashlar::spec
