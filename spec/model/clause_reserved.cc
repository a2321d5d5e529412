// DEV-11, DEV-12, DEV-23: how much may be reserved, and what goes back so that it is not more. See
// cache_clauses.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

namespace {

/// What is reserved over the collection's threshold when the call begins; 0 if it has none.
std::uint64_t over_threshold(const CacheState& state, const JudgedDevice& device) {
  const double threshold = state.rules.config().collection_threshold;
  if (threshold == 0 || !device.memory.has_limit) return 0;
  const auto kept = static_cast<std::uint64_t>(static_cast<long double>(threshold) *
                                               static_cast<long double>(device.memory.limit));
  return device.ledger.reserved_before() - std::min(device.ledger.reserved_before(), kept);
}

/// The segments of the large pools, never a memory pool's, that were idle before the call and after it.
std::vector<const cache::SnapshotSegment*> kept_idle(const CacheState& state,
                                                     const JudgedDevice& device) {
  std::vector<const cache::SnapshotSegment*> kept;
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    const cache::SnapshotSegment* const was =
        find_segment(device.map.next.segments, segment.base.value());
    if (was != nullptr && was->ordinal == segment.ordinal && is_idle(device.map.next, *was) &&
        is_idle(device.map.view, segment) && segment.pool == PoolId::kLarge && segment.heap == 0 &&
        may_go_back(state, device, segment))
      kept.push_back(&segment);
  }
  return kept;
}

/// Had an earlier collection found the segment idle by the walk `until`? The one before that recorded an
/// event behind its last release, and all work was done then.
bool was_found_idle(const std::vector<SureCollection>& collections, std::uint64_t released,
                    std::uint64_t until) {
  if (released == 0) return false;
  for (std::size_t i = 1; i < collections.size() && collections[i].walk < until; ++i) {
    if (collections[i].was_quiet && released < collections[i - 1].walk) return true;
  }
  return false;
}

/// DEV-11: what went back is large, and was idle for longer than what stays.
void judge_oldest(CacheState& state, const JudgedDevice& device) {
  for (const DeviceWitness::Held& gone : device.ledger.witness().grants().returned()) {
    const cache::SnapshotSegment* const was = find_segment(device.map.next.segments, gone.base);
    if (was == nullptr || was->ordinal != gone.ordinal) continue;
    if (was->pool != PoolId::kLarge)
      state.verdict.report("DEV-11", "segment ", gone.ordinal, " of the small pool went back");
    for (const cache::SnapshotSegment* const kept : kept_idle(state, device)) {
      if (was_found_idle(device.collections, device.released_in(kept->ordinal),
                         device.released_in(gone.ordinal)))
        state.verdict.report("DEV-11", "segment ", gone.ordinal, " went back, though segment ",
                             kept->ordinal, " has been idle for longer");
    }
  }
}

}  // namespace

std::uint64_t ceiling_of(const CacheState& state, const JudgedDevice& device) {
  const std::uint64_t capacity =
      device.memory.capacity == 0 ? kAddressSpace : device.memory.capacity;
  const std::uint64_t headroom = state.rules.config().headroom.count();
  return std::min(device.memory.limit, capacity - std::min(capacity, headroom));
}

Room room_before(const CacheState& state, const JudgedDevice& device) {
  const MemoryBounds& memory = device.memory;
  const bool is_limit_known = memory.has_limit || state.rules.config().memory_fraction >= 1;
  // Where the device does not say how much is free, it may look as if too little were.
  if (!is_limit_known || device.ledger.failed(device::CallKind::kMemoryInfo) != 0) return {};
  // Before it creates pages, a growth asks whether the device has as many.
  const bool asks_device = state.rules.config().headroom != Bytes{} || state.rules.is_paged();
  if (asks_device && state.rules.has_driver_pool()) return {};
  const std::uint64_t ceiling = asks_device ? ceiling_of(state, device) : memory.limit;
  return {true, ceiling - std::min(ceiling, device.ledger.reserved_before())};
}

bool may_collect(const CacheState& state, const JudgedDevice& device) {
  return over_threshold(state, device) != 0 && !state.streams.is_capturing() &&
         state.rules.caches();
}

bool may_give_back_first(const CacheState& state, const JudgedDevice& device) {
  return may_collect(state, device) || (!state.rules.caches() && !state.streams.is_capturing());
}

