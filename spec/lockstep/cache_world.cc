// See cache_world.h.
#include "spec/lockstep/cache_world.h"

#include <algorithm>
#include <utility>

#include "spec/lockstep/capture_caller.h"
#include "spec/lockstep/pin_caller.h"
#include "spec/lockstep/pool_caller.h"

namespace ashlar::spec {

namespace {
constexpr std::size_t kNamedStreamsUsual = 8;  ///< what most worlds stay below

}  // namespace

CacheWorld::CacheWorld(SimGpu& gpu, CacheSubject& subject, CacheModel& model, bool touches)
    : gpu_(gpu), subject_(subject), model_(model), habits_{touches}, pins_(gpu) {
  streams_.reserve(kNamedStreamsUsual);
}

std::uint32_t CacheWorld::stream(std::uint64_t name) {
  const std::uint32_t bound = stream_names_[name].alive;
  return bound == 0 ? kNoStream : bound - 1;
}

bool CacheWorld::any_capture() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const StreamSlot& slot) { return slot.is_capturing; });
}

bool may_enqueue(SimGpu& gpu, const Stream& stream) {
  return !stream.thread_bound ||
         gpu.default_stream(stream.device, kPerThreadStream).id == stream.id;
}

bool is_quiet(const SimGpu& gpu) {
  for (std::uint32_t i = 0; i < gpu.device_count(); ++i) {
    if (gpu.pending(device_id(i)) != 0) return false;
  }
  return true;
}

// Memory.

void CacheWorld::allocate(std::uint64_t name, std::uint64_t size, std::uint32_t s) {
  streams_[s].note_named(gpu_);
  const Stream& on = streams_[s].stream;
  const AllocationTag tag = next_tag_++;
  Result<Address> got{Code::kNotReady, "not asked yet"};
  until_host_has_memory(model_, [&] {
    cache::OutOfMemory account;
    model_.begin(on.device, is_quiet(gpu_));
    got = subject_.allocate(Bytes{size}, on, &account);
    if (got.code() == Code::kOutOfMemory)
      model_.memory(on.device).in_use = gpu_.ledger(on.device).device_bytes().count();
    model_.judge_allocate(tag, size, on, got, account);
    return got.code();
  });
  static_cast<void>(answered(got.status()));
  op_.ooms += got.code() == Code::kOutOfMemory;
  if (!got.is_ok() || got.value().is_null() || !model_.verdict().is_good()) return;
  const std::uint64_t address = got.value().value();
  const OwnedBlock* block = model_.find_live(on.device, address);
  if (block == nullptr) return;
  const GraphGroup group = pools_.group_of(on.device, PoolAnswers(model_).pool_of(on));
  const std::uint32_t owner = group == 0 ? s : outermost(s);
  gpu_.on_allocate(tag, got.value(), Bytes{block->size}, stream_at(owner), group, &on);
  if (owner != s) streams_[s].made.push_back(tag);
  pointers_[name] = {Pointer::kLive, owner, address, block->size, tag, group};
  checkpoints_.issued[tag] = {name, owner};
  streams_[s].has_allocated = true;
  if (habits_.touches && may_enqueue(gpu_, on)) launch(s, name, Access::kWrite);
}

void CacheWorld::announce(const Pointer& pointer, std::uint32_t s) {
  streams_[s].note_named(gpu_);
  const Stream on = streams_[s].stream;
  until_host_has_memory(model_, [&] {
    model_.begin(device_of(pointer));
    const Status used = answered(subject_.record_use(Address{pointer.address}, on));
    if (used.is_ok()) gpu_.on_use_announced(pointer.tag, on);
    model_.judge_use(pointer.address, on, used);
    return used.code();
  });
}

void CacheWorld::use(std::uint64_t name, std::uint32_t s) {
  std::erase_if(unannounced_,
                [&](const Unannounced& note) { return note.pointer == name && note.stream == s; });
  announce(pointers_[name], s);
}

