// The state of a skyline search: how it begins, changes and is put back.
#include <ashlar/plan/solve/skyline_search.h>

#include <algorithm>
#include <utility>

#include <ashlar/plan/solve/mix.h>

namespace ashlar::inline v0::plan::solve {

/// The state before anything is placed. False: there is no plan.
bool SkylineSearch::prepare() {
  const ItemIndex n = items_.size();
  const Section sections = items_.sections();
  units_trail_.clear();
  words_trail_.clear();
  risen_.clear();
  unwitnessed_.clear();
  candidates_.clear();
  parts_.clear();
  offset_.assign(n, 0);
  placed_.assign(n, 0);
  cover_ = cover_first_;
  cover_end_.assign(cover_begin_.begin() + 1, cover_begin_.end());
  for (Section s = 0; s < sections; ++s) {
    for (std::uint32_t k = cover_begin_[s]; k < cover_end_[s]; ++k) slot_of(cover_[k], s) = k;
  }
  rest_.assign(n, 0);
  floor_.assign(sections, 0);
  to_come_ = items_.load;
  witness_.assign(sections, kNoItem);
  crossed_.assign(sections + 1, 0);
  slack_.assign(sections, 0);
  for (ItemIndex i = 0; i < n; ++i) {
    const Item& item = items_.items[i];
    if (item.pinned != kNotPinned) {
      placed_[i] = 1;
      offset_[i] = item.pinned;
      for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
        for (Section s = piece->first; s < piece->last; ++s) to_come_[s] -= piece->height;
      }
      continue;
    }
    for (Section s = item.first + 1; s < item.last; ++s) crossed_[s] += 1;
  }
  for (Section s = 0; s < sections; ++s) {
    slack_[s] = capacity_ - items_.load[s];
    floor_[s] = above_pins(s, 0);
    unwitnessed_.push_back(s);
  }
  for (ItemIndex i = 0; i < n; ++i) {
    if (placed_[i] != 0) continue;
    Units floor = 0;
    const Item& item = items_.items[i];
    for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
      floor = std::max(
          floor, *std::max_element(floor_.begin() + piece->first, floor_.begin() + piece->last));
    }
    rest_[i] = rest_above(i, floor);
    if (rest_[i] + item.height > capacity_) return false;
  }
  return propagate();
}

// Changes.

void SkylineSearch::set(std::vector<Units>& in, std::uint32_t at, Units value) {
  units_trail_.push_back({&in[at], in[at]});
  in[at] = value;
}

void SkylineSearch::set(std::vector<std::uint32_t>& in, std::uint32_t at, std::uint32_t value) {
  words_trail_.push_back({&in[at], in[at]});
  in[at] = value;
}

void SkylineSearch::undo(Mark to) noexcept {
  for (; units_trail_.size() > to.units; units_trail_.pop_back())
    *units_trail_.back().where = units_trail_.back().was;
  for (; words_trail_.size() > to.words; words_trail_.pop_back())
    *words_trail_.back().where = words_trail_.back().was;
  risen_.clear();
  unwitnessed_.clear();
}

/// Puts an item onto floors that are all `offset`. propagate() has the rest to do.
void SkylineSearch::place(ItemIndex index, Units offset) {
  const Item& item = items_.items[index];
  ASHLAR_ASSERT(placed_[index] == 0 && rest_[index] == offset,
                "skyline(1): an item is placed where it cannot rest");
  set(placed_, index, 1);
  offset_[index] = offset;
  for (Section s = item.first + 1; s < item.last; ++s) set(crossed_, s, crossed_[s] - 1);
  for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
    for (Section s = piece->first; s < piece->last; ++s) {
      set(floor_, s, above_pins(s, offset + piece->height));
      set(to_come_, s, to_come_[s] - piece->height);
      uncover(index, s);
      risen_.push_back(s);
      if (witness_[s] == index) unwitnessed_.push_back(s);
    }
  }
}

/// The item is not to come there any more.
void SkylineSearch::uncover(ItemIndex index, Section section) {
  const std::uint32_t last = cover_end_[section] - 1;
  std::uint32_t& slot = slot_of(index, section);
  std::swap(cover_[slot], cover_[last]);
  slot_of(cover_[slot], section) = slot;
  slot = last;
  set(cover_end_, section, last);
}

/// Raises a floor, at the cost of slack. False where there is too little.
bool SkylineSearch::raise(Section section, Units floor) {
  const Units to = above_pins(section, floor);
  const Units waste = waste_between(section, floor_[section], to);
  if (waste > slack_[section]) return false;
  set(slack_, section, slack_[section] - waste);
  set(floor_, section, to);
  risen_.push_back(section);
  return true;
}

