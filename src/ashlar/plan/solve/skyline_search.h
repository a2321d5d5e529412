// Exact search for a plan within a capacity: branch and bound over skylines.
//
// Purpose: finds a plan whose peak is at most a capacity, or proves that there is none. Small
// scratchpad instances with no room to spare are its case; an instance is any Items.
// Thread safety: none; one search to a thread. Deterministic: the outcome depends on the arguments
// alone.
//
// The plan is built from below. A section's *floor* is the lowest offset anything may still have
// there; an item's *rest* is the lowest offset it may have: above the floors of all its sections,
// aligned, clear of pinned items. Only plans where no item can be moved down are looked for: there
// is one whenever there is a plan.
//
// A *valley* is a run of sections with one floor between higher ones. Take the section at one end
// of it. Of the items still to be placed there, the lowest either stands on the floor, and then it
// lies wholly in the valley; or all are higher, and then the floor is as high as the lowest place
// one of them can have: memory is wasted. The search branches over those choices, at the valley
// that offers fewest, and has the least slack. Choices are few, mostly one, because waste is
// scarce:
//   - a section's *slack* is the capacity less its floor and less the heights of the items still to
//     be placed there; waste comes out of it, and a choice that makes it negative is no choice;
//   - a floor lower than every rest of the items there is raised to the least of them, again and
//     again (propagate());
//   - what falls apart into items that share no section is searched part by part;
//   - a part (items and floors) that was searched through in vain is remembered and not searched
//     again.
//
// Invariants, between the steps of a search:
//   (1) rest_[i] of an unplaced item is what its sections' floors say;
//   (2) witness_[s] is an unplaced item there whose rest is the floor, if any item is unplaced
//       there;
//   (3) slack_[s] >= 0 wherever an item is unplaced;
//   (4) the unplaced items of section s are cover_[cover_begin_[s]] up to cover_[cover_end_[s]]: to
//       take one out is to swap it behind that end, so to put the end back puts it back;
//   (5) undoing the trail to a mark gives back the state at that mark.
//
// Source: the skyline and its valleys are the best-fit heuristic for strip packing of E. Burke, G.
// Kendall, G. Whitwell (Operations Research 52, 2004); restricting the search to plans pushed down,
// and sections, are MiniMalloc's (M. Moffitt, ASPLOS 2023). Branching at the scarcest valley, slack
// as the budget of waste, and the memory of failed parts are ours.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/search_memory.h>
#include <ashlar/plan/solve/stop.h>

namespace ashlar::inline v0::plan::solve {

class SkylineSearch {
 public:
  /// Larger instances are not searched: more items to place than levels of the search fit a
  /// thread's stack, or a sum of all items' widths in sections whose tables would take 100 MB.
  static constexpr ItemIndex kItemsMax = 3'000;
  static constexpr std::uint64_t kCoverMax = 1u << 24;
  static bool can_search(const Items& items);

  /// REQUIRES: can_search(items), which outlive the search.
  explicit SkylineSearch(const Items& items);

  enum class Outcome : std::uint8_t {
    kFound,    ///< offsets() is a plan within the capacity
    kNone,     ///< there is no such plan
    kStopped,  ///< neither is known: so many nodes were visited or steps taken, or stop said so
  };
  /// Looks for a plan of at most `capacity`. Of the items that may stand in a valley, those that
  /// fill it from end to end come first, then those that end level with its neighbours, then those
  /// of high `order`, by item. `memory` is what earlier runs of this search learned, and is added
  /// to.
  struct Limits {
    std::uint64_t nodes;
    std::uint64_t steps;
    Stop* stop;
    Pace* pace = nullptr;  ///< if given, it has the say instead of `stop`
  };
  Outcome run(Units capacity, const std::vector<std::int32_t>& order, const Limits& limits,
              SearchMemory* memory);
  const std::vector<Units>& offsets() const { return offset_; }
  /// The work done since the search was made: looks at an item or a section. Some nanoseconds each,
  /// whatever the instance.
  std::uint64_t steps() const { return steps_; }

 private:
  /// Sections [first, last) that no unplaced item crosses the ends of.
  struct Part {
    Section first;
    Section last;
  };
  /// What may be done next at one end of a valley.
  struct Choice {
    Section left = 0;  ///< the valley, [left, right)
    Section right = 0;
    Section section = 0;  ///< which of its ends
    Units floor = 0;
    Units raised = kNoUnits;  ///< the floor where nothing stands on it; kNoUnits: something must
    std::uint32_t begin = 0;  ///< the items that may stand on it: [begin, end) of candidates_
    std::uint32_t end = 0;
    std::uint32_t count() const { return end - begin + (raised != kNoUnits ? 1 : 0); }
  };
  static constexpr Units kNoUnits = std::numeric_limits<Units>::max();

  bool prepare();
  bool search(Part part);
  bool search_part(Part part);
  bool is_out_of_time();
  bool is_told_to_stop();

