// Building the world, stepping, faults, the end.
#include "spec/lockstep/cache_lockstep.h"

#include <algorithm>

#include "spec/lockstep/pin_caller.h"
#include "spec/lockstep/side_by_side.h"
#include "spec/model/history_answers.h"
#include "spec/model/settings.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::spec {

namespace {

constexpr const char* kTheEnd = "(the end: everything freed, drained and trimmed)";
/// In place of a count of calls.
constexpr std::uint64_t kNotGone = ~std::uint64_t{0};

MachineDevices& usual() {
  static MachineDevices devices;  // first set before main() by some programs
  return devices;
}

const char* clause_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOverlap: return "C2";
    case FaultKind::kLiveUnmapped:
    case FaultKind::kTouchUnmapped: return "C1";
    case FaultKind::kEarlyReuse:
    case FaultKind::kInFlight: return "C6";
    case FaultKind::kCaptureUnsafe: return "C9";
    case FaultKind::kBadFree:
    case FaultKind::kLeak: return "C14";
    case FaultKind::kCallAfterTeardown: return "C25";
    case FaultKind::kStaleRegistration: return "DEV-24";
    default: return fault_name(kind);
  }
}

}  // namespace

void set_usual_devices(MachineDevices devices) { usual() = std::move(devices); }

const MachineDevices& usual_devices() { return usual(); }

CacheLockstep::CacheLockstep(Options options) : options_(std::move(options)) {
  plan_.machine = options_.machine;
  result_.walk_every = options_.walk_every;
}

CacheLockstep::~CacheLockstep() { *self_ = nullptr; }

void CacheLockstep::build() {
  gpu_ = std::make_unique<SimGpu>(plan_.machine);
  if (options_.devices) devices_ = options_.devices(*gpu_);
  std::vector<device::Device*> devices;
  std::vector<DeviceWitness*> witnesses;
  devices.reserve(gpu_->device_count());
  witnesses.reserve(gpu_->device_count());
  witnesses_.reserve(gpu_->device_count());
  for (std::uint32_t i = 0; i < gpu_->device_count(); ++i) {
    witnesses_.push_back(std::make_unique<DeviceWitness>(
        devices_.empty() ? gpu_->device(device_id(i)) : *devices_[i]));
    witnesses.push_back(witnesses_.back().get());
    devices.push_back(witnesses_.back().get());
  }
  Result<std::shared_ptr<CacheSubject>> made = options_.factory(devices, plan_.conf);
  const Status with_conf = made.status();
  if (!made.is_ok()) made = options_.factory(devices, "");
  if (!made.is_ok()) {
    result_.divergence = {"C16", "no subject could be made with the default configuration"};
    is_over_ = true;
    return;
  }
  subject_ = made.value();
  std::optional<cache::Config> asked;
  const bool is_judged = plan_.conf.size() <= kSettingsTextMax;
  if (is_judged) {
    asked = read_settings(plan_.conf);
    if (asked) asked = obeyed_settings(*asked);
  } else if (with_conf.is_ok()) {
    asked = subject_->config();
  }
  CacheModel::Options judge;
  judge.settings = with_conf.is_ok() && asked ? *asked : obeyed_settings({});
  judge.walk_every = options_.walk_every;
  judge.validate_every = options_.validate_every;
  judge.stats_every = options_.stats_every;
  judge.walker = options_.walker;
  judge.host_refusals = options_.host_refusals;
  for (DeviceWitness* const witness : witnesses) {
    sources_.push_back(std::make_unique<GrowthSource>(*witness));
    judge.sources.push_back(sources_.back().get());
  }
  model_ = std::make_unique<CacheModel>(*subject_, witnesses, judge);
  for (std::uint32_t i = 0; i < gpu_->device_count(); ++i) {
    model_->memory(device_id(i)).capacity = plan_.machine.capacities[i].count();
  }
  subject_->add_out_of_memory_observer(
      [this](const cache::OutOfMemory& account) { model_->told().saw_shortage_observer(account); });
  world_ = std::make_unique<CacheWorld>(*gpu_, *subject_, *model_, options_.touch);
  for (const auto& source : sources_) world_->sources().push_back(source.get());
  if (plan_.observes_mappings) observe_mappings();
  static_cast<void>(world_->answered(with_conf));
  world_->bind_stream(0, gpu_->create_stream(device_id(0)).value());
  judge_settings(with_conf, asked);
}

void CacheLockstep::observe_mappings() {
  model_->told().observes_mappings = true;
  subject_->add_mapping_observer([self = self_](const cache::MappingEvent& event) {
    if (*self != nullptr) PinCaller(*(*self)->world_).on_mapping(event);
  });
}

