// Lowers the peak of a plan that is too large to be searched whole: takes out the items around the
// peak, and searches for a lower place for them alone.
//
// Purpose: greedy plans of tens of thousands of buffers exceed the lower bound in a few places only.
// Thread safety: none. Deterministic except for `stop`.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

class Repair {
 public:
  /// `items` outlive the repair.
  explicit Repair(const Items& items);

  /// Changes a valid plan so that its peak is at most `target`. For every item that ends higher: it
  /// is taken out, with others that live near the time of its life when memory is fullest, and a
  /// search (skyline_search.h) puts them back around the items that stay. False if that did not
  /// succeed within `steps` and `stop`; then the plan may have changed, and is valid and no higher.
  bool lower(Units target, std::vector<Units>* offsets, std::uint64_t steps,
             const StopCondition& stop);
  /// The work of all calls so far.
  std::uint64_t steps() const { return steps_; }

 private:
  std::vector<ItemIndex> items_around(ItemIndex around, std::uint32_t count) const;
  bool put_back(const std::vector<ItemIndex>& taken, Units target, std::uint64_t attempt,
                std::vector<Units>* offsets, std::uint64_t steps_end, const StopCondition& stop);
  Items part_of(const std::vector<ItemIndex>& taken, const std::vector<Units>& offsets) const;

  const Items& items_;
  std::vector<ItemIndex> by_first_;   ///< items by their first section
  std::vector<std::uint32_t> begin_;  ///< by section, into by_first_
  std::uint64_t steps_ = 0;
};

}  // namespace ashlar::inline v0::plan::solve
