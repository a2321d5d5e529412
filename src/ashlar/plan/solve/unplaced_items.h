// The items that a valley fill has not placed yet: finds one that lives wholly within a valley.
//
// Thread safety: none. Cost: O(log n) per call, with one exception: to find the best item takes
// longer where many items begin in the valley and end beyond it. All such searches together are
// bounded; once the bound is reached, the first item is taken instead of the best.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

class UnplacedItems {
 public:
  /// Holds every item that is not pinned. Of two items the one of higher rank is the better one;
  /// `ranks` is by item, and is not kept. `picks_best`: see FillOrder. `items` outlive this.
  UnplacedItems(const Items& items, const std::vector<std::int32_t>& ranks, bool picks_best);

  /// Takes out an item that lives within [left, right): the best; or, without picks_best, the one
  /// that begins first, and of several the best. kNoItem if there is none.
  ItemIndex take(Section left, Section right);
  /// Puts back an item that was taken out.
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
  void set(std::uint32_t place, Node value);
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
  // a segment tree over order_; an item that was taken out counts as one that never ends
  std::vector<Node> nodes_;
  std::vector<Visit> visits_;
};

}  // namespace ashlar::inline v0::plan::solve
