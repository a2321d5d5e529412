#include "spec/audit/audit_world.h"

#include <algorithm>
#include <utility>

#include "spec/ops/opcode_table.h"

namespace ashlar::spec {
namespace {

constexpr std::uint64_t kDevicesMax = 4;
constexpr std::uint64_t kThreadsMax = 4;
/// What the CUDA documentation promises of cudaMalloc.
constexpr std::uint64_t kAlignment = 256;

DeviceId device_id(std::uint64_t name) { return DeviceId{static_cast<std::int32_t>(name)}; }

void* handle_of(const Stream& stream) { return reinterpret_cast<void*>(stream.handle.value()); }

AuditClause clause_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOverlap: return AuditClause::kDisjoint;
    case FaultKind::kLiveUnmapped:
    case FaultKind::kTouchUnmapped: return AuditClause::kUsable;
    case FaultKind::kEarlyReuse:
    case FaultKind::kInFlight: return AuditClause::kOrder;
    case FaultKind::kCaptureUnsafe: return AuditClause::kCapture;
    default: return AuditClause::kDriverCalls;
  }
}

}  // namespace

AuditWorld::AuditWorld(const AuditedLibrary& library, AttachMachine attach)
    : library_(library), attach_(std::move(attach)) {}

AuditWorld::~AuditWorld() {
  if (gpu_ != nullptr) attach_(nullptr);
}

void AuditWorld::build() {
  gpu_ = std::make_unique<SimGpu>(machine_);
  attach_(gpu_.get());
  streams_[0] = {gpu_->create_stream(DeviceId{0}).value(), true, false};
}

bool AuditWorld::set_up(const Op& op) {
  if (gpu_ != nullptr) return false;
  if (op.slot == slot::kSeed) {
    machine_.seed = op.arg[0];
    machine_.pace = static_cast<std::uint32_t>(op.arg[0] % 4);
    return true;
  }
  if (op.slot != slot::kDevice || op.arg[0] >= kDevicesMax) return false;
  machine_.capacities.resize(std::max<std::size_t>(machine_.capacities.size(), op.arg[0] + 1),
                             Bytes{0});
  machine_.capacities[op.arg[0]] = Bytes{op.arg[1]};
  return true;
}

AuditFindings AuditWorld::run(const OpFile& file, const BeforeOp& before_op) {
  try {
    run_all(file, before_op);
  } catch (const LibraryThrew& thrown) {
    ++findings_.ops;
    findings_.clause = kCrashClause;
    findings_.text = thrown.what();
  }
  return findings_;
}

void AuditWorld::run_all(const OpFile& file, const BeforeOp& before_op) {
  for (std::uint64_t i = 0; i < file.ops.size() && findings_.is_good(); ++i) {
    const Op& op = file.ops[i];
    findings_.op_index = i;
    before_op(findings_);
    const bool is_setting = op.slot == slot::kSeed || op.slot == slot::kDevice;
    if (!is_setting && gpu_ == nullptr) build();
    const bool has_run = is_setting ? set_up(op) : run_op(op);
    ++(has_run ? findings_.ops : findings_.skipped);
    if (gpu_ == nullptr) continue;
    take_faults();
    note_reserved();
  }
  if (!findings_.is_good()) return;
  findings_.op_index = file.ops.size();
  before_op(findings_);
  if (gpu_ == nullptr) build();
  finish();
}

