// In which order solvers try items: as many orders as one likes.
//
// Thread safety: pure functions. Integers only: floating point differs between compilers.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

/// log2 in 1/1024, linear between powers of two. REQUIRES: value > 0.
std::int32_t log2_fixed(std::uint64_t value);

/// Ranks of the items for SkylineSearch::run: at the k-th attempt (from 1) wide ones first, then
/// high ones, then both; then weighed at random, every other time mostly by height; and every other
/// time those first that were blamed most for failures (`blames`, by item; or empty). Measured: no
/// one kind is good for all instances, and blame solves in a second what else takes ten.
std::vector<std::int32_t> order_of(const Items& items, std::uint64_t attempt,
                                   const std::vector<std::uint64_t>& blames);

/// How valley_fill() is to choose.
struct FillOrder {
  /// of the items that fit, the best; else the first, and of several the best
  bool picks_best = true;
  bool is_backwards = false;        ///< the items are to be mirrored()
  std::vector<std::int32_t> ranks;  ///< by item
};
/// The k-th, from 0: kFillOrdersKnown that mostly are good, then random ones.
FillOrder fill_order_of(const Items& items, std::uint64_t attempt);
inline constexpr std::uint64_t kFillOrdersKnown = 8;

/// 1 1 2 1 1 2 4 1 ...: how long the k-th attempt (from 1) should be where some orders are lucky
/// and most hopeless (M. Luby, A. Sinclair, D. Zuckerman, Information Processing Letters 47, 1993).
std::uint64_t luby(std::uint64_t k);

}  // namespace ashlar::inline v0::plan::solve
