// The orders in which solvers try items: a sequence without end for each kind of solver.
//
// Thread safety: pure functions. Integers only: floating point differs between compilers.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

/// The logarithm to base 2 in 1/1024, linear between powers of two. REQUIRES: value > 0.
std::int32_t log2_fixed(std::uint64_t value);

/// Ranks of the items for attempt k (from 1) of SkylineSearch::run; higher ranks come first.
/// Attempt 1 prefers wide items, 2 high items, 3 both. Later attempts weigh width and height at
/// random, half of them mostly by height; and half of them prefer the items that were blamed most
/// for failures (`blames`, by item; may be empty). Measured: no single kind is good for all
/// instances, and with blames some are solved in one second that take ten without.
std::vector<std::int32_t> search_ranks(const Items& items, std::uint64_t attempt,
                                       const std::vector<std::uint64_t>& blames);

/// How valley_fill() chooses items.
struct FillOrder {
  /// true: of the items that fit, the one of highest rank; false: the one that begins first, and of
  /// several the one of highest rank
  bool picks_best = true;
  bool is_backwards = false;        ///< fill the mirrored() items
  std::vector<std::int32_t> ranks;  ///< by item
};
/// The order of fill k, from 0: kFixedFillOrders that are good for most problems, then random ones.
FillOrder fill_order(const Items& items, std::uint64_t attempt);
inline constexpr std::uint64_t kFixedFillOrders = 8;

/// The sequence 1 1 2 1 1 2 4 1 ..., k from 1: how long attempt k should be when a few orders
/// succeed fast and most never do (M. Luby, A. Sinclair, D. Zuckerman, Information Processing
/// Letters 47, 1993).
std::uint64_t luby(std::uint64_t k);

}  // namespace ashlar::inline v0::plan::solve