void CacheLockstep::judge_settings(Status made, const std::optional<cache::Config>& asked) {
  if (made.code() == Code::kHostOutOfMemory) return;
  const device::DeviceTraits traits = gpu_->device(device_id(0)).traits();
  const bool is_possible =
      asked && asked->granule <= traits.address_alignment &&
      (asked->backend == cache::AllocatorBackend::kNative || traits.has_stream_memory);
  if (is_possible && !made.is_ok()) {
    model_->report("DEV-22", "a good configuration is refused: ", plan_.conf);
  } else if (!is_possible && made.is_ok()) {
    model_->report("DEV-22", "a bad configuration is taken: ", plan_.conf);
  } else if (is_possible) {
    if (const char* key = differing_field(subject_->config(), *asked))
      model_->report("DEV-22", key, " is not what the configuration says: ", plan_.conf);
  }
  if (!model_->verdict().is_good()) diverge("(the configuration)");
}

bool CacheLockstep::step(const Op& op) {
  if (is_over_) return false;
  const OpHandler& handler = cache_op(op.slot);
  if (gpu_ == nullptr && handler.set_up != nullptr) {
    was_skipped_ = !handler.set_up(plan_, op);
    ++result_.ops;
    return true;
  }
  if (gpu_ == nullptr) build();
  if (is_over_) return false;
  world_->begin_op();
  if (op.slot == slot::kEndNow) ends_now_ = true;
  else if (ends_now_ || handler.run == nullptr) world_->skip();
  else handler.run(*world_, op);
  follow_histories();
  world_->tick();
  static_cast<void>(take_faults());
  was_skipped_ = world_->was_skipped();
  result_.ooms = world_->ooms();
  ++(was_skipped_ ? result_.skipped : result_.ops);
  if (!model_->verdict().is_good()) {
    result_.op_index = result_.ops + result_.skipped - 1;
    diverge(print_op(op));
  }
  return !is_over_;
}

void CacheLockstep::follow_histories() {
  const bool compares = (result_.ops + result_.skipped) % options_.walk_every == 0;
  for (std::uint32_t i = 0; i < gpu_->device_count() && model_->verdict().is_good(); ++i)
    HistoryAnswers(*model_, device_id(i)).follow(compares);
}

std::uint64_t CacheLockstep::take_faults() {
  std::uint64_t calls_after_teardown = 0;
  if (gpu_->fault_count() == 0) return calls_after_teardown;
  for (const Fault& fault : gpu_->take_faults()) {
    if (fault.by == Blame::kCaller) {
      ++result_.caller_faults;
      continue;
    }
    // The first call after a teardown is how the subject learns of it; the model sees to it that
    // there is no second.
    if (fault.kind == FaultKind::kCallAfterTeardown) {
      ++calls_after_teardown;
      continue;
    }
    // A handle that died without a word may be used once more (the head of caching_allocator.h,
    // (c)), even where it has come back as another device's stream.
    const bool is_handle =
        fault.kind == FaultKind::kDeadStream || fault.kind == FaultKind::kWrongDevice;
    if (is_handle && model_->streams().any_lost()) continue;
    model_->report(clause_of(fault.kind), fault_name(fault.kind), ": ", fault.text);
  }
  return calls_after_teardown;
}

void CacheLockstep::diverge(std::string at) {
  is_over_ = true;
  result_.op_text = std::move(at);
  result_.divergence = model_->verdict().first();
  for (std::uint32_t i = 0; i < witnesses_.size() && subject_ != nullptr; ++i) {
    cache::Snapshot snapshot;
    result_.maps += "device " + std::to_string(i) + "\n";
    if (subject_->snapshot(device_id(i), &snapshot).is_ok())
      result_.maps += side_by_side(*model_, device_id(i), snapshot);
  }
  result_.maps += gpu_->describe();
}

void CacheLockstep::quiesce() {
  gpu_->heal();
  model_->told().plan_failures(false);
  world_->quiesce(true);
}

bool CacheLockstep::rest() {
  if (gpu_ == nullptr && !is_over_) build();
  if (is_over_) return false;
  quiesce();
  static_cast<void>(take_faults());
  if (!model_->verdict().is_good()) {
    result_.op_index = result_.ops + result_.skipped;
    diverge("(a rest: captures ended, all work finished)");
  }
  return !is_over_;
}

void CacheLockstep::report(const char* clause, const std::string& text) {
  if (is_over_) return;
  model_->report(clause, text);
  result_.op_index = result_.ops + result_.skipped;
  diverge("(over all rounds)");
}

