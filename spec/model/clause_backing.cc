// C21, DEV-24: memory that is pinned stays, and observers know what memory there is. See cache_clauses.h.
#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

void judge_pinned(CacheState& state, const JudgedDevice& device) {
  for (const AddressRange& lost : device.ledger.witness().backing().lost()) {
    if (device.pins.touches(lost))
      state.verdict.report("C21", "memory of [", hex(lost.begin), ", ", hex(lost.end),
                           ") went away, which is pinned");
  }
}

void judge_told(CacheState& state, const JudgedDevice& device) {
  if (device.ledger.witness().backing().usable().covers(device.pins.told())) return;
  state.verdict.report("DEV-24", "observers of mappings know of memory that has gone");
}

/// All memory as the map shows it.
RangeSet shown_memory(const JudgedDevice& device) {
  RangeSet shown = shown_pages(device);
  for (const DeviceWitness::Held& segment : device.ledger.witness().segments()) {
    if (!segment.is_paged) shown.add({segment.base, segment.base + segment.size});
  }
  return shown;
}

}  // namespace

void judge_backing(CacheState& state) {
  for (const JudgedDevice& device : state.devices) {
    judge_pinned(state, device);
    judge_told(state, device);
  }
}

void judge_shown_backing(CacheState& state, const JudgedDevice& device) {
  if (!state.world.observes_mappings && device.pins.is_empty()) return;
  const RangeSet shown = shown_memory(device);
  if (!shown.covers(device.pins.memory()))
    state.verdict.report("C21", "a pinned range is not shown as memory any more");
  if (state.world.observes_mappings && shown != device.pins.told())
    state.verdict.report("DEV-24", "the observers of mappings know of ", device.pins.told().bytes(),
                         " bytes of memory, and ", shown.bytes(), " are shown, or they are others");
}

bool may_go_back(const CacheState& state, const JudgedDevice& device,
                 const cache::SnapshotSegment& segment) {
  const std::uint64_t base = segment.base.value();
  return !state.pools.is_reserved(heap_of(segment)) &&
         !device.pins.touches({base, base + segment.size.count()});
}

}  // namespace ashlar::spec
