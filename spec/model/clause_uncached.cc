// DEV-22, without a cache (Config::caches): every request goes to the device, and what is freed goes back to it.
// See cache_clauses.h.
//
//   given   an allocation is a segment that the device gave in this call, with no byte to spare
//   kept    after an allocation or a free no idle segment is left whose work was done. Judged of blocks that were found free
//           before the last such call, which recorded an event behind them, and only where the subject can know every
//           completion. Memory that goes back too early is the detector's to report (D4, C6)
#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

void judge_given(CacheState& state, const JudgedDevice& device, const JudgedCall& call) {
  if (!device.ledger.has_grown())
    return state.verdict.report("DEV-22", "nothing is cached, but ", hex(call.address),
                                " is memory that the device did not give in the call");
  if (!device.map.is_fresh) return;
  const cache::SnapshotSegment* const segment =
      find_segment(device.map.view.segments, call.address);
  if (segment == nullptr) return;  // the walk has said so
  const std::uint64_t rounded = state.rules.rounded(call.requested);
  if (segment->base.value() == call.address && segment->size.count() == rounded) return;
  state.verdict.report("DEV-22", "nothing is cached, but ", hex(call.address),
                       " lies in a segment of ", segment->size.count(), " bytes, not ", rounded);
}

void judge_kept(CacheState& state, const JudgedDevice& device) {
  if (!device.map.is_fresh || !is_all_knowable(state) || end_of(state, device) != Code::kOk) return;
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    const std::uint64_t released = device.released_in(segment.ordinal);
    if (released == 0 || released >= device.releases.marked_in ||
        !is_idle(device.map.view, segment) || !may_go_back(state, device, segment))
      continue;
    state.verdict.report("DEV-22", "nothing is cached, but segment ", segment.ordinal,
                         " is kept, though it is free and its work is done");
    return;
  }
}

}  // namespace

void judge_uncached(CacheState& state, const JudgedDevice& device, const JudgedCall& call) {
  if (state.rules.caches() || state.world.callback_ran || (call.fails && !call.allocates)) return;
  const bool is_given = call.is_allocation && call.requested != 0 && !call.fails;
  if (is_given) judge_given(state, device, call);
  if (call.allocates || call.frees) judge_kept(state, device);
}

}  // namespace ashlar::spec
