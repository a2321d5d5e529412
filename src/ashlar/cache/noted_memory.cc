#include <ashlar/cache/noted_memory.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

namespace ashlar::inline v0::cache {
namespace {

/// The ordinal of a segment that came while the heaps were copied.
constexpr std::uint64_t kUnknownOrdinal = std::numeric_limits<std::uint64_t>::max();

Address end_of(const SnapshotSegment& segment) noexcept { return segment.base + segment.size; }

/// Are both of one pool of one heap, as far as an event tells?
bool is_alike(const SnapshotSegment& a, const SnapshotSegment& b) noexcept {
  return a.stream == b.stream && a.pool == b.pool && a.memory_pool == b.memory_pool;
}

/// A paged segment of which only what is mapped is known.
bool is_run(const SnapshotSegment& segment) noexcept {
  return segment.is_paged && segment.ordinal == kUnknownOrdinal;
}

SnapshotSegment segment_from(const HistoryEvent& event, bool is_paged) {
  SnapshotSegment segment{};
  segment.ordinal = kUnknownOrdinal;
  segment.base = event.address;
  segment.size = event.size;
  segment.stream = event.stream;
  segment.pool = event.pool;
  segment.memory_pool = event.memory_pool;
  segment.is_paged = is_paged;
  return segment;
}

}  // namespace

NotedMemory::NotedMemory(const Snapshot& from) {
  for (const SnapshotSegment& segment : from.segments) {
    segments_.emplace(segment.base, segment);
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const SnapshotBlock& block = from.blocks[segment.block_first + i];
      if (is_taken(block.state)) taken_.insert_or_assign(block.address, block);
      if (block.state == BlockState::kUnmapped) add_hole(block.address, block.size);
    }
  }
}

void NotedMemory::apply(const HistoryEvent& event) {
  switch (event.action) {
    case HistoryAction::kAllocate: return allocate(event);
    case HistoryAction::kFreeRequested: {
      const auto block = taken_.find(event.address);
      if (block != taken_.end()) block->second.state = BlockState::kPending;
      return;
    }
    case HistoryAction::kFreeCompleted: taken_.erase(event.address); return;
    case HistoryAction::kSegmentAllocate: return add_segment(event, false);
    case HistoryAction::kSegmentFree: segments_.erase(event.address); return;
    case HistoryAction::kSegmentMap: return map(event);
    case HistoryAction::kSegmentUnmap: return unmap(event);
    case HistoryAction::kSnapshot:
    case HistoryAction::kOutOfMemory:
    case HistoryAction::kUserDefined: return;
  }
}

void NotedMemory::write(Snapshot* out) const {
  out->segments.clear();
  out->blocks.clear();
  for (const auto& [base, segment] : segments_) write_segment(segment, out);
}

void NotedMemory::allocate(const HistoryEvent& event) {
  drop_taken(event.address, event.block_size);
  taken_[event.address] = {event.address,    event.block_size, event.size, event.stream, 0,
                           BlockState::kLive};
}

void NotedMemory::map(const HistoryEvent& event) {
  const auto at = segment_of(event.address);
  const SnapshotSegment mapped = segment_from(event, true);
  const bool is_there = at != segments_.end() && end_of(mapped) <= end_of(at->second) &&
                        (is_alike(at->second, mapped) || has_memory(at->second));
  if (!is_there) return add_segment(event, true);
  drop_holes(event.address, event.size);
}

void NotedMemory::unmap(const HistoryEvent& event) {
  drop_taken(event.address, event.size);
  const Address end = event.address + event.size;
  for (Address begin = event.address; begin < end;) {
    const auto at = segment_of(begin);
    if (at == segments_.end()) {  // up to the next segment nothing is there
      const auto next = segments_.upper_bound(begin);
      begin = next == segments_.end() ? end : next->first;
      continue;
    }
    const Address part_end = std::min(end, end_of(at->second));
    if (is_run(at->second)) {
      cut(at, begin, part_end);
    } else {
      add_hole(begin, part_end - begin);
    }
    begin = part_end;
  }
}

void NotedMemory::add_segment(const HistoryEvent& event, bool is_paged) {
  SnapshotSegment added = segment_from(event, is_paged);
  const auto known = segments_.find(event.address);
  if (!is_paged && known != segments_.end()) added.ordinal = known->second.ordinal;
  drop_segments(event.address, event.size);
  drop_holes(event.address, event.size);
  const auto at = segments_.insert_or_assign(event.address, added).first;
  if (is_run(added)) join_neighbours(at);
}