bool AuditWorld::run_op(const Op& op) {
  BoundStream* bound = nullptr;
  switch (op.slot) {
    case slot::kAlloc: return allocate(op);
    case slot::kFree: {
      const auto found = blocks_.find(op.arg[0]);
      if (found == blocks_.end() || !may_free(found->second)) return false;
      free(found->second);
      return true;
    }
    case slot::kFreeStale: return free_again(op.arg[0]);
    case slot::kKernel:
      bound = find_stream(op.arg[0]);
      return bound != nullptr &&
             launch(op.arg[1], bound->stream, static_cast<Access>(op.arg[2] % 3 + 1));
    case slot::kStreamCreate:
      if (find_stream(op.arg[0]) != nullptr || op.arg[1] >= gpu_->device_count()) return false;
      streams_[op.arg[0]] = {gpu_->create_stream(device_id(op.arg[1])).value(), true, false};
      return true;
    case slot::kStreamDestroy: return destroy_stream(op.arg[0]);
    case slot::kThread:
      gpu_->act_as_thread(static_cast<std::uint32_t>(op.arg[0] % kThreadsMax));
      return true;
    case slot::kThreadStream:
      if (find_stream(op.arg[0]) != nullptr || op.arg[1] >= gpu_->device_count()) return false;
      streams_[op.arg[0]] = {gpu_->default_stream(device_id(op.arg[1]), kPerThreadStream), true,
                             false};
      return true;
    case slot::kStep:
      bound = find_stream(op.arg[0]);
      return bound != nullptr && gpu_->step(bound->stream, op.arg[1]) > 0;
    case slot::kDrain:
      return op.arg[0] < gpu_->device_count() && gpu_->drain(device_id(op.arg[0])).is_ok();
    case slot::kFail:
      gpu_->fail(static_cast<device::CallKind>(op.arg[0] % device::kCallKinds),
                 std::max<std::uint64_t>(op.arg[1], 1), FailMode::kOnce);
      return true;
    case slot::kHeal: gpu_->heal(); return true;
    case slot::kCaptureBegin: return begin_capture(op);
    case slot::kCaptureEnd:
      bound = find_stream(op.arg[0]);
      return bound != nullptr && end_capture(*bound);
    default: return false;
  }
}

// Memory.

void* AuditWorld::ask(std::uint64_t size, const Stream& stream) const {
  return library_.allocate(size, static_cast<int>(stream.device.value()), handle_of(stream));
}

bool AuditWorld::allocate(const Op& op) {
  const BoundStream* const on = find_stream(op.arg[2]);
  if (on == nullptr || on->is_capturing || op.arg[1] == 0 || !may_work_on(on->stream)) return false;
  const auto known = blocks_.find(op.arg[0]);
  if (known != blocks_.end() && known->second.is_live) return false;
  ++findings_.allocations;
  const bool may_fail = gpu_->has_planned_failures();
  void* const got = ask(op.arg[1], on->stream);
  if (got != nullptr) {
    accept(op.arg[0], got, op.arg[1], on->stream);
  } else {
    ++findings_.refusals;
    gpu_->heal();
    on_refusal(op, on->stream, may_fail ? AuditClause::kAtomic : AuditClause::kComplete);
  }
  return true;
}

// Where a quarter of the device would be enough for all that is live, no rounding explains that a request is refused twice,
// the second time with all work done.
void AuditWorld::on_refusal(const Op& op, const Stream& stream, AuditClause clause) {
  take_faults();
  if (!findings_.is_good()) return;
  static_cast<void>(gpu_->drain_all());
  void* const got = ask(op.arg[1], stream);
  if (got != nullptr) {
    judge(clause, true, "");
    return accept(op.arg[0], got, op.arg[1], stream);
  }
  const std::uint64_t capacity =
      machine_.capacities[static_cast<std::size_t>(stream.device.value())].count();
  const std::uint64_t needed = live_bytes_ + op.arg[1];
  judge(clause, capacity != 0 && needed > capacity / 4,
        "a request of " + std::to_string(op.arg[1]) + " bytes is refused, with " +
            std::to_string(live_bytes_) + " bytes live on a device of " + std::to_string(capacity) +
            " (0: no limit), all work done, and no failing driver");
}

void AuditWorld::accept(std::uint64_t name, void* address, std::uint64_t size,
                        const Stream& stream) {
  const Address at = Address::of(address);
  judge(AuditClause::kUsable, at.value() % kAlignment == 0,
        "an address is not a multiple of " + std::to_string(kAlignment));
  const AllocationTag tag = ++last_tag_;
  gpu_->on_allocate(tag, at, Bytes{size}, stream);
  judge(AuditClause::kDisjoint, true, "");
  judge(AuditClause::kOrder, true, "");
  live_bytes_ += size;
  findings_.live_bytes_peak = std::max(findings_.live_bytes_peak, live_bytes_);
  blocks_[name] = {address, size, stream, tag, true, {}, {}};
  launch(name, stream, Access::kWrite);
}

