// The whole-map walk: the subject's snapshot against the tiling rules, the device's ledger and the
// owned blocks, and the recount that statistics are compared with. Clauses C3, C4, C5, C14, C18,
// invariant (1) of cache_model.h.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

namespace {

/// Where a block lies, as a part of a report.
struct BlockPlace {
  const cache::SnapshotSegment* segment;
  const cache::SnapshotBlock* block;
};
BlockPlace place(const cache::SnapshotSegment& segment, const cache::SnapshotBlock& block) {
  return {&segment, &block};
}
void append(std::string* text, BlockPlace at) {
  *text += joined("segment ", at.segment->ordinal, " + ",
                  at.block->address.value() - at.segment->base.value(), " (",
                  at.block->size.count(), " bytes)");
}

/// A block as the model knows it, with nothing to look into: the common case of match_owned.
bool is_plainly(const OwnedBlock& own, const cache::SnapshotBlock& block, PoolId pool) {
  return block.state == BlockState::kLive && !own.is_pending && own.size == block.size.count() &&
         own.pool == pool && own.requested == block.requested.count() &&
         own.stream == block.stream.value() && own.uses.empty() && block.other_uses == 0;
}

}  // namespace

std::size_t CacheModel::heap_of(Device& device, std::uint64_t stream) {
  for (std::size_t i = 0; i < device.heaps.size(); ++i) {
    if (device.heaps[i].heap == stream) return i;
  }
  device.heaps.emplace_back();
  device.heaps.back().heap = stream;
  return device.heaps.size() - 1;
}

/// A block that is not free against the next owned one; free ones let pending owned blocks go.
void CacheModel::match_owned(Device& device, const cache::SnapshotSegment& segment,
                             const cache::SnapshotBlock& block, Blocks::iterator* owned) {
  while (*owned != device.owned.end() && owned->address() < block.address.value()) {
    if (!(*owned)->second.is_pending) {
      return report("C2", "a live block is not in the snapshot, before ", place(segment, block));
    }
    *owned = complete(device, *owned);
  }
  const bool is_known = *owned != device.owned.end() && owned->address() == block.address.value();
  if (!is_known)
    return report("C2", place(segment, block), " is owned by nobody that was given it");
  const OwnedBlock& own = (*owned)->second;
  const bool is_pending = block.state == BlockState::kPending;
  if (own.is_pending != is_pending) {
    return report("C2", place(segment, block),
                  is_pending ? " is pending but live" : " is live but freed");
  }
  // A borrowed block whose borrower is done, but other uses are not, may go by its heap's stream
  // again.
  const bool is_borrowed = segment.stream.value() != own.stream;
  const bool same_stream = own.stream == block.stream.value() ||
                           (is_pending && is_borrowed && block.stream == segment.stream);
  if (own.size != block.size.count() || own.requested != block.requested.count() || !same_stream) {
    return report("C1", place(segment, block),
                  " changed its size, its requested size or its stream");
  }
  if (own.pool != segment.pool)
    return report("DEV-2", place(segment, block), " lies in the wrong pool");
  // On a block taken from another stream's heap, that stream's own order stands for a use of it,
  // and the borrower is one.
  const auto in_order = static_cast<std::size_t>(
      std::count(own.uses.begin(), own.uses.end(), segment.stream.value()));
  const std::size_t least = is_pending ? 0 : own.uses.size() - in_order;
  if (block.other_uses > own.uses.size() + is_borrowed || block.other_uses < least) {
    return report("C7", place(segment, block), " counts ", block.other_uses, " uses of ",
                  own.uses.size(), " announced");
  }
  if (is_pending && own.uses.empty() && !is_borrowed && lost_streams_.empty()) {
    return report("DEV-6", place(segment, block), " waits for nothing, but was not merged");
  }
  ++*owned;
}

