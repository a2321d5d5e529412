// The state of a skyline search: what is placed, the floors, and what follows from them.
//
// Thread safety: none.
//
// A section's *floor* is the lowest offset that an unplaced item may still have there. An item's
// *rest* is the lowest offset it may have: at or above the floors of all its sections, aligned,
// clear of pinned items. A section's *slack* is the memory that may still be wasted there: the
// capacity less the floor and less the heights of the unplaced items.
//
// Invariants, whenever propagate() has returned true:
//   (1) the rest of an unplaced item is what its sections' floors say;
//   (2) the witness of a section is an unplaced item there whose rest is the floor, if any item is
//       unplaced there;
//   (3) slack is not negative wherever an item is unplaced;
//   (4) unplaced()[s] are the unplaced items over section s;
//   (5) undo() to a mark gives back the state at that mark.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/plan/solve/section_cover.h>
#include <ashlar/plan/solve/skyline_instance.h>
#include <ashlar/plan/solve/trail.h>

namespace ashlar::inline v0::plan::solve {

/// Sections [first, last) whose ends no unplaced item crosses: they can be searched by themselves.
struct Part {
  Section first;
  Section last;
};

class SkylineState {
 public:
  /// `instance` outlives the state.
  explicit SkylineState(const SkylineInstance& instance)
      : instance_(instance), unplaced_(instance) {}

  /// Begins with the pinned items placed and the floors settled. False: no plan is within the
  /// capacity. From here on (*blames)[i] is increased when there is no room left for item i.
  bool begin(Units capacity, std::vector<std::uint64_t>* blames);
  /// Places an item on floors that are all `offset`. REQUIRES: propagate() is called next.
  void place(ItemIndex index, Units offset);
  /// Raises a floor, at the cost of slack. False: there is too little slack.
  /// REQUIRES: propagate() is called next.
  bool raise(Section section, Units floor);
  /// Restores the invariants after floors rose. False: there is no plan from here; then the
  /// invariants do not hold until undo().
  bool propagate();

  Trail::Mark mark() const { return trail_.mark(); }
  void undo(Trail::Mark to) noexcept {
    trail_.undo(to);
    work_.clear();
  }

  Units floor(Section section) const { return floor_[section]; }
  Units slack(Section section) const { return slack_[section]; }
  /// Whether an item is still to be placed over the section.
  bool is_open(Section section) const { return to_come_[section] != 0; }
  /// Whether an unplaced item is over both `section` - 1 and `section`.
  bool is_crossed(Section section) const { return crossed_[section] > 0; }
  const SectionCover& unplaced() const { return unplaced_; }
  bool is_placed(ItemIndex index) const { return placed_[index] != 0; }
  Units rest(ItemIndex index) const { return rest_[index]; }
  /// Whether every floor under the item is `floor`.
  bool stands_level(const Item& item, Units floor) const;
  /// Calls f(item) for every unplaced item of the part.
  template <class F>
  void for_unplaced_in(Part part, F&& f) const;

  /// By item: the offsets of the placed ones.
  const std::vector<Units>& offsets() const { return offset_; }
  /// The work done since the state was made: looks at an item or a section, some nanoseconds each.
  std::uint64_t steps() const { return steps_; }
  void add_steps(std::uint64_t steps) { steps_ += steps; }

 private:
  /// What propagate() has to look at.
  struct Work {
    std::vector<Section> risen;        ///< sections whose floor rose
    std::vector<Section> unwitnessed;  ///< sections that lost their witness
    void clear() noexcept {
      risen.clear();
      unwitnessed.clear();
    }
  };

  bool place_pinned_and_rest();
  bool spread(Section risen);
  bool find_witness(Section section);

  const SkylineInstance& instance_;
  Units capacity_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<std::uint64_t>* blames_ = nullptr;
  Trail trail_;
  std::vector<Units> floor_, slack_;    // by section
  std::vector<Units> to_come_;          // by section: the heights of the unplaced items
  std::vector<std::uint32_t> witness_;  // by section
  std::vector<std::uint32_t> crossed_;  // by section: unplaced items over its first border
  SectionCover unplaced_;
  std::vector<Units> rest_, offset_;   // by item
  std::vector<std::uint32_t> placed_;  // by item: 1 if it is placed
  Work work_;
};

template <class F>
void SkylineState::for_unplaced_in(Part part, F&& f) const {
  for (const ItemIndex index : instance_.starts.between(part.first, part.last)) {
    if (placed_[index] == 0) f(index);
  }
  for (const ItemIndex index : instance_.broken) {
    const Item& item = instance_.items.items[index];
    if (placed_[index] == 0 && item.first >= part.first && item.first < part.last) f(index);
  }
}

}  // namespace ashlar::inline v0::plan::solve
