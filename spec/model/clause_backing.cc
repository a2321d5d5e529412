// C21, DEV-24: memory that is pinned stays, and observers know what memory there is. See cache_clauses.h.
#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

void judge_pinned(CacheState& state, const JudgedDevice& device) {
  if (device.pins.is_empty()) return;
  for (const AddressRange& lost : device.ledger.witness().backing().lost()) {
    if (device.pins.touches(lost))
      state.verdict.report("C21", "memory of [", hex(lost.begin), ", ", hex(lost.end),
                           ") went away, which is pinned");
  }
}

void judge_told(CacheState& state, const JudgedDevice& device) {
  if (!state.world.observes_mappings) return;
  const DeviceWitness& witness = device.ledger.witness();
  const RangeSet& told = device.pins.told();
  if (!witness.backing().usable().covers(told))
    state.verdict.report("DEV-24", "observers of mappings know of memory that has gone");
  // They know of each page once (PinAnswers::judge_event()). So they know of all that is held if it is as much.
  if (told.bytes() != witness.taken_bytes() && !has_refused_pages(state, device))
    state.verdict.report("DEV-24", "the observers of mappings know of ", told.bytes(),
                         " bytes of memory, and ", witness.taken_bytes(), " are held");
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

void judge_given_memory(CacheState& state, const JudgedDevice& device, const AddressRange& given) {
  if (device.pins.is_empty()) return;
  if (device.ledger.witness().pages().any_alias_in(given, device.pins.memory()))
    state.verdict.report("C21", "a page that is pinned elsewhere serves at ", hex(given.begin));
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