bool AuditWorld::is_capturing(const Stream& stream) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& each) {
    return each.second.is_capturing && each.second.stream.id == stream.id;
  });
}

bool AuditWorld::may_free(const Block& block) {
  return block.is_live && !is_capturing(block.stream) && may_work_on(block.stream);
}

void AuditWorld::give_back(const Block& block) const {
  library_.free(block.address, block.size, static_cast<int>(block.stream.device.value()),
                handle_of(block.stream));
}

void AuditWorld::free(Block& block) {
  wait_for_uses(block);
  gpu_->on_free(block.tag);
  block.is_live = false;
  live_bytes_ -= block.size;
  give_back(block);
}

bool AuditWorld::free_again(std::uint64_t name) {
  const auto found = blocks_.find(name);
  if (found == blocks_.end() || found->second.is_live || found->second.address == nullptr)
    return false;
  const Block& block = found->second;
  const bool is_reissued = std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& each) {
    return each.second.is_live && each.second.address == block.address;
  });
  if (is_capturing(block.stream) || !may_work_on(block.stream)) return false;
  const bool is_stream_dead = std::none_of(streams_.begin(), streams_.end(), [&](const auto& each) {
    return each.second.is_alive && each.second.stream.id == block.stream.id;
  });
  if (is_reissued || is_stream_dead) return false;
  has_misused_ = true;
  judge(AuditClause::kMisuse, true, "");
  give_back(block);
  return true;
}

// Work and streams.

bool AuditWorld::launch(std::uint64_t name, const Stream& stream, Access access) {
  const auto found = blocks_.find(name);
  if (found == blocks_.end() || !found->second.is_live) return false;
  Block& block = found->second;
  if (block.stream.device != stream.device || !may_work_on(stream)) return false;
  if (is_capturing(stream) || is_capturing(block.stream)) return false;
  const bool is_own = block.stream.id == stream.id;
  if (!is_own && !may_work_on(block.stream)) return false;
  if (!is_own &&
      std::find(block.ordered.begin(), block.ordered.end(), stream.id) == block.ordered.end()) {
    order(stream, block.stream);
    block.ordered.push_back(stream.id);
  }
  if (!is_own && library_.record_use != nullptr) {
    library_.record_use(block.address, handle_of(stream));
    gpu_->on_use_announced(block.tag, stream);
  }
  const Touch touch{Address::of(block.address), Bytes{block.size}, access, block.tag};
  const bool is_enqueued = gpu_->launch(stream, touch).is_ok();
  if (!is_own && library_.record_use == nullptr) note_use(block, stream);
  return is_enqueued;
}

void AuditWorld::note_use(Block& block, const Stream& stream) {
  const CallerScope own;
  device::Device& on = gpu_->device(stream.device);
  auto use = std::find_if(block.uses.begin(), block.uses.end(),
                          [&](const Use& each) { return each.stream == stream.id; });
  if (use == block.uses.end()) {
    const Result<EventHandle> event = on.event_create();
    if (!event.is_ok()) return;
    use = block.uses.insert(use, {stream.id, event.value()});
  }
  static_cast<void>(on.event_record(use->event, stream.handle));
}

void AuditWorld::wait_for_uses(Block& block) {
  const CallerScope own;
  device::Device& on = gpu_->device(block.stream.device);
  for (const Use& use : std::exchange(block.uses, {})) {
    static_cast<void>(on.stream_wait(block.stream.handle, use.event));
    static_cast<void>(on.event_destroy(use.event));
  }
}

void AuditWorld::order(const Stream& later, const Stream& before) {
  const CallerScope own;
  device::Device& on = gpu_->device(before.device);
  const Result<EventHandle> event = on.event_create();
  if (!event.is_ok()) return;
  static_cast<void>(on.event_record(event.value(), before.handle));
  static_cast<void>(gpu_->device(later.device).stream_wait(later.handle, event.value()));
  static_cast<void>(on.event_destroy(event.value()));
}

