#include <ashlar/cache/pool_layout.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include <ashlar/base/exceptions.h>
#include <ashlar/base/step_count.h>
#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/snapshot_copy.h>
#include <ashlar/cache/stream_heap_inl.h>

namespace ashlar::inline v0::cache {

namespace {

using block::BlockIndex;
using block::BlockPool;

/// The maximum number of blocks that are ended or made live before the heap's lock is let go (C31).
constexpr unsigned kChangedPerHold = 8;
constexpr Status kHasUses{Code::kBusy,
                          "an allocation of the pool has uses on other streams: free it first; or "
                          "another thread frees the pool's memory"};
constexpr const char* kIsLent =
    "an allocation of the pool lies in memory of a dead stream, on loan in place of an "
    "out-of-memory: free it "
    "first";

/// The free block that holds the bytes; `after` is a block of the segment that ends before them, or the
/// segment's first. kNoBlock if they are not free.
BlockIndex free_block_around(const BlockPool& pool, BlockIndex after, Address begin,
                             Bytes size) noexcept {
  BlockIndex at = after;
  while (at != block::kNoBlock && pool.address(at) + pool.size(at) <= begin) {
    count_steps(1);
    at = pool.next(at);
  }
  const bool is_around = at != block::kNoBlock && pool.state(at) == BlockState::kFree &&
                         pool.address(at) <= begin &&
                         pool.address(at) + pool.size(at) >= begin + size;
  return is_around ? at : block::kNoBlock;
}

}  // namespace

// What is there.

Status PoolLayout::read() noexcept {
  Status status = kShortOfHostMemory;
  static_cast<void>(with_host_memory([&] {
    status = read_blocks();
    if (status.is_ok()) read_places();
  }));
  return status;
}

Status PoolLayout::read_blocks() {
  Snapshot map;
  for (const StreamHeap* heap : heaps_) {
    for (const PoolId id : kPoolIds) {
      if (const Status copied = PoolCopy(*heap, id, &map).run(); !copied.is_ok()) return copied;
    }
  }
  for (const SnapshotSegment& segment : map.segments) {
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const SnapshotBlock& block = map.blocks[segment.block_first + i];
      has_pending_ |= block.state == BlockState::kPending;
      if (block.state != BlockState::kLive) continue;
      // Made live again it would be the dead stream's own: nobody would wait for its borrower (C6).
      ASHLAR_REQUIRE(block.stream == segment.stream, Code::kBusy, kIsLent);
      live_.push_back({segment.ordinal, block.address - segment.base, block.size, block.requested});
    }
  }
  std::sort(live_.begin(), live_.end(), [](const CheckpointBlock& a, const CheckpointBlock& b) {
    return std::tie(a.segment, a.offset) < std::tie(b.segment, b.offset);
  });
  return Status::ok();
}

void PoolLayout::read_places() {
  for (StreamHeap* heap : heaps_) {
    for (const PoolId id : kPoolIds) {
      block::SegmentIndex at = block::kNoSegment;
      for (bool is_first = true, goes_on = true; goes_on; is_first = false) {
        // Nothing grows under the lock. No segment comes or goes between two slices: to enter or to take
        // over one needs a miss in the pool, and nobody gives back one of a pool in use (C8).
        if (places_.capacity() - places_.size() < kLooksPerHold)
          places_.reserve(2 * places_.size() + kLooksPerHold);
        const Guard guard(heap->lock);
        const BlockPool& pool = heap->pool(id);
        if (is_first) at = pool.first_segment();
        for (unsigned n = 0; n < kLooksPerHold && at != block::kNoSegment;
             ++n, at = pool.next(at)) {
          count_steps(1);
          const block::SegmentView view = pool.view(at);
          places_.push_back({record_of(view)->ordinal, heap, id, at, view.base});
        }
        goes_on = at != block::kNoSegment;
      }
    }
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.ordinal < b.ordinal; });
}

Status PoolLayout::check_replaceable() const noexcept {
  ASHLAR_REQUIRE(!has_pending_, Code::kNotReady,
                 "memory of the pool was freed and still waits for its uses");
  return Status::ok();
}

const PoolLayout::Place& PoolLayout::place_of(std::uint64_t ordinal) const noexcept {
  const auto at = std::lower_bound(
      places_.begin(), places_.end(), ordinal,
      [](const Place& place, std::uint64_t value) { return place.ordinal < value; });
  ASHLAR_ASSERT(at != places_.end() && at->ordinal == ordinal,
                "C8: a memory pool in use has lost a segment");
  return *at;
}

// The change.

