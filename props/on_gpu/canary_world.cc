#include "props/on_gpu/canary_world.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "props/on_gpu/canary_graphs.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {
namespace {

constexpr std::uint64_t kOpsPerCollection = 40;
constexpr unsigned kUntouchedPerOp = 2;
/// Half of the kernels spin for up to so long, a fifth of a millisecond: longer than the host needs for some ops.
constexpr std::uint64_t kSpinTicksMax = 400'000;

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

CanaryCounts& CanaryCounts::operator+=(const CanaryCounts& more) {
  ops += more.ops;
  skipped += more.skipped;
  fills += more.fills;
  checks += more.checks;
  launches += more.launches;
  moves += more.moves;
  return *this;
}

CanaryWorld::CanaryWorld(GpuSession& session, Canaries& canaries, Planted planted,
                         const CanaryPlan& plan)
    : session_(session),
      canaries_(canaries),
      planted_(planted),
      device_(session.device(), planted),
      graphs_(std::make_unique<CanaryGraphs>(*this)),
      random_(plan.seed) {
  std::string error;
  const Result<cache::Config> config = cache::parse_config(plan.conf, &error);
  device::Device* const devices[] = {&device_};
  auto made =
      cache::CachingAllocator::create(devices, config.is_ok() ? config.value() : cache::Config{});
  if (!config.is_ok()) fail("the configuration " + plan.conf + ": " + error);
  if (!made.is_ok()) fail(std::string("no allocator: ") + made.status().why());
  if (!failure_.empty()) return;
  allocator_ = std::move(made).value();
  judge("set_memory_limit", allocator_->set_memory_limit(DeviceId{0}, plan.limit));
  create_stream(0);
}

CanaryWorld::~CanaryWorld() = default;

// What happened.

void CanaryWorld::fail(const std::string& text) {
  if (!failure_.empty()) return;
  failure_ = (op_.empty() ? "" : "at `" + op_ + "`: ") + text;
  std::fprintf(stderr, "%s\n", failure_.c_str());  // a broken context may end the process soon
}

bool CanaryWorld::judge(const char* call, Status answer) {
  switch (answer.code()) {
    case Code::kOk:
    case Code::kNotReady:
    case Code::kBusy:
    case Code::kNotFound:
    case Code::kOutOfMemory:
    case Code::kOutOfAddresses: break;
    default:
      fail(std::string("allocator: ") + call + " answered " + code_name(answer.code()) + " (" +
           answer.why() + ")");
  }
  return answer.is_ok();
}

void CanaryWorld::begin_op(const std::string& text) {
  ++counts_.ops;
  op_ = text;
}

void CanaryWorld::end_op() {
  for (unsigned n = 0; n < kUntouchedPerOp && !blocks_.empty(); ++n) {
    const auto looked = static_cast<std::uint32_t>(random_.below(blocks_.size()));
    const CanaryBlock& block = blocks_[looked];
    if (!block.is_live || !block.holds_words) continue;
    const std::uint32_t by = checker_of(block);
    if (by != kNone) use(looked, by, spec::Access::kRead);
  }
  if (counts_.ops % kOpsPerCollection == 0 && graphs_->open_capture() == 0) collect();
}

void CanaryWorld::collect() {
  const auto found = canaries_.collect();
  if (!found) return fail("driver: the GPU's work ended with an error");
  for (const Canaries::Finding& each : *found) {
    const auto known = checks_.find(each.slot);
    if (known == checks_.end()) continue;
    const CanaryBlock& block = blocks_[known->second.block];
    const std::uint64_t offset = each.result.first_at - block.at.value();
    fail("canary: " + std::to_string(each.result.mismatches) + " words of owner " +
         std::to_string(block.owner) + " (" + std::to_string(block.size.count()) + " bytes at " +
         std::to_string(block.at.value()) + ", its stream the world's number " +
         std::to_string(block.stream) + ") were wrong in the check of `" + known->second.op +
         "`, the first " + std::to_string(offset) + " bytes from its start: owner " +
         std::to_string(each.result.found >> 32) + "'s word " +
         std::to_string(each.result.found & 0xffffffffu));
  }
  graphs_->destroy_dropped();
}

void CanaryWorld::finish() {
  if (allocator_ == nullptr) return;
  op_ = "the end";
  graphs_->release_all();
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].is_live) free(b, kNone);
  }
  collect();
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    if (streams_[s].is_alive) end_stream(kNone, s);
  }
  static_cast<void>(session_.device().synchronize());
  judge("trim", allocator_->trim(DeviceId{0}));
  if (const char* const broken = allocator_->validate(); broken != nullptr)
    fail(std::string("allocator: validate() says ") + broken);
  allocator_.reset();
  graphs_.reset();
  counts_.moves = device_.moves();
  for (const StreamSlot& each : streams_) {
    if (!each.is_alive) static_cast<void>(session_.device().event_destroy(each.end));
  }
}

