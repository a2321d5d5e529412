// Lowers the peak of a plan that is too large to be searched whole: takes out what is around the
// peak and searches that.
//
// Purpose: greedy plans of ten thousands of buffers stick out above the lower bound in a few
// places.
// Thread safety: none. Deterministic but for `stop`.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/stop.h>

namespace ashlar::inline v0::plan::solve {

class Repair {
 public:
  /// `items` outlive it.
  explicit Repair(const Items& items);

  /// Changes a valid plan so that its peak is at most `target`, if it can: every item that ends
  /// higher is taken out, with others that live near where memory is fullest in its life, and they
  /// are put back around those that stay (skyline_search.h). False where that was not found, or
  /// time or steps are up: then the plan is valid, no higher than it was, and changed.
  bool lower(Units target, std::vector<Units>* offsets, std::uint64_t steps, Stop* stop);
  std::uint64_t steps() const { return steps_; }

 private:
  std::vector<ItemIndex> taken_out(ItemIndex around, std::uint32_t count) const;
  bool put_back(const std::vector<ItemIndex>& taken, Units target, std::uint64_t attempt,
                std::vector<Units>* offsets, std::uint64_t steps_end, Stop* stop);
  Items part_of(const std::vector<ItemIndex>& taken, const std::vector<Units>& offsets) const;

  const Items& items_;
  std::vector<ItemIndex> by_first_;   ///< items by their first section
  std::vector<std::uint32_t> begin_;  ///< by section, into by_first_
  std::uint64_t steps_ = 0;
};

}  // namespace ashlar::inline v0::plan::solve