void judge_collected(CacheState& state, JudgedDevice& device, const JudgedCall& call, bool had_view,
                     std::uint64_t walk) {
  const std::uint64_t over = over_threshold(state, device);
  if (!call.is_allocation || !may_collect(state, device) || state.world.callback_ran ||
      device.ledger.any_failure() || retry_in(state, device, call) != Happened::kNo)
    return;
  std::uint64_t sum = 0;
  std::uint64_t largest = 0;
  for (const DeviceWitness::Held& gone : device.ledger.witness().grants().returned()) {
    sum += gone.size;
    largest = std::max(largest, gone.size);
  }
  if (sum != 0 && sum - largest >= over)
    state.verdict.report("DEV-11", sum, " bytes went back, where ", over, " were to");
  // Only where it asks for memory does a call collect.
  if (!device.ledger.has_grown() || !state.walks_every_call || !had_view || !device.map.is_fresh)
    return;
  judge_oldest(state, device);
  const bool is_quiet = state.world.is_quiet && is_all_knowable(state);
  if (sum < over && is_quiet && !device.collections.empty()) {
    for (const cache::SnapshotSegment* const kept : kept_idle(state, device)) {
      const std::uint64_t released = device.released_in(kept->ordinal);
      if (released == 0 || released >= device.collections.back().walk) continue;
      state.verdict.report("DEV-11", over, " bytes over the threshold were reserved, and segment ",
                           kept->ordinal, " stays idle");
      break;
    }
  }
  device.collections.push_back({walk, is_quiet});
}

void judge_limit(CacheState& state, JudgedDevice& device) {
  const DeviceWitness& witness = device.ledger.witness();
  MemoryBounds& memory = device.memory;
  const double fraction = state.rules.config().memory_fraction;
  if (!memory.has_limit && fraction < 1 && witness.total() != 0) {
    memory.has_limit = true;
    // Up to a whole byte: a limit is never one byte short.
    memory.limit = static_cast<std::uint64_t>(
        std::ceil(static_cast<long double>(fraction) * static_cast<long double>(witness.total())));
  }
  // Nobody can keep a part of what it does not know.
  const bool may_not_know = witness.failures_of(device::CallKind::kMemoryInfo) != 0;
  if (device.ledger.has_grown() && !memory.has_limit && fraction < 1 && !may_not_know)
    state.verdict.report("DEV-12",
                         "memory was taken under per_process_memory_fraction, but the "
                         "device was not asked how much it has");
  // A page that moves was taken before, and so was one that the device refused to take back.
  const bool has_taken =
      device.ledger.plain_granted() + device.ledger.done(device::CallKind::kPageCreate) != 0;
  const std::uint64_t taken = witness.taken_bytes();
  if (has_taken && taken > memory.limit) {
    state.verdict.report("DEV-12", "reserved ", taken, " bytes, over the limit ", memory.limit);
  }
  const std::uint64_t headroom = state.rules.config().headroom.count();
  if (has_taken && headroom != 0 && memory.capacity != 0 && taken > ceiling_of(state, device))
    state.verdict.report("DEV-23", "reserved ", taken, " bytes of ", memory.capacity, ", of which ",
                         headroom, " were to stay free");
}

void judge_given_back(CacheState& state, const JudgedDevice& device, const char* clause,
                      std::uint64_t ceiling, bool has_map_before) {
  const std::uint64_t reserved = device.ledger.witness().taken_bytes();
  if (reserved <= ceiling) {
    // After a wait a segment may have been needed that was larger than what still lacked behind the pages.
    const bool has_segments = device.ledger.done(device::CallKind::kSegmentFree) != 0;
    if (device.ledger.lost_bytes() != 0 && !device.ledger.any_failure() && !has_segments &&
        reserved + kPageBytes <= ceiling)
      state.verdict.report(clause, "no more than ", ceiling,
                           " bytes were to stay reserved, and only ", reserved, " are kept");
    if (!has_map_before) return;
    // One of those that went back was needed at the end, so the largest was.
    std::uint64_t largest = 0;
    for (const cache::SnapshotSegment& was : device.map.next.segments) {
      if (find_segment(device.map.view.segments, was.base.value()) == nullptr)
        largest = std::max(largest, was.size.count());
    }
    if (largest != 0 && reserved + largest <= ceiling)
      state.verdict.report(clause, "no more than ", ceiling,
                           " bytes were to stay reserved, and only ", reserved, " are kept");
    return;
  }
  // Of a device that is gone nothing can be given back.
  if (!is_all_knowable(state) || end_of(state, device) != Code::kOk) return;
  if (device.ledger.any_failure()) return;
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    if (state.pools.is_reserved(heap_of(segment))) continue;
    if (is_paged(device, segment) && whole_page_bytes(device, segment, false) != 0)
      state.verdict.report(clause, reserved, " bytes stay reserved, over ", ceiling,
                           ", and pages of segment ", segment.ordinal, " are free");
    if (is_idle(device.map.view, segment) && may_go_back(state, device, segment))
      state.verdict.report(clause, reserved, " bytes stay reserved, over ", ceiling,
                           ", and segment ", segment.ordinal, " is idle");
  }
}

}  // namespace ashlar::spec
