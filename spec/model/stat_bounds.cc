// See stat_bounds.h.
#include "spec/model/stat_bounds.h"

#include <algorithm>

namespace ashlar::spec {

void StatBounds::add_call(std::uint64_t segments, std::uint64_t bytes, std::uint64_t pages_lost) {
  calls_ += 1;
  grants_ += segments;
  granted_bytes_ += bytes;
  pages_lost_ += pages_lost;
}

void StatBounds::add_allocation(PoolId pool, std::uint64_t size, std::uint64_t requested) {
  for (FigureTable* const table : {&increased_, &added_}) {
    table->add(StatFigure::kAllocations, pool, 1);
    table->add(StatFigure::kActive, pool, 1);
    table->add(StatFigure::kAllocatedBytes, pool, size);
    table->add(StatFigure::kActiveBytes, pool, size);
    table->add(StatFigure::kRequestedBytes, pool, requested);
  }
}

void StatBounds::raise(const Recount& recount, const DeviceBooks::Completed& completed,
                       std::uint64_t taken_bytes) {
  // What a heap can have held at once, above what it held at the walk before: all that was given
  // out; and every block that completes may make a free split before the next one merges it away.
  FigureTable rise = added_;
  for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
    rise.cell[number_of(StatFigure::kInactiveSplits) * cache::kStatPools + pool] =
        completed.blocks + pages_lost_;
    rise.cell[number_of(StatFigure::kInactiveSplitBytes) * cache::kStatPools + pool] =
        completed.bytes;
  }
  // Where one call was made and nothing completed, a heap whose figures are as before had no others
  // in between.
  const bool may_have_come_and_gone = completed.blocks != 0 || pages_lost_ != 0 ||
                                      (calls_ > 1 && added_.of(StatFigure::kAllocations, 0) != 0);
  heaps_.resize(recount.heaps.size());
  for (std::size_t i = 0; i < heaps_.size(); ++i) {
    const HeapCount& count = recount.heaps[i];
    if (may_have_come_and_gone || count.now.cell != count.before.cell)
      raise_heap(count, &heaps_[i], rise);
  }
  raise_segments(recount.sum, taken_bytes);
  calls_ = grants_ = granted_bytes_ = 0;
  pages_lost_ = 0;
  added_ = {};
}

void StatBounds::raise_heap(const HeapCount& count, HeapPeaks* peaks, const FigureTable& rise) {
  for (unsigned figure = 0; figure < kFigures; ++figure) {
    if (is_segment_figure(figure)) continue;
    for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
      const unsigned i = figure * cache::kStatPools + pool;
      const std::uint64_t is = count.now.cell[i];
      const std::uint64_t was = count.before.cell[i];
      const std::uint64_t least = std::max(peaks->least.cell[i], is);
      // What a heap inherits is whole before the first block is cut off it.
      const bool inherits = heaps_pass_on_splits_ && was == 0 && is_split_figure(figure);
      const std::uint64_t cut = inherits ? added_.of(StatFigure::kAllocatedBytes, pool) : 0;
      const std::uint64_t most = std::max({peaks->most.cell[i], is + cut, was + rise.cell[i]});
      peak_least_.cell[i] += least - peaks->least.cell[i];
      peak_most_.cell[i] += most - peaks->most.cell[i];
      peaks->least.cell[i] = least;
      peaks->most.cell[i] = most;
    }
  }
  for (const StatFigure figure : {StatFigure::kInactiveSplits, StatFigure::kInactiveSplitBytes}) {
    for (const PoolId pool : {PoolId::kSmall, PoolId::kLarge}) {
      const std::uint64_t is = count.now.of(figure, stat_pool(pool));
      const std::uint64_t was = count.before.of(figure, stat_pool(pool));
      const bool is_inherited = heaps_pass_on_splits_ && was == 0;
      if (is > was && !is_inherited) increased_.add(figure, pool, is - was);
    }
  }
}

/// One segment taken by one call gives their peaks exactly. Otherwise some may have gone before
/// others came: at most what was held and every one taken since, and pages that no block had.
void StatBounds::raise_segments(const FigureTable& now, std::uint64_t taken_bytes) {
  const bool is_exact = calls_ == 1 && grants_ <= 1 && pages_lost_ == 0;
  for (const StatFigure figure : {StatFigure::kSegments, StatFigure::kReservedBytes}) {
    const std::uint64_t granted =
        figure == StatFigure::kReservedBytes ? granted_bytes_ + spare_bytes_ : grants_;
    for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
      const unsigned i = number_of(figure) * cache::kStatPools + pool;
      const std::uint64_t is = now.cell[i];
      peak_least_.cell[i] = std::max(peak_least_.cell[i], is);
      peak_most_.cell[i] =
          std::max({peak_most_.cell[i], is, is_exact ? 0 : before_.cell[i] + granted});
      before_.cell[i] = is;
    }
  }
  const std::uint64_t reserved = now.of(StatFigure::kReservedBytes, 0);
  spare_bytes_ = taken_bytes - std::min(taken_bytes, reserved);
}

void StatBounds::reset_peaks(const Recount& recount) {
  heaps_.resize(recount.heaps.size());
  peak_least_ = {};
  for (std::size_t i = 0; i < heaps_.size(); ++i) {
    heaps_[i].least = heaps_[i].most = recount.heaps[i].now;
    for (unsigned cell = 0; cell < kFigureCells; ++cell)
      peak_least_.cell[cell] += recount.heaps[i].now.cell[cell];
  }
  peak_most_ = peak_least_;
}

}  // namespace ashlar::spec
