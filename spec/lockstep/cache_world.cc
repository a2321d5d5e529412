// What each op does to the world: see cache_lockstep.h for the caller's lawfulness.
#include <algorithm>

#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

namespace {
constexpr std::uint64_t kForeign[3] = {8, std::uint64_t{1} << 46, ~std::uint64_t{0} - (1u << 20)};
}  // namespace

std::uint32_t CacheLockstep::stream(std::uint64_t name) {
  const std::uint32_t bound = stream_names_[name];
  return bound == 0 ? kNoStream : bound - 1;
}

bool CacheLockstep::any_capture() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const StreamSlot& slot) { return slot.is_capturing; });
}

/// conf, device and seed, before the machine is built. False: not one of those.
bool CacheLockstep::setup_op(const Op& op) {
  switch (op.slot) {
    case slot::kConf: conf_ = op.text; return true;
    case slot::kDevice: {
      if (op.arg[0] >= kDevicesMax) return skip(), true;
      std::vector<Bytes>& capacities = options_.machine.capacities;
      capacities.resize(std::max<std::size_t>(capacities.size(), op.arg[0] + 1), Bytes{0});
      capacities[op.arg[0]] = Bytes{op.arg[1]};
      return true;
    }
    case slot::kSeed:
      options_.machine.seed = op.arg[0];
      options_.machine.pace = static_cast<std::uint32_t>(op.arg[0] % 4);
      return true;
    default: return false;
  }
}

// Memory.

void CacheLockstep::allocate(std::uint64_t name, std::uint64_t size, std::uint32_t s) {
  const Stream& on = streams_[s].stream;
  cache::OutOfMemory account;
  model_->begin(on.device);
  const Result<Address> got = subject_->allocate(Bytes{size}, on, &account);
  set_outcome(got.status());
  result_.ooms += got.code() == Code::kOutOfMemory;
  const AllocationTag tag = next_tag_++;
  model_->judge_allocate(tag, size, on, got, account);
  if (!got.is_ok() || got.value().is_null() || !model_->verdict().is_good()) return;
  const std::uint64_t address = got.value().value();
  const OwnedBlock* block = model_->find_live(on.device, address);
  if (block == nullptr) return;
  gpu_->on_allocate(tag, got.value(), Bytes{block->size}, on);
  Pointer& pointer = pointers_[name];
  pointer = {Pointer::kLive, s, address, block->size, tag};
  if (options_.touch) launch(s, name, Access::kWrite);
}

void CacheLockstep::announce(const Pointer& pointer, std::uint32_t s) {
  const Stream on = streams_[s].stream;
  model_->begin(streams_[pointer.stream].stream.device);
  const Status used = subject_->record_use(Address{pointer.address}, on);
  set_outcome(used);
  if (used.is_ok()) gpu_->on_use_announced(pointer.tag, on);
  model_->judge_use(pointer.address, on, used);
}

void CacheLockstep::free(std::uint64_t name, std::uint32_t s) {
  const Pointer pointer = pointers_[name];
  for (std::size_t i = 0; i < unannounced_.size();) {
    if (unannounced_[i].pointer != name) {
      ++i;
      continue;
    }
    const std::uint32_t user = unannounced_[i].stream;
    unannounced_.erase(unannounced_.begin() + static_cast<std::ptrdiff_t>(i));
    if (user != s) announce(pointer, user);
  }
  const Stream* on = s == kNoStream ? nullptr : &streams_[s].stream;
  model_->begin(streams_[pointer.stream].stream.device);
  const Address address{pointer.address};
  if (on != nullptr) gpu_->on_use_announced(pointer.tag, *on);
  const Status freed = on == nullptr ? subject_->free(address) : subject_->free_on(address, *on);
  set_outcome(freed);
  if (freed.is_ok()) {
    gpu_->on_free(pointer.tag);
    pointers_[name].state = Pointer::kFreed;
  }
  model_->judge_free(pointer.address, on, freed);
}

