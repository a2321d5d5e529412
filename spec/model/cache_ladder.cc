// What an allocation did on its way, for C15: reclaims (alloc_retries) and memory from other
// streams' heaps (steals).
//
//   steals    the block lies in another stream's segment, or in one that was another's before the
//             call: known where the maps before and after the call are at hand
//   retries   a growth was refused, by the device or by the limit: known unless what the limit
//             refused was then found in the pools, which looks like a growth that was never needed
#include <algorithm>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

CacheModel::Happened CacheModel::steal_in(const Device& device, const Call& call,
                                          bool had_view) const {
  if (call.fails || call.takes_own_fit || rules_.config().reuse == cache::Reuse::kOwn)
    return Happened::kNo;
  if (!device.is_fresh) return Happened::kPerhaps;
  const cache::SnapshotSegment* const now = find_segment(device.view.segments, call.address);
  if (now == nullptr) return Happened::kPerhaps;  // the walk has said so
  if (now->stream.value() != call.stream) return Happened::kYes;
  if (!had_view) return Happened::kPerhaps;
  // a walk leaves the map before there
  const cache::SnapshotSegment* const was = find_segment(device.next.segments, now->base.value());
  const bool is_adopted =
      was != nullptr && was->ordinal == now->ordinal && was->stream != now->stream;
  return is_adopted ? Happened::kYes : Happened::kNo;
}

CacheModel::Happened CacheModel::retry_in(const Device& device, const Call& call) const {
  if (call.fails || failed(device, device::CallKind::kSegmentAlloc) != 0) return Happened::kYes;
  const bool is_limit_known = device.has_limit || rules_.config().memory_fraction >= 1;
  if (!is_limit_known) return Happened::kPerhaps;
  const std::uint64_t room = device.limit - std::min(device.limit, device.reserved_before);
  if (rules_.segment_size(rules_.rounded(call.requested)) <= room) return Happened::kNo;
  // The first search has it; but polls may make it too large to take, and a later one small enough
  // again.
  if (call.takes_own_fit && !rules_.has_max_split_size()) return Happened::kNo;
  const bool has_moved = delta(device, device::CallKind::kSegmentAlloc) +
                             delta(device, device::CallKind::kSegmentFree) !=
                         0;
  return has_moved ? Happened::kYes : Happened::kPerhaps;
}

void CacheModel::note_ladder(Device& device, const Call& call, bool had_view) {
  if (!call.allocates) {
    device.retries.most += call.is_broken_off;
    return;
  }
  device.retries.add(retry_in(device, call));
  device.steals.add(steal_in(device, call, had_view));
}

/// What is read settles what was in doubt.
void CacheModel::settle_count(const char* name, std::uint64_t is, Bounded* count) {
  if (is < count->least || is > count->most) {
    return report("C15", name, " is ", is, ", must be in ", count->least, " .. ", count->most);
  }
  *count = {is, is};
}

}  // namespace ashlar::spec
