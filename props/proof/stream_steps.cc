#include "props/proof/stream_steps.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "props/adapters/caching_allocator_subject.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::props {

using cache::SnapshotBlock;
using cache::SnapshotSegment;
using spec::Op;
namespace slot = spec::slot;

namespace {

constexpr DeviceId kDevice{0};
constexpr std::uint64_t kGranule = 512;

[[noreturn]] void give_up(const std::string& why) {
  std::fflush(stdout);
  std::fprintf(stderr, "stream_trace: %s\n", why.c_str());
  std::exit(1);
}

Op make_op(std::uint8_t what, std::uint64_t first, std::uint64_t second, std::string text = {}) {
  Op op;
  op.slot = what;
  op.arg = {first, second, 0, 0};
  op.text = std::move(text);
  return op;
}

}  // namespace

StreamSteps::StreamSteps(const std::string& conf, std::uint64_t capacity, std::uint64_t seed,
                         std::uint32_t streams)
    : works_(streams), works_done_(streams), works_pending_(streams) {
  spec::CacheLockstep::Options options;
  options.stats_every = 64;  // other suites check the statistics
  options.machine.reuses_addresses = false;
  options.factory = [this](std::span<device::Device* const> devices, const std::string& with) {
    log_ = std::make_shared<OrderLog>(*devices[0]);
    device::Device* const logged = log_.get();
    return caching_allocator_factory()(std::span<device::Device* const>(&logged, 1), with);
  };
  lockstep_ = std::make_unique<spec::CacheLockstep>(std::move(options));
  lockstep_->step(make_op(slot::kConf, 0, 0, conf));
  lockstep_->step(make_op(slot::kDevice, 0, capacity));
  lockstep_->step(make_op(slot::kSeed, seed, 0));
  for (std::uint32_t name = 0; name < streams; ++name) {
    // s0 exists already; its op only builds the machine
    lockstep_->step(make_op(slot::kStreamCreate, name, 0));
    const Stream* const stream = lockstep_->find_stream(name);
    if (stream == nullptr) give_up("a stream could not be made");
    streams_.push_back(stream->id.value());
    handles_.push_back(stream->handle);
  }
  for (const unsigned number : {0u, 1u}) worlds_.emplace_back(number, streams);
  std::printf("W %u\n", streams);
}

void StreamSteps::run(const Op& op, spec::Random& probes) {
  before_ = model().device(kDevice).map.view.segments;
  log_->clear();
  lockstep_->step(op);
  const spec::LockstepResult& result = lockstep_->result();
  if (!result.is_good())
    give_up(spec::print_op(op) + ": " + result.divergence.clause + ": " + result.divergence.text);
  if (lockstep_->was_skipped()) give_up("skipped: " + spec::print_op(op));
  if (result.caller_faults != 0) give_up("the detector blames the caller: " + spec::print_op(op));
  tell(op);
  const std::uint64_t small = worlds_[0].close(model(), streams_, PoolId::kSmall);
  const std::uint64_t large = worlds_[1].close(model(), streams_, PoolId::kLarge);
  std::printf("= %llu %llu\n", static_cast<unsigned long long>(small),
              static_cast<unsigned long long>(large));
  for (StreamWorld& world : worlds_) world.probe(probes);
}

void StreamSteps::finish() {
  const spec::LockstepResult& result = lockstep_->finish();
  if (!result.is_good())
    give_up(result.op_text + ": " + result.divergence.clause + ": " + result.divergence.text);
}

// The steps of an op.

