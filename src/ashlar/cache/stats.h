// Statistics: the figures of row DEV-16. Each has a current value, a peak, and the sums of its
// increases and decreases, for all pools together, the small pools and the large pools. As text and
// JSON: stats_text.h.
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
#include <cstddef>
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
/// A figure for each column: by StatPool, or by number from 0.
struct StatByPool : std::array<Stat, kStatPools> {
  using std::array<Stat, kStatPools>::operator[];
  /// The figure of that column. REQUIRES: one of the enumerators. Never throws.
  constexpr Stat& operator[](StatPool pool) noexcept {
    return (*this)[static_cast<std::size_t>(pool)];
  }
  /// The same, to read.
  constexpr const Stat& operator[](StatPool pool) const noexcept {
    return (*this)[static_cast<std::size_t>(pool)];
  }
};

/// The figures that DeviceStats has by pool, in the order of its members.
enum class StatFigure : unsigned char {
  kAllocations = 0,
  kSegments = 1,
  kActive = 2,
  kInactiveSplits = 3,
  kAllocatedBytes = 4,
  kReservedBytes = 5,
  kActiveBytes = 6,
  kInactiveSplitBytes = 7,
  kRequestedBytes = 8,
};
/// The number of figures by pool.
inline constexpr unsigned kStatFigures = 9;

/// The figures that exist for each pool.
struct FiguresByPool {
  StatByPool allocations;           ///< live blocks
  StatByPool segments;              ///< segments held
  StatByPool active;                ///< live and pending blocks
  StatByPool inactive_splits;       ///< free blocks that are not a whole segment
  StatByPool allocated_bytes;       ///< of live blocks, as rounded
  StatByPool reserved_bytes;        ///< of segments
  StatByPool active_bytes;          ///< of live and pending blocks, as rounded
  StatByPool inactive_split_bytes;  ///< of free blocks that are not a whole segment
  StatByPool requested_bytes;       ///< of live and pending blocks, as asked for

  /// That figure: `stats[StatFigure::kReservedBytes][StatPool::kAll]` is `stats.reserved_bytes[0]`.
  /// REQUIRES: one of the enumerators. Never throws.
  constexpr StatByPool& operator[](StatFigure figure) noexcept;
  /// The same, to read.
  constexpr const StatByPool& operator[](StatFigure figure) const noexcept;
};

/// The members of FiguresByPool, by StatFigure.
inline constexpr std::array<StatByPool FiguresByPool::*, kStatFigures> kStatMembers{
    &FiguresByPool::allocations,     &FiguresByPool::segments,
    &FiguresByPool::active,          &FiguresByPool::inactive_splits,
    &FiguresByPool::allocated_bytes, &FiguresByPool::reserved_bytes,
    &FiguresByPool::active_bytes,    &FiguresByPool::inactive_split_bytes,
    &FiguresByPool::requested_bytes};

constexpr StatByPool& FiguresByPool::operator[](StatFigure figure) noexcept {
  return this->*kStatMembers[static_cast<std::size_t>(figure)];
}
constexpr const StatByPool& FiguresByPool::operator[](StatFigure figure) const noexcept {
  return this->*kStatMembers[static_cast<std::size_t>(figure)];
}

/// The statistics of one device.
struct DeviceStats : FiguresByPool {
  Stat oversize_allocations;  ///< live blocks of Config::max_split_size or more
  Stat oversize_segments;     ///< segments of Config::max_split_size or more
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