void NotedMemory::drop_segments(Address begin, Bytes size) {
  auto at = segments_.lower_bound(begin);
  if (at != segments_.begin() && end_of(std::prev(at)->second) > begin) --at;
  while (at != segments_.end() && at->first < begin + size) at = segments_.erase(at);
}

NotedMemory::Segments::iterator NotedMemory::segment_of(Address address) {
  const auto behind = segments_.upper_bound(address);
  if (behind == segments_.begin()) return segments_.end();
  const auto at = std::prev(behind);
  return address < end_of(at->second) ? at : segments_.end();
}

bool NotedMemory::has_memory(const SnapshotSegment& segment) const {
  Address reached = segment.base;
  for (auto hole = holes_.lower_bound(segment.base);
       hole != holes_.end() && hole->first == reached && reached < end_of(segment); ++hole)
    reached = hole->first + hole->second;
  return reached < end_of(segment);
}

void NotedMemory::cut(Segments::iterator at, Address begin, Address end) {
  const SnapshotSegment whole = at->second;
  segments_.erase(at);
  const auto keep = [&](Address from, Address to) {
    if (from == to) return;
    SnapshotSegment part = whole;
    part.base = from;
    part.size = to - from;
    segments_.emplace(from, part);
  };
  keep(whole.base, begin);
  keep(end, end_of(whole));
}

void NotedMemory::join_neighbours(Segments::iterator at) {
  const auto join = [this](Segments::iterator first, Segments::iterator second) {
    const bool is_one = is_run(first->second) && is_run(second->second) &&
                        is_alike(first->second, second->second) &&
                        end_of(first->second) == second->first;
    if (!is_one) return;
    first->second.size += second->second.size;
    segments_.erase(second);
  };
  if (std::next(at) != segments_.end()) join(at, std::next(at));
  if (at != segments_.begin()) join(std::prev(at), at);
}

void NotedMemory::drop_taken(Address begin, Bytes size) {
  auto at = taken_.lower_bound(begin);
  if (at != taken_.begin()) {
    const SnapshotBlock& before = std::prev(at)->second;
    if (before.address + before.size > begin) --at;
  }
  while (at != taken_.end() && at->first < begin + size) at = taken_.erase(at);
}

void NotedMemory::add_hole(Address begin, Bytes size) {
  drop_holes(begin, size);
  drop_taken(begin, size);
  holes_[begin] = size;
}

void NotedMemory::drop_holes(Address begin, Bytes size) {
  const Address end = begin + size;
  auto at = holes_.lower_bound(begin);
  if (at != holes_.begin() && std::prev(at)->first + std::prev(at)->second > begin) --at;
  while (at != holes_.end() && at->first < end) {
    const Address hole = at->first;
    const Address hole_end = hole + at->second;
    at = holes_.erase(at);
    if (hole < begin) holes_[hole] = begin - hole;
    if (hole_end > end) holes_[end] = hole_end - end;
  }
}

void NotedMemory::write_segment(const SnapshotSegment& segment, Snapshot* out) const {
  SnapshotSegment written = segment;
  written.block_first = static_cast<std::uint32_t>(out->blocks.size());
  const auto add = [&](Address begin, Bytes size, BlockState state) {
    out->blocks.push_back({begin, size, Bytes{}, segment.stream, 0, state});
  };
  Address at = segment.base;
  const Address end = end_of(segment);
  auto taken = taken_.lower_bound(at);
  auto hole = holes_.lower_bound(at);
  while (at < end) {
    while (taken != taken_.end() && taken->first < at) ++taken;
    while (hole != holes_.end() && hole->first < at) ++hole;
    const Address next_taken = taken != taken_.end() ? std::min(taken->first, end) : end;
    const Address next_hole = hole != holes_.end() ? std::min(hole->first, end) : end;
    const Address next = std::min(next_taken, next_hole);
    if (at < next) {
      add(at, next - at, BlockState::kFree);
      at = next;
    } else if (next_taken == at) {
      out->blocks.push_back(taken->second);
      at = at + taken->second.size;
      ++taken;
    } else {
      add(at, std::min(hole->second, end - at), BlockState::kUnmapped);
      at = at + hole->second;
      ++hole;
    }
  }
  written.block_count = static_cast<std::uint32_t>(out->blocks.size()) - written.block_first;
  out->segments.push_back(written);
}

}  // namespace ashlar::inline v0::cache