void CacheWorld::free(std::uint64_t name, std::uint32_t s) {
  const Pointer pointer = pointers_[name];
  for (const Unannounced& use :
       take_if(unannounced_, [name](const Unannounced& each) { return each.pointer == name; })) {
    if (use.stream != s) announce(pointer, use.stream);
  }
  const Stream* on = s == kNoStream ? nullptr : &streams_[s].stream;
  if (on != nullptr) streams_[s].note_named(gpu_);
  const Address address{pointer.address};
  if (on != nullptr) gpu_.on_use_announced(pointer.tag, *on);
  // Without a cache the memory may go back to the device inside the call.
  const bool is_told_first = !subject_.config().caches;
  if (is_told_first) gpu_.on_free(pointer.tag);
  until_host_has_memory(model_, [&] {
    model_.begin(device_of(pointer));
    const Status freed =
        answered(on == nullptr ? subject_.free(address) : subject_.free_on(address, *on));
    if (freed.is_ok()) {
      if (!is_told_first) gpu_.on_free(pointer.tag);
      pointers_[name].state = Pointer::kFreed;
    }
    model_.judge_free(pointer.address, on, freed);
    return freed.code();
  });
  if (is_told_first && pointers_[name].state != Pointer::kFreed)
    gpu_.on_allocate(pointer.tag, address, Bytes{pointer.size}, stream_at(pointer.stream),
                     pointer.group);
  if (pointers_[name].state == Pointer::kFreed && !model_.is_live_anywhere(pointer.address) &&
      subject_.info(address).is_ok())
    model_.report("C16", "info() answers for a block that was freed");
}

void CacheWorld::free_wrongly(std::uint64_t address, DeviceId device) {
  // Once issued again, the address is another block's, and its free is lawful.
  if (model_.is_live_anywhere(address)) return skip();
  model_.begin(device);
  model_.judge_free(address, nullptr, answered(subject_.free(Address{address})));
}

void CacheWorld::name_dead(std::uint64_t name, std::uint64_t kind) {
  const std::uint32_t ended = stream_names_[name].ended;
  if (ended == 0) return skip();
  const Stream dead = streams_[ended - 1].stream;
  constexpr Address kNobodys{std::uint64_t{1} << 46};
  // Only then is the device asked whom the handle names. A device that fails or is gone cannot say it, and of a stream
  // that captures it may not be asked.
  const bool is_known =
      !gpu_.has_planned_failures() && !gpu_.is_gone(dead.device) &&
      std::any_of(streams_.begin(), streams_.end(), [&dead](const StreamSlot& slot) {
        return slot.is_alive && slot.has_allocated && !slot.may_be_unasked && !slot.is_capturing &&
               slot.stream.handle == dead.handle && slot.stream.device == dead.device;
      });
  model_.begin(dead.device);
  switch (kind % 4 == 3 && !is_known ? 0 : kind % 4) {
    case 0: return model_.judge_named_dead(answered(subject_.end_capture(dead)), Code::kNotFound);
    case 1:
      return model_.judge_named_dead(answered(subject_.record_use(kNobodys, dead)),
                                     Code::kUnknownPointer);
    case 2:
      return model_.judge_named_dead(answered(subject_.free_on(kNobodys, dead)),
                                     Code::kUnknownPointer);
    default: {
      cache::OutOfMemory account;
      const Result<Address> got = subject_.allocate(Bytes{4096}, dead, &account);
      return model_.judge_named_dead(answered(got.status()), Code::kInvalidHandle);
    }
  }
}

void CacheWorld::launch(std::uint32_t s, std::uint64_t name, Access access) {
  const Pointer pointer = pointers_[name];
  if (streams_[s].has_body) return skip();
  // A body shares its parents' memory, and uses it without a word.
  const bool is_own = s == pointer.stream || (pointer.group != 0 && outermost(s) == pointer.stream);
  if (!is_own) {
    const OwnedBlock* block = model_.find_live(device_of(pointer), pointer.address);
    const std::uint64_t id = streams_[s].stream.id.value();
    // What was told of a capture says nothing of work outside it.
    const bool is_told =
        block != nullptr &&
        std::find(block->uses.begin(), block->uses.end(), id) != block->uses.end() &&
        !model_.streams().is_only_in_graph(*block, id);
    const bool is_noted = is_told || std::any_of(unannounced_.begin(), unannounced_.end(),
                                                 [&](const Unannounced& note) {
                                                   return note.pointer == name && note.stream == s;
                                                 });
    if (!is_noted) unannounced_.push_back({name, s});
  }
  StreamSlot& slot = streams_[s];
  const std::vector<GraphGroup>& captured = slot.captured;
  if (slot.is_capturing &&
      std::find(captured.begin(), captured.end(), pointer.group) == captured.end())
    slot.captured.push_back(pointer.group);
  const Touch touch{Address{pointer.address}, Bytes{pointer.size}, access, pointer.tag,
                    pointer.group};
  static_cast<void>(gpu_.launch(slot.stream, touch));
}

