// When failing is allowed, and how often the device may be asked: C12, C13, C17. DEV-3's best fit.
#include <algorithm>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

namespace {
constexpr std::uint64_t kPage = 2u << 20;
constexpr std::uint64_t kHitPollsMax = 16;
/// More than any device's address space is sure to hold.
constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 46;
}  // namespace

/// The smallest free block of the stream's own heap that fits, then the lowest; nullptr when there
/// is none.
const cache::SnapshotBlock* CacheModel::best_fit(const cache::Snapshot& view, std::uint64_t stream,
                                                 std::uint64_t round) const {
  const cache::SnapshotBlock* best = nullptr;
  for (const cache::SnapshotSegment& segment : view.segments) {
    if (segment.stream.value() != stream || segment.pool != rules_.pool_of(round)) continue;
    const cache::SnapshotBlock* block = view.blocks.data() + segment.block_first;
    for (const cache::SnapshotBlock* const end = block + segment.block_count; block != end;
         ++block) {
      if (block->state != BlockState::kFree || (best != nullptr && block->size >= best->size))
        continue;
      if (rules_.fits(block->size.count(), round)) best = block;
    }
  }
  return best;
}

/// May free memory of that heap be given to `stream` now?
bool CacheModel::is_in_reach(std::uint64_t heap, const Stream& stream, bool may_wait) const {
  if (heap == stream.id.value()) return true;
  if (rules_.config().reuse == cache::Reuse::kOwn || is_capturing()) return false;
  // Without a wait nobody can know that a heap's stream is done: an event recorded now is not done
  // at once. Nor can a dead stream be waited for whose last event was never recorded.
  const bool is_dead = is_among(lost_streams_, heap) || is_among(unmarked_streams_, heap);
  return may_wait || (rules_.config().reuse == cache::Reuse::kOrdered && !is_dead);
}

/// C12: nothing that the call was allowed to reach would have served it. The map is the one after
/// the call; blocks that a permitted wait would have completed count as free.
void CacheModel::judge_shortage(Device& device, std::uint64_t size, const Stream& stream,
                                const cache::OutOfMemory& account) {
  const std::uint64_t round = rules_.rounded(size);
  if (account.requested.count() != size || account.rounded.count() != round ||
      account.segment.count() != rules_.segment_size(round)) {
    report("DEV-14", "the account misstates what was asked for");
  }
  const bool in_capture = is_capturing();
  if (account.capturing != in_capture)
    report("DEV-14", "the account misstates whether a capture is underway");
  // Where the device failed in another way than by having no memory, the ladder cannot be held to
  // its rungs.
  if (any_failure_but_growth()) return;
  const bool may_wait = rules_.config().wait_ms != 0 && !in_capture;
  const bool ran_out =
      device.witness->timeouts() != device.timeouts_before || rules_.config().wait_ms == 0;
  if (account.wait_ran_out && !ran_out) {
    report("C12", "the account says that a wait ran out, but none did");
  }
  std::uint64_t releasable = 0;
  for (const cache::SnapshotSegment& segment : device.view.segments) {
    const bool reach = is_in_reach(segment.stream.value(), stream, may_wait);
    bool is_idle = may_wait;
    std::uint64_t run = 0;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const cache::SnapshotBlock& block = device.view.blocks[segment.block_first + i];
      const bool is_free =
          block.state == BlockState::kFree || (block.state == BlockState::kPending && may_wait);
      is_idle = is_idle && is_free;
      run = is_free ? run + block.size.count() : 0;
      const bool ends = !is_free || i + 1 == segment.block_count ||
                        device.view.blocks[segment.block_first + i + 1].state == BlockState::kLive;
      if (!reach || !ends || segment.pool != rules_.pool_of(round) || !rules_.fits(run, round))
        continue;
      return report("C12", "out of memory for ", round, " bytes, but ", run,
                    " are free or could be waited for in segment ", segment.ordinal);
    }
    if (is_idle) releasable += segment.size.count();
  }
  const std::uint64_t need = rules_.segment_size(round);
  const std::uint64_t cap =
      std::min(device.limit, device.capacity == 0 ? kAddressSpace : device.capacity);
  const std::uint64_t kept = device.witness->segment_bytes() - releasable;
  // A planned failure looks like a full device: then every idle segment must have been given back.
  if (has_planned_failures_ && failed(device, device::CallKind::kSegmentAlloc) != 0) {
    if (releasable != 0) report("C12", "out of memory, with ", releasable, " idle bytes not tried");
    return;
  }
  if (need <= cap && kept <= cap - need) {
    report("C12", "out of memory, but ", need, " bytes fit: ", kept, " held for good of ", cap);
  }
}

/// The bound of a miss, event queries apart: 8, and 4 for each page of the segment asked for; for
/// each segment given back 4 (its return, and the event by which its last use was known); for the
/// first search and for each wait's new one 4 for each heap (who its stream is, an event and its
/// record, the growth tried again); 4 for each call that failed, and for each use whose event had
/// to wait.
std::uint64_t CacheModel::miss_calls_max(const Device& device, std::uint64_t segment) const {
  const std::uint64_t waits = delta(device, device::CallKind::kEventSynchronize) +
                              delta(device, device::CallKind::kSynchronize);
  std::uint64_t failures = 0;
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    failures += failed(device, static_cast<device::CallKind>(kind));
  // Uses that no event could be recorded for at the free (a capture, a failure) are made up for by
  // a miss.
  std::uint64_t unrecorded = 0;
  if (may_be_unrecorded_)
    unrecorded = (device.completed + device.owned.size()) * device.heaps.size();
  return 8 + 4 * unrecorded + 4 * ((segment + kPage - 1) / kPage) +
         4 * delta(device, device::CallKind::kSegmentFree) +
         (1 + waits) * 4 * (1 + device.heaps.size()) + 4 * failures;
}

/// C17.
void CacheModel::judge_calls(Device& device, std::uint64_t round, bool is_hit) {
  const std::uint64_t queries = delta(device, device::CallKind::kEventQuery);
  const std::uint64_t others = calls_made(device) - queries;
  if (is_hit) {
    if (others != 0) report("C17", "a hit made ", others, " device calls beside its polls");
    if (queries > kHitPollsMax) report("C17", "a hit polled ", queries, " events");
    if (is_capturing() && queries != 0)
      report("C9", "an event was polled while a capture is underway");
    return;
  }
  const std::uint64_t most = miss_calls_max(device, rules_.segment_size(round));
  if (others > most) {
    report("C17", "a miss made ", others, " device calls, ", most, " are allowed");
  }
  const bool has_grown = delta(device, device::CallKind::kSegmentAlloc) != 0;
  if (has_grown && device.witness->segment_asked() != rules_.segment_size(round)) {
    report("DEV-2", "a segment of ", device.witness->segment_asked(), " bytes was asked for, not ",
           rules_.segment_size(round));
  }
}

}  // namespace ashlar::spec
