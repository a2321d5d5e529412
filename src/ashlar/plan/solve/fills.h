// The sequence of greedy attempts at one space's items, and the cost of each.
//
// Purpose: first valley fills in eight fixed orders, which are good for most problems; then two
// first fits; then, without end, valley fills in random orders. A random order is cheap, and for
// large graphs a few are mostly enough.
// Thread safety: run() and cost() from any thread. Deterministic except for `stop`.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

/// The items by height, or by height times width; the largest first.
std::vector<ItemIndex> order_by_size(const Items& items, bool by_area);

class Fills {
 public:
  /// `items` outlive the fills.
  explicit Fills(const Items& items);

  /// How many attempts are worth making before anything else is tried.
  std::uint32_t initial_count() const { return initial_count_; }
  /// Makes attempt k, from 0, and returns the peak. Gives up and returns stop_at once the peak
  /// cannot be below that, or `stop` (if given) is met; then the offsets are meaningless.
  Units run(std::uint32_t k, Units stop_at, const StopCondition* stop, std::vector<Units>* offsets);
  /// The cost of attempt k in steps of some nanoseconds, also if it gives up early.
  std::uint64_t cost(std::uint32_t k) const;

 private:
  bool is_first_fit(std::uint32_t k) const {
    return has_first_fit_ && (k == first_fit_ || k == first_fit_ + 1);
  }

  const Items& items_;
  std::uint64_t to_place_count_ = 0;  // items that are not pinned
  bool has_first_fit_;
  std::uint32_t first_fit_;  // the attempt that is the first fit by height; by area is the next
  std::uint32_t initial_count_;
  std::once_flag mirror_once_;
  Items mirrored_;
};

}  // namespace ashlar::inline v0::plan::solve
