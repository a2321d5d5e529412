#include <ashlar/exchange/rewind.h>

#include <ashlar/base/checked.h>
#include <iterator>

namespace ashlar::inline v0::exchange {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;

/// Whether a range can be added to a map of ranges: it does not wrap, and overlaps none. REQUIRES: size > 0.
template <class Ranges>
bool is_room(const Ranges& ranges, Address address, Bytes size) {
  const auto end = checked_add(Bytes{address.value()}, size);
  if (!end) return false;
  const auto next = ranges.lower_bound(address);
  if (next != ranges.end() && next->first.value() < end->count()) return false;
  if (next == ranges.begin()) return true;
  const auto before = std::prev(next);
  return before->first + before->second.size <= address;
}

}  // namespace

Status Rewind::begin(const cache::HistorySnapshot& record) {
  segments_.clear();
  blocks_.clear();
  const std::size_t contexts = record.block_contexts.size();
  ASHLAR_REQUIRE(contexts == 0 || contexts == record.snapshot.blocks.size(), Code::kInvalidArgument,
                 "the contexts of a snapshot are not those of its blocks");
  for (const cache::SnapshotSegment& segment : record.snapshot.segments) {
    if (const Status added = add_tiles(record, segment); !added.is_ok()) return added;
  }
  return Status::ok();
}

// Adds the blocks of one segment, and a segment for each run of blocks that have memory.
Status Rewind::add_tiles(const cache::HistorySnapshot& record,
                         const cache::SnapshotSegment& segment) {
  const auto& blocks = record.snapshot.blocks;
  ASHLAR_REQUIRE(segment.block_first <= blocks.size() &&
                     segment.block_count <= blocks.size() - segment.block_first,
                 Code::kInvalidArgument, "a segment of the snapshot has blocks that are not there");
  const auto end = checked_add(Bytes{segment.base.value()}, segment.size);
  ASHLAR_REQUIRE(end, Code::kInvalidArgument, "a segment of the snapshot wraps");
  const RewoundSegment whole{segment.size, segment.stream, segment.memory_pool, segment.pool,
                             segment.is_paged};
  Address reached = segment.base;
  Address run = segment.base;
  const auto end_run = [&]() -> Status {
    if (run == reached) return Status::ok();
    RewoundSegment part = whole;
    part.size = reached - run;
    return add_segment(run, part);
  };
  for (std::size_t i = segment.block_first; i < segment.block_first + segment.block_count; ++i) {
    const cache::SnapshotBlock& block = blocks[i];
    ASHLAR_REQUIRE(block.address == reached && block.size > Bytes{} &&
                       block.size.count() <= end->count() - reached.value(),
                   Code::kInvalidArgument, "the blocks of a segment do not tile it");
    if (block.state == BlockState::kUnmapped) {
      if (const Status ended = end_run(); !ended.is_ok()) return ended;
      run = reached + block.size;
    } else if (block.state == BlockState::kLive || block.state == BlockState::kPending) {
      const cache::ContextId context =
          record.block_contexts.empty() ? cache::ContextId{} : record.block_contexts[i];
      const bool is_pending = block.state == BlockState::kPending;
      const RewoundBlock added{block.size,          block.requested, block.stream,
                               segment.memory_pool, context,         is_pending};
      ASHLAR_REQUIRE(blocks_.emplace(block.address, added).second, Code::kInvalidArgument,
                     "two blocks of the snapshot overlap");
    }
    reached = reached + block.size;
  }
  ASHLAR_REQUIRE(reached.value() == end->count(), Code::kInvalidArgument,
                 "the blocks of a segment do not tile it");
  return end_run();
}

Status Rewind::add_segment(Address base, const RewoundSegment& segment) {
  ASHLAR_REQUIRE(segment.size > Bytes{} && is_room(segments_, base, segment.size),
                 Code::kInvalidArgument, "memory was there before it was given");
  segments_.emplace(base, segment);
  return Status::ok();
}

Status Rewind::add_block(Address address, const RewoundBlock& block) {
  ASHLAR_REQUIRE(block.size > Bytes{} && is_room(blocks_, address, block.size),
                 Code::kInvalidArgument, "a block was freed where another one is");
  ASHLAR_REQUIRE(segment_of(address, block.size) != segments_.end(), Code::kInvalidArgument,
                 "a block was freed where no segment is");
  blocks_.emplace(address, block);
  return Status::ok();
}

// The segment that holds the whole range, which has bytes; its end() if there is none.
Rewind::Segments::iterator Rewind::segment_of(Address address, Bytes size) {
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return segments_.end();
  const auto at = std::prev(after);
  const Bytes offset = address - at->first;
  const bool is_inside = offset < at->second.size && size <= at->second.size - offset;
  return is_inside ? at : segments_.end();
}