void StreamSteps::tell(const Op& op) {
  const bool has_memory = op.slot == slot::kAlloc && lockstep_->outcome() == Code::kOk;
  const std::uint64_t launched_on = has_memory                 ? op.arg[2]
                                    : op.slot == slot::kKernel ? op.arg[0]
                                                               : kNobody;
  count_pending();
  tell_progress(static_cast<std::uint32_t>(launched_on));
  if (op.slot == slot::kFree || op.slot == slot::kFreeOn) tell_free(op);
  if (op.slot == slot::kUse) {
    const Pointer& used = pointer(op.arg[0]);
    world_of(used.pool).announce(used.address, static_cast<std::uint32_t>(op.arg[1]));
  }
  if (op.slot == slot::kRecord)
    tell_record(static_cast<std::uint32_t>(op.arg[1]), &user_events_, op.arg[0]);
  if (op.slot == slot::kWait)
    tell_wait(static_cast<std::uint32_t>(op.arg[0]), user_events_, op.arg[1]);
  tell_settled();
  tell_calls();
  tell_adopted();
  last_tag_ += op.slot == slot::kAlloc;
  if (has_memory) tell_allocated(op);
  if (op.slot == slot::kKernel)
    tell_kernel(pointer(op.arg[1]), static_cast<std::uint32_t>(op.arg[0]));
  tell_progress(kNobody);
}

/// Counts the kernels in each stream's queue. An entry is its kind, what it names, and for a kernel
/// the range it touches.
void StreamSteps::count_pending() {
  std::fill(works_pending_.begin(), works_pending_.end(), 0);
  queues_.clear();
  lockstep_->gpu()->queue_contents(&queues_);
  std::uint64_t identity = 0;
  for (std::size_t at = 0; at < queues_.size();) {
    ++identity;  // lanes are in the order of the identities 1, 2, ...
    const auto found = std::find(streams_.begin(), streams_.end(), identity);
    for (std::uint64_t left = queues_[at++]; left > 0; --left) {
      const bool is_kernel = queues_[at] == 0;
      at += is_kernel ? 4 : 2;
      if (is_kernel && found != streams_.end())
        ++works_pending_[static_cast<std::size_t>(found - streams_.begin())];
    }
  }
}

/// Prints the work that has finished. On `launching`, one kernel is launched that is not printed
/// yet.
void StreamSteps::tell_progress(std::uint32_t launching) {
  for (std::uint32_t t = 0; t < streams(); ++t) {
    const std::size_t finished = works_[t].size() + (t == launching) - works_pending_[t];
    const std::size_t until = std::min(finished, works_[t].size());
    for (std::size_t& at = works_done_[t]; at < until; ++at) world_of(works_[t][at]).progress(t);
  }
}

void StreamSteps::tell_free(const Op& op) {
  const Pointer freed = pointer(op.arg[0]);
  std::erase_if(live_, [&freed](const Pointer& each) { return each.name == freed.name; });
  StreamWorld& world = world_of(freed.pool);
  // The lockstep is a lawful caller and announces these uses; the allocation's own stream needs
  // none.
  StreamSet announced = world.held(freed.address).users & ~only(freed.stream);
  if (op.slot == slot::kFreeOn) announced |= only(static_cast<std::uint32_t>(op.arg[1]));
  for (std::uint32_t t = 0; t < streams(); ++t) {
    if ((announced & only(t)) != 0) world.announce(freed.address, t);
  }
  world.give(freed.address);
}

/// Prints the pending blocks that are no longer pending in the model.
void StreamSteps::tell_settled() {
  const spec::OwnedBlocks& owned = model().device(kDevice).books.owned();
  for (StreamWorld& world : worlds_) {
    for (const std::uint64_t address : world.pending()) {
      const auto found = owned.find(address);
      if (found == owned.end() || !found->second.is_pending) world.settle(address);
    }
  }
}