AuditWorld::BoundStream* AuditWorld::find_stream(std::uint64_t name) {
  const auto found = streams_.find(name);
  return found != streams_.end() && found->second.is_alive ? &found->second : nullptr;
}

// A per-thread default stream's handle names another stream on another thread.
bool AuditWorld::may_work_on(const Stream& stream) {
  return !stream.thread_bound ||
         gpu_->default_stream(stream.device, kPerThreadStream).id == stream.id;
}

bool AuditWorld::destroy_stream(std::uint64_t name) {
  BoundStream* const bound = find_stream(name);
  if (bound == nullptr || bound->is_capturing || bound->stream.thread_bound) return false;
  for (auto& [each, block] : blocks_) {
    if (!block.is_live || block.stream.id != bound->stream.id) continue;
    if (!may_free(block)) return false;
    free(block);
  }
  static_cast<void>(gpu_->destroy_stream(bound->stream));
  bound->is_alive = false;
  return true;
}

// The library is not asked for anything on a stream that captures; what it does for others meanwhile is judged.
bool AuditWorld::begin_capture(const Op& op) {
  BoundStream* const bound = find_stream(op.arg[0]);
  if (bound == nullptr || bound->is_capturing || bound->stream.thread_bound) return false;
  const auto mode = static_cast<device::CaptureMode>(op.arg[1] % 3);
  bound->is_capturing = gpu_->begin_capture(bound->stream, mode).is_ok();
  return bound->is_capturing;
}

bool AuditWorld::end_capture(BoundStream& bound) {
  if (!bound.is_capturing) return false;
  bound.is_capturing = false;
  const Result<GraphId> graph = gpu_->end_capture(bound.stream);
  if (graph.is_ok()) static_cast<void>(gpu_->destroy_graph(graph.value()));
  judge(AuditClause::kCapture, graph.is_ok(), "a capture of another stream was invalidated");
  return true;
}

// Judgement.

void AuditWorld::judge(AuditClause clause, bool holds, const std::string& text) {
  ++findings_.judged[static_cast<std::size_t>(clause)];
  if (holds || !findings_.is_good()) return;
  findings_.clause = clause_id(clause);
  findings_.text = text;
}

void AuditWorld::take_faults() {
  if (gpu_->fault_count() == 0) return;
  for (const Fault& fault : gpu_->take_faults()) {
    if (fault.by == Blame::kCaller || fault.kind == FaultKind::kDeadlock) continue;
    const bool is_twice =
        has_misused_ && (fault.kind == FaultKind::kOverlap || fault.kind == FaultKind::kBadFree);
    const AuditClause clause = is_twice ? AuditClause::kMisuse : clause_of(fault.kind);
    judge(clause, false,
          std::string(fault_name(fault.kind)) + ": " + fault.text +
              (is_twice ? ", after a block was freed twice" : ""));
  }
}

std::uint64_t AuditWorld::reserved_bytes() const { return gpu_->ledger().device_bytes().count(); }

void AuditWorld::note_reserved() {
  findings_.reserved_bytes_peak = std::max(findings_.reserved_bytes_peak, reserved_bytes());
}

void AuditWorld::finish() {
  gpu_->heal();
  for (auto& [name, bound] : streams_) end_capture(bound);
  static_cast<void>(gpu_->drain_all());
  for (std::uint32_t thread = 0; thread < kThreadsMax; ++thread) {
    gpu_->act_as_thread(thread);
    for (auto& [name, block] : blocks_) {
      if (may_free(block)) free(block);
    }
  }
  static_cast<void>(gpu_->drain_all());
  gpu_->act_as_thread(0);
  if (library_.empty_cache != nullptr) library_.empty_cache();
  take_faults();
  findings_.reserved_bytes_end = reserved_bytes();
  if (library_.empty_cache != nullptr) {
    judge(AuditClause::kConserved, findings_.reserved_bytes_end == 0,
          std::to_string(findings_.reserved_bytes_end) +
              " bytes are held when everything is freed and the cache emptied");
  }
  for (const AuditClause clause : {AuditClause::kCapture, AuditClause::kDriverCalls})
    judge(clause, true, "");
}

}  // namespace ashlar::spec