void CacheModel::walk_segment(Device& device, const cache::SnapshotSegment& segment,
                              Blocks::iterator* owned, SegmentFigures* figures) {
  std::uint64_t splits = 0;
  std::uint64_t split_bytes = 0;
  std::uint64_t active = 0;
  std::uint64_t active_bytes = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t live = 0;
  std::uint64_t live_bytes = 0;
  const cache::SnapshotBlock* block = device.next.blocks.data() + segment.block_first;
  const cache::SnapshotBlock* const end = block + segment.block_count;
  std::uint64_t at = segment.base.value();
  bool was_free = false;
  for (; block != end; ++block) {
    const std::uint64_t size = block->size.count();
    if (block->address.value() != at || size == 0)
      return report("C3", place(segment, *block), " leaves a gap or overlaps");
    at += size;
    const bool is_free = block->state == BlockState::kFree;
    if (is_free && was_free)
      return report("C4", place(segment, *block), " and the block before it are both free");
    was_free = is_free;
    if ((size & (rules_.granule() - 1)) != 0) {
      return report("C3", place(segment, *block), " is no multiple of the granule");
    }
    if (is_free) {
      if (segment.block_count == 1) continue;
      splits += 1;
      split_bytes += size;
      continue;
    }
    if (block->state == BlockState::kInTransfer) {
      return report("C18", place(segment, *block), " is in transfer after the call");
    }
    active += 1;
    active_bytes += size;
    requested_bytes += block->requested.count();
    if (block->state == BlockState::kLive) {
      live += 1;
      live_bytes += size;
    }
    if (*owned != device.owned.end() && owned->address() == block->address.value() &&
        is_plainly((*owned)->second, *block, segment.pool)) {
      ++*owned;
    } else {
      match_owned(device, segment, *block, owned);
    }
  }
  if (at != segment.base.value() + segment.size.count()) {
    return report("C3", "the blocks of segment ", segment.ordinal, " do not reach its end");
  }
  std::uint64_t counts[kFigures];
  counts[number_of(Figure::kSegments)] = 1;
  counts[number_of(Figure::kReservedBytes)] = segment.size.count();
  counts[number_of(Figure::kAllocations)] = live;
  counts[number_of(Figure::kAllocatedBytes)] = live_bytes;
  counts[number_of(Figure::kActive)] = active;
  counts[number_of(Figure::kActiveBytes)] = active_bytes;
  counts[number_of(Figure::kRequestedBytes)] = requested_bytes;
  counts[number_of(Figure::kInactiveSplits)] = splits;
  counts[number_of(Figure::kInactiveSplitBytes)] = split_bytes;
  figures->heap = heap_of(device, segment.stream.value());
  recount(device, segment.pool, counts, figures);
}

void CacheModel::begin_recount(Device& device, bool is_whole) {
  constexpr unsigned kAll = kFigures * cache::kStatPools;
  for (HeapFigures& heap : device.heaps) {
    heap.has_changed = is_whole;
    heap.changed = heap.risen = is_whole ? ~FigureSet{0} >> (32 - kAll) : 0;
    if (!is_whole) continue;
    std::copy(&heap.now[0][0], &heap.now[0][0] + kAll, &heap.before[0][0]);
    std::fill(&heap.now[0][0], &heap.now[0][0] + kAll, 0);
  }
  device.has_segment_change = is_whole;
  if (is_whole) std::fill(&device.sum[0][0], &device.sum[0][0] + kAll, 0);
  std::sort(device.touched.begin(), device.touched.end());
}

/// A segment's figures become `counts`, in its heap's and the device's too.
void CacheModel::recount(Device& device, PoolId in, const std::uint64_t* counts,
                         SegmentFigures* figures) {
  HeapFigures& heap = device.heaps[figures->heap];
  heap.has_changed = true;
  for (unsigned i = 0; i < kFigures; ++i) {
    const std::uint64_t change = counts[i] - figures->count[i];
    if (change == 0) continue;
    figures->count[i] = counts[i];
    for (const unsigned pool : {0u, stat_pool(in)}) {
      const FigureSet bit = FigureSet{1} << (i * cache::kStatPools + pool);
      if ((heap.changed & bit) == 0) heap.before[i][pool] = heap.now[i][pool];
      heap.changed |= bit;
      if (static_cast<std::int64_t>(change) > 0) heap.risen |= bit;
      heap.now[i][pool] += change;
      device.sum[i][pool] += change;
    }
    if (i == number_of(Figure::kSegments) || i == number_of(Figure::kReservedBytes))
      device.has_segment_change = true;
  }
}

/// A segment has gone, or is another heap's: its figures are nothing.
void CacheModel::forget_segment(Device& device, const cache::SnapshotSegment& old, bool is_whole,
                                SegmentFigures* figures) {
  constexpr std::uint64_t kNothing[kFigures] = {};
  if (!is_whole) recount(device, old.pool, kNothing, figures);
  *figures = {};
}

/// Invariant 3: nothing that the judgement of this segment rests on is other than at the last walk.
bool CacheModel::is_as_before(const Device& device, std::size_t old_index,
                              const cache::SnapshotSegment& segment) const {
  const cache::SnapshotSegment& old = device.view.segments[old_index];
  if (old.size != segment.size || old.stream != segment.stream || old.ordinal != segment.ordinal ||
      old.block_count != segment.block_count || old.pool != segment.pool) {
    return false;
  }
  const std::uint64_t base = segment.base.value();
  const auto touched = std::lower_bound(device.touched.begin(), device.touched.end(), base);
  if (touched != device.touched.end() && *touched - base < segment.size.count()) return false;
  return std::memcmp(device.view.blocks.data() + old.block_first,
                     device.next.blocks.data() + segment.block_first,
                     segment.block_count * sizeof(cache::SnapshotBlock)) == 0;
}

CacheModel::Blocks::iterator& CacheModel::owned_at(Device& device, Place* place) const {
  if (place->passed != 0) place->owned = device.owned.lower_bound(place->passed);
  place->passed = 0;
  return place->owned;
}

