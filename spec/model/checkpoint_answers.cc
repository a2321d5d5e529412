#include "spec/model/checkpoint_answers.h"

#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

/// The addresses of the list, in order.
std::vector<std::uint64_t> sorted(const std::vector<Address>& list) {
  std::vector<std::uint64_t> addresses;
  for (const Address each : list) addresses.push_back(each.value());
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

/// Does the block lie in memory of a dead stream's that it got in place of an out-of-memory?
bool is_lent(const OwnedBlock& block, const cache::SnapshotSegment& segment) {
  return block.stream != segment.stream.value();
}

}  // namespace

CheckpointAnswers::PoolSegments CheckpointAnswers::map_of(DeviceId id,
                                                          const MemoryPoolBook::Pool& pool) {
  PoolSegments map;
  cache::Snapshot all;
  if (!model_.state_.subject.snapshot(id, &all).is_ok())
    model_.report("C3", "no snapshot could be taken");
  for (const cache::SnapshotSegment& segment : all.segments) {
    const bool is_pools = std::any_of(
        pool.heaps.begin(), pool.heaps.end(),
        [&](const MemoryPoolBook::PoolHeap& each) { return each.heap == heap_of(segment); });
    if (!is_pools) continue;
    map.segments.push_back(segment);
    for (std::uint32_t i = 0; i < segment.block_count; ++i)
      map.has_pending |= all.blocks[segment.block_first + i].state == BlockState::kPending;
  }
  return map;
}

std::vector<std::uint64_t> CheckpointAnswers::owned_in(const JudgedDevice& device,
                                                       const PoolSegments& map, bool is_pending) {
  std::vector<std::uint64_t> found;
  for (const auto& [address, block] : device.books.owned()) {
    if (block.is_pending == is_pending && find_segment(map.segments, address) != nullptr)
      found.push_back(address);
  }
  return found;
}

bool CheckpointAnswers::has_uses(const JudgedDevice& device, const PoolSegments& map,
                                 bool may) const {
  for (const std::uint64_t address : owned_in(device, map, false)) {
    const cache::SnapshotSegment& segment = *find_segment(map.segments, address);
    const OwnedBlock& block = *device.books.find_live(address);
    if (is_lent(block, segment)) return true;
    const bool has_use = std::any_of(block.uses.begin(), block.uses.end(), [&](std::uint64_t user) {
      const bool is_over = model_.state_.streams.is_dead(user) ||
                           model_.state_.streams.is_only_in_graph(block, user);
      return user != segment.stream.value() && (may || !is_over);
    });
    if (has_use || (may && !block.of_bodies.empty())) return true;
  }
  return false;
}

void CheckpointAnswers::judge_checkpoint(DeviceId id, MemoryPoolId pool,
                                         const Result<cache::PoolCheckpoint>& got,
                                         SavedPool* saved) {
  JudgedDevice& device = model_.state_.at(id);
  device.books.begin_call();
  const MemoryPoolBook::Pool* const known = model_.state_.pools.find(id, pool);
  const bool overflows = known != nullptr && known->options.overflow;
  if (known == nullptr || overflows || model_.state_.pools.is_routed(id, pool)) {
    const Code refusal = known == nullptr ? Code::kNotFound
                         : overflows      ? Code::kUnsupported
                                          : Code::kBusy;
    return model_.judge_refused(device, got.status(), refusal, refusal, "a checkpoint");
  }
  JudgedCall call;
  call.fails = !got.is_ok();
  call.is_query = true;
  call.device_calls_max = 0;
  const PoolSegments map = map_of(id, *known);
  const std::vector<std::uint64_t> live = owned_in(device, map, false);
  const bool any_lent = std::any_of(live.begin(), live.end(), [&](std::uint64_t address) {
    return is_lent(*device.books.find_live(address), *find_segment(map.segments, address));
  });
  if (is_host_refusal(model_.state_, got.code())) {
    call.is_broken_off = true;
  } else if (any_lent || !got.is_ok()) {
    if (!any_lent || got.code() != Code::kBusy)
      model_.report("C16", "a checkpoint answered ", code_name(got.code()));
  } else {
    *saved = {id, pool, known->serial, {}};
    for (const std::uint64_t address : live)
      saved->blocks.emplace_back(address, *device.books.find_live(address));
    const std::size_t count = got.value().allocation_count();
    if (count != saved->blocks.size())
      model_.report("C11", "a checkpoint has ", count, " allocations, but ", saved->blocks.size(),
                    " of the pool are live");
  }
  model_.end(device, call);
}

