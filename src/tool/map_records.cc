#include "src/tool/map_records.h"

#include <algorithm>
#include <iterator>

namespace ashlar::tool {
namespace {

enum Kind : unsigned { kBlock, kFree, kRange, kRangeEnd };

/// The first of the events around the peak that are kept.
std::uint64_t first_kept(std::uint64_t events, std::uint64_t peak) {
  const std::uint64_t kept = std::min(events, kMapEventsMax);
  return std::min(peak - std::min(peak, kept / 2), events - kept);
}

}  // namespace

MapRecorder::MapRecorder(std::uint64_t events, std::uint64_t peak, std::size_t slots)
    : last_event_(first_kept(events, peak)), blocks_(slots) {
  records_.first = last_event_;
  records_.end = records_.first + std::min(events, kMapEventsMax);
}

// At the first event that is kept, everything that is there becomes a record.
bool MapRecorder::keeps(std::uint64_t event) {
  if (!has_map(event)) return false;
  if (!has_begun_) {
    has_begun_ = true;
    for (Range& range : ranges_) write(records_.first, &range);
    for (Block& block : blocks_) {
      if (block.is_live) write(records_.first, &block);
    }
  }
  return true;
}

void MapRecorder::allocate(std::uint64_t event, std::uint32_t slot, const MapBlock& block) {
  const bool is_kept = keeps(event);
  blocks_[slot] = {block, true, kNotWritten};
  if (is_kept) write(event, &blocks_[slot]);
}

void MapRecorder::free(std::uint64_t event, std::uint32_t slot) {
  const bool is_kept = keeps(event);
  blocks_[slot].is_live = false;
  if (!is_kept) return;
  head(event, kFree);
  number(blocks_written_ - 1 - blocks_[slot].number);
}

// Of a segment, each run of blocks that have memory.
std::vector<MapRecorder::Range> MapRecorder::ranges_of(const cache::Snapshot& map) {
  std::vector<Range> ranges;
  for (const cache::SnapshotSegment& segment : map.segments) {
    bool goes_on = false;
    for (std::uint32_t i = segment.block_first; i < segment.block_first + segment.block_count;
         ++i) {
      const cache::SnapshotBlock& block = map.blocks[i];
      const bool has_memory = block.state != BlockState::kUnmapped;
      if (has_memory && goes_on) {
        ranges.back().size += block.size;
      } else if (has_memory) {
        ranges.push_back({block.address, block.size, segment.pool == PoolId::kSmall});
      }
      goes_on = has_memory;
    }
  }
  return ranges;
}

void MapRecorder::hold(std::uint64_t event, const cache::Snapshot& map) {
  const bool is_kept = keeps(event);
  std::vector<Range> now = ranges_of(map);
  const auto before = [](const Range& a, const Range& b) { return a.address < b.address; };
  const auto is_same = [](const Range& a, const Range& b) {
    return a.address == b.address && a.size == b.size && a.is_small == b.is_small;
  };
  for (const Range& old : ranges_) {
    const auto found = std::lower_bound(now.begin(), now.end(), old, before);
    if (found != now.end() && is_same(*found, old)) {
      found->number = old.number;
    } else if (is_kept) {
      head(event, kRangeEnd);
      number(ranges_written_ - 1 - old.number);
    }
  }
  ranges_ = std::move(now);
  if (!is_kept) return;
  for (Range& range : ranges_) {
    if (range.number == kNotWritten) write(event, &range);
  }
}

void MapRecorder::write(std::uint64_t event, Block* block) {
  block->number = blocks_written_++;
  head(event, kBlock);
  address(block->address);
  number(block->size.count());
  number((block->size - block->requested).count());
  number(block->stream);
}

void MapRecorder::write(std::uint64_t event, Range* range) {
  range->number = ranges_written_++;
  head(event, kRange);
  address(range->address);
  number(2 * range->size.count() + (range->is_small ? 1 : 0));
}

void MapRecorder::head(std::uint64_t event, unsigned kind) {
  number(4 * (event - last_event_) + kind);
  last_event_ = event;
}

void MapRecorder::number(std::uint64_t value) {
  for (; value >= 128; value /= 128) records_.bytes += static_cast<char>(128 + value % 128);
  records_.bytes += static_cast<char>(value);
}

void MapRecorder::address(Address address) {
  const std::uint64_t now = address.value();
  number(now >= last_address_ ? 2 * (now - last_address_) : 2 * (last_address_ - now) - 1);
  last_address_ = now;
}

}  // namespace ashlar::tool
