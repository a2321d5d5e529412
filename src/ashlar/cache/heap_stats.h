// A heap's counters: what DeviceStats is added up from.
//
// The pools count what they hold now; this adds what they cannot know, totals and peaks. A hit pays
// for six compares and three additions, a free for four and two, on memory that only its own stream
// touches.
// Thread safety: none; guarded by the heap's lock.
//
// Invariants:
//   (1) C15: current values are the pools' own counters; a total of decreases is base + increased -
//       current;
//   (2) active = allocated while nothing is pending, so the active peaks are kept only while
//       something is, and the peak is the larger of both.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <ashlar/base/pool_id.h>
#include <ashlar/block/block_pool.h>
#include <ashlar/cache/stats.h>

namespace ashlar::inline v0::cache {

/// What is counted per pool, in the order of HeapStats' arrays.
enum class Figure : unsigned {
  kAllocations,
  kAllocatedBytes,
  kRequestedBytes,
  kActive,
  kActiveBytes,
  kSplits,  ///< free blocks that are not a whole segment (on_split)
  kSplitBytes,
};
inline constexpr unsigned kFigures = 7;

class HeapStats {
 public:
  using Counts = block::PoolCounts;
  using Values = std::array<std::uint64_t, kFigures>;
  /// What each of the heap's pools counts.
  using CountsByPool = std::array<const Counts*, kPools>;

  /// What a pool holds now, as figures.
  static Values current(const Counts& counts) noexcept {
    const std::uint64_t pending = counts.blocks[kPending];
    return {counts.blocks[kLive],
            counts.bytes[kLive].count(),
            counts.requested_bytes.count(),
            counts.blocks[kLive] + pending,
            (counts.bytes[kLive] + counts.bytes[kPending]).count(),
            split_blocks(counts),
            split_bytes(counts)};
  }

  /// A block of `size` bytes went live in the pool that `counts` describes; `other` counts what the
  /// heap's other pool holds.
  void on_allocate(PoolId pool, Bytes size, Bytes requested, const Counts& counts,
                   const Counts& other) noexcept {
    Track& track = track_of(pool);
    track.increased[0] += 1;
    track.increased[1] += size.count();
    track.increased[2] += requested.count();
    const std::uint64_t blocks = counts.blocks[kLive];
    const std::uint64_t bytes = counts.bytes[kLive].count();
    const std::uint64_t asked = counts.requested_bytes.count();
    raise(track.peak[0], blocks);
    raise(track.peak[1], bytes);
    raise(track.peak[2], asked);
    raise(peak_of_all_[0], blocks + other.blocks[kLive]);
    raise(peak_of_all_[1], bytes + other.bytes[kLive].count());
    raise(peak_of_all_[2], asked + other.requested_bytes.count());
    if ((counts.blocks[kPending] | other.blocks[kPending]) != 0) raise_active(track, counts, other);
  }

  /// `size` bytes more of the pool are free in splits, in one block more or in a larger one.
  void on_split(PoolId pool, Bytes size, bool is_one_more, const Counts& counts,
                const Counts& other) noexcept {
    Track& track = track_of(pool);
    track.increased[kSplits] += is_one_more ? 1 : 0;
    track.increased[kSplits + 1] += size.count();
    raise_splits(track, counts, other);
  }

  /// Blocks were cut out of free ones, which were `before`, as current() says: what is free in splits
  /// may be more now.
  void on_cuts(PoolId pool, const Values& before, const Counts& counts,
               const Counts& other) noexcept {
    Track& track = track_of(pool);
    const Values now = current(counts);
    for (unsigned f = kSplits; f < kSplits + 2; ++f)
      track.increased[f] += std::max(now[f], before[f]) - before[f];
    raise_splits(track, counts, other);
  }

  /// What the heaps of a device come to, each kind of word in a row of its own: a heap is added in
  /// a few vector steps.
  struct Sums {
    struct PoolSums {
      /// what is counted active shares the totals of what is counted allocated
      Values increased{};
      Values base{};
      Values now{};
      Values peak{};
    };
    std::array<PoolSums, kPools> pools;  ///< by PoolId
    Values peak_of_all{};

    /// A figure as a user reads it.
    void write(Figure figure, StatByPool* out) const noexcept {
      const auto f = static_cast<unsigned>(figure);
      Stat all;
      for (const PoolId id : kPoolIds) {
        const PoolSums& pool = pools[index_of(id)];
        const std::uint64_t increased = pool.increased[source(f)];
        const Stat one{pool.now[f], pool.peak[f], increased,
                       pool.base[f] + increased - pool.now[f]};
        (*out)[static_cast<unsigned>(stat_pool_of(id))] = one;
        all.current += one.current;
        all.increased += one.increased;
        all.decreased += one.decreased;
      }
      all.peak = peak_of_all[f];
      (*out)[static_cast<unsigned>(StatPool::kAll)] = all;
    }
  };