void CheckpointAnswers::judge_restore(const SavedPool& saved, Status got,
                                      const cache::RestoredPool& changed, std::uint64_t first_tag) {
  JudgedDevice& device = model_.state_.at(saved.device);
  device.books.begin_call();
  const MemoryPoolBook::Pool* const known = model_.state_.pools.find(saved.device, saved.pool);
  Code refusal = Code::kOk;
  if (known == nullptr) refusal = Code::kNotFound;
  else if (known->serial != saved.serial) refusal = Code::kInvalidArgument;
  else if (model_.state_.pools.is_routed(saved.device, saved.pool)) refusal = Code::kBusy;
  else if (model_.state_.streams.any_body()) refusal = Code::kBusy;
  if (refusal != Code::kOk)
    return model_.judge_refused(device, got, refusal, refusal, "a return to a checkpoint");
  const PoolSegments map = map_of(saved.device, *known);
  JudgedCall call;
  // What it learns of finished uses stays, also where it fails.
  call.fails = call.is_broken_off = !got.is_ok();
  std::uint64_t uses = 0;
  for (const std::uint64_t address : owned_in(device, map, true))
    uses += device.books.owned().find(address)->second.uses_max() + 1;
  // Besides what a record of each may cost, its event is asked.
  call.device_calls_max = calls_max_of_uses(uses, false) + uses;
  judge_answer(device, map, got);
  if (got.is_ok() && model_.verdict().is_good())
    follow_restore(device, map, saved, changed, first_tag);
  model_.end(device, call);
}

void CheckpointAnswers::judge_answer(JudgedDevice& device, const PoolSegments& map, Status got) {
  if (is_host_refusal(model_.state_, got.code())) return;
  const bool is_allowed = got.is_ok()                     ? !has_uses(device, map, false)
                          : got.code() == Code::kNotReady ? map.has_pending
                          : got.code() == Code::kBusy     ? has_uses(device, map, true)
                                                          : false;
  if (is_allowed) return;
  if (got.is_ok())
    return model_.report("C7", "a return to a checkpoint ended an allocation with uses");
  model_.report("C16", "a return to a checkpoint answered ", code_name(got.code()));
}

void CheckpointAnswers::follow_restore(JudgedDevice& device, const PoolSegments& map,
                                       const SavedPool& saved, const cache::RestoredPool& changed,
                                       std::uint64_t first_tag) {
  const std::vector<std::uint64_t> live = owned_in(device, map, false);
  if (sorted(changed.freed) != live)
    return model_.report("C11", "a return to a checkpoint says that it ended ",
                         changed.freed.size(), " allocations, not the ", live.size(),
                         " that were live");
  std::vector<std::uint64_t> target;
  for (const auto& [address, block] : saved.blocks) target.push_back(address);
  if (sorted(changed.created) != target)
    return model_.report("C11", "a return to a checkpoint says that it made ",
                         changed.created.size(), " allocations, not the ", target.size(),
                         " that were live then");
  for (const std::uint64_t address : live)
    device.books.start_pending(address, &device.books.owned().find(address)->second);
  for (const std::uint64_t address : owned_in(device, map, true))
    device.books.complete(device.books.owned().find(address));
  for (const auto& [address, then] : saved.blocks) {
    const cache::SnapshotSegment* const segment = find_segment(map.segments, address);
    if (segment == nullptr) return model_.report("C8", "the pool has lost ", hex(address));
    OwnedBlock block = then;
    block.tag = first_tag++;
    block.uses.clear();
    block.of_bodies.clear();
    // What is made in a capture is the graph's, as if it had been allocated there.
    const std::uint64_t graph = model_.state_.streams.graph_of(StreamId{block.stream});
    if (graph != 0) block.capture = graph;
    // The segment may have passed from a dead stream's heap to another of the pool.
    if (model_.state_.streams.is_dead(block.stream)) block.stream = segment->stream.value();
    device.books.add_live(address, block);
    device.bounds.add_allocation(block.pool, block.size, block.requested);
  }
}

}  // namespace ashlar::spec
