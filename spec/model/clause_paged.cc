// C1, C14, DEV-10: pages. What a snapshot shows as memory of a paged segment is mapped with access, and
// nothing else is. See cache_clauses.h.
#include <algorithm>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

namespace {

using Range = PageWitness::Range;

/// The memory of paged segments as the snapshot shows it: by address, neighbours joined.
std::vector<Range> shown_ranges(const JudgedDevice& device) {
  std::vector<Range> shown;
  const cache::Snapshot& map = device.map.view;
  for (std::size_t i = 0; i < map.segments.size(); ++i) {
    const cache::SnapshotSegment& segment = map.segments[i];
    if (!device.ledger.witness().segments()[i].is_paged) continue;
    for (std::uint32_t b = 0; b < segment.block_count; ++b) {
      const cache::SnapshotBlock& block = map.blocks[segment.block_first + b];
      if (block.state == BlockState::kUnmapped) continue;
      const std::uint64_t begin = block.address.value();
      const std::uint64_t end = begin + block.size.count();
      if (!shown.empty() && shown.back().end == begin) {
        shown.back().end = end;
      } else {
        shown.push_back({begin, end});
      }
    }
  }
  return shown;
}

bool are_within(const std::vector<Range>& inner, const std::vector<Range>& outer) {
  return std::all_of(inner.begin(), inner.end(), [&outer](const Range& each) {
    return std::any_of(outer.begin(), outer.end(), [&each](const Range& other) {
      return other.begin <= each.begin && each.end <= other.end;
    });
  });
}

}  // namespace

void judge_pages(CacheState& state, const JudgedDevice& device) {
  const DeviceWitness& witness = device.ledger.witness();
  if (witness.pages().held_bytes() == 0 && witness.pages().usable_bytes() == 0) {
    if (witness.pages().gained_bytes() == 0) return;
  }
  // A page that the device refused to unmap may be usable, though the subject uses it for nothing.
  const std::vector<Range> shown = shown_ranges(device);
  const bool is_as_held = has_refused_pages(witness) ? are_within(shown, witness.pages().usable())
                                                     : shown == witness.pages().usable();
  if (!is_as_held)
    state.verdict.report("C1", "the map shows other bytes as memory than have pages");
  const std::uint64_t held = witness.pages().held_bytes();
  if (held != witness.pages().usable_bytes() && !has_refused_pages(witness))
    state.verdict.report("C14", held, " bytes of pages are held, but ",
                         witness.pages().usable_bytes(), " can be used");
}

std::uint64_t whole_page_bytes(const cache::Snapshot& map, const cache::SnapshotSegment& segment,
                               bool pending_too) {
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const auto count = [&] {
    const std::uint64_t base = segment.base.value();
    const std::uint64_t first = (begin - base + kPageBytes - 1) / kPageBytes;
    const std::uint64_t last = (end - base) / kPageBytes;
    if (last > first) bytes += (last - first) * kPageBytes;
  };
  begin = end = segment.base.value();
  for (std::uint32_t i = 0; i < segment.block_count; ++i) {
    const cache::SnapshotBlock& block = map.blocks[segment.block_first + i];
    const bool is_obtainable =
        block.state == BlockState::kFree || (pending_too && block.state == BlockState::kPending);
    if (is_obtainable && end != block.address.value()) begin = block.address.value();
    if (is_obtainable) end = block.address.value() + block.size.count();
    const bool is_last = i + 1 == segment.block_count;
    if (is_obtainable && !is_last) continue;
    count();
    begin = end = block.address.value() + block.size.count();
  }
  return bytes;
}

}  // namespace ashlar::spec