void CacheLockstep::launch(std::uint32_t s, std::uint64_t name, Access access) {
  const Pointer pointer = pointers_[name];
  if (s != pointer.stream) {
    const OwnedBlock* block =
        model_->find_live(streams_[pointer.stream].stream.device, pointer.address);
    const std::uint64_t id = streams_[s].stream.id.value();
    const bool is_told = block != nullptr &&
                         std::find(block->uses.begin(), block->uses.end(), id) != block->uses.end();
    const bool is_noted = is_told || std::any_of(unannounced_.begin(), unannounced_.end(),
                                                 [&](const Unannounced& note) {
                                                   return note.pointer == name && note.stream == s;
                                                 });
    if (!is_noted) unannounced_.push_back({name, s});
  }
  static_cast<void>(
      gpu_->launch(streams_[s].stream,
                   Touch{Address{pointer.address}, Bytes{pointer.size}, access, pointer.tag}));
}

void CacheLockstep::memory_op(const Op& op) {
  if (op.slot == slot::kAlloc) {
    const std::uint32_t s = stream(op.arg[2]);
    if (s == kNoStream || pointers_[op.arg[0]].state == Pointer::kLive) return skip();
    return allocate(op.arg[0], op.arg[1], s);
  }
  const std::uint64_t name = op.slot == slot::kKernel ? op.arg[1] : op.arg[0];
  if (pointers_[name].state != Pointer::kLive) return skip();
  if (op.slot == slot::kFree) return free(name, kNoStream);
  const std::uint32_t s = stream(op.slot == slot::kKernel ? op.arg[0] : op.arg[1]);
  if (s == kNoStream) return skip();
  if (op.slot == slot::kFreeOn) return free(name, s);
  if (op.slot == slot::kUse) {
    std::erase_if(unannounced_, [&](const Unannounced& note) {
      return note.pointer == name && note.stream == s;
    });
    return announce(pointers_[name], s);
  }
  launch(s, name, static_cast<Access>(op.arg[2] % 3 + 1));
}

// Streams and captures.

void CacheLockstep::end_stream(std::uint32_t s, std::uint64_t name, bool tells) {
  for (std::size_t i = 0; i < unannounced_.size();) {
    if (unannounced_[i].stream != s) {
      ++i;
      continue;
    }
    const std::uint64_t pointer = unannounced_[i].pointer;
    unannounced_.erase(unannounced_.begin() + static_cast<std::ptrdiff_t>(i));
    announce(pointers_[pointer], s);
  }
  const Stream stream = streams_[s].stream;
  if (tells) {
    model_->begin(stream.device);
    const Status retired = subject_->retire_stream(stream);
    set_outcome(retired);
    model_->judge_retire(stream, retired);
  } else {
    has_lost_stream_ = true;
    model_->lost_stream(stream.id.value());
  }
  static_cast<void>(gpu_->destroy_stream(stream));
  stream_names_[name] = 0;
}

void CacheLockstep::begin_capture(std::uint32_t s, device::CaptureMode mode) {
  StreamSlot& slot = streams_[s];
  model_->begin(slot.stream.device);
  const Status begun = subject_->begin_capture(slot.stream);
  set_outcome(begun);
  model_->judge_begin_capture(slot.stream, begun);
  if (slot.is_capturing || !begun.is_ok()) return;
  if (gpu_->begin_capture(slot.stream, mode).is_ok()) {
    slot.is_capturing = true;
    return;
  }
  model_->begin(slot.stream.device);
  model_->judge_end_capture(slot.stream, subject_->end_capture(slot.stream));
}

void CacheLockstep::end_capture(std::uint32_t s) {
  StreamSlot& slot = streams_[s];
  if (slot.is_capturing) {
    const Result<GraphId> graph = gpu_->end_capture(slot.stream);
    if (graph.is_ok()) static_cast<void>(gpu_->destroy_graph(graph.value()));
    slot.is_capturing = false;
  }
  model_->begin(slot.stream.device);
  const Status ended = subject_->end_capture(slot.stream);
  set_outcome(ended);
  model_->judge_end_capture(slot.stream, ended);
}

