// C8: what belongs to a memory pool in use goes to its allocations alone, and stays. See
// cache_clauses.h.
#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

/// A segment may pass from a dead stream's heap to another of the same pool.
bool may_pass(const CacheState& state, const cache::SnapshotSegment& was,
              const cache::SnapshotSegment& now) {
  return now.memory_pool == was.memory_pool && state.pools.is_reserved(heap_of(now)) &&
         state.streams.is_dead(was.stream.value());
}

/// A range of addresses without memory is what a heap has from an earlier owner: it says nothing of a pool.
bool has_memory(const cache::Snapshot& map, const cache::SnapshotSegment& segment) {
  return segment.block_count != 1 || map.blocks[segment.block_first].state != BlockState::kUnmapped;
}

/// The pool's memory that was there before the call is there after it, in whichever of its heaps.
void judge_kept(CacheState& state, const JudgedDevice& device) {
  for (const cache::SnapshotSegment& was : device.map.next.segments) {
    if (!state.pools.is_reserved(heap_of(was)) || !has_memory(device.map.next, was)) continue;
    const cache::SnapshotSegment* const now =
        find_segment(device.map.view.segments, was.base.value());
    const bool is_there = now != nullptr && now->ordinal == was.ordinal;
    if (is_there && (heap_of(*now) == heap_of(was) || may_pass(state, was, *now))) continue;
    state.verdict.report("C8", "segment ", was.ordinal, " of memory pool {", was.memory_pool.first,
                         ", ", was.memory_pool.second, "} was given away");
    return;
  }
}

/// The memory of a released pool, which launches of its graphs may still use, stays where it was and
/// serves nobody until a synchronisation of the device has shown that they are done.
void judge_launched(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                    bool has_maps) {
  const std::uint64_t synchronizations = device.ledger.witness().waits().synchronizations;
  if (end_of(state, device) != Code::kOk) return;
  if (call.allocates && !call.fails &&
      state.pools.may_be_launched_at(device.id, call.address, synchronizations))
    state.verdict.report(
        "C8", hex(call.address),
        " of a released memory pool was given out while launches of its graphs may run");
  if (!has_maps) return;
  for (const cache::SnapshotSegment& was : device.map.next.segments) {
    const std::uint64_t heap = heap_of(was);
    if (!state.pools.may_be_launched(device.id, heap, synchronizations)) continue;
    if (!has_memory(device.map.next, was)) continue;
    const cache::SnapshotSegment* const now =
        find_segment(device.map.view.segments, was.base.value());
    if (now != nullptr && now->ordinal == was.ordinal && heap_of(*now) == heap) continue;
    state.verdict.report("C8", "segment ", was.ordinal, " of released memory pool {",
                         was.memory_pool.first, ", ", was.memory_pool.second,
                         "} was given away while launches of its graphs may run");
    return;
  }
}

/// May it be the first that a pool in use has for that stream?
bool is_new_heap(const CacheState& state, const cache::SnapshotSegment& from, StreamId stream) {
  const std::uint64_t heap = heap_of(from);
  return from.stream == stream && !state.pools.is_reserved(heap) && !state.pools.is_released(heap);
}

}  // namespace

void follow_pool_heap(CacheState& state, const JudgedDevice& device, JudgedCall& call) {
  if (call.fails || call.address == 0 || !device.map.is_fresh) return;
  const cache::SnapshotSegment* const from = find_segment(device.map.view.segments, call.address);
  if (from == nullptr) return;  // the walk has said so
  const std::uint64_t heap = heap_of(*from);
  if (call.pool.is_default()) {
    // In place of an out-of-memory.
    const bool is_lent =
        state.pools.overflows(heap) && retry_in(state, device, call) != Happened::kNo;
    if (from->heap != 0 && !is_lent && !state.pools.is_released(heap)) {
      state.verdict.report("C8", hex(call.address), " is memory pool {", from->memory_pool.first,
                           ", ", from->memory_pool.second,
                           "}'s, but was given to an allocation outside it");
    }
    return;
  }
  MemoryPoolBook::Pool* const pool = state.pools.find(device.id, call.pool);
  // In place of an out-of-memory part of a dead stream's segment is lent.
  if (from->memory_pool == call.pool && state.pools.is_reserved(heap) && heap != call.stream &&
      state.streams.is_dead(from->stream.value()) && retry_in(state, device, call) != Happened::kNo)
    return;
  if (from->memory_pool != call.pool || (call.stream != kNoHeap && heap != call.stream) ||
      (call.stream == kNoHeap && !is_new_heap(state, *from, call.named))) {
    state.verdict.report("C8", hex(call.address), " was given to an allocation from memory pool {",
                         call.pool.first, ", ", call.pool.second, "}, whose it is not");
    return;
  }
  if (call.stream == kNoHeap) pool->heaps.push_back({from->stream.value(), heap});
  call.stream = heap;
}

void judge_isolated(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                    bool had_view) {
  if (call.allocates && !call.fails && state.graphs.bodies().is_open(call.capture)) {
    const OwnedBlock* const given = device.books.find_live(call.address);
    const PageWitness& pages = device.ledger.witness().pages();
    if (given != nullptr &&
        state.graphs.bodies().are_held(call.capture,
                                       pages.bytes_at(call.address, call.address + given->size)))
      state.verdict.report("C8", hex(call.address),
                           " was given to the body of a conditional, whose parent held it");
  }
  const bool has_maps = had_view && device.map.is_fresh;
  if (state.pools.any() && has_maps) judge_kept(state, device);
  judge_launched(state, device, call, has_maps);
}

void judge_source(CacheState& state, const JudgedDevice& device, const JudgedCall& call) {
  const GrowthSource* const source = device.ledger.source();
  if (source == nullptr) return;
  if (source->is_wronged())
    state.verdict.report("DEV-8", "a segment did not go back to where it came from");
  if (!call.allocates || call.fails) return;
  const bool is_there = source->has(call.address);
  if (state.asked.has_source && !is_there)
    state.verdict.report("DEV-8", hex(call.address),
                         " is not of the growth device of its memory pool");
  // What its growth device gave to a pool may be others' once the pool is released.
  if (!state.asked.has_source && is_there && device.ledger.plain_granted() != 0)
    state.verdict.report("DEV-8", hex(call.address),
                         " is of a growth device that it was not to come from");
}

}  // namespace ashlar::spec
