// DEV-13: what was done to make room: which segments went back, and whether the callbacks were
// called. See cache_clauses.h.
//
// Of two idle segments of one heap, the one whose last block was released earlier is complete if
// the other is: the subject may give back the other only if it knows all earlier work of that
// stream to be done. So the judge needs no knowledge of its own of what is complete.
#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

using cache::SnapshotSegment;

/// Is it there after the call as it was before, idle all along?
bool has_stayed_idle(const cache::Snapshot& before, const cache::Snapshot& after,
                     const SnapshotSegment& segment) {
  if (!is_idle(before, segment)) return false;
  const SnapshotSegment* const now = find_segment(after.segments, segment.base.value());
  return now != nullptr && now->ordinal == segment.ordinal && heap_of(*now) == heap_of(segment) &&
         is_idle(after, *now);
}

/// Would `kept` have done in the place of `returned`?
bool would_have_done(const CacheState& state, const JudgedDevice& device,
                     const SnapshotSegment& kept, const SnapshotSegment& returned,
                     std::uint64_t need) {
  const std::uint64_t oversize = state.rules.max_split_size();
  // Oversize segments go before others, whatever their size.
  const bool is_of_that_rung = returned.size.count() < oversize || kept.size.count() >= oversize;
  return heap_of(kept) == heap_of(returned) && may_go_back(state, device, kept) &&
         is_of_that_rung && kept.size.count() >= need && kept.size < returned.size &&
         device.released_in(kept.ordinal) < device.released_in(returned.ordinal);
}

}  // namespace

void judge_room(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                bool had_view) {
  const std::vector<DeviceWitness::Held>& returned = device.ledger.witness().grants().returned();
  if (returned.empty() || call.requested == 0 || may_give_back_first(state, device) || !had_view ||
      !device.map.is_fresh || !state.walks_every_call ||
      device.ledger.failed(device::CallKind::kSegmentFree) != 0)
    return;
  const cache::Snapshot& before = device.map.next;
  const cache::Snapshot& after = device.map.view;
  // And what is reserved over the limit, or of the headroom.
  const std::uint64_t reserved = device.ledger.reserved_before();
  const std::uint64_t over = reserved - std::min(reserved, ceiling_of(state, device));
  const std::uint64_t need = over + growth_size(state, state.rules.rounded(call.requested));
  for (const DeviceWitness::Held& gone : returned) {
    const SnapshotSegment* const was = find_segment(before.segments, gone.base);
    if (was == nullptr || was->ordinal != gone.ordinal) continue;  // made in this call
    for (const SnapshotSegment& kept : before.segments) {
      if (!has_stayed_idle(before, after, kept) ||
          !would_have_done(state, device, kept, *was, need))
        continue;
      state.verdict.report("DEV-13", "segment ", was->ordinal, " of ", was->size.count(),
                           " bytes went back for ", need, ", though the idle segment ",
                           kept.ordinal, " of ", kept.size.count(), " would have done");
      return;
    }
  }
}

void judge_called_back(CacheState& state, const JudgedDevice& device, bool is_shortage) {
  const WorldState& world = state.world;
  if (!world.has_callback) return;
  const bool is_due = is_shortage || device.ledger.has_asked();
  if (is_due && world.calls_back == 0)
    state.verdict.report("DEV-13", "no free-memory callback was called before ",
                         is_shortage ? "the call failed" : "the device was asked for memory");
  if (world.calls_back > 1)
    state.verdict.report("DEV-13", "the free-memory callback was called ", world.calls_back,
                         " times in one call");
  if (world.calls_back != 0 && world.called_back_for != device.id)
    state.verdict.report("DEV-13", "the free-memory callback was told of another device");
}

}  // namespace ashlar::spec
