#include <ashlar/cache/idle_segments.h>

#include <algorithm>
#include <optional>

#include <ashlar/base/checked.h>
#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {
namespace {

/// The most segments that a walk looks at before it lets go of the heap's lock (C31).
constexpr unsigned kSegmentsPerHold = 64;

/// May the free block's memory go back, as far as its stream's work is concerned?
bool is_in_order(const StreamHeap& heap, const DeviceSegment* segment, std::uint64_t stamp,
                 Behind behind) noexcept ASHLAR_REQUIRES(heap.lock) {
  return behind == Behind::kItsStream ? segment->origin.is_of_stream
                                      : heap.clock.is_complete(stamp);
}

bool is_larger(const DeviceSegment* a, const DeviceSegment* b) noexcept {
  return a->size > b->size || (a->size == b->size && a->ordinal < b->ordinal);
}

}  // namespace

bool may_go_back(const StreamHeap& heap, const DeviceSegment* segment, Behind behind) noexcept {
  if (heap.is_reserved() || segment->is_held()) return false;  // C8, C21
  const block::BlockPool& pool = heap.pool(segment->pool);
  const auto at = static_cast<block::SegmentIndex>(segment->entry.index);
  return pool.is_idle(at) &&
         is_in_order(heap, segment, pool.view(pool.view(at).first).stamp, behind);
}

DeviceSegment* smallest_idle(StreamHeap& heap, Bytes size, std::uint64_t pass) noexcept {
  DeviceSegment* best = nullptr;
  if (heap.is_reserved()) return best;
  unsigned looks = 0;
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    const std::optional<Bytes> from = checked_round_up(size, pool.granule());
    if (!from) return nullptr;
    for (auto block = pool.best_fit(*from, Bytes::max()); block != block::kNoBlock;
         block = next_fit(heap, id, block, ++looks)) {
      if (best != nullptr && pool.size(block) > best->size) break;
      if (!pool.is_whole(block)) continue;
      DeviceSegment* segment = record_of(pool.view(pool.segment(block)));
      if (!heap.clock.is_complete(pool.view(block).stamp)) continue;
      if (segment->idle.asked_in >= pass || segment->is_held()) continue;
      const SizeRank rank{segment->size, segment->ordinal};
      if (best == nullptr || rank.is_smaller_than({best->size, best->ordinal})) best = segment;
    }
  }
  return best;
}

IdleBatch next_idle(StreamHeap& heap, std::uint64_t pass, Behind behind) noexcept {
  IdleBatch batch;
  batch.has_others = heap.is_reserved();
  if (batch.has_others) return batch;
  unsigned looks = 0;
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    for (auto block = pool.best_fit(pool.granule(), Bytes::max()); block != block::kNoBlock;
         block = next_fit(heap, id, block, ++looks)) {
      DeviceSegment* const segment = record_of(pool.view(pool.segment(block)));
      if (!pool.is_whole(block) || !is_in_order(heap, segment, pool.view(block).stamp, behind))
        continue;
      if (segment->idle.asked_in >= pass || segment->is_held()) batch.has_others = true;
      else if (batch.count == batch.segments.size()) return batch;
      else batch.segments[batch.count++] = segment;
    }
  }
  return batch;
}

DeviceSegment* SegmentWalk::next_idle(const StreamHeap& heap) noexcept {
  for (; pool_ < kPools; ++pool_, has_begun_ = false) {
    const block::BlockPool& pool = heap.pool(kPoolIds[pool_]);
    if (!has_begun_) next_ = pool.first_segment();
    has_begun_ = true;
    while (next_ != block::kNoSegment) {
      if (looks_ == kSegmentsPerHold) {
        heap.lock.let_others_in();
        looks_ = 0;
      }
      ++looks_;
      count_steps(1);
      DeviceSegment* const segment = record_of(pool.view(next_));
      next_ = pool.next(next_);
      if (may_go_back(heap, segment)) return segment;
    }
  }
  return nullptr;
}
void FirstIdle::insert(DeviceSegment* segment, ComesBefore comes_before) noexcept {
  DeviceSegment** const first = segments.data();
  DeviceSegment** const last = first + count;
  DeviceSegment** const place = std::upper_bound(first, last, segment, comes_before);
  if (place == first + segments.size()) return;
  const bool is_full = count == segments.size();
  std::move_backward(place, is_full ? last - 1 : last, is_full ? last : last + 1);
  *place = segment;
  if (!is_full) ++count;
}

FirstIdle find_largest(StreamHeap& heap, Bytes at_least, std::uint64_t pass) noexcept {
  FirstIdle found;
  SegmentWalk walk;
  const Guard guard(heap.lock);
  while (DeviceSegment* segment = walk.next_idle(heap)) {
    if (segment->size >= at_least && segment->idle.asked_in < pass)
      found.insert(segment, is_larger);
  }
  return found;
}

}  // namespace ashlar::inline v0::cache