  /// Adds every figure of all pools. Cost: not for the hot path.
  void add_to(Sums* sums, const CountsByPool& counts) const noexcept {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      const Track& track = tracks_[pool];
      Sums::PoolSums& sum = sums->pools[pool];
      add(&sum.increased, track.increased);
      add(&sum.base, track.base);
      const Values now = current(*counts[pool]);
      for (unsigned f = 0; f < kFigures; ++f) sum.now[f] += now[f];
      add(&sum.peak, track.of_former);
      add_peaks(&sum.peak, track.peak);
    }
    add(&sums->peak_of_all, former_of_all_);
    add_peaks(&sums->peak_of_all, peak_of_all_);
  }

  /// The heap, which holds free memory alone now, is to serve another stream. A device's peak is the
  /// sum over its streams, dead ones too, so the peaks of the former stream are kept.
  void keep_former_peaks(const CountsByPool& counts) noexcept {
    for (Track& track : tracks_) add_peaks(&track.of_former, track.peak);
    add_peaks(&former_of_all_, peak_of_all_);
    begin_peaks(counts);
  }

  void reset_peaks(const CountsByPool& counts) noexcept {
    for (Track& track : tracks_) track.of_former.fill(0);
    former_of_all_.fill(0);
    begin_peaks(counts);
  }
  void reset_accumulated(const CountsByPool& counts) noexcept {
    for (unsigned pool = 0; pool < kPools; ++pool) {
      tracks_[pool].increased.fill(0);
      tracks_[pool].base = current(*counts[pool]);
    }
  }

 private:
  /// Peaks are what the pools hold now.
  void begin_peaks(const CountsByPool& counts) noexcept {
    peak_of_all_.fill(0);
    for (unsigned pool = 0; pool < kPools; ++pool) {
      tracks_[pool].peak = current(*counts[pool]);
      add(&peak_of_all_, tracks_[pool].peak);
    }
  }
  static constexpr auto kFree = static_cast<unsigned>(BlockState::kFree);
  static constexpr auto kLive = static_cast<unsigned>(BlockState::kLive);
  static constexpr auto kPending = static_cast<unsigned>(BlockState::kPending);
  static constexpr auto kActive = static_cast<unsigned>(Figure::kActive);
  static constexpr auto kSplits = static_cast<unsigned>(Figure::kSplits);

  struct Track {
    Values increased{};
    Values peak{};
    Values of_former{};  ///< sums of the peaks of streams served before
    Values base{};       ///< `current` at the last reset_accumulated
  };

  /// By a constant offset, as StreamHeap::pool: an index costs a multiplication in each hit.
  Track& track_of(PoolId pool) noexcept {
    return pool == PoolId::kSmall ? tracks_[index_of(PoolId::kSmall)]
                                  : tracks_[index_of(PoolId::kLarge)];
  }
  static std::uint64_t split_blocks(const Counts& counts) noexcept {
    return counts.blocks[kFree] - counts.idle_segments;
  }
  static std::uint64_t split_bytes(const Counts& counts) noexcept {
    return (counts.bytes[kFree] - counts.idle_bytes).count();
  }
  static bool is_active(unsigned figure) noexcept {
    return figure == kActive || figure == kActive + 1;
  }
  /// A block is counted active when it is counted allocated: the two share their totals.
  static unsigned source(unsigned figure) noexcept {
    return is_active(figure) ? figure - kActive : figure;
  }
  /// Row by row, not word by word: a sanitizer's checks of each word would keep the additions from
  /// being vector steps.
  static void add(Values* sum, const Values& values) noexcept {
    Values row = *sum;
    const Values more = values;
    for (unsigned f = 0; f < kFigures; ++f) row[f] += more[f];
    *sum = row;
  }
  /// Invariant 2.
  static void add_peaks(Values* sum, const Values& peaks) noexcept {
    add(sum, peaks);
    for (unsigned f = kActive; f < kActive + 2; ++f)
      (*sum)[f] += std::max(peaks[f], peaks[source(f)]) - peaks[f];
  }
  /// A branch, not a maximum: a steady workload is seldom at its peak, and then nothing is stored.
  static void raise(std::uint64_t& peak, std::uint64_t now) noexcept {
    if (now > peak) [[unlikely]]
      peak = now;
  }
  void raise_splits(Track& track, const Counts& counts, const Counts& other) noexcept {
    const std::uint64_t blocks = split_blocks(counts);
    const std::uint64_t bytes = split_bytes(counts);
    raise(track.peak[kSplits], blocks);
    raise(track.peak[kSplits + 1], bytes);
    raise(peak_of_all_[kSplits], blocks + split_blocks(other));
    raise(peak_of_all_[kSplits + 1], bytes + split_bytes(other));
  }
  void raise_active(Track& track, const Counts& counts, const Counts& other) noexcept {
    const Values now = current(counts);
    const Values rest = current(other);
    for (unsigned f = kActive; f < kActive + 2; ++f) {
      raise(track.peak[f], now[f]);
      raise(peak_of_all_[f], now[f] + rest[f]);
    }
  }

  std::array<Track, kPools> tracks_{};  ///< by PoolId
  Values peak_of_all_{};
  Values former_of_all_{};
};

}  // namespace ashlar::inline v0::cache