void CacheLockstep::stream_op(const Op& op) {
  const std::uint64_t name = op.arg[0];
  const std::uint32_t s = stream(name);
  if (op.slot == slot::kStreamCreate) {
    if (s != kNoStream || !has_device(op.arg[1])) return skip();
    const Result<Stream> made = gpu_->create_stream(device_id(op.arg[1]));
    if (!made.is_ok()) return skip();
    streams_.push_back({made.value(), false});
    stream_names_[name] = static_cast<std::uint32_t>(streams_.size());
    return;
  }
  if (s == kNoStream) return skip();
  switch (op.slot) {
    case slot::kStep: gpu_->step(streams_[s].stream, op.arg[1]); return;
    case slot::kCaptureBegin:
      return begin_capture(s, static_cast<device::CaptureMode>(op.arg[1] % 3));
    case slot::kCaptureEnd: return end_capture(s);
    default: break;
  }
  if (streams_[s].is_capturing) return skip();
  end_stream(s, name, op.slot == slot::kStreamRetire);
}

/// The caller's own events: made on first record, on the device of the stream.
void CacheLockstep::user_event_op(const Op& op) {
  const std::uint32_t s =
      op.slot == slot::kSync ? kNoStream : stream(op.slot == slot::kRecord ? op.arg[1] : op.arg[0]);
  NamedEvent& event = events_[op.slot == slot::kWait ? op.arg[1] : op.arg[0]];
  if (any_capture() || (op.slot != slot::kSync && s == kNoStream)) return skip();
  if (op.slot != slot::kRecord) {
    if (!event.is_bound) return skip();
    if (op.slot == slot::kSync) {
      static_cast<void>(
          gpu_->device(event.device).event_synchronize(event.event, device::kWaitForever));
    } else {
      const Stream& stream = streams_[s].stream;
      static_cast<void>(gpu_->device(stream.device).stream_wait(stream.handle, event.event));
    }
    return;
  }
  const DeviceId on = streams_[s].stream.device;
  if (event.is_bound && event.device != on) {
    static_cast<void>(gpu_->device(event.device).event_destroy(event.event));
    event.is_bound = false;
  }
  if (!event.is_bound) {
    const Result<EventHandle> made = gpu_->device(on).event_create();
    if (!made.is_ok()) return skip();
    event = {made.value(), on, true};
  }
  static_cast<void>(gpu_->device(on).event_record(event.event, streams_[s].stream.handle));
}

// The device, limits, failures.

void CacheLockstep::device_op(const Op& op) {
  const std::uint64_t d = op.arg[0];
  switch (op.slot) {
    case slot::kFail:
      gpu_->fail(static_cast<device::CallKind>(d % device::kCallKinds),
                 std::max<std::uint64_t>(op.arg[1], 1),
                 op.arg[2] == 0 ? FailMode::kOnce : FailMode::kOn);
      return model_->plan_failures(true);
    case slot::kHeal: gpu_->heal(); return model_->plan_failures(false);
    case slot::kTeardown: return gpu_->tear_down();
    case slot::kLag: is_lagging_ = true; return gpu_->set_lag(d);
    case slot::kOnOutOfMemory:
      if (pointers_[d].state != Pointer::kLive) return skip();
      callback_frees_.push_back(d);
      return arm_callback();
    case slot::kOnOutOfMemoryAlloc: callback_allocates_ = true; return arm_callback();
    default: break;
  }
  if (!has_device(d)) return skip();
  const DeviceId device = device_id(d);
  switch (op.slot) {
    case slot::kDrain: static_cast<void>(gpu_->drain(device)); return;
    case slot::kCapacity:
      gpu_->set_capacity(device, Bytes{op.arg[1]});
      return model_->set_capacity(device, op.arg[1]);
    case slot::kLose: return gpu_->lose(device);
    case slot::kTrim: {
      model_->begin(device);
      const Status trimmed = subject_->trim(device);
      set_outcome(trimmed);
      return model_->judge_trim(trimmed);
    }
    case slot::kLimit: {
      model_->begin(device);
      const Status set = subject_->set_memory_limit(device, Bytes{op.arg[1]});
      set_outcome(set);
      return model_->judge_limit(op.arg[1], set);
    }
    case slot::kResetPeaks: {
      model_->begin(device);
      const Status reset = subject_->reset_peak_stats(device);
      set_outcome(reset);
      return model_->judge_reset_peaks(reset);
    }
    default: return skip();
  }
}

