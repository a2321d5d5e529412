// A heap's counters: what DeviceStats is added up from.
//
// Thread safety: none; guarded by the heap's lock. Cost: a few additions and compares on a hit, no shared memory.
//
// Invariant C15: after every call, `current` values equal a recount of the pools.
#pragma once

#include <array>
#include <cstdint>

#include <ashlar/block/block_pool.h>
#include <ashlar/cache/stats.h>

namespace ashlar {
inline namespace v0 {

/// The figures that rise when a block is handed out.
enum class Figure : unsigned { kAllocations, kAllocatedBytes, kActive, kActiveBytes, kRequestedBytes };
inline constexpr unsigned kFigures = 5;
/// The figures that describe free splits, sampled when a call ends.
enum class SplitFigure : unsigned { kSplits, kSplitBytes };
inline constexpr unsigned kSplitFigures = 2;

class HeapStats {
 public:
  /// Which pool of the heap; `all` is their sum.
  enum Pool : unsigned { kAll = 0, kSmall = 1, kLarge = 2 };
  static Pool pool_of(bool is_small) noexcept { return is_small ? kSmall : kLarge; }

  /// A block of `size` bytes went live.
  void on_allocate(Pool pool, Bytes size, Bytes requested) noexcept {
    rise(kAll, size.count(), requested.count());
    rise(pool, size.count(), requested.count());
  }
  /// A live block was freed and waits for its uses: no longer allocated, still active.
  void on_defer(Pool pool, Bytes size) noexcept {
    for (const Pool each : {kAll, pool}) {
      current(each, Figure::kAllocations) -= 1;
      current(each, Figure::kAllocatedBytes) -= size.count();
    }
  }
  /// A pending block's uses are complete.
  void on_complete(Pool pool, Bytes size, Bytes requested) noexcept {
    for (const Pool each : {kAll, pool}) {
      current(each, Figure::kActive) -= 1;
      current(each, Figure::kActiveBytes) -= size.count();
      current(each, Figure::kRequestedBytes) -= requested.count();
    }
  }
  /// A live block became free at once.
  void on_free(Pool pool, Bytes size, Bytes requested) noexcept {
    on_defer(pool, size);
    on_complete(pool, size, requested);
  }
  /// A call ends: takes the pool's free splits as they are now.
  void sample_splits(Pool pool, const block::PoolCounts& counts) noexcept {
    const auto free = static_cast<unsigned>(block::State::kFree);
    const std::uint64_t now[kSplitFigures] = {counts.blocks[free] - counts.idle_segments,
                                              (counts.bytes[free] - counts.idle_bytes).count()};
    for (unsigned f = 0; f < kSplitFigures; ++f) {
      const std::uint64_t before = splits_[pool][f].current;
      if (now[f] == before) continue;
      move(splits_[pool][f], now[f]);
      move(splits_[kAll][f], splits_[kAll][f].current - before + now[f]);
    }
  }

  Stat stat(Pool pool, Figure figure) const noexcept { return as_stat(rising_[pool][static_cast<unsigned>(figure)]); }
  Stat stat(Pool pool, SplitFigure figure) const noexcept {
    return as_stat(splits_[pool][static_cast<unsigned>(figure)]);
  }
  void reset_peaks() noexcept {
    for_each([](Track& track) { track.peak = track.current; });
  }
  void reset_accumulated() noexcept {
    for_each([](Track& track) {
      track.increased = 0;
      track.base = track.current;
    });
  }

 private:
  /// `decreased` is derived: base + increased - current.
  struct Track {
    std::uint64_t current = 0;
    std::uint64_t peak = 0;
    std::uint64_t increased = 0;
    std::uint64_t base = 0;
  };

  std::uint64_t& current(Pool pool, Figure figure) noexcept {
    return rising_[pool][static_cast<unsigned>(figure)].current;
  }
  static void add(Track& track, std::uint64_t amount) noexcept {
    track.current += amount;
    track.increased += amount;
    track.peak = track.current > track.peak ? track.current : track.peak;
  }
  static void move(Track& track, std::uint64_t now) noexcept {
    if (now > track.current) track.increased += now - track.current;
    track.current = now;
    if (now > track.peak) track.peak = now;
  }
  void rise(Pool pool, std::uint64_t size, std::uint64_t requested) noexcept {
    auto& figures = rising_[pool];
    add(figures[static_cast<unsigned>(Figure::kAllocations)], 1);
    add(figures[static_cast<unsigned>(Figure::kAllocatedBytes)], size);
    add(figures[static_cast<unsigned>(Figure::kActive)], 1);
    add(figures[static_cast<unsigned>(Figure::kActiveBytes)], size);
    add(figures[static_cast<unsigned>(Figure::kRequestedBytes)], requested);
  }
  static Stat as_stat(const Track& track) noexcept {
    return {track.current, track.peak, track.increased, track.base + track.increased - track.current};
  }
  template <class F>
  void for_each(F&& f) noexcept {
    for (unsigned pool = 0; pool < kStatPools; ++pool) {
      for (Track& track : rising_[pool]) f(track);
      for (Track& track : splits_[pool]) f(track);
    }
  }

  std::array<std::array<Track, kFigures>, kStatPools> rising_{};
  std::array<std::array<Track, kSplitFigures>, kStatPools> splits_{};
};

}  // namespace v0
}  // namespace ashlar
