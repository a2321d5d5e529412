// Exact search for a plan within a capacity: branch and bound over skylines.
//
// Purpose: finds a plan whose peak is at most a capacity, or proves that there is none. It is made
// for small instances with no room to spare, such as scratchpads; it takes any Items.
// Thread safety: none; one search to a thread. Deterministic: the outcome depends on the arguments
// alone.
//
// The plan is built from below, item by item; only plans where no item can be moved down are looked
// for, since there is one whenever there is a plan. The state (skyline_state.h) has a floor for
// each section. At the end of a valley of floors few things can be done next (skyline_choices.h);
// the search tries each of them, at the valley that offers the fewest. Mostly there is only one,
// because waste is scarce:
//   - waste comes out of a section's slack, and a choice that makes the slack negative is none;
//   - a floor lower than every rest of the items there is raised to the least of them, again and
//     again (SkylineState::propagate);
//   - sections that fall apart into parts that share no item are searched part by part;
//   - a part (its items and floors) that was searched and has no plan is remembered and not
//     searched again (failed_parts.h).
//
// Sources: the skyline and its valleys are the best-fit heuristic for strip packing of E. Burke, G.
// Kendall, G. Whitwell (Operations Research 52, 2004); restricting the search to plans pushed down,
// and sections, are MiniMalloc's (M. Moffitt, ASPLOS 2023). Branching at the scarcest valley, slack
// as the budget of waste, and the memory of failed parts are ours.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/search_memory.h>
#include <ashlar/plan/solve/skyline_choices.h>
#include <ashlar/plan/solve/skyline_instance.h>
#include <ashlar/plan/solve/skyline_state.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

class SkylineSearch {
 public:
  /// The maximum number of items to place: each is a level of the recursion, and the levels have to
  /// fit a thread's stack.
  static constexpr ItemIndex kItemsMax = 3'000;
  /// The maximum sum of all items' widths in sections: beyond it the tables take over 100 MB.
  static constexpr std::uint64_t kCoverMax = 1u << 24;
  /// Whether the instance is within both limits. Cost: O(pieces).
  static bool can_search(const Items& items);

  /// REQUIRES: can_search(items), which outlive the search.
  explicit SkylineSearch(const Items& items);
  SkylineSearch(const SkylineSearch&) = delete;
  SkylineSearch& operator=(const SkylineSearch&) = delete;

  enum class Outcome : std::uint8_t {
    kFound,    ///< offsets() is a plan within the capacity
    kNone,     ///< there is no such plan
    kStopped,  ///< neither is known: a limit was reached
  };
  struct Limits {
    std::uint64_t nodes;
    std::uint64_t steps;
    const StopCondition* stop;
    SearchMonitor* monitor = nullptr;  ///< if given, it is asked instead of `stop`
  };
  /// Looks for a plan of at most `capacity`. Of items that may stand in a valley, some come first
  /// (ChoiceFinder::push), at last those of higher rank; `ranks` is by item. `memory` is what
  /// earlier runs over the same items learned, and is added to.
  Outcome run(Units capacity, const std::vector<std::int32_t>& ranks, const Limits& limits,
              SearchMemory* memory);
  /// By item. REQUIRES: the last run found a plan.
  const std::vector<Units>& offsets() const { return state_.offsets(); }
  /// The work of all runs: looks at an item or a section, some nanoseconds each, whatever the
  /// instance.
  std::uint64_t steps() const { return state_.steps(); }

 private:
  bool search(Part whole);
  bool search_part(Part part);
  bool is_out_of_limits();
  bool is_told_to_stop() const;
  FailedParts::Key key_of(Part part) const;

  const SkylineInstance instance_;
  SkylineState state_;
  ChoiceFinder choices_;
  std::vector<Part> parts_;  // a stack
  // Of one run.
  Limits limits_{};
  SearchMemory* memory_ = nullptr;
  std::uint64_t nodes_ = 0;
  std::uint64_t steps_begin_ = 0;
  std::uint64_t steps_end_ = 0;
  std::uint32_t depth_ = 0;
  bool has_stopped_ = false;
};

}  // namespace ashlar::inline v0::plan::solve
