// C15: what an allocation did on its way: reclaims (alloc_retries) and memory from other streams'
// heaps (steals).
//
//   steals    the block lies in another stream's segment, or in one that was another's before the
//             call: known where the maps before and after the call are at hand
//   retries   a growth was refused, by the device or by the limit: known unless what the limit
//             refused was then found in the pools, which looks like a growth that was never needed
#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

Happened steal_in(const CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                  bool had_view) {
  if (call.fails || call.takes_own_fit) return Happened::kNo;
  const bool is_own = state.rules.config().reuse == cache::Reuse::kOwn;
  if (is_own && !state.streams.any_dead() && !state.pools.any_overflow()) return Happened::kNo;
  if (!device.map.is_fresh) return Happened::kPerhaps;
  const cache::SnapshotSegment* const now = find_segment(device.map.view.segments, call.address);
  if (now == nullptr) return Happened::kPerhaps;  // the walk has said so
  if (heap_of(*now) != call.stream) return Happened::kYes;
  if (!had_view) return Happened::kPerhaps;
  if (!is_adopted(device, *now)) return Happened::kNo;
  // Where streams keep their memory to themselves, a new stream may take over a dead one's heap
  // with all that is in it, which is no steal.
  return is_own ? Happened::kPerhaps : Happened::kYes;
}

}  // namespace

bool is_adopted(const JudgedDevice& device, const cache::SnapshotSegment& now) {
  const cache::SnapshotSegment* const was =
      find_segment(device.map.next.segments, now.base.value());
  if (was == nullptr || was->ordinal != now.ordinal) return false;
  // A heap that serves another stream takes ranges of addresses with it: no memory is in them.
  const cache::SnapshotBlock& first = device.map.next.blocks[was->block_first];
  return heap_of(*was) != heap_of(now) && first.state != BlockState::kUnmapped;
}

Happened retry_in(const CacheState& state, const JudgedDevice& device, const JudgedCall& call) {
  const CallLedger& ledger = device.ledger;
  // In place of a first growth that is refused come pages, and of pages beyond the budget a segment.
  const cache::Config& config = state.rules.config();
  const bool has_first = config.first_growth != Bytes{} && !device.ladder.was_surely_short_before;
  const bool has_pages_left = state.rules.is_paged() && (has_first || config.page_handles_max != 0);
  // The driver's pool gives back what it keeps, and is asked again.
  const bool has_second_try = has_pages_left || ledger.calls(device::CallKind::kStreamTrim) != 0;
  if (!call.fails && has_second_try && ledger.refused_growths() != 0) return Happened::kPerhaps;
  if (call.fails || ledger.refused_growths() != 0) return Happened::kYes;
  // A planned failure may be told as want of memory.
  const std::uint64_t refusals = sum_over_devices(state, [](const CallLedger& each) {
    return each.failed(device::CallKind::kPageMap) + each.failed(device::CallKind::kPageAccess) +
           each.failed(device::CallKind::kAddressReserve);
  });
  if (refusals != 0) return Happened::kPerhaps;
  // What the device refused to take back is charged, and used before more is taken.
  if (has_refused_pages(state, device)) return Happened::kPerhaps;
  const Room room = room_before(state, device);
  if (!room.is_known) return Happened::kPerhaps;
  const std::uint64_t segment = growth_size(state, state.rules.rounded(call.requested));
  if (segment <= room.bytes) return Happened::kNo;
  if (may_give_back_first(state, device)) return Happened::kPerhaps;  // that may have made room
  // The first search has it; but polls may make it too large to take, and a later one small enough
  // again.
  if (call.takes_own_fit && !state.rules.has_max_split_size()) return Happened::kNo;
  // Pages: the request may have lacked less than it has bytes.
  if (state.rules.is_paged() && ledger.lost_bytes() == 0) return Happened::kPerhaps;
  const bool has_moved =
      ledger.has_asked() || ledger.lost_bytes() != 0 || ledger.plain_freed() != 0;
  return has_moved ? Happened::kYes : Happened::kPerhaps;
}

void count_ladder(const CacheState& state, JudgedDevice& device, const JudgedCall& call,
                  bool had_view) {
  if (!call.allocates) {
    device.ladder.retries.most += call.is_broken_off;
    return;
  }
  device.ladder.was_surely_short_before = device.ladder.retries.least != 0;
  device.ladder.retries.add(retry_in(state, device, call));
  device.ladder.was_short = device.ladder.was_short || device.ladder.retries.most != 0;
  device.ladder.steals.add(steal_in(state, device, call, had_view));
}

}  // namespace ashlar::spec