Status Rewind::undo(const cache::History& history, std::size_t first, std::size_t last) {
  for (std::size_t i = last; i > first; --i) {
    if (const Status undone = undo(history.events[i - 1]); !undone.is_ok()) return undone;
  }
  return Status::ok();
}

Status Rewind::undo(const HistoryEvent& event) {
  switch (event.action) {
    case HistoryAction::kAllocate: return remove_block(event);
    case HistoryAction::kFreeRequested:
    case HistoryAction::kFreeCompleted: return bring_back_block(event);
    case HistoryAction::kSegmentAllocate:
    case HistoryAction::kSegmentMap: return remove_memory(event);
    case HistoryAction::kSegmentFree:
    case HistoryAction::kSegmentUnmap: return bring_back_memory(event);
    case HistoryAction::kSnapshot:
    case HistoryAction::kOutOfMemory:
    case HistoryAction::kUserDefined: break;
  }
  return Status::ok();
}

Status Rewind::remove_block(const HistoryEvent& event) {
  const auto at = blocks_.find(event.address);
  ASHLAR_REQUIRE(at != blocks_.end() && !at->second.is_pending, Code::kInvalidArgument,
                 "an allocation is neither live at the end nor freed");
  blocks_.erase(at);
  return Status::ok();
}

// Before its completion a free's block was pending, and before its request it was live.
Status Rewind::bring_back_block(const HistoryEvent& event) {
  if (event.action == HistoryAction::kFreeCompleted) {
    // Its context is of the call that found it complete, which may be anyone's.
    const RewoundBlock block{event.block_size,  event.size, event.stream,
                             event.memory_pool, {},         true};
    return add_block(event.address, block);
  }
  const auto at = blocks_.find(event.address);
  ASHLAR_REQUIRE(at != blocks_.end() && at->second.is_pending, Code::kInvalidArgument,
                 "a free was requested, and is neither pending at the end nor completed");
  at->second.is_pending = false;
  if (at->second.context == cache::ContextId{}) at->second.context = event.context;
  return Status::ok();
}

// Gives the blocks the contexts of their allocations among the first `last` events: of several at one address the newest.
void Rewind::take_contexts(const cache::History& history, std::size_t last) {
  for (std::size_t i = 0; i < last; ++i) {
    const HistoryEvent& event = history.events[i];
    if (event.action != HistoryAction::kAllocate) continue;
    const auto at = blocks_.find(event.address);
    if (at != blocks_.end()) at->second.context = event.context;
  }
}

Status Rewind::bring_back_memory(const HistoryEvent& event) {
  const RewoundSegment segment{event.size, event.stream, event.memory_pool, event.pool,
                               event.action == HistoryAction::kSegmentUnmap};
  if (const Status added = add_segment(event.address, segment); !added.is_ok()) return added;
  if (event.action == HistoryAction::kSegmentUnmap) join_neighbours(segments_.find(event.address));
  return Status::ok();
}

void Rewind::join_neighbours(Segments::iterator at) {
  const auto next = std::next(at);
  if (next != segments_.end() && at->first + at->second.size == next->first &&
      at->second.stream == next->second.stream) {
    at->second.size += next->second.size;
    segments_.erase(next);
  }
  if (at == segments_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second.size == at->first &&
      before->second.stream == at->second.stream) {
    before->second.size += at->second.size;
    segments_.erase(at);
  }
}

Status Rewind::remove_memory(const HistoryEvent& event) {
  const auto at = segment_of(event.address, event.size);
  ASHLAR_REQUIRE(at != segments_.end() && event.size > Bytes{}, Code::kInvalidArgument,
                 "memory that was given is neither there at the end nor taken back");
  const Address base = at->first;
  const RewoundSegment whole = at->second;
  const bool is_whole = whole.size == event.size;
  ASHLAR_REQUIRE(is_whole || event.action == HistoryAction::kSegmentMap, Code::kInvalidArgument,
                 "a segment that was given is not the one at its address");
  ASHLAR_REQUIRE(is_room(blocks_, event.address, event.size), Code::kInvalidArgument,
                 "a block was there before its memory");
  segments_.erase(at);
  const auto keep = [&](Address from, Address to) {
    if (from == to) return;
    RewoundSegment part = whole;
    part.size = to - from;
    segments_.emplace(from, part);
  };
  keep(base, event.address);
  keep(event.address + event.size, base + whole.size);
  return Status::ok();
}

Status rewind_to(const cache::HistorySnapshot& record, std::size_t event, Rewind* state) {
  if (const Status begun = state->begin(record); !begun.is_ok()) return begun;
  const Status back = state->undo(record.history, event, record.history.events.size());
  if (back.is_ok()) state->take_contexts(record.history, event);
  return back;
}

Status rewind_all(const cache::HistorySnapshot& record, Rewind* state) {
  return rewind_to(record, 0, state);
}

}  // namespace ashlar::inline v0::exchange