/// Restores the invariants after floors rose. False: there is no plan from here (and the work is
/// left undone: undo()).
bool SkylineSearch::propagate() {
  for (;;) {
    if (!risen_.empty()) {
      const Section section = risen_.back();
      risen_.pop_back();
      if (!spread(section)) return false;
    } else if (!unwitnessed_.empty()) {
      const Section section = unwitnessed_.back();
      unwitnessed_.pop_back();
      if (!find_witness(section)) return false;
    } else {
      return true;
    }
  }
}

/// The items over a section whose floor rose rest higher.
bool SkylineSearch::spread(Section risen) {
  const Units floor = floor_[risen];
  // Most of a search is spent in these loops: what they read is told once that it does not move.
  const Units* const rests = rest_.data();
  const std::uint32_t* const witnesses = witness_.data();
  const ItemIndex* const end = cover_.data() + cover_end_[risen];
  const ItemIndex* at = cover_.data() + cover_begin_[risen];
  steps_ += static_cast<std::uint64_t>(end - at);
  for (; at != end; ++at) {
    const ItemIndex index = *at;
    if (rests[index] >= floor) continue;
    const Item& item = items_.items[index];
    const Units rest = rest_above(index, floor);
    if (rest + item.height > capacity_) {
      memory_->blames[index] += 1;
      return false;
    }
    set(rest_, index, rest);
    for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
      for (Section s = piece->first, last = piece->last; s < last; ++s) {
        if (witnesses[s] == index) unwitnessed_.push_back(s);
      }
    }
  }
  return true;
}

/// An item that rests on the section's floor; where there is none the floor is too low.
bool SkylineSearch::find_witness(Section section) {
  if (to_come_[section] == 0) return true;
  const Units* const rests = rest_.data();
  const ItemIndex* const begin = cover_.data() + cover_begin_[section];
  const ItemIndex* const end = cover_.data() + cover_end_[section];
  const Units floor = floor_[section];
  ASHLAR_ASSERT(begin != end, "skyline(2): nobody is to come where something is");
  const ItemIndex* witness = begin;
  for (const ItemIndex* at = begin; at != end && rests[*witness] != floor; ++at) {
    steps_ += 1;
    if (rests[*at] < rests[*witness]) witness = at;
  }
  if (witness_[section] != *witness) set(witness_, section, *witness);
  if (rests[*witness] == floor || raise(section, rests[*witness])) return true;
  for (const ItemIndex* at = begin; at != end; ++at) memory_->blames[*at] += 1;
  return false;
}

/// The lowest offset at or above `floor` that the item may have by its alignment and the pinned
/// items.
Units SkylineSearch::rest_above(ItemIndex index, Units floor) const {
  const Units alignment = items_.items[index].alignment;
  Units rest = aligned(floor, alignment);
  for (std::uint32_t k = forbidden_begin_[index]; k < forbidden_begin_[index + 1]; ++k) {
    if (forbidden_[k].bottom < rest && rest < forbidden_[k].top)
      rest = aligned(forbidden_[k].top, alignment);
  }
  return rest;
}

/// A floor is never inside a pinned item, or below one that touches it.
Units SkylineSearch::above_pins(Section section, Units floor) const {
  for (std::uint32_t k = pins_begin_[section]; k < pins_begin_[section + 1]; ++k) {
    if (pins_[k].bottom <= floor && floor < pins_[k].top) floor = pins_[k].top;
  }
  return floor;
}

/// The memory between two floors that no pinned item has.
Units SkylineSearch::waste_between(Section section, Units from, Units to) const {
  Units waste = to - from;
  for (std::uint32_t k = pins_begin_[section]; k < pins_begin_[section + 1]; ++k) {
    if (pins_[k].bottom >= from && pins_[k].top <= to) waste -= pins_[k].top - pins_[k].bottom;
  }
  return waste;
}

FailedParts::Key SkylineSearch::key_of(Part part) const {
  FailedParts::Key key{0, 0};
  const auto add = [&key](std::uint64_t word) {
    key.place ^= word;
    key.check += (word * 0x9e3779b97f4a7c15u) ^ (word >> 29);
  };
  for_unplaced_in(part, [&](ItemIndex index) { add(item_key_[index]); });
  for (Section s = part.first; s < part.last; ++s) {
    if (to_come_[s] != 0) add(mix(mix(s + 1) + static_cast<std::uint64_t>(floor_[s])));
  }
  return key;
}

}  // namespace ashlar::inline v0::plan::solve
