#include <ashlar/cache/history_snapshot.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include <ashlar/cache/queries.h>

namespace ashlar::inline v0::cache {
namespace {

/// How often a snapshot whose events were overwritten is tried again.
constexpr unsigned kTriesMax = 16;
/// The ordinal of a segment that came while the heaps were copied.
constexpr std::uint64_t kUnknownOrdinal = std::numeric_limits<std::uint64_t>::max();

bool is_taken(BlockState state) noexcept {
  return state == BlockState::kLive || state == BlockState::kPending;
}

/// A device's memory by address, for events to change.
class Memory {
 public:
  explicit Memory(const Snapshot& from) {
    for (const SnapshotSegment& segment : from.segments) {
      segments_.emplace(segment.base, segment);
      for (std::uint32_t i = 0; i < segment.block_count; ++i) {
        const SnapshotBlock& block = from.blocks[segment.block_first + i];
        if (is_taken(block.state)) taken_.emplace_hint(taken_.end(), block.address, block);
        if (block.state == BlockState::kUnmapped) add_hole(block.address, block.size);
      }
    }
  }

  void apply(const HistoryEvent& event) {
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
      case HistoryAction::kSegmentMap:
        if (!is_in_segment(event.address)) add_segment(event, true);
        return drop_holes(event.address, event.size);
      case HistoryAction::kSegmentUnmap: return add_hole(event.address, event.size);
      case HistoryAction::kSnapshot:
      case HistoryAction::kOutOfMemory:
      case HistoryAction::kUserDefined: return;
    }
  }

  void write(Snapshot* out) const {
    out->segments.clear();
    out->blocks.clear();
    for (const auto& [base, segment] : segments_) write_segment(segment, out);
  }

 private:
  /// Drops what lies in the range, and what reaches into it.
  void drop_taken(Address begin, Bytes size) {
    auto at = taken_.lower_bound(begin);
    if (at != taken_.begin()) {
      const SnapshotBlock& before = std::prev(at)->second;
      if (before.address + before.size > begin) --at;
    }
    while (at != taken_.end() && at->first < begin + size) at = taken_.erase(at);
  }
  void allocate(const HistoryEvent& event) {
    drop_taken(event.address, event.block_size);
    taken_[event.address] = {event.address,    event.block_size, event.size, event.stream, 0,
                             BlockState::kLive};
  }
  bool is_in_segment(Address address) const {
    const auto behind = segments_.upper_bound(address);
    if (behind == segments_.begin()) return false;
    const SnapshotSegment& segment = std::prev(behind)->second;
    return address < segment.base + segment.size;
  }
  void add_segment(const HistoryEvent& event, bool is_paged) {
    SnapshotSegment segment{};
    const auto known = segments_.find(event.address);
    segment.ordinal = known != segments_.end() ? known->second.ordinal : kUnknownOrdinal;
    segment.base = event.address;
    segment.size = event.size;
    segment.stream = event.stream;
    segment.pool = event.pool;
    segment.memory_pool = event.memory_pool;
    segment.is_paged = is_paged;
    segments_[event.address] = segment;
  }
  void add_hole(Address begin, Bytes size) {
    drop_holes(begin, size);
    drop_taken(begin, size);
    holes_[begin] = size;
  }
  void drop_holes(Address begin, Bytes size) {
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
  /// The blocks of the segment: those that are taken, holes, and what is free between them.
  void write_segment(const SnapshotSegment& segment, Snapshot* out) const {
    SnapshotSegment written = segment;
    written.block_first = static_cast<std::uint32_t>(out->blocks.size());
    const auto add = [&](Address begin, Bytes size, BlockState state) {
      out->blocks.push_back({begin, size, Bytes{}, segment.stream, 0, state});
    };
    Address at = segment.base;
    const Address end = segment.base + segment.size;
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
        add(at, hole->second, BlockState::kUnmapped);
        at = at + hole->second;
        ++hole;
      }
    }
    written.block_count = static_cast<std::uint32_t>(out->blocks.size()) - written.block_first;
    out->segments.push_back(written);
  }

  std::map<Address, SnapshotSegment> segments_;
  std::map<Address, SnapshotBlock> taken_;
  std::map<Address, Bytes> holes_;  ///< of paged segments: addresses without memory
};

/// Contexts by address: of the blocks as they were copied, and of the allocations in the history.
class Contexts {
 public:
  void read(const HistoryLog& log, const Snapshot& copied) {
    for (const SnapshotBlock& block : copied.blocks) {
      if (is_taken(block.state)) of_[block.address] = log.context_of(block.address);
    }
  }
  void write(const HistorySnapshot& from, std::vector<ContextId>* out) {
    for (const HistoryEvent& event : from.history.events) {
      if (event.action == HistoryAction::kAllocate) of_[event.address] = event.context;
    }
    out->clear();
    out->reserve(from.snapshot.blocks.size());
    for (const SnapshotBlock& block : from.snapshot.blocks) {
      const auto known = is_taken(block.state) ? of_.find(block.address) : of_.end();
      out->push_back(known == of_.end() ? ContextId{} : known->second);
    }
  }

 private:
  std::unordered_map<Address, ContextId> of_;
};

Bytes reserved_bytes(DeviceCache& cache) noexcept {
  DeviceStats stats;
  cache.ledger().write(&stats);
  return Bytes{stats.reserved_bytes[static_cast<unsigned>(StatPool::kAll)].current};
}

}  // namespace

void apply_events(std::span<const HistoryEvent> events, Snapshot* snapshot) {
  if (events.empty()) return;
  Memory memory(*snapshot);
  for (const HistoryEvent& event : events) memory.apply(event);
  memory.write(snapshot);
}

Status write_history_snapshot(DeviceCache& cache, HistorySnapshot* out) {
  HistoryLog& log = cache.heaps().history();
  out->history = {};
  out->block_contexts.clear();
  if (!log.is_on()) return write_snapshot(cache, &out->snapshot, InTransfer::kAsNoted);
  for (unsigned tries = 0; tries < kTriesMax; ++tries) {
    const std::uint64_t begin = log.next();
    const Status copied = write_snapshot(cache, &out->snapshot, InTransfer::kAsNoted);
    if (!copied.is_ok()) return copied;
    Contexts contexts;
    if (log.has_contexts()) contexts.read(log, out->snapshot);
    HistoryEvent taken;
    taken.size = reserved_bytes(cache);
    const std::uint64_t end = log.note(taken) + 1;
    log.read(0, end, &out->history);
    const std::vector<HistoryEvent>& events = out->history.events;
    if (events.empty() || events.front().sequence > begin) continue;
    const auto since = static_cast<std::size_t>(begin - events.front().sequence);
    apply_events(std::span(events).subspan(since, events.size() - since - 1), &out->snapshot);
    if (log.has_contexts()) contexts.write(*out, &out->block_contexts);
    return Status::ok();
  }
  return {Code::kBusy, "events are overwritten before a snapshot has read them; keep more"};
}

}  // namespace ashlar::inline v0::cache