// Names.

std::uint32_t CanaryWorld::stream(std::uint64_t name) const {
  const auto known = stream_names_.find(name);
  return known == stream_names_.end() ? kNone : known->second;
}

std::uint32_t CanaryWorld::block(std::uint64_t name) const {
  const auto known = block_names_.find(name);
  return known == block_names_.end() || !blocks_[known->second].is_live ? kNone : known->second;
}

// Streams.

void CanaryWorld::create_stream(std::uint64_t name) {
  stream_names_[name] = static_cast<std::uint32_t>(streams_.size());
  streams_.emplace_back();
  streams_.back().stream = session_.create_stream();
}

void CanaryWorld::end_stream(std::uint64_t name, std::uint32_t s) {
  announce_uses_of(s);
  StreamSlot& slot = streams_[s];
  const Status retired = allocator_->retire_stream(slot.stream);
  if (!judge("retire_stream", retired) && retired.code() != Code::kNotFound) return;
  const Result<EventHandle> end = session_.device().event_create();
  if (!end.is_ok() || !session_.device().event_record(end.value(), slot.stream.handle).is_ok())
    return fail("driver: a stream's end cannot be recorded");
  slot.end = end.value();
  session_.destroy_stream(slot.stream);
  slot.is_alive = false;
  stream_names_.erase(name);
}

void CanaryWorld::order(const Stream& after, const Stream& before) {
  const spec::CallerScope callers_own;
  cuda::CudaDevice& device = session_.device();
  const Result<EventHandle> event = device.event_create();
  if (!event.is_ok() || !device.event_record(event.value(), before.handle).is_ok() ||
      !device.stream_wait(after.handle, event.value()).is_ok())
    return fail("driver: a stream cannot wait for another");
  static_cast<void>(device.event_destroy(event.value()));
}

void CanaryWorld::order_behind_all(std::uint32_t s) {
  for (std::uint32_t other = 0; other < streams_.size(); ++other) {
    if (other != s && streams_[other].is_alive) order(streams_[s].stream, streams_[other].stream);
  }
}

// Memory.

std::uint64_t CanaryWorld::spin_ticks() {
  return random_.one_in(2) ? 0 : random_.below(kSpinTicksMax);
}

CanaryRange CanaryWorld::range_of(const CanaryBlock& block) const {
  return {block.at, block.size, block.owner, block.owner, block.group};
}

void CanaryWorld::allocate(std::uint64_t name, Bytes size, std::uint32_t s) {
  const spec::GraphGroup group = graphs_->group_of(s);
  const bool is_captured = streams_[s].is_capturing;
  if (is_captured && group == 0) return skip();  // a graph's memory is a pool's
  const Stream& on = streams_[s].stream;
  const Result<Address> got = allocator_->allocate(size, on);
  judge("allocate", got.status());
  if (!got.is_ok() || got.value().is_null()) return;
  const Result<cache::AllocationInfo> info = allocator_->info(got.value());
  if (!info.is_ok()) return fail("allocator: info() does not know a new allocation");
  CanaryBlock made;
  made.at = got.value();
  made.size = info.value().size;
  made.owner = blocks_.size() + 1;
  made.stream = s;
  made.group = group;
  made.capture = is_captured ? graphs_->open_capture() : 0;
  for (const CanaryBlock& each : blocks_) {
    if (each.is_live && each.overlaps(made)) fail("allocator: C2: a live allocation's bytes");
  }
  if (spec::SimGpu* const machine = session_.machine(); machine != nullptr)
    machine->on_allocate(made.owner, made.at, made.size, on, group, &on);
  const auto index = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back(std::move(made));
  block_names_[name] = index;
  fill(index, s);
}

void CanaryWorld::fill(std::uint32_t b, std::uint32_t s) {
  if (!streams_[s].is_capturing) graphs_->order_behind_launch(blocks_[b].group, s);
  ++counts_.fills;
  blocks_[b].holds_words = true;
  if (!canaries_.fill(range_of(blocks_[b]), streams_[s].stream, spin_ticks()))
    fail("driver: a kernel is refused");
}

