// Statistics: what row DEV-16 lists, each current / peak / total up / total down, for all, small
// and large pools.
//
// Clause C15: `current` equals a recount of the snapshot whenever no call is running. Counters are
// kept per heap (a stream's) under its own lock and added up when read, so that two streams share
// none. A device's peak is the sum of its streams' peaks, dead ones' too: exact when one stream
// allocates, otherwise never less than the true peak. `reserved_bytes` and `segments` are kept
// device-wide and their peaks are exact. Inactive-split figures are sampled when a block has been
// given out or has come back: what a call makes and merges again on its way counts in them.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>

#include <ashlar/base/pool_id.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {

struct Stat {
  std::uint64_t current = 0;
  std::uint64_t peak = 0;
  std::uint64_t increased = 0;  ///< total of all increases since the last reset_accumulated
  std::uint64_t decreased = 0;
};

enum class StatPool : unsigned char { kAll = 0, kSmall = 1, kLarge = 2 };
/// The statistics' column of a pool.
constexpr StatPool stat_pool_of(PoolId pool) noexcept {
  return static_cast<StatPool>(1 + index_of(pool));
}
inline constexpr unsigned kStatPools = 1 + kPools;
using StatByPool = std::array<Stat, kStatPools>;

struct DeviceStats {
  StatByPool allocations;  ///< live blocks
  StatByPool segments;
  StatByPool active;           ///< live and pending blocks
  StatByPool inactive_splits;  ///< free blocks that are not a whole segment
  StatByPool allocated_bytes;  ///< of live blocks, as rounded
  StatByPool reserved_bytes;   ///< of segments
  StatByPool active_bytes;
  StatByPool inactive_split_bytes;
  StatByPool requested_bytes;  ///< of live and pending blocks, as asked for
  Stat oversize_allocations;   ///< of max_split_size or more
  Stat oversize_segments;
  /// allocations that had to reclaim before they succeeded or failed
  std::uint64_t alloc_retries = 0;
  std::uint64_t ooms = 0;    ///< allocations that failed for want of memory
  std::uint64_t waits = 0;   ///< times an allocation or a trim blocked on an event
  std::uint64_t steals = 0;  ///< blocks or segments taken from another stream's heap
  std::array<std::uint64_t, device::kCallKinds> device_calls{};  ///< by CallKind
};

}  // namespace ashlar::inline v0::cache
