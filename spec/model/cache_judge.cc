// When failing is allowed, and how often the device may be asked: C12, C13, C17; the rounding rows
// DEV-1..3.
#include <algorithm>
#include <bit>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

namespace {
constexpr std::uint64_t kPage = 2u << 20;
constexpr std::uint64_t kHitPollsMax = 16;
/// More than any device's address space is sure to hold.
constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 46;
}  // namespace

/// DEV-1: the next of k equal divisions of the size's power of two, where they are coarser than the
/// granule; else the next multiple of the granule. REQUIRES: size <= 1 EiB.
std::uint64_t CacheModel::rounded(std::uint64_t size) const {
  std::uint64_t step = settings_.granule;
  const auto log2 = static_cast<unsigned>(std::bit_width(size | 1) - 1);
  const unsigned row = std::min(log2 < 20 ? 0u : log2 - 20, 15u);
  const std::uint64_t divisions = settings_.roundup_divisions[row];
  if (divisions > 1) step = std::max(step, (std::uint64_t{1} << log2) / divisions);
  return std::max((size + step - 1) / step * step, settings_.granule);
}

/// DEV-2.
std::uint64_t CacheModel::segment_size(std::uint64_t round) const {
  if (is_small(round)) return settings_.small_segment;
  if (round < settings_.large_request_min) return settings_.large_segment;
  return (round + settings_.segment_round - 1) / settings_.segment_round * settings_.segment_round;
}

/// DEV-3's window.
bool CacheModel::fits(std::uint64_t block, std::uint64_t round) const {
  if (block < round) return false;
  if (round < settings_.max_split_size) return block < settings_.max_split_size;
  return block - round < settings_.max_non_split_rounding;
}

/// The smallest free block of the stream's own heap that fits, then the lowest; nullptr when there
/// is none.
const CacheBlock* CacheModel::best_fit(const CacheSnapshot& view, std::uint64_t stream,
                                       std::uint64_t round) const {
  const CacheBlock* best = nullptr;
  for (const CacheSegment& segment : view.segments) {
    if (segment.stream != stream || segment.is_small != is_small(round)) continue;
    const CacheBlock* block = view.blocks.data() + segment.block_first;
    for (const CacheBlock* const end = block + segment.block_count; block != end; ++block) {
      if (block->state != CacheState::kFree || (best != nullptr && block->size >= best->size))
        continue;
      if (fits(block->size, round)) best = block;
    }
  }
  return best;
}

/// May free memory of that heap be given to `stream` now?
bool CacheModel::is_in_reach(std::uint64_t heap, const Stream& stream, bool may_wait) const {
  if (heap == stream.id.value()) return true;
  if (settings_.reuse == CacheReuse::kOwn || is_capturing()) return false;
  // Without a wait nobody can know that a heap's stream is done: an event recorded now is not done
  // at once. Nor can a dead stream be waited for whose last event was never recorded.
  const bool is_dead = is_among(lost_streams_, heap) || is_among(unmarked_streams_, heap);
  return may_wait || (settings_.reuse == CacheReuse::kOrdered && !is_dead);
}

/// C12: nothing that the call was allowed to reach would have served it. The map is the one after
/// the call; blocks that a permitted wait would have completed count as free.
void CacheModel::judge_shortage(Device& device, std::uint64_t size, const Stream& stream,
                                const CacheShortage& shortage) {
  const std::uint64_t round = rounded(size);
  if (shortage.requested != size || shortage.rounded != round ||
      shortage.segment != segment_size(round)) {
    report("DEV-14", "the account misstates what was asked for");
  }
  const bool in_capture = is_capturing();
  if (shortage.capturing != in_capture)
    report("DEV-14", "the account misstates whether a capture is underway");
  // Where the device failed in another way than by having no memory, the ladder cannot be held to
  // its rungs.
  if (any_failure_but_growth()) return;
  const bool may_wait = settings_.wait_ms != 0 && !in_capture;
  const bool ran_out =
      device.witness->timeouts() != device.timeouts_before || settings_.wait_ms == 0;
  if (shortage.wait_ran_out && !ran_out) {
    report("C12", "the account says that a wait ran out, but none did");
  }
  std::uint64_t releasable = 0;
  for (const CacheSegment& segment : device.view.segments) {
    const bool reach = is_in_reach(segment.stream, stream, may_wait);
    bool is_idle = may_wait;
    std::uint64_t run = 0;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const CacheBlock& block = device.view.blocks[segment.block_first + i];
      const bool is_free =
          block.state == CacheState::kFree || (block.state == CacheState::kPending && may_wait);
      is_idle = is_idle && is_free;
      run = is_free ? run + block.size : 0;
      const bool ends = !is_free || i + 1 == segment.block_count ||
                        device.view.blocks[segment.block_first + i + 1].state == CacheState::kLive;
      if (!reach || !ends || segment.is_small != is_small(round) || !fits(run, round)) continue;
      return report("C12", "out of memory for ", round, " bytes, but ", run,
                    " are free or could be waited for in segment ", segment.ordinal);
    }
    if (is_idle) releasable += segment.size;
  }
  const std::uint64_t need = segment_size(round);
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
  const std::uint64_t most = miss_calls_max(device, segment_size(round));
  if (others > most) {
    report("C17", "a miss made ", others, " device calls, ", most, " are allowed");
  }
  const bool has_grown = delta(device, device::CallKind::kSegmentAlloc) != 0;
  if (has_grown && device.witness->segment_asked() != segment_size(round)) {
    report("DEV-2", "a segment of ", device.witness->segment_asked(), " bytes was asked for, not ",
           segment_size(round));
  }
}

}  // namespace ashlar::spec
