// A snapshot: every segment and every block of a device (the structure of row DEV-17, without its
// formats).
//
// Thread safety: plain values.
//
// Invariants:
//   (1) Segments are sorted by their base address. The blocks of one segment stand together, in
//       address order, and tile the segment (C3).
//   (2) No segment stands in it twice, and no two overlap.
//
// What it shows while other calls run. A segment with fewer than a hundred blocks is shown as it was
// at one moment, each at a moment of its own during the call. A longer one is shown in parts: every
// block as it was at some moment, so two neighbours may be shown free that never were free together.
// A block that is live from the beginning of the call to its end is shown, and so is its segment;
// a segment that changes heaps, comes or goes meanwhile may be left out.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/block_state.h>
#include <ashlar/base/memory_pool.h>
#include <ashlar/base/pool_id.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// One block of a segment.
struct SnapshotBlock {
  Address address;  ///< of its first byte
  Bytes size;       ///< of the whole block
  Bytes requested;  ///< what the caller asked for, while it is live or pending; else zero
  /// the stream that the block was allocated on, while it is live, or pending with that stream's
  /// work not known to be complete; otherwise the stream whose heap holds it
  StreamId stream;
  std::uint32_t other_uses;  ///< streams that record_use() or free() named, not known complete
  BlockState state;          ///< free, live, pending, in transfer, or unmapped
};

/// One range of memory that the device gave.
struct SnapshotSegment {
  Address base;     ///< of its first byte
  Bytes size;       ///< of the whole range
  StreamId stream;  ///< the stream whose heap holds it
  /// counts the segments that the allocator took on this device, from 0; the same in every run with
  /// the same operations, as addresses are not (C10)
  std::uint64_t ordinal;
  std::uint32_t block_first;  ///< index of its first block in Snapshot::blocks
  std::uint32_t block_count;  ///< number of its blocks, which follow each other there
  PoolId pool;                ///< the pool of the heap
  /// whose memory it is or was; {0, 0}: no memory pool's
  MemoryPoolId memory_pool{};
  /// Tells apart the heaps of memory pools: a pool that was released and one made later may have one
  /// name, and a heap each for one stream. 0: the heap is the stream's own.
  std::uint64_t heap = 0;
  /// Is it a range of addresses that gets its memory page by page? Blocks without memory are kUnmapped.
  bool is_paged = false;
};

/// All memory that an allocator holds on one device.
struct Snapshot {
  std::vector<SnapshotSegment> segments;  ///< by base address
  std::vector<SnapshotBlock> blocks;      ///< of all segments; SnapshotSegment says which are whose
};

}  // namespace ashlar::inline v0::cache
