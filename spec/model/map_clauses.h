// What one segment of a snapshot must be: C2, C3, C4, C7, C14, C18, DEV-2, DEV-6, block by block.
//
// Thread safety: none.
#pragma once

#include <cstdint>

#include <ashlar/cache/snapshot.h>

#include "spec/model/device_books.h"
#include "spec/model/device_witness.h"
#include "spec/model/divergence.h"
#include "spec/model/figure_table.h"
#include "spec/model/memory_pool_book.h"
#include "spec/model/stream_book.h"

namespace ashlar::spec {

/// What else the clauses of a map depend on.
struct MapRules {
  std::uint64_t granule = 512;
  /// A stream was destroyed without a word: what waited for its work may wait for nothing known.
  bool any_lost_stream = false;
  /// Which streams are dead: a live block may have dropped their uses. Null: none is.
  const StreamBook* streams = nullptr;
  /// Which heaps are those of released memory pools. Null: not known.
  const MemoryPoolBook* pools = nullptr;
  /// The device is gone: what waits stays.
  bool is_gone = false;
};

/// C14: the segment is the one that the device gave out.
bool judge_held(const cache::SnapshotSegment& segment, const DeviceWitness::Held& held,
                Verdict* verdict);

/// Judges the blocks of a segment and counts them. `*owned` is the first block of the books at or
/// after the segment, and then the first one after its last block.
void judge_segment(const cache::Snapshot& map, const cache::SnapshotSegment& segment,
                   const MapRules& rules, DeviceBooks* books, OwnedBlocks::iterator* owned,
                   SegmentCount* count, Verdict* verdict);

/// The blocks of the books before `end` that are in no segment: pending ones are complete, a live
/// one is missing from the snapshot (C2).
void pass_owned(std::uint64_t end, DeviceBooks* books, OwnedBlocks::iterator* owned,
                Verdict* verdict);

}  // namespace ashlar::spec
