// A snapshot: every segment and every block of a device, sorted by address (row DEV-17's structure
// without its formats).
//
// Thread safety: plain values. Blocks of a segment tile it (C3).
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/block_state.h>
#include <ashlar/base/pool_id.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

struct SnapshotBlock {
  Address address;
  Bytes size;
  Bytes requested;
  /// the one it was allocated on when live, or pending with that one's work; else the heap's
  StreamId stream;
  std::uint32_t other_uses;  ///< streams noted by record_use and not yet known complete
  BlockState state;
};

struct SnapshotSegment {
  Address base;
  Bytes size;
  StreamId stream;  ///< whose heap holds it
  /// the n-th segment this allocator took on this device, from 0: names it for C10
  std::uint64_t ordinal;
  /// its blocks are Snapshot::blocks[block_first .. block_first + block_count)
  std::uint32_t block_first;
  std::uint32_t block_count;
  PoolId pool;
};

struct Snapshot {
  std::vector<SnapshotSegment> segments;
  std::vector<SnapshotBlock> blocks;
};

}  // namespace ashlar::inline v0::cache
