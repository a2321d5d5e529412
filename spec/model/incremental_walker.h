// IncrementalWalker: judges the segments that are not as they were, and counts the differences. See
// map_walker.h.
//
// A segment is skipped when its record and its blocks are byte for byte as at the last walk and the
// books touched no block in it since: the plain walker would see what it saw then. Every
// kWholeWalkEvery-th walk skips none all the same.
//
// Invariants between walks:
//   (1) `counts_` has one entry for each segment of the last snapshot, in its order.
//   (2) A heap's figures, and the device's, are the sums of its segments' counts.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spec/model/map_walker.h"

namespace ashlar::spec {

class IncrementalWalker final : public MapWalker {
 public:
  void walk(const MapWalk& walk, bool is_whole) override;

 private:
  struct Counted {
    SegmentCount count{};
    std::size_t heap = 0;  ///< index into Recount::heaps
  };
  /// How far a walk has come in the books.
  struct Place {
    OwnedBlocks::iterator owned;
    /// Not 0: segments up to this address were skipped, and `owned` is to be looked up again.
    std::uint64_t skipped = 0;
  };
  static constexpr std::uint64_t kWholeWalkEvery = 16;

  void begin(const MapWalk& walk, bool is_whole);
  void judge(const MapWalk& walk, std::size_t i, bool has_old, Place* place);
  bool is_touched(std::uint64_t begin, std::uint64_t end) const;
  bool is_as_before(const MapWalk& walk, const cache::SnapshotSegment& old,
                    const cache::SnapshotSegment& segment) const;
  void drop_old(const MapWalk& walk, std::size_t at, Place* place);
  static void forget(const MapWalk& walk, const cache::SnapshotSegment& old, bool is_whole,
                     Counted* counted);
  static void recount(const MapWalk& walk, PoolId pool, const SegmentCount& now, Counted* counted);
  static OwnedBlocks::iterator& owned_at(const MapWalk& walk, Place* place);

  std::vector<Counted> counts_;
  const std::vector<std::uint64_t>* touched_ = nullptr;  ///< of the walk being made, sorted
  std::size_t at_old_ = 0;  ///< of the walk being made: segments of `before` dealt with
  bool is_whole_ = false;   ///< of the walk being made
  std::uint64_t walks_ = 0;
};

}  // namespace ashlar::spec