std::size_t PoolLayout::end(std::span<const CheckpointBlock> blocks) noexcept {
  for (std::size_t i = 0; i < blocks.size();) {
    const Place& place = place_of(blocks[i].segment);
    const Guard guard(place.heap->lock);
    BlockPool& pool = place.heap->pool(place.pool);
    for (unsigned n = 0; n < kChangedPerHold && i < blocks.size(); ++n, ++i) {
      if (blocks[i].segment != place.ordinal) break;
      const BlockIndex block = pool.find(place.base + blocks[i].offset);
      if (block == block::kNoBlock || pool.state(block) != BlockState::kLive) return i;
      place.heap->drop_finished_uses(place.pool, block);
      if (pool.user(block) != 0) return i;
      note_if_on(*place.heap, place.pool, block, HistoryAction::kFreeRequested);
      note_if_on(*place.heap, place.pool, block, HistoryAction::kFreeCompleted);
      place.heap->release(place.pool, block);
    }
  }
  return blocks.size();
}

std::size_t PoolLayout::make(std::span<const CheckpointBlock> blocks, Status* failure) noexcept {
  Address made_last;  // in the segment that is worked on
  for (std::size_t i = 0; i < blocks.size();) {
    const Place& place = place_of(blocks[i].segment);
    if (i == 0 || blocks[i - 1].segment != place.ordinal) made_last = Address{};
    StreamHeap& heap = *place.heap;
    const Guard guard(heap.lock);
    BlockPool& pool = heap.pool(place.pool);
    BlockIndex after = made_last.is_null() ? block::kNoBlock : pool.find(made_last);
    if (after == block::kNoBlock) after = pool.view(place.segment).first;
    for (unsigned n = 0; n < kChangedPerHold && i < blocks.size(); ++n, ++i) {
      const CheckpointBlock& block = blocks[i];
      if (block.segment != place.ordinal) break;
      const Address begin = place.base + block.offset;
      const BlockIndex around = free_block_around(pool, after, begin, block.size);
      *failure = kHasUses;
      if (around == block::kNoBlock) return i;
      *failure = kShortOfHostMemory;
      if (!heap.reserve_nodes(1)) return i;
      after = block::take_part(pool, around, begin, block.size, block.requested);
      if (after == block::kNoBlock) return i;
      made_last = begin;
      note_if_on(heap, place.pool, after, HistoryAction::kAllocate);
      heap.stats.on_allocate(place.pool, block.size, block.requested, pool.counts(),
                             heap.pool(other_pool(place.pool)).counts());
    }
  }
  return blocks.size();
}

void PoolLayout::count_cuts(const std::vector<CountsByPool>& before) noexcept {
  for (std::size_t i = 0; i < heaps_.size(); ++i) {
    StreamHeap& heap = *heaps_[i];
    const Guard guard(heap.lock);
    for (const PoolId id : kPoolIds) cache::count_cuts(heap, id, before[i][index_of(id)]);
  }
}

void PoolLayout::count_oversize(std::span<const CheckpointBlock> blocks, int change) noexcept {
  for (const CheckpointBlock& block : blocks) {
    DeviceCache& cache = place_of(block.segment).heap->cache;
    if (block.size >= cache.config().max_split_size) cache.ledger().count_oversize(change);
  }
}

void PoolLayout::go_back(std::size_t ended, std::span<const CheckpointBlock> made) noexcept {
  [[maybe_unused]] Status failure;
  end(made);
  [[maybe_unused]] const std::size_t again = make(std::span(live_).first(ended), &failure);
  ASHLAR_ASSERT(again == ended || failure.code() == Code::kBusy,
                "C13: a failed restore cannot go back");
  for (std::size_t i = 0; i < heaps_.size(); ++i) {
    const Guard guard(heaps_[i]->lock);
    heaps_[i]->stats = stats_before_[i];
  }
}

Status PoolLayout::replace(std::span<const CheckpointBlock> target, RestoredPool* out) noexcept {
  std::vector<CountsByPool> counts;
  const bool has_room = with_host_memory([&] {
    out->freed.clear();
    out->created.clear();
    out->freed.reserve(live_.size());
    out->created.reserve(target.size());
    stats_before_.reserve(heaps_.size());
    counts.reserve(heaps_.size());
  });
  if (!has_room) return kShortOfHostMemory;
  for (const StreamHeap* heap : heaps_) {
    const Guard guard(heap->lock);
    stats_before_.push_back(heap->stats);
  }
  Status failure = kHasUses;
  const std::size_t ended = end(live_);
  for (const StreamHeap* heap : heaps_) {
    const Guard guard(heap->lock);
    counts.push_back({HeapStats::current(heap->pool(PoolId::kSmall).counts()),
                      HeapStats::current(heap->pool(PoolId::kLarge).counts())});
  }
  const std::size_t made = ended == live_.size() ? make(target, &failure) : 0;
  if (ended != live_.size() || made != target.size()) {
    go_back(ended, target.first(made));
    return failure;
  }
  count_cuts(counts);
  count_oversize(live_, -1);
  count_oversize(target, +1);
  for (const CheckpointBlock& block : live_)
    out->freed.push_back(place_of(block.segment).base + block.offset);
  for (const CheckpointBlock& block : target)
    out->created.push_back(place_of(block.segment).base + block.offset);
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
