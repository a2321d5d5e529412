// See incremental_walker.h.
#include "spec/model/incremental_walker.h"
#include "spec/model/memory_pool_book.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace ashlar::spec {

using cache::SnapshotBlock;
using cache::SnapshotSegment;

// Runs of blocks are compared as bytes.
static_assert(std::has_unique_object_representations_v<SnapshotBlock>);

void IncrementalWalker::begin(const MapWalk& walk, bool is_whole) {
  is_whole_ = is_whole || ++walks_ % kWholeWalkEvery == 0;
  touched_ = &walk.books.sort_touched();
  at_old_ = 0;
  for (HeapCount& heap : walk.recount.heaps) {
    heap.before = heap.now;
    if (is_whole_) heap.now = {};
  }
  if (is_whole_) walk.recount.sum = {};
}

/// The segment's count becomes `now`: its heap's and the device's figures follow.
void IncrementalWalker::recount(const MapWalk& walk, PoolId pool, const SegmentCount& now,
                                Counted* counted) {
  HeapCount& heap = walk.recount.heaps[counted->heap];
  for (unsigned figure = 0; figure < kFigures; ++figure) {
    const std::uint64_t change = now[figure] - counted->count[figure];
    if (change == 0) continue;
    heap.now.add(figure, pool, change);
    walk.recount.sum.add(figure, pool, change);
  }
  counted->count = now;
}

/// The segment is gone, or changed its heap or pool: its count is taken off where it was.
void IncrementalWalker::forget(const MapWalk& walk, const SnapshotSegment& old, bool is_whole,
                               Counted* counted) {
  if (!is_whole) recount(walk, old.pool, SegmentCount{}, counted);
  *counted = {};
}

/// Have the books touched a block from `begin` on, before `end`, since the last walk?
bool IncrementalWalker::is_touched(std::uint64_t begin, std::uint64_t end) const {
  const auto touched = std::lower_bound(touched_->begin(), touched_->end(), begin);
  return touched != touched_->end() && *touched < end;
}

bool IncrementalWalker::is_as_before(const MapWalk& walk, const SnapshotSegment& old,
                                     const SnapshotSegment& segment) const {
  if (old.size != segment.size || heap_of(old) != heap_of(segment) ||
      old.ordinal != segment.ordinal || old.block_count != segment.block_count ||
      old.pool != segment.pool) {
    return false;
  }
  const std::uint64_t base = segment.base.value();
  if (is_touched(base, base + segment.size.count())) return false;
  return std::memcmp(walk.before.blocks.data() + old.block_first,
                     walk.now.blocks.data() + segment.block_first,
                     segment.block_count * sizeof(SnapshotBlock)) == 0;
}

OwnedBlocks::iterator& IncrementalWalker::owned_at(const MapWalk& walk, Place* place) {
  if (place->skipped != 0) place->owned = walk.books.owned().lower_bound(place->skipped);
  place->skipped = 0;
  return place->owned;
}

void IncrementalWalker::drop_old(const MapWalk& walk, std::size_t at, Place* place) {
  owned_at(walk, place);  // its blocks are passed with the next segment
  forget(walk, walk.before.segments[at_old_++], is_whole_, &counts_[at]);
  counts_.erase(counts_.begin() + static_cast<std::ptrdiff_t>(at));
}

/// The i-th segment. `has_old`: it was there at the last walk, as segment at_old_.
void IncrementalWalker::judge(const MapWalk& walk, std::size_t i, bool has_old, Place* place) {
  const SnapshotSegment& segment = walk.now.segments[i];
  if (!has_old) {
    counts_.insert(counts_.begin() + static_cast<std::ptrdiff_t>(i), Counted{});
  } else {
    const SnapshotSegment& old = walk.before.segments[at_old_++];
    if (is_whole_ || heap_of(old) != heap_of(segment) || old.pool != segment.pool)
      forget(walk, old, is_whole_, &counts_[i]);
  }
  SegmentCount now;
  judge_segment(walk.now, segment, walk.rules, &walk.books, &owned_at(walk, place), &now,
                &walk.verdict);
  if (!walk.verdict.is_good()) return;
  counts_[i].heap = walk.recount.heap_of(spec::heap_of(segment));
  recount(walk, segment.pool, now, &counts_[i]);
}

/// Old segments and new ones side by side, both by address.
void IncrementalWalker::walk(const MapWalk& walk, bool is_whole) {
  begin(walk, is_whole);
  const std::vector<SnapshotSegment>& old = walk.before.segments;
  const std::vector<SnapshotSegment>& now = walk.now.segments;
  Place place{walk.books.owned().begin(), 0};
  for (std::size_t i = 0; i < now.size(); ++i) {
    const SnapshotSegment& segment = now[i];
    if (!judge_held(segment, walk.held[i], &walk.verdict)) return;
    while (at_old_ < old.size() && old[at_old_].base < segment.base) drop_old(walk, i, &place);
    const bool has_old = at_old_ < old.size() && old[at_old_].base == segment.base;
    if (has_old && !is_whole_ && is_as_before(walk, old[at_old_], segment)) {
      // Between two segments that are skipped there may be blocks of one that came and went since.
      const std::uint64_t base = segment.base.value();
      if (place.skipped == 0 || is_touched(place.skipped, base))
        pass_owned(base, &walk.books, &owned_at(walk, &place), &walk.verdict);
      place.skipped = base + segment.size.count();
      ++at_old_;
    } else {
      judge(walk, i, has_old, &place);
    }
    if (!walk.verdict.is_good()) return;
  }
  while (at_old_ < old.size()) drop_old(walk, now.size(), &place);
  pass_owned(~std::uint64_t{0}, &walk.books, &owned_at(walk, &place), &walk.verdict);
}

}  // namespace ashlar::spec