// Streams, captures, events.

void CacheWorld::bind_stream(std::uint64_t name, const Stream& stream) {
  const auto known = std::find_if(streams_.begin(), streams_.end(), [&](const StreamSlot& slot) {
    return slot.stream.id == stream.id && slot.stream.device == stream.device;
  });
  stream_names_[name].alive = static_cast<std::uint32_t>(known - streams_.begin()) + 1;
  if (known != streams_.end()) return;
  streams_.emplace_back();
  streams_.back().stream = stream;
  if (!stream.thread_bound) return;
  model_.streams().add_thread_bound(stream.id.value());
  model_.told().may_be_unrecorded = true;
}

void CacheWorld::end_stream(std::uint32_t s, std::uint64_t name, bool is_announced) {
  for (const Unannounced& use :
       take_if(unannounced_, [s](const Unannounced& each) { return each.stream == s; }))
    announce(pointers_[use.pointer], s);
  const Stream stream = streams_[s].stream;
  if (is_announced) {
    model_.begin(stream.device);
    model_.judge_retire(stream, streams_[s].has_allocated,
                        answered(subject_.retire_stream(stream)));
  } else {
    model_.streams().lose(stream.id.value());
  }
  static_cast<void>(gpu_.destroy_stream(stream));
  streams_[s].is_alive = false;
  stream_names_[name] = {.alive = 0, .ended = s + 1};
}

void CacheWorld::record_event(std::uint64_t name, std::uint32_t s) {
  NamedEvent& event = events_[name];
  const Stream& stream = streams_[s].stream;
  if (event.is_bound && event.device != stream.device) {
    static_cast<void>(gpu_.device(event.device).event_destroy(event.event));
    event.is_bound = false;
  }
  if (!event.is_bound) {
    const Result<EventHandle> made = gpu_.device(stream.device).event_create();
    if (!made.is_ok()) return skip();
    event = {made.value(), stream.device, true};
  }
  static_cast<void>(gpu_.device(stream.device).event_record(event.event, stream.handle));
}

void CacheWorld::set_lag(std::uint64_t ticks) {
  habits_.is_lagging = true;
  gpu_.set_lag(ticks);
}

void CacheWorld::tick() {
  if (habits_.is_lagging) gpu_.tick();
}

void CacheWorld::quiesce(bool finishes_work) {
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    if (streams_[s].is_capturing && streams_[s].origin == s) CaptureCaller(*this).end_whole(s);
  }
  callback_.frees.clear();
  PinCaller(*this).unpin_all();
  if (finishes_work) PoolCaller(*this).release_all();
  if (finishes_work) static_cast<void>(gpu_.drain_all());
  for (const Unannounced& use : std::exchange(unannounced_, {})) {
    if (!finishes_work && pointers_[use.pointer].state == Pointer::kLive)
      announce(pointers_[use.pointer], use.stream);
  }
}

// Callbacks.

void CacheWorld::install_callback() {
  if (callback_.is_installed) return;
  callback_.is_installed = true;
  model_.told().has_callback = true;
  subject_.add_free_memory_callback([this](DeviceId device) {
    model_.told().saw_callback(device);
    call_back();
  });
}

void CacheWorld::free_in_callback(std::uint64_t name) {
  callback_.frees.push_back(name);
  install_callback();
}

void CacheWorld::allocate_in_callback() {
  callback_.allocates = true;
  install_callback();
}

/// Runs inside an allocation of the subject's.
void CacheWorld::call_back() {
  if (callback_.frees.empty() && !callback_.allocates) return;
  const Code outer = op_.outcome;
  model_.told().enter_callback();
  std::vector<std::uint64_t> frees;
  frees.swap(callback_.frees);
  for (const std::uint64_t name : frees) {
    if (pointers_[name].state == Pointer::kLive) free(name, kNoStream);
  }
  if (callback_.allocates) {
    callback_.allocates = false;
    cache::OutOfMemory account;
    const Result<Address> got = subject_.allocate(Bytes{512}, streams_[0].stream, &account);
    model_.judge_allocate(next_tag_++, 512, streams_[0].stream, got, account);
  }
  model_.told().leave_callback();
  op_.outcome = outer;
}

}  // namespace ashlar::spec
