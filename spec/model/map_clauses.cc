// One function for each clause; judge_segment() calls them for each block in turn.
#include "spec/model/map_clauses.h"

#include <algorithm>

namespace ashlar::spec {

namespace {

using cache::SnapshotBlock;
using cache::SnapshotSegment;

/// Where a block lies, as a part of a report.
struct BlockPlace {
  const SnapshotSegment* segment;
  const SnapshotBlock* block;
};
BlockPlace place(const SnapshotSegment& segment, const SnapshotBlock& block) {
  return {&segment, &block};
}
void append(std::string* text, BlockPlace at) {
  *text += joined("segment ", at.segment->ordinal, " + ",
                  at.block->address.value() - at.segment->base.value(), " (",
                  at.block->size.count(), " bytes)");
}

/// C3: the block begins where the one before it ends, and is whole granules.
bool judge_tiling(const SnapshotSegment& segment, const SnapshotBlock& block, std::uint64_t at,
                  std::uint64_t granule, Verdict* verdict) {
  if (block.address.value() != at || block.size.count() == 0) {
    verdict->report("C3", place(segment, block), " leaves a gap or overlaps");
    return false;
  }
  if ((block.size.count() & (granule - 1)) != 0) {
    verdict->report("C3", place(segment, block), " is no multiple of the granule");
    return false;
  }
  return true;
}

/// C3: the last block ends where the segment does.
void judge_end(const SnapshotSegment& segment, std::uint64_t at, Verdict* verdict) {
  if (at == segment.base.value() + segment.size.count()) return;
  verdict->report("C3", "the blocks of segment ", segment.ordinal, " do not reach its end");
}

/// C4: two neighbours are not both free, nor both unmapped.
bool judge_coalesced(const SnapshotSegment& segment, const SnapshotBlock& block, BlockState before,
                     Verdict* verdict) {
  const bool merges = block.state == BlockState::kFree || block.state == BlockState::kUnmapped;
  if (!merges || block.state != before) return true;
  verdict->report("C4", place(segment, block),
                  " and the block before it are both free, or unmapped");
  return false;
}

/// C18: after a call nothing is in transfer.
bool judge_transfer(const SnapshotSegment& segment, const SnapshotBlock& block, Verdict* verdict) {
  if (block.state != BlockState::kInTransfer) return true;
  verdict->report("C18", place(segment, block), " is in transfer after the call");
  return false;
}

/// C1, DEV-2: the block is as it was given out.
bool judge_unchanged(const SnapshotSegment& segment, const SnapshotBlock& block,
                     const OwnedBlock& own, Verdict* verdict) {
  // The heap's stream may stand for a borrower that is done, while other uses are not.
  const bool is_heaps = own.is_pending && block.stream == segment.stream;
  if (own.size != block.size.count() || own.requested != block.requested.count() ||
      (own.stream != block.stream.value() && !is_heaps)) {
    verdict->report("C1", place(segment, block),
                    " changed its size, its requested size or its stream");
    return false;
  }
  if (own.pool != segment.pool) {
    verdict->report("DEV-2", place(segment, block), " lies in the wrong pool");
    return false;
  }
  return true;
}

/// C7, DEV-6: the block waits for the uses announced, and for something.
bool judge_uses(const SnapshotSegment& segment, const SnapshotBlock& block, const OwnedBlock& own,
                const MapRules& rules, Verdict* verdict) {
  // A borrowed block lies in another stream's heap: the borrower is one of its uses, and the heap's
  // own stream is none, since that stream's order stands for it.
  const std::uint64_t heap = segment.stream.value();
  const bool is_borrowed = heap != own.stream;
  const bool is_pools = rules.pools != nullptr && rules.pools->is_reserved(heap_of(segment));
  const auto is_only_in_graph = [&](std::uint64_t user) {
    return is_pools && rules.streams->is_only_in_graph(own, user);
  };
  // Nor is a dead stream whose work is complete, nor work that is only in a graph.
  // It may have been dropped before its pool was released.
  const auto is_needless = [&](std::uint64_t user) {
    if (user == heap || rules.streams == nullptr) return user == heap;
    const bool was_pools = is_pools || own.memory_pool != 0;
    return rules.streams->is_dead(user) ||
           (was_pools && rules.streams->is_only_in_graph(own, user));
  };
  const auto needless =
      static_cast<std::size_t>(std::count_if(own.uses.begin(), own.uses.end(), is_needless));
  // What outlived its memory pool has a use by its own stream.
  const bool is_outliving =
      segment.heap != 0 && (rules.pools == nullptr || rules.pools->may_have_own_uses(segment.heap));
  const std::size_t least = own.is_pending ? 0 : own.uses.size() - needless;
  if (block.other_uses > own.uses_max() + is_borrowed + is_outliving || block.other_uses < least) {
    verdict->report("C7", place(segment, block), " counts ", block.other_uses, " uses of ",
                    own.uses.size(), " announced");
    return false;
  }
  if (own.is_pending && own.uses.empty() && own.of_bodies.empty() && !is_borrowed &&
      !is_outliving && !rules.any_lost_stream) {
    verdict->report("DEV-6", place(segment, block), " waits for nothing, but was not merged");
    return false;
  }
  if (own.is_pending && !own.uses.empty() && !is_borrowed && !is_outliving && !rules.is_gone &&
      is_pools && !rules.streams->is_capturing() &&
      std::all_of(own.uses.begin(), own.uses.end(), is_only_in_graph)) {
    verdict->report("DEV-7", place(segment, block),
                    " waits for kernels of a graph, which have not run");
    return false;
  }
  return true;
}

/// A live block exactly as it was given out, with no uses: what most blocks are.
bool is_plainly_live(const SnapshotSegment& segment, const SnapshotBlock& block,
                     const OwnedBlock& own) {
  return block.state == BlockState::kLive && !own.is_pending && own.size == block.size.count() &&
         own.pool == segment.pool && own.requested == block.requested.count() &&
         own.stream == block.stream.value() && own.uses.empty() && block.other_uses == 0;
}

/// C2: the block is the next one of the books, live or pending as it is there.
[[gnu::noinline]] bool judge_owner(const SnapshotSegment& segment, const SnapshotBlock& block,
                                   const MapRules& rules, DeviceBooks* books,
                                   OwnedBlocks::iterator* owned, Verdict* verdict) {
  const std::uint64_t address = block.address.value();
  while (*owned != books->owned().end() && owned->address() < address) {
    if (!(*owned)->second.is_pending) {
      verdict->report("C2", "a live block is not in the snapshot, before ", place(segment, block));
      return false;
    }
    *owned = books->complete(*owned);
  }
  if (*owned == books->owned().end() || owned->address() != address) {
    verdict->report("C2", place(segment, block), " is owned by nobody that was given it");
    return false;
  }
  const OwnedBlock& own = (*owned)->second;
  const bool is_pending = block.state == BlockState::kPending;
  if (own.is_pending != is_pending) {
    verdict->report("C2", place(segment, block),
                    is_pending ? " is pending but live" : " is live but freed");
    return false;
  }
  if (!judge_unchanged(segment, block, own, verdict) ||
      !judge_uses(segment, block, own, rules, verdict))
    return false;
  ++*owned;
  return true;
}

void count_block(const SnapshotSegment& segment, const SnapshotBlock& block, SegmentCount* count) {
  const std::uint64_t size = block.size.count();
  if (block.state == BlockState::kUnmapped) {
    (*count)[number_of(StatFigure::kReservedBytes)] -= size;
    return;
  }
  if (block.state == BlockState::kFree) {
    if (segment.block_count == 1) return;
    (*count)[number_of(StatFigure::kInactiveSplits)] += 1;
    (*count)[number_of(StatFigure::kInactiveSplitBytes)] += size;
    return;
  }
  (*count)[number_of(StatFigure::kActive)] += 1;
  (*count)[number_of(StatFigure::kActiveBytes)] += size;
  (*count)[number_of(StatFigure::kRequestedBytes)] += block.requested.count();
  if (block.state != BlockState::kLive) return;
  (*count)[number_of(StatFigure::kAllocations)] += 1;
  (*count)[number_of(StatFigure::kAllocatedBytes)] += size;
}

}  // namespace

bool judge_held(const SnapshotSegment& segment, const DeviceWitness::Held& held, Verdict* verdict) {
  if (segment.base.value() == held.base && segment.size.count() == held.size) return true;
  verdict->report("C14", "segment ", segment.ordinal, " is not as the device gave it out");
  return false;
}

void judge_segment(const cache::Snapshot& map, const SnapshotSegment& segment,
                   const MapRules& rules, DeviceBooks* books, OwnedBlocks::iterator* owned,
                   SegmentCount* count, Verdict* verdict) {
  *count = {};
  (*count)[number_of(StatFigure::kSegments)] = 1;
  (*count)[number_of(StatFigure::kReservedBytes)] = segment.size.count();
  std::uint64_t at = segment.base.value();
  BlockState before = BlockState::kLive;
  const SnapshotBlock* block = map.blocks.data() + segment.block_first;
  for (const SnapshotBlock* const end = block + segment.block_count; block != end; ++block) {
    if (!judge_tiling(segment, *block, at, rules.granule, verdict) ||
        !judge_coalesced(segment, *block, before, verdict) ||
        !judge_transfer(segment, *block, verdict))
      return;
    at += block->size.count();
    before = block->state;
    count_block(segment, *block, count);
    if (before == BlockState::kFree || before == BlockState::kUnmapped) continue;
    if (*owned != books->owned().end() && owned->address() == block->address.value() &&
        is_plainly_live(segment, *block, (*owned)->second)) {
      ++*owned;
    } else if (!judge_owner(segment, *block, rules, books, owned, verdict)) {
      return;
    }
  }
  judge_end(segment, at, verdict);
}

void pass_owned(std::uint64_t end, DeviceBooks* books, OwnedBlocks::iterator* owned,
                Verdict* verdict) {
  while (*owned != books->owned().end() && owned->address() < end) {
    if (!(*owned)->second.is_pending)
      return verdict->report("C2", "a live block is not in the snapshot, before ", end);
    *owned = books->complete(*owned);
  }
}

}  // namespace ashlar::spec