  // Branching.
  Choice choose(Part part);
  bool collect(Part part, bool at_left, Choice* out);
  bool is_scarcer(const Choice& a, const Choice& b) const;
  std::int64_t score(Part part, const Choice& choice, ItemIndex index) const;
  Units raised_floor(Part part, const Choice& choice, Section reach, bool at_left,
                     bool has_broken) const;
  bool covers(const Item& item, Section section) const;
  bool share_section(const Item& a, const Item& b) const;
  bool stands_level(const Item& item, Units floor) const;

  // Changing the state.
  void place(ItemIndex index, Units offset);
  void uncover(ItemIndex index, Section section);
  std::uint32_t& slot_of(ItemIndex index, Section section) {
    return cover_slot_[slots_begin_[index] + (section - items_.items[index].first)];
  }
  bool propagate();
  bool spread(Section risen);
  bool find_witness(Section section);
  bool raise(Section section, Units floor);
  Units rest_above(ItemIndex index, Units floor) const;
  Units above_pins(Section section, Units floor) const;
  Units waste_between(Section section, Units from, Units to) const;
  template <class F>
  void for_unplaced_in(Part part, F&& f) const;

  // The trail.
  void set(std::vector<Units>& in, std::uint32_t at, Units value);
  void set(std::vector<std::uint32_t>& in, std::uint32_t at, std::uint32_t value);
  struct Mark {
    std::size_t units;
    std::size_t words;
  };
  Mark mark() const { return {units_trail_.size(), words_trail_.size()}; }
  void undo(Mark to) noexcept;
  FailedParts::Key key_of(Part part) const;

  // The instance.
  const Items& items_;
  std::vector<std::uint32_t> cover_begin_;  ///< by section, into cover_
  std::vector<ItemIndex> cover_first_;      ///< the items with a piece there
  std::vector<std::size_t> slots_begin_;    ///< by item, into cover_slot_
  std::vector<std::uint32_t> starts_begin_, ends_begin_;
  /// items of one piece, by first and by last section
  std::vector<ItemIndex> starts_, ends_;
  std::vector<ItemIndex> broken_;    ///< items of several pieces
  std::vector<ItemIndex> twin_;      ///< the first item just like it
  std::vector<Units> least_height_;  ///< of an item's pieces
  struct Interval {
    Units bottom;
    Units top;
  };
  std::vector<std::uint32_t> forbidden_begin_;  ///< by item, into forbidden_
  /// offsets strictly inside would meet a pinned item; ascending
  std::vector<Interval> forbidden_;
  std::vector<std::uint32_t> pins_begin_;  ///< by section, into pins_
  std::vector<Interval> pins_;             ///< where pinned items are; ascending
  std::vector<std::uint64_t> item_key_, section_key_;

  // The state.
  /// by section; to_come_: the heights of the unplaced items
  std::vector<Units> floor_, slack_, to_come_;
  std::vector<Units> rest_, offset_;  ///< by item
  /// by section; crossed_[s]: unplaced items over the end of s - 1 and s
  std::vector<std::uint32_t> witness_, crossed_;
  std::vector<std::uint32_t> placed_;  ///< by item
  /// as cover_first_, but the unplaced of each section come first,
  std::vector<ItemIndex> cover_;
  std::vector<std::uint32_t> cover_end_;  ///< by section: up to here
  /// by item and section of its life: where in cover_ it is
  std::vector<std::uint32_t> cover_slot_;
  struct UnitsChange {
    Units* where;
    Units was;
  };
  struct WordChange {
    std::uint32_t* where;
    std::uint32_t was;
  };
  std::vector<UnitsChange> units_trail_;
  std::vector<WordChange> words_trail_;

  // One run.
  Units capacity_ = 0;
  const std::vector<std::int32_t>* order_ = nullptr;
  std::uint64_t nodes_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_begin_ = 0;
  std::uint64_t steps_end_ = 0;
  Limits limits_{};
  bool has_stopped_ = false;
  SearchMemory* memory_ = nullptr;
  std::vector<Section> risen_;        ///< propagate()'s work: sections whose floor rose
  std::vector<Section> unwitnessed_;  ///< and those that lost their witness
  /// a stack: each level of the search keeps its choice's
  std::vector<ItemIndex> candidates_;
  std::vector<Part> parts_;  ///< a stack, likewise
  std::uint32_t depth_ = 0;
};

/// Calls f(item) for every unplaced item of the part.
template <class F>
void SkylineSearch::for_unplaced_in(Part part, F&& f) const {
  for (std::uint32_t k = starts_begin_[part.first]; k < starts_begin_[part.last]; ++k) {
    if (placed_[starts_[k]] == 0) f(starts_[k]);
  }
  for (const ItemIndex index : broken_) {
    const Item& item = items_.items[index];
    if (placed_[index] == 0 && item.first >= part.first && item.first < part.last) f(index);
  }
}

}  // namespace ashlar::inline v0::plan::solve