void CacheLockstep::arm_callback() {
  if (has_callback_) return;
  has_callback_ = true;
  subject_->add_free_memory_callback([this](DeviceId) { call_back(); });
}

/// Inside an allocation of the subject's: frees what on-oom named, tries to allocate after
/// on-oom-alloc; once each.
void CacheLockstep::call_back() {
  if (callback_frees_.empty() && !callback_allocates_) return;
  const Code outer = outcome_;
  model_->enter_callback();
  std::vector<std::uint64_t> frees;
  frees.swap(callback_frees_);
  for (const std::uint64_t name : frees) {
    if (pointers_[name].state == Pointer::kLive) free(name, kNoStream);
  }
  if (callback_allocates_) {
    callback_allocates_ = false;
    cache::OutOfMemory account;
    const Result<Address> got = subject_->allocate(Bytes{512}, streams_[0].stream, &account);
    model_->judge_allocate(next_tag_++, 512, streams_[0].stream, got, account);
  }
  model_->leave_callback();
  outcome_ = outer;
}

// Misuse and expectations.

void CacheLockstep::misuse_op(const Op& op) {
  const Pointer pointer = op.slot == slot::kFreeForeign ? Pointer{} : pointers_[op.arg[0]];
  std::uint64_t address = pointer.address;
  if (op.slot == slot::kFreeForeign) {
    address = kForeign[op.arg[0] % 3] + op.arg[0] % (1u << 10) * 512;
  } else if (op.slot == slot::kFreeInterior) {
    if (pointer.state != Pointer::kLive || op.arg[1] % pointer.size == 0) return skip();
    address += op.arg[1] % pointer.size;
  } else if (pointer.state != Pointer::kFreed) {
    return skip();
  }
  // Issued again, it is a lawful free of somebody else's block: not what is meant here.
  if (model_->is_live_anywhere(address)) return skip();
  model_->begin(streams_[pointer.stream].stream.device);
  if (op.slot == slot::kUseStale) {
    const std::uint32_t s = stream(op.arg[1]);
    if (s == kNoStream) return skip();
    const Status used = subject_->record_use(Address{address}, streams_[s].stream);
    set_outcome(used);
    return model_->judge_use(address, streams_[s].stream, used);
  }
  const Status freed = subject_->free(Address{address});
  set_outcome(freed);
  model_->judge_free(address, nullptr, freed);
}

void CacheLockstep::expect_op(const Op& op) {
  const auto expect = [&](bool holds, const std::string& text) {
    if (!holds) model_->report("expect", text);
  };
  switch (op.slot) {
    case slot::kExpect: {
      const Code want = static_cast<Code>(op.arg[0]);
      return expect(outcome_ == want, std::string("the outcome was ") + code_name(outcome_) +
                                          ", not " + code_name(want));
    }
    case slot::kExpectSame: {
      const Pointer p = pointers_[op.arg[0]];
      const Pointer q = pointers_[op.arg[1]];
      if (p.state == Pointer::kUnbound || q.state == Pointer::kUnbound) return skip();
      return expect(p.address == q.address, "the two pointers' addresses differ");
    }
    case slot::kExpectLive:
      return expect(model_->live_count() == op.arg[0],
                    std::to_string(model_->live_count()) + " allocations are live");
    default:
      if (!has_device(op.arg[0])) return skip();
      return expect(witnesses_[op.arg[0]]->segment_bytes() == op.arg[1],
                    std::to_string(witnesses_[op.arg[0]]->segment_bytes()) + " bytes are reserved");
  }
}

}  // namespace ashlar::spec