/// Owned blocks before `end` that no segment has: pending ones are complete, live ones are lost.
void CacheModel::pass_owned(Device& device, std::uint64_t end, Place* place) {
  Blocks::iterator& owned = owned_at(device, place);
  while (owned != device.owned.end() && owned.address() < end) {
    if (!owned->second.is_pending)
      return report("C2", "a live block is not in the snapshot, before ", end);
    owned = complete(device, owned);
  }
}

/// Old segments and new ones side by side, both by address. Their figures stay where they are,
/// unless segments came or went.
void CacheModel::walk_segments(Device& device, bool is_whole) {
  const std::vector<DeviceWitness::Held>& held = device.witness->segments();
  const std::vector<cache::SnapshotSegment>& old = device.view.segments;
  std::vector<SegmentFigures>& figures = device.figures;
  std::size_t at_old = 0;
  Place place{device.owned.begin(), 0};
  const auto drop_old = [&](std::size_t at) {
    owned_at(device, &place);  // its own are to be passed
    forget_segment(device, old[at_old++], is_whole, &figures[at]);
    figures.erase(figures.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::size_t i = 0; i < device.next.segments.size() && verdict_.is_good(); ++i) {
    const cache::SnapshotSegment& segment = device.next.segments[i];
    if (segment.base.value() != held[i].base || segment.size.count() != held[i].size) {
      return report("C14", "segment ", segment.ordinal, " is not as the device gave it out");
    }
    while (at_old < old.size() && old[at_old].base < segment.base) drop_old(i);
    const bool was_here = at_old < old.size() && old[at_old].base == segment.base;
    if (was_here && !is_whole && is_as_before(device, at_old, segment)) {
      if (place.passed == 0) pass_owned(device, segment.base.value(), &place);
      place.passed = segment.base.value() + segment.size.count();
      ++at_old;
      continue;
    }
    // A segment that stays where it was counts by what has changed in it.
    if (!was_here) {
      figures.insert(figures.begin() + static_cast<std::ptrdiff_t>(i), SegmentFigures{});
    } else if (is_whole || old[at_old].stream != segment.stream ||
               old[at_old].pool != segment.pool) {
      forget_segment(device, old[at_old], is_whole, &figures[i]);
    }
    at_old += was_here;
    walk_segment(device, segment, &owned_at(device, &place), &figures[i]);
  }
  while (at_old < old.size() && verdict_.is_good()) drop_old(device.next.segments.size());
  if (verdict_.is_good()) pass_owned(device, ~std::uint64_t{0}, &place);
}

/// What most worlds stay below, so that theirs do not grow step by step.
void CacheModel::make_room(Device& device) {
  constexpr std::size_t kSegments = 16;
  constexpr std::size_t kBlocks = 64;
  constexpr std::size_t kHeaps = 4;
  device.next.segments.reserve(kSegments);
  device.next.blocks.reserve(kBlocks);
  device.figures.reserve(kSegments);
  device.heaps.reserve(kHeaps);
  device.touched.reserve(kSegments);
}

void CacheModel::walk(Device& device, bool is_whole) {
  if (++walks_ % validate_every_ == 0) judge_structure();
  if (device.next.segments.capacity() == 0) make_room(device);
  if (!subject_.snapshot(device.id, &device.next).is_ok())
    return report("C3", "no snapshot could be taken");
  if (device.next.segments.size() != device.witness->segments().size()) {
    return report("C14", "the snapshot has ", device.next.segments.size(),
                  " segments, the device gave out ", device.witness->segments().size());
  }
  is_whole = is_whole || walks_ % kWholeWalkEvery == 0;
  begin_recount(device, is_whole);
  walk_segments(device, is_whole);
  device.touched.clear();
  std::swap(device.view, device.next);
  raise_bounds(device);
  device.is_fresh = true;
}

void CacheModel::judge_structure() {
  if (const char* broken = subject_.validate()) report("C5", "the subject's own walk: ", broken);
}

void CacheModel::judge_maps() {
  for (Device& device : devices_) {
    if (device.is_fresh && stats_every_ == 1) continue;  // the last call's judgement still stands
    device.completed = device.completed_bytes = 0;
    walk(device, true);
    judge_stats(device);
  }
}

void CacheModel::resume_walks() {
  if (!is_deferring_) return;
  is_deferring_ = false;
  has_lost_peaks_ = true;
  judge_maps();
}

void CacheModel::judge_empty(DeviceId id) {
  Device& device = at(id);
  if (!device.is_fresh) walk(device);
  if (!device.owned.empty()) report("C14", "after everything was freed, a free is still pending");
  if (!device.witness->segments().empty()) {
    report("C14", "after everything was freed and trimmed, ", device.witness->segment_bytes(),
           " bytes are still reserved");
  }
}

}  // namespace ashlar::spec
