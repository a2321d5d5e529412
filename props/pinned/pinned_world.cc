#include "props/pinned/pinned_world.h"

#include <algorithm>
#include <sstream>

namespace ashlar::props {
namespace {

using device::CallKind;
using pinned::PinBy;
using pinned::PinnedAllocator;

constexpr std::uint64_t kGranule = 512;
constexpr std::size_t kStaleMax = 8;
constexpr std::size_t kLiveMax = 64;

constexpr CallKind kFailing[] = {
    CallKind::kPinnedAlloc,  CallKind::kPinnedFree,          CallKind::kHostRegister,
    CallKind::kEventCreate,  CallKind::kEventRecord,         CallKind::kEventQuery,
    CallKind::kIdentify,     CallKind::kSynchronize,         CallKind::kEventSynchronize,
    CallKind::kEventDestroy, CallKind::kHostUnregister,      CallKind::kMemoryInfo,
    CallKind::kCaptureMark,  CallKind::kExchangeCaptureMode, CallKind::kCaptureCovers};

spec::SimGpuOptions options_of(InputBytes& input) {
  spec::SimGpuOptions options;
  options.capacities = {Bytes{0}, Bytes{0}};
  options.seed = 1 + input.next();
  // What is done must have been learnt before its bytes are given to another.
  options.drop_edges = spec::kEdgeCompletion;
  return options;
}

}  // namespace

template <class... Parts>
void PinnedWorld::report(const char* clause, const Parts&... parts) {
  if (!finding_.empty()) return;
  std::ostringstream text;
  text << clause << ": step " << steps_ << ": ";
  (text << ... << parts);
  finding_ = text.str();
}

void PinnedWorld::report(const std::string& finding) {
  const std::size_t end = finding.find(": ");
  if (end != std::string::npos) report(finding.substr(0, end).c_str(), finding.substr(end + 2));
}

PinnedWorld::PinnedWorld(InputBytes& input, Plant plant)
    : input_(input), plant_(plant), gpu_(std::make_unique<spec::SimGpu>(options_of(input))) {
  const std::uint64_t how = input.next();
  pinned::PinnedConfig config;
  state_.is_registered = how % 8 == 7;
  if (state_.is_registered) config.space.by = PinBy::kRegistration;
  config.space.touch_threads = 1 + how / 8 % 2;
  config.rounds_to_power_of_two = how / 16 % 4 == 0;
  state_.arenas = 1u << (how / 64);
  config.arenas = state_.arenas;
  const std::uint64_t more = input.next();
  if (more % 2 == 1) state_.capacity = (more % 64 + 16) << 20;
  if (state_.capacity != 0) config.space.capacity = Bytes{state_.capacity};
  config.cache.wait_ms = static_cast<std::uint32_t>(more / 64 % 2) * 10;
  if (more >= 192 && (state_.capacity == 0 || state_.capacity >= (20u << 20)))
    config.reserve = 8_MiB;
  device::Device* devices[] = {&gpu_->device(0), &gpu_->device(1)};
  auto made = PinnedAllocator::create(devices, config);
  if (!made.is_ok()) {
    report("C12", "no allocator: ", made.status().why());
    return;
  }
  allocator_ = std::move(made).value();
  captures_ = std::make_unique<PinnedCaptures>(*gpu_, *allocator_, plant == Plant::kForgottenPool);
  host_ = gpu_->create_stream(DeviceId{0}).value();
  for (const std::int32_t device : {0, 0, 1}) add_stream(device);
}

PinnedWorld::~PinnedWorld() {
  static_cast<void>(gpu_->drain_all());
  allocator_.reset();  // before its devices
}

std::string PinnedWorld::run() {
  while (finding_.empty() && !input_.is_empty()) {
    ++steps_;
    step();
    for (const spec::Fault& fault : gpu_->take_faults()) report("the machine", fault.text);
  }
  if (finding_.empty()) finish();
  return finding_;
}

void PinnedWorld::step() {
  switch (input_.below(30)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: return allocate();
    case 6:
    case 7:
    case 8:
    case 9: return free_one();
    case 10:
    case 11:
    case 12:
    case 13: return use_one();
    case 14:
    case 15: return let_run();
    case 16:
    case 17: return process();
    case 18: return trim();
    case 19: return misuse();
    case 20: return end_stream();
    case 21: return set_limit();
    case 22: return fail_or_heal(true);
    case 23:
    case 24:
    case 25:
    case 26:
    case 27:
    case 28: return capture();
    default: return fail_or_heal(false);
  }
}

void PinnedWorld::add_stream(std::int32_t device) {
  streams_.push_back({gpu_->create_stream(DeviceId{device}).value()});
}

std::size_t PinnedWorld::any_stream() {
  std::size_t at = input_.below(streams_.size());
  while (!streams_[at].is_alive) at = (at + 1) % streams_.size();
  return at;
}

std::size_t PinnedWorld::any_user(const Block& block) {
  std::size_t at = any_stream();
  while (!streams_[at].is_alive ||
         (captures_->is_capturing(streams_[at].stream) && block.pool != captures_->open_pool()))
    at = (at + 1) % streams_.size();
  return at;
}

bool PinnedWorld::is_used(const Block& block, bool may_be) const {
  if (may_be && (block.has_lost_user || block.is_in_graph)) return true;
  return std::any_of(block.uses.begin(), block.uses.end(), [&](const Use& use) {
    return !*use.is_over || (may_be && gpu_->pending(streams_[use.stream].stream) != 0);
  });
}

Result<Address> PinnedWorld::allocate_on_arena(std::uint64_t size) {
  const std::uint64_t arena = input_.below(state_.arenas);
  // The arena of this thread, or that of another one.
  if (arena == 0) return allocator_->allocate(Bytes{size});
  return allocator_->caching().allocate(
      Bytes{size}, {StreamHandle{arena + 1}, StreamId{arena + 1}, allocator_->device()});
}

void PinnedWorld::allocate() {
  const std::uint64_t shape = input_.next();
  const unsigned most = state_.is_registered ? 13 : 17;
  const std::uint64_t size =
      (std::uint64_t{1} << (9 + shape % most)) + input_.next() * 16 - 1024 * (shape / 128);
  if (live_.size() >= kLiveMax || size == 0 || size > (std::uint64_t{1} << 30)) return;
  captures_->route(input_.below(2) == 0);
  const std::uint32_t pool = captures_->routed();
  const Result<Address> got = allocate_on_arena(size);
  if (got.code() == Code::kOutOfMemory) return check_oom(size);
  if (!got.is_ok()) {
    if (!state_.is_failing) report("C13", "an allocation failed: ", got.status().why());
    return check_stats(false);
  }
  const auto info = allocator_->caching().info(got.value());
  if (!info.is_ok()) return report("C16", "nothing is known of an allocation");
  check_given(got.value(), info.value().size.count(), size, pool);
  Block block{got.value(), info.value().size.count(), next_tag_++, pool, {}, false, false};
  gpu_->on_allocate(block.tag, block.address, Bytes{block.size}, host_, pool);
  live_.push_back(std::move(block));
  std::erase(stale_, got.value());
  check_stats(false);
}

void PinnedWorld::check_given(Address at, std::uint64_t size, std::uint64_t asked,
                              std::uint32_t pool) {
  if (size < asked || at.value() % kGranule != 0)
    report("C1", asked, " bytes were asked for, ", size, " given at ", at.value());
  const auto held = gpu_->held();
  const bool is_locked = std::any_of(held.begin(), held.end(), [&](const spec::HeldHandle& each) {
    const bool is_memory =
        each.kind == (state_.is_registered ? spec::HeldKind::kRegistered : spec::HeldKind::kPinned);
    return is_memory && each.value <= at.value() &&
           at.value() + size <= each.value + each.size.count();
  });
  if (!is_locked) report("C1", "bytes at ", at.value(), " that are not locked");
  const auto overlaps = [&](const Block& block) {
    return block.address.value() < at.value() + size &&
           at.value() < block.address.value() + block.size;
  };
  if (std::any_of(live_.begin(), live_.end(), overlaps))
    report("C2", "bytes of a live block at ", at.value());
  for (const Block& block : freed_) {
    if (overlaps(block) && is_used(block, false))
      report("C7", "bytes at ", at.value(), " that a kernel still uses");
  }
  report(captures_->on_given(at, size, pool));
  // What was given away again waits for nothing any more.
  std::erase_if(freed_, overlaps);
}

void PinnedWorld::check_oom(std::uint64_t asked) {
  check_stats(false);
  if (state_.is_failing || state_.may_be_unrecorded || !captures_->is_idle()) return;
  const std::uint64_t most = std::min(state_.capacity == 0 ? ~std::uint64_t{0} : state_.capacity,
                                      state_.limit == 0 ? ~std::uint64_t{0} : state_.limit);
  // The largest segment that the request may need, whatever it is rounded to.
  const std::uint64_t segment = std::max<std::uint64_t>(20 << 20, 2 * asked + (2 << 20));
  const bool is_free =
      live_.empty() &&
      std::none_of(freed_.begin(), freed_.end(), [&](const Block& b) { return is_used(b, true); });
  if (is_free && segment <= most)
    report("C12", "out of memory for ", asked, " bytes, though nothing is in use");
  if (most == ~std::uint64_t{0}) report("C12", "out of memory without a limit");
}

void PinnedWorld::free_one() {
  if (live_.empty()) return;
  const std::size_t at = input_.below(live_.size());
  Block block = std::move(live_[at]);
  live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
  Status freed;
  if (plant_ != Plant::kLeak) {
    freed = steps_ % 2 == 0 ? allocator_->free(block.address)
                            : allocator_->free_context(PinnedAllocator::context_of(block.address));
  }
  if (!freed.is_ok()) report("C16", "the free of a live block: ", freed.why());
  gpu_->on_free(block.tag);
  state_.may_be_unrecorded = state_.may_be_unrecorded || (state_.is_failing && !block.uses.empty());
  stale_.push_back(block.address);
  if (stale_.size() > kStaleMax) stale_.erase(stale_.begin());
  freed_.push_back(std::move(block));
  check_stats(false);
}

void PinnedWorld::use_one() {
  if (live_.empty()) return;
  Block& block = live_[input_.below(live_.size())];
  const std::size_t at = any_user(block);
  WorldStream& stream = streams_[at];
  const auto access = static_cast<spec::Access>(1 + input_.below(3));
  if (!gpu_->launch(stream.stream,
                    {block.address, Bytes{block.size}, access, block.tag, block.pool})
           .is_ok())
    return report("C1", "a kernel may not touch its block");
  if (captures_->is_capturing(stream.stream)) {
    block.is_in_graph = true;
  } else {
    const auto is_over = std::make_shared<bool>(false);
    static_cast<void>(gpu_->host_function(stream.stream, 0, [is_over] { *is_over = true; }));
    block.uses.push_back({at, is_over});
  }
  gpu_->on_use_announced(block.tag, stream.stream);
  // Named by its context, by its address beside a foreign context, or by both.
  const int foreign = 0;
  const void* const own = PinnedAllocator::context_of(block.address);
  Status noted;
  do {
    const std::uint64_t how = steps_ % 3;
    if (plant_ == Plant::kForgottenUse) break;
    noted = allocator_->record_use(how == 0 ? Address{} : block.address, how == 1 ? &foreign : own,
                                   stream.stream);
    if (noted.is_ok() || !state_.is_failing) break;
    gpu_->heal();  // a use that is not noted would be the caller's fault
    state_.is_failing = false;
  } while (true);
  stream.is_known = true;
  if (!noted.is_ok()) report("C16", "a use of a live block: ", noted.why());
}

void PinnedWorld::let_run() {
  if (input_.below(8) == 0) {
    static_cast<void>(gpu_->drain_all());
  } else {
    gpu_->step(streams_[input_.below(streams_.size())].stream, 1 + input_.below(8));
  }
}

void PinnedWorld::process() {
  const Status done = plant_ == Plant::kIdleProcess ? Status::ok() : allocator_->process_events();
  if (captures_->is_open() && done.code() == Code::kBusy) return;
  if (!done.is_ok()) return report("C16", "process_events(): ", done.why());
  check_stats(!state_.is_failing && !state_.may_be_unrecorded);
}

void PinnedWorld::trim() {
  const Status trimmed = allocator_->caching().trim(allocator_->device());
  const bool is_quiet = gpu_->pending(DeviceId{0}) + gpu_->pending(DeviceId{1}) == 0;
  const Code refusal = captures_->is_open() ? Code::kBusy : Code::kNotReady;
  if (!trimmed.is_ok() && trimmed.code() != refusal && !state_.is_failing)
    return report("C28", "a trim: ", trimmed.why());
  if (trimmed.is_ok() && is_quiet && !state_.is_failing) state_.may_be_unrecorded = false;
  check_stats(false);
}

void PinnedWorld::check_stats(bool is_all_known) {
  cache::DeviceStats stats;
  if (!allocator_->caching().stats(allocator_->device(), &stats).is_ok())
    return report("C15", "no statistics");
  std::uint64_t live = 0;
  for (const Block& block : live_) live += block.size;
  std::uint64_t used = live, may_be_used = live;
  for (const Block& block : freed_) {
    if (is_used(block, false)) used += block.size;
    if (is_used(block, true)) may_be_used += block.size;
  }
  const std::uint64_t allocated = stats.allocated_bytes[0].current;
  const std::uint64_t active = stats.active_bytes[0].current;
  if (allocated != live) report("C15", allocated, " bytes are said to be live, not ", live);
  if (active < used) report("C15", active, " bytes are said to be in use, not ", used);
  if (is_all_known && active > may_be_used)
    report("C27", active, " bytes are in use, though only ", may_be_used, " can be");
}

void PinnedWorld::misuse() {
  const auto expect_refused = [this](Status got, Code code, const char* what) {
    if (got.code() != code && !(state_.is_failing && got.code() == Code::kDriverError))
      report("C16", what, " was answered ", code_name(got.code()));
  };
  const int foreign = 0;
  switch (input_.below(7)) {
    case 0:
      if (stale_.empty()) return;
      if (const Status got = allocator_->free(stale_[input_.below(stale_.size())]);
          got.code() != Code::kUnknownPointer && got.code() != Code::kDoubleFree)
        report("C16", "a second free was answered ", code_name(got.code()));
      break;
    case 1:
      if (live_.empty()) return;
      expect_refused(allocator_->free(live_[input_.below(live_.size())].address + 1_B),
                     Code::kUnknownPointer, "a free of an address inside a block");
      break;
    case 2:
      expect_refused(
          allocator_->record_use(Address::of(&foreign), &foreign, streams_[any_stream()].stream),
          Code::kUnknownPointer, "a use of foreign memory");
      break;
    case 3: {
      const auto dead = std::find_if(streams_.begin(), streams_.end(),
                                     [](const WorldStream& each) { return !each.is_alive; });
      if (dead == streams_.end() || live_.empty()) return;
      // Whether it is known to be dead depends on who has its heap and its handle by now.
      const Status got = allocator_->record_use(live_[0].address, nullptr, dead->stream);
      if (!got.is_ok() && got.code() != Code::kInvalidHandle && !state_.is_failing)
        report("C16", "a use by a dead stream was answered ", code_name(got.code()));
      live_[0].has_lost_user = live_[0].has_lost_user || got.is_ok();
      break;
    }
    case 4:
      expect_refused(allocator_->allocate(Bytes::max()).status(), Code::kSizeOverflow,
                     "a request of all bytes");
      break;
    case 5: report(captures_->misuse()); break;
    default:
      expect_refused(plant_ == Plant::kForgivenMisuse
                         ? Status::ok()
                         : allocator_->free_context(const_cast<int*>(&foreign)),
                     Code::kUnknownPointer, "a free of a foreign context");
  }
  check_stats(false);
}

void PinnedWorld::end_stream() {
  if (streams_.size() >= 32) return;
  WorldStream& stream = streams_[any_stream()];
  if (captures_->is_open() || captures_->needs(stream.stream)) return;
  const Status retired = allocator_->caching().retire_stream(stream.stream);
  const bool is_good = retired.is_ok() || (retired.code() == Code::kNotFound && !stream.is_known);
  if (!is_good && !state_.is_failing) report("C16", "the end of a stream: ", retired.why());
  state_.may_be_unrecorded = state_.may_be_unrecorded || state_.is_failing;
  for (Block& block : live_) {
    const bool is_user = std::any_of(block.uses.begin(), block.uses.end(), [&](const Use& use) {
      return &streams_[use.stream] == &stream;
    });
    // Its last event may have failed.
    block.has_lost_user = block.has_lost_user || (is_user && state_.is_failing);
  }
  stream.is_alive = false;
  stream.is_known = stream.is_known && retired.is_ok();
  static_cast<void>(gpu_->destroy_stream(stream.stream));
  add_stream(stream.stream.device.value());
}

void PinnedWorld::set_limit() {
  const std::uint64_t to = input_.next();
  state_.limit = to % 2 == 0 ? 0 : (to + 4) << 20;
  const Bytes limit = state_.limit == 0 ? Bytes::max() : Bytes{state_.limit};
  const Status set = allocator_->caching().set_memory_limit(allocator_->device(), limit);
  if (!set.is_ok() && !state_.is_failing) report("DEV-12", "a limit: ", set.why());
  check_stats(false);
}

void PinnedWorld::fail_or_heal(bool fails) {
  const CallKind kind = kFailing[input_.below(std::size(kFailing))];
  const std::uint64_t n = input_.next();
  if (state_.is_planned) return;
  if (!fails) gpu_->heal();
  if (fails) gpu_->fail(kind, 1 + n % 8, n >= 192 ? spec::FailMode::kOn : spec::FailMode::kOnce);
  state_.is_failing = fails;
}

void PinnedWorld::plan_failure(CallKind kind, std::uint64_t n, spec::FailMode mode) {
  gpu_->fail(kind, n, mode);
  state_.is_failing = true;
  state_.is_planned = true;
}

void PinnedWorld::capture() {
  const std::uint64_t n = input_.next();
  switch (n % 8) {
    case 0:
    case 1:
      report(captures_->begin(streams_[any_stream()].stream, n >= 128, state_.is_failing));
      break;
    case 2:
    case 3: end_capture(); break;
    case 4:
    case 5:
    case 6: report(captures_->launch(n / 8)); break;
    default: report(captures_->release(n / 8, state_.is_failing));
  }
  // Launches of a released pool's graphs may use them until a synchronisation has covered those. What was freed
  // meanwhile is known to be done only when no capture is open.
  for (auto* const blocks : {&live_, &freed_}) {
    if (blocks == &freed_ && !captures_->is_open()) continue;
    for (Block& block : *blocks)
      block.has_lost_user |= block.pool != 0 && captures_->is_released(block.pool);
  }
  check_stats(false);
}

void PinnedWorld::end_capture() {
  report(captures_->end());
  for (auto* const blocks : {&live_, &freed_}) {
    for (Block& block : *blocks) block.is_in_graph = false;
  }
}

void PinnedWorld::finish() {
  account_ = gpu_->account();
  gpu_->heal();
  state_.is_failing = false;
  end_capture();
  report(captures_->release_all());
  while (finding_.empty() && !live_.empty()) free_one();
  if (!finding_.empty()) return;
  if (!gpu_->drain_all().is_ok()) return report("the machine", "work that never ends");
  const Status trimmed = allocator_->caching().trim(allocator_->device());
  if (!trimmed.is_ok()) return report("C28", "the last trim: ", trimmed.why());
  const spec::Ledger held = gpu_->ledger();
  if (held.pinned.count + held.registered.count != 0)
    report("C14", held.pinned.count + held.registered.count, " ranges stay locked");
  state_.may_be_unrecorded = false;
  freed_.clear();
  check_stats(true);
  if (const char* broken = allocator_->caching().validate()) report("C5", broken);
  allocator_.reset();
  if (!gpu_->leak_check()) report("C14", "the driver still holds something");
  for (const spec::Fault& fault : gpu_->take_faults()) report("the machine", fault.text);
}

}  // namespace ashlar::props
