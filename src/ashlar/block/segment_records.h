// Records of segments: what a pool knows of each.
//
// Thread safety: none; the pool's owner holds a lock.
#pragma once

#include <cstdint>

#include <ashlar/block/slab.h>

namespace ashlar::inline v0::block {

/// A segment, or an unused record.
struct SegmentRecord {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t user = 0;
  /// the block at `base`; it has the same record for the segment's whole life
  std::uint32_t first = kNone;
  std::uint32_t prev = kNone;  ///< in the pool's list of segments
  std::uint32_t next = kNone;
};

/// A segment's position less its base, modulo 2^64 (position.h): a column of its own, because each
/// insertion of a block into the index reads one, and those of thousands of segments must fit a
/// cache.
struct SegmentShift {
  static constexpr bool kIsLazy = false;
  std::uint64_t bytes;
};

using SegmentRecords = Slab<SegmentRecord, SegmentShift>;

}  // namespace ashlar::inline v0::block
