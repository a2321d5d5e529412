// The items still to be placed: finds one that lives wholly within a valley.
//
// Thread safety: none. Cost: O(log n) a call, but that to find the best of many that begin in a
// valley and end beyond it can take longer, up to a bound for all calls together; from then on the
// first is taken for the best.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

class ToPlace {
 public:
  /// Every item but the pinned ones. `ranks`, by item, says which are better; it is not kept.
  ToPlace(const Items& items, const std::vector<std::int32_t>& ranks, bool picks_best);

  /// Takes out, of the items within [left, right), the best; or the one that begins first, and of
  /// several the best. kNoItem where there is none.
  ItemIndex take(Section left, Section right);
  /// Puts back what was taken.
  void put(ItemIndex index);

 private:
  static constexpr Section kNever = std::numeric_limits<Section>::max();
  static constexpr std::int32_t kWorst = std::numeric_limits<std::int32_t>::min();
  struct Node {
    Section least_end = kNever;
    std::int32_t best_rank = kWorst;
  };
  struct Visit {
    std::uint32_t node;
    std::uint32_t first;
    std::uint32_t last;
  };
  Node joined(std::size_t node) const;
  void set(std::uint32_t place, Node node);
  std::uint32_t first_within(std::uint32_t begin, std::uint32_t end, Section right);
  std::uint32_t best_within(std::uint32_t begin, std::uint32_t end, Section right);

  const Items& items_;
  const bool picks_best_;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_end_;  // of looking for the best
  std::uint32_t leaves_ = 1;
  std::vector<ItemIndex> order_;      // by first section, then the better first
  std::vector<std::uint32_t> place_;  // by item, in order_
  std::vector<std::uint32_t> begin_;  // by section, into order_
  std::vector<std::int32_t> ranks_;   // by place
  // a tree over order_; what was taken is as if it never ended
  std::vector<Node> nodes_;
  std::vector<Visit> visits_;
};

}  // namespace ashlar::inline v0::plan::solve
