// StatBounds: what a device's statistics may be (C15), from what was given out and what walks saw.
//
//   increased   equals the sum of the rises that calls made; of free splits, at least what walks
//               saw rise
//   peak        at least what walks saw. At most that, or what was held at the walk before and what
//               the calls since can have added to it; so the bound is exact where every call is
//               walked, one heap allocates and nothing completes. A device's peak is the sum of its
//               heaps' (stats.h). Free splits have no upper bound where not every call is walked: a
//               call may make and lose any number
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/model/device_books.h"
#include "spec/model/figure_table.h"

namespace ashlar::spec {

/// Is that figure one of segments? They are counted for the device, not for each heap.
constexpr bool is_segment_figure(unsigned figure) {
  return figure == number_of(StatFigure::kSegments) ||
         figure == number_of(StatFigure::kReservedBytes);
}
/// Is it one of free splits? What a call makes and merges again on its way counts in them.
constexpr bool is_split_figure(unsigned figure) {
  return figure == number_of(StatFigure::kInactiveSplits) ||
         figure == number_of(StatFigure::kInactiveSplitBytes);
}

class StatBounds {
 public:
  /// A new stream may take over a dead one's heap with free splits in it: those are no rise.
  void let_heaps_pass_on_splits() { heaps_pass_on_splits_ = true; }
  /// A call was judged: it took so many segments, and memory; so many pages went away, or were to
  /// go and stayed, each perhaps cut out of a free block.
  void add_call(std::uint64_t segments, std::uint64_t bytes, std::uint64_t pages_lost);
  /// A block was given out.
  void add_allocation(PoolId pool, std::uint64_t size, std::uint64_t requested);
  /// A walk was made: `completed` since the walk before. `taken_bytes`: what the subject has from the device,
  /// pages without a home included: those may be reserved again without a device call.
  void raise(const Recount& recount, const DeviceBooks::Completed& completed,
             std::uint64_t taken_bytes);
  /// Peaks start again from what is held.
  void reset_peaks(const Recount& recount);
  /// The sums of rises and falls start again.
  void reset_totals(const Recount& recount) {
    increased_ = {};
    start_ = recount.sum;
  }

  /// Since the last reset of totals.
  const FigureTable& increased() const { return increased_; }
  /// What was held at that reset.
  const FigureTable& start() const { return start_; }
  const FigureTable& peak_least() const { return peak_least_; }
  const FigureTable& peak_most() const { return peak_most_; }

 private:
  /// Peaks of one heap.
  struct HeapPeaks {
    FigureTable least;
    FigureTable most;
  };
  void raise_heap(const HeapCount& count, HeapPeaks* peaks, const FigureTable& rise);
  void raise_segments(const FigureTable& now, std::uint64_t taken_bytes);

  FigureTable increased_;
  FigureTable start_;
  /// Sums over the heaps; of segments, the device's own.
  FigureTable peak_least_;
  FigureTable peak_most_;
  std::vector<HeapPeaks> heaps_;  ///< parallel to Recount::heaps
  // Since the last walk.
  std::uint64_t calls_ = 0;
  std::uint64_t grants_ = 0;
  std::uint64_t granted_bytes_ = 0;
  std::uint64_t pages_lost_ = 0;
  bool heaps_pass_on_splits_ = false;
  FigureTable added_;  ///< by blocks given out
  /// At the last walk: segments by pool, and their bytes.
  FigureTable before_;
  /// Bytes of pages without a home at the last walk.
  std::uint64_t spare_bytes_ = 0;
};

}  // namespace ashlar::spec