void CanaryWorld::check(std::uint32_t b, std::uint32_t s, bool writes) {
  const bool is_captured = streams_[s].is_capturing;
  const auto slot = is_captured ? graphs_->slot_in_graph() : canaries_.take_slot();
  if (!slot) return;
  if (!is_captured) graphs_->order_behind_launch(blocks_[b].group, s);
  ++counts_.checks;
  checks_[*slot] = {op_, b};
  if (!canaries_.check(range_of(blocks_[b]), streams_[s].stream, spin_ticks(), *slot, writes))
    fail("driver: a kernel is refused");
}

bool CanaryWorld::may_use(const CanaryBlock& block, std::uint32_t s) const {
  const StreamSlot& slot = streams_[s];
  if (!slot.is_alive) return false;
  // In a graph it uses what the graph has made, and outside nothing of a graph that is not yet one.
  if (slot.is_capturing || block.capture != 0)
    return slot.is_capturing && block.capture != 0 && streams_[block.stream].is_capturing;
  // Its first words are written on a stream whose place only a capture knows now.
  return s == block.stream || contains(block.ordered, s) || !streams_[block.stream].is_capturing;
}

std::uint32_t CanaryWorld::checker_of(const CanaryBlock& block) {
  if (streams_[block.stream].is_alive) return may_use(block, block.stream) ? block.stream : kNone;
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    if (may_use(block, s)) return s;
  }
  return kNone;
}

void CanaryWorld::use(std::uint32_t b, std::uint32_t s, spec::Access access) {
  CanaryBlock& block = blocks_[b];
  if (!may_use(block, s)) return skip();
  // Only its own stream writes words anew where there are none: others would not be ordered behind them.
  if (!block.holds_words && (access != spec::Access::kWrite || s != block.stream)) return skip();
  if (s != block.stream) {
    const StreamSlot& own = streams_[block.stream];
    if (!contains(block.ordered, s)) {
      if (own.is_alive) order(streams_[s].stream, own.stream);
      else static_cast<void>(session_.device().stream_wait(streams_[s].stream.handle, own.end));
      block.ordered.push_back(s);
    }
    if (!contains(block.unannounced, s)) block.unannounced.push_back(s);
  }
  if (access == spec::Access::kWrite) return fill(b, s);
  check(b, s, access == spec::Access::kReadWrite);
}

void CanaryWorld::announce(std::uint32_t b, std::uint32_t s) {
  CanaryBlock& block = blocks_[b];
  std::erase(block.unannounced, s);
  if (planted_ == Planted::kForgottenUse) return;
  judge("record_use", allocator_->record_use(block.at, streams_[s].stream));
  if (spec::SimGpu* const machine = session_.machine(); machine != nullptr)
    machine->on_use_announced(block.owner, streams_[s].stream);
}

void CanaryWorld::announce_uses_of(std::uint32_t s) {
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].is_live && contains(blocks_[b].unannounced, s)) announce(b, s);
  }
}

void CanaryWorld::free(std::uint32_t b, std::uint32_t on) {
  CanaryBlock& block = blocks_[b];
  if (on != kNone && on != block.stream && may_use(block, on) && block.holds_words)
    use(b, on, spec::Access::kRead);
  const std::uint32_t by = checker_of(block);
  if (by != kNone && block.holds_words) use(b, by, spec::Access::kRead);
  const std::vector<std::uint32_t> users = block.unannounced;
  for (const std::uint32_t user : users) {
    if (user != on) announce(b, user);
  }
  const bool is_named = on != kNone && planted_ != Planted::kForgottenUse;
  spec::SimGpu* const machine = session_.machine();
  if (machine != nullptr && is_named) machine->on_use_announced(block.owner, streams_[on].stream);
  // Without a cache the memory may go back to the device inside the call.
  const bool is_told_first = !allocator_->config().caches;
  if (machine != nullptr && is_told_first) machine->on_free(block.owner);
  const Status freed =
      is_named ? allocator_->free(block.at, streams_[on].stream) : allocator_->free(block.at);
  if (!judge("free", freed)) return fail("allocator: a live block is not freed");
  block.is_live = false;
  if (machine != nullptr && !is_told_first) machine->on_free(block.owner);
}

}  // namespace ashlar::props
