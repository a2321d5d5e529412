// Statistics: the figures of row DEV-16. Each has a current value, a peak, and the sums of its
// increases and decreases, for all pools together, the small pools and the large pools.
//
// Invariants:
//   (1) `current` equals a recount of the snapshot whenever no call is running (C15).
//   (2) A peak is never less than the true one. Each stream's heap keeps its own counters, so that
//       two streams share none, and a reader adds them up: a device's peak is the sum of its
//       streams' peaks, retired streams included. It is exact if one stream allocates. The peaks of
//       `segments` and `reserved_bytes` are kept for the whole device and are exact.
//   (3) The figures of inactive splits change whenever a block is given out or comes back. A free
//       block that a call makes and merges again counts in their peaks and sums.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>

#include <ashlar/base/pool_id.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {

/// One figure of one pool, in bytes or as a count.
struct Stat {
  std::uint64_t current = 0;  ///< now
  std::uint64_t peak = 0;     ///< the largest `current` since the last reset of peaks
  std::uint64_t increased =
      0;  ///< sum of all increases since the last reset of accumulated figures
  std::uint64_t decreased = 0;  ///< sum of all decreases since then
};

/// The columns of a figure: all pools together, and each pool.
enum class StatPool : unsigned char { kAll = 0, kSmall = 1, kLarge = 2 };
/// The column of a pool.
constexpr StatPool stat_pool_of(PoolId pool) noexcept {
  return static_cast<StatPool>(1 + index_of(pool));
}
/// The number of columns.
inline constexpr unsigned kStatPools = 1 + kPools;
/// A figure for each column, indexed by StatPool.
using StatByPool = std::array<Stat, kStatPools>;

/// The statistics of one device.
struct DeviceStats {
  StatByPool allocations;           ///< live blocks
  StatByPool segments;              ///< segments held
  StatByPool active;                ///< live and pending blocks
  StatByPool inactive_splits;       ///< free blocks that are not a whole segment
  StatByPool allocated_bytes;       ///< of live blocks, as rounded
  StatByPool reserved_bytes;        ///< of segments
  StatByPool active_bytes;          ///< of live and pending blocks, as rounded
  StatByPool inactive_split_bytes;  ///< of free blocks that are not a whole segment
  StatByPool requested_bytes;       ///< of live and pending blocks, as asked for
  Stat oversize_allocations;        ///< live blocks of Config::max_split_size or more
  Stat oversize_segments;           ///< segments of Config::max_split_size or more
  /// allocations that had to reclaim before they succeeded or failed
  std::uint64_t alloc_retries = 0;
  std::uint64_t ooms = 0;    ///< allocations that returned kOutOfMemory
  std::uint64_t waits = 0;   ///< times an allocation or a trim blocked on an event
  std::uint64_t steals = 0;  ///< blocks or segments taken from another stream's heap
  /// records of streams, alive or dead, kept now
  std::uint64_t streams = 0;
  std::array<std::uint64_t, device::kCallKinds> device_calls{};  ///< calls made, by CallKind
};

}  // namespace ashlar::inline v0::cache