void CacheLockstep::settle() {
  // All as the ops left it.
  model_->judge_maps();
  if (model_->verdict().is_good()) model_->judge_structure();
  if (ends_now_) world_->quiesce(false);
  else quiesce();
  if (options_.defers_last_walks || options_.walk_every != 1) model_->defer_walks();
  free_all();
  if (!model_->verdict().is_good()) return;
  model_->resume_walks();
  if (ends_now_) return;
  trim_all();
  if (model_->verdict().is_good()) model_->judge_structure();
}

void CacheLockstep::free_all() {
  std::vector<std::uint64_t> live;
  live.reserve(model_->live_count());
  for (std::uint32_t i = 0; i < witnesses_.size(); ++i) {
    model_->live_addresses(device_id(i), &live);
    for (const std::uint64_t address : live) {
      if (!model_->verdict().is_good()) return;
      gpu_->on_free(model_->find_live(device_id(i), address)->tag);
      model_->begin(device_id(i));
      model_->judge_free(address, nullptr, subject_->free(Address{address}));
    }
  }
}

void CacheLockstep::trim_all() {
  for (std::uint32_t i = 0; i < witnesses_.size(); ++i) {
    if (!model_->verdict().is_good() || model_->end_of(device_id(i)) != Code::kOk) continue;
    static_cast<void>(gpu_->drain_all());
    model_->begin(device_id(i), is_quiet(*gpu_));
    const Status trimmed = subject_->trim(device_id(i));
    model_->judge_trim(trimmed);
    if (trimmed.is_ok() && model_->verdict().is_good()) model_->judge_empty(device_id(i));
  }
}

const LockstepResult& CacheLockstep::finish() {
  if (gpu_ == nullptr && !is_over_) build();
  if (!is_over_) {
    settle();
    static_cast<void>(take_faults());
    result_.op_index = result_.ops + result_.skipped;
    if (!model_->verdict().is_good()) diverge(kTheEnd);
  }
  if (model_ != nullptr) {
    result_.checks = model_->schedule().calls();
    result_.walks = model_->schedule().walks();
    result_.address_hash = model_->address_hash();
  }
  if (!is_over_) judge_destructor();
  if (gpu_ != nullptr) result_.planned_failures = gpu_->account().planned_failures;
  is_over_ = true;
  return result_;
}

void CacheLockstep::judge_destructor() {
  std::vector<std::uint64_t> calls_before;
  for (std::uint32_t i = 0; i < witnesses_.size(); ++i) {
    const bool is_gone = model_->end_of(device_id(i)) != Code::kOk;
    calls_before.push_back(is_gone ? witnesses_[i]->calls_in_all() : kNotGone);
  }
  const auto failures = [this] {
    std::uint64_t sum = 0;
    for (const auto& witness : witnesses_) sum += witness->failures_in_all();
    return sum;
  };
  const std::uint64_t failures_before = failures();
  subject_.reset();
  // Of all that it gave back it has told.
  PinAnswers(*model_).judge_memory();
  // What a device refuses to take back, or to say whether it is done with, stays with it.
  const bool may_keep = failures() != failures_before;
  for (std::uint32_t i = 0; i < witnesses_.size(); ++i) judge_end_of(i, calls_before[i], may_keep);
  // If the subject did not know, one call tells it.
  if (const std::uint64_t calls = take_faults(); calls > 1)
    model_->report("C25", "the destructor called the unloaded driver ", calls, " times");
  if (!model_->verdict().is_good()) diverge(kTheEnd);
}

void CacheLockstep::judge_end_of(std::uint32_t device, std::uint64_t calls_before, bool may_keep) {
  const DeviceWitness& witness = *witnesses_[device];
  if (calls_before != kNotGone && witness.calls_in_all() != calls_before)
    model_->report("C26", "the destructor called device ", device, ", which was gone before");
  // Its memory went with it.
  if (may_keep || model_->end_of(device_id(device)) != Code::kOk) return;
  if (witness.events() != 0)
    model_->report("C14", witness.events(), " events are still held after the destructor");
  if (!witness.segments().empty() || witness.pages().held_bytes() != 0)
    model_->report("C14", "segments are still held after the destructor");
}

LockstepResult CacheLockstep::run(const OpFile& file, const Options& options) {
  CacheLockstep lockstep(options);
  for (const Op& op : file.ops) {
    if (!lockstep.step(op)) break;
  }
  return lockstep.finish();
}

}  // namespace ashlar::spec