void StreamSteps::tell_calls() {
  for (const OrderLog::Entry& entry : log_->entries()) {
    switch (entry.kind) {
      case OrderLog::Kind::kRecord:
        tell_record(stream_of(entry.stream), &events_, entry.what);
        break;
      case OrderLog::Kind::kWait: tell_wait(stream_of(entry.stream), events_, entry.what); break;
      case OrderLog::Kind::kReturn: {
        const SnapshotSegment* const segment = spec::find_segment(before_, entry.what);
        if (segment == nullptr) give_up("a segment was given back that did not exist");
        world_of(segment->pool)
            .give_back(heap_of(*segment), segment->base.value(), segment->size.count());
        break;
      }
      case OrderLog::Kind::kGrant: {
        const SnapshotSegment* const segment =
            spec::find_segment(model().device(kDevice).map.view.segments, entry.what);
        if (segment == nullptr) give_up("a segment was granted that does not exist");
        world_of(segment->pool)
            .extend(heap_of(*segment), segment->base.value(), segment->size.count());
        break;
      }
    }
  }
}

/// Prints the segments that changed heaps.
void StreamSteps::tell_adopted() {
  for (const SnapshotSegment& now : model().device(kDevice).map.view.segments) {
    const SnapshotSegment* const was = spec::find_segment(before_, now.base.value());
    if (was == nullptr || was->ordinal != now.ordinal || was->stream == now.stream) continue;
    world_of(now.pool).adopt(heap_of(*was), heap_of(now), now.base.value(), now.size.count());
  }
}

void StreamSteps::tell_allocated(const Op& op) {
  const std::uint64_t tag = last_tag_;
  const cache::Snapshot& view = model().device(kDevice).map.view;
  for (const auto& [address, own] : model().device(kDevice).books.owned()) {
    if (own.tag != tag || own.is_pending) continue;
    const SnapshotSegment& segment = *spec::find_segment(view.segments, address);
    const SnapshotBlock* const blocks = view.blocks.data() + segment.block_first;
    std::uint32_t i = 0;
    while (blocks[i].address.value() != address) ++i;
    const bool has_rest = i + 1 < segment.block_count && blocks[i + 1].state == BlockState::kFree;
    const auto stream = static_cast<std::uint32_t>(op.arg[2]);
    const StreamWorld::Request request{own.requested,
                                       (own.requested + kGranule - 1) / kGranule * kGranule};
    world_of(segment.pool)
        .take(heap_of(segment), stream, address, own.size,
              has_rest ? blocks[i + 1].size.count() : 0, request);
    live_.push_back({op.arg[0], address, stream, segment.pool});
    return tell_kernel(live_.back(), stream);  // the lockstep writes to it at once
  }
  give_up("an allocation that the model does not own: " + spec::print_op(op));
}

void StreamSteps::tell_record(std::uint32_t stream, Events* events, std::uint64_t event) {
  for (StreamWorld& world : worlds_) world.record(stream);
  const auto found = std::find_if(events->begin(), events->end(),
                                  [event](const auto& each) { return each.first == event; });
  if (found == events->end()) events->emplace_back(event, next_event_++);
  else found->second = next_event_++;
}

void StreamSteps::tell_wait(std::uint32_t stream, const Events& events, std::uint64_t event) {
  for (const auto& [name, number] : events) {
    if (name != event) continue;
    for (StreamWorld& world : worlds_) world.wait(stream, number);
  }
}

void StreamSteps::tell_kernel(const Pointer& pointer, std::uint32_t stream) {
  world_of(pointer.pool).kernel(pointer.address, stream);
  works_[stream].push_back(pointer.pool);
}

// Names.

std::uint32_t StreamSteps::heap_of(const SnapshotSegment& segment) const {
  return static_cast<std::uint32_t>(
      std::find(streams_.begin(), streams_.end(), segment.stream.value()) - streams_.begin());
}

std::uint32_t StreamSteps::stream_of(StreamHandle handle) const {
  return static_cast<std::uint32_t>(std::find(handles_.begin(), handles_.end(), handle) -
                                    handles_.begin());
}

const StreamSteps::Pointer& StreamSteps::pointer(std::uint64_t name) const {
  for (const Pointer& each : live_) {
    if (each.name == name) return each;
  }
  give_up("no such pointer");
}

}  // namespace ashlar::props
