// FigureTable: a number for every figure of all, small and large; and what a walk counts.
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "spec/model/stat_figures.h"

namespace ashlar::spec {

inline constexpr unsigned kFigureCells = kFigures * cache::kStatPools;

struct FigureTable {
  std::array<std::uint64_t, kFigureCells> cell{};  ///< figure * kStatPools + pool

  std::uint64_t of(StatFigure figure, unsigned pool) const {
    return cell[number_of(figure) * cache::kStatPools + pool];
  }
  /// Adds to a pool and to both pools' sum; `amount` may be a negative number's two's complement.
  void add(unsigned figure, PoolId pool, std::uint64_t amount) {
    cell[std::size_t{figure} * cache::kStatPools] += amount;
    cell[std::size_t{figure} * cache::kStatPools + stat_pool(pool)] += amount;
  }
  void add(StatFigure figure, PoolId pool, std::uint64_t amount) {
    add(number_of(figure), pool, amount);
  }
};

/// One segment's share of every figure.
using SegmentCount = std::array<std::uint64_t, kFigures>;

/// One heap's figures at the last walk, and at the walk before it.
struct HeapCount {
  std::uint64_t heap = 0;  ///< identity of its stream
  FigureTable now;
  FigureTable before;
};

/// A device's figures as walks counted them.
struct Recount {
  std::vector<HeapCount> heaps;  ///< every heap that was ever seen
  FigureTable sum;               ///< over the heaps

  /// The heap's index; it is added where it is new.
  std::size_t heap_of(std::uint64_t stream) {
    for (std::size_t i = 0; i < heaps.size(); ++i) {
      if (heaps[i].heap == stream) return i;
    }
    heaps.emplace_back();
    heaps.back().heap = stream;
    return heaps.size() - 1;
  }
};

}  // namespace ashlar::spec
