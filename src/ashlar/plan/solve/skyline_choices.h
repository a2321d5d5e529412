// The choices of a skyline search: which items may be placed next, and which valley offers the
// fewest.
//
// Thread safety: none.
//
// A *valley* is a run of sections with one floor between higher ones. Take the section at one end
// of it. Among the items still to be placed there, the lowest either stands on the floor, and then
// it lies wholly in the valley; or it rests higher, and then the floor can be raised to the lowest
// rest that an item there can have, which wastes memory. So the choices at a section are the items
// that may stand on its floor and, if the slack permits, to raise the floor.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <ashlar/plan/solve/skyline_instance.h>
#include <ashlar/plan/solve/skyline_state.h>

namespace ashlar::inline v0::plan::solve {

inline constexpr Units kNoUnits = std::numeric_limits<Units>::max();

/// What may be done next at one end of a valley.
struct ValleyChoices {
  Section left = 0;  ///< the valley, [left, right)
  Section right = 0;
  Section section = 0;  ///< which of its ends
  Units floor = 0;
  Units raised = kNoUnits;  ///< what to raise the floor to; kNoUnits: it may not be raised
  std::uint32_t begin = 0;  ///< the items that may stand on the floor: candidates begin to end
  std::uint32_t end = 0;

  std::uint32_t count() const { return end - begin + (raised != kNoUnits ? 1 : 0); }
};

/// Finds choices. Their candidates are on a stack, so that a search may be recursive.
class ChoiceFinder {
 public:
  /// Both outlive the finder.
  ChoiceFinder(const SkylineInstance& instance, const SkylineState& state)
      : instance_(instance), state_(state) {}

  /// Begins a run in which, of equally good items, those of higher rank come first. `ranks`, by
  /// item, outlive the run.
  void begin(const std::vector<std::int32_t>* ranks) {
    ranks_ = ranks;
    candidates_.clear();
  }
  /// The choices at the end of a valley of the part that has the fewest, then the least slack, then
  /// the lowest floor. Pushes its candidates, the best first. The order: items that fill the valley
  /// from end to end, then items that end level with its neighbours, then by rank.
  ValleyChoices push(Part part);
  ItemIndex candidate(std::uint32_t k) const { return candidates_[k]; }
  /// Pops the candidates of the choices pushed last.
  void pop(const ValleyChoices& choices) { candidates_.resize(choices.begin); }

 private:
  bool collect(Part part, bool at_left, ValleyChoices* out);
  Units raised_floor(Part part, const ValleyChoices& choices, Section reach, bool at_left,
                     bool has_broken) const;
  void add_candidate(std::uint32_t begin, ItemIndex index);
  bool is_scarcer(const ValleyChoices& a, const ValleyChoices& b) const;
  void keep_scarcest(Part part, ValleyChoices valley, ValleyChoices* best, bool* has_one);
  std::int64_t score(Part part, const ValleyChoices& choices, ItemIndex index) const;

  const SkylineInstance& instance_;
  const SkylineState& state_;
  const std::vector<std::int32_t>* ranks_ = nullptr;
  std::vector<ItemIndex> candidates_;  // a stack
};

}  // namespace ashlar::inline v0::plan::solve
