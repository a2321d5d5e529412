#include <ashlar/plan/solve/skyline_state.h>

#include <algorithm>

namespace ashlar::inline v0::plan::solve {

bool SkylineState::begin(Units capacity, std::vector<std::uint64_t>* blames) {
  const Items& items = instance_.items;
  capacity_ = capacity;
  blames_ = blames;
  trail_.clear();
  work_.clear();
  offset_.assign(items.size(), 0);
  placed_.assign(items.size(), 0);
  rest_.assign(items.size(), 0);
  unplaced_.reset();
  floor_.assign(items.sections(), 0);
  to_come_ = items.load;
  witness_.assign(items.sections(), kNoItem);
  crossed_.assign(items.sections() + std::size_t{1}, 0);
  slack_.assign(items.sections(), 0);
  return place_pinned_and_rest() && propagate();
}

/// Places the pinned items and sets floors, slack and rests. False: an item has no room.
bool SkylineState::place_pinned_and_rest() {
  const Items& items = instance_.items;
  for (ItemIndex i = 0; i < items.size(); ++i) {
    const Item& item = items.items[i];
    if (item.pinned == kNotPinned) {
      for (Section s = item.first + 1; s < item.last; ++s) crossed_[s] += 1;
      continue;
    }
    placed_[i] = 1;
    offset_[i] = item.pinned;
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      for (Section s = piece->first; s < piece->last; ++s) to_come_[s] -= piece->height;
    }
  }
  for (Section s = 0; s < items.sections(); ++s) {
    slack_[s] = capacity_ - items.load[s];
    floor_[s] = instance_.above_pins(s, 0);
    work_.unwitnessed.push_back(s);
  }
  for (ItemIndex i = 0; i < items.size(); ++i) {
    if (placed_[i] != 0) continue;
    Units floor = 0;
    const Item& item = items.items[i];
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      floor = std::max(
          floor, *std::max_element(floor_.begin() + piece->first, floor_.begin() + piece->last));
    }
    rest_[i] = instance_.rest_above(i, floor);
    if (rest_[i] + item.height > capacity_) return false;
  }
  return true;
}

void SkylineState::place(ItemIndex index, Units offset) {
  const Items& items = instance_.items;
  const Item& item = items.items[index];
  ASHLAR_ASSERT(placed_[index] == 0 && rest_[index] == offset,
                "skyline(1): an item is placed where it cannot rest");
  trail_.set(placed_, index, 1);
  offset_[index] = offset;
  for (Section s = item.first + 1; s < item.last; ++s) trail_.set(crossed_, s, crossed_[s] - 1);
  for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
    for (Section s = piece->first; s < piece->last; ++s) {
      trail_.set(floor_, s, instance_.above_pins(s, offset + piece->height));
      trail_.set(to_come_, s, to_come_[s] - piece->height);
      unplaced_.remove(index, s, &trail_);
      work_.risen.push_back(s);
      if (witness_[s] == index) work_.unwitnessed.push_back(s);
    }
  }
}

bool SkylineState::raise(Section section, Units floor) {
  const Units to = instance_.above_pins(section, floor);
  const Units waste = instance_.waste_between(section, floor_[section], to);
  if (waste > slack_[section]) return false;
  trail_.set(slack_, section, slack_[section] - waste);
  trail_.set(floor_, section, to);
  work_.risen.push_back(section);
  return true;
}

bool SkylineState::propagate() {
  for (;;) {
    if (!work_.risen.empty()) {
      const Section section = work_.risen.back();
      work_.risen.pop_back();
      if (!spread(section)) return false;
    } else if (!work_.unwitnessed.empty()) {
      const Section section = work_.unwitnessed.back();
      work_.unwitnessed.pop_back();
      if (!find_witness(section)) return false;
    } else {
      return true;
    }
  }
}

/// Raises the rests of the items over a section whose floor rose. False: one of them has no room.
bool SkylineState::spread(Section risen) {
  const Items& items = instance_.items;
  const Units floor = floor_[risen];
  // Most of a search is spent in these loops. The local pointers tell the compiler that the arrays
  // do not move.
  const Units* const rests = rest_.data();
  const std::uint32_t* const witnesses = witness_.data();
  const std::span<const ItemIndex> unplaced = unplaced_[risen];
  steps_ += unplaced.size();
  for (const ItemIndex index : unplaced) {
    if (rests[index] >= floor) continue;
    const Item& item = items.items[index];
    const Units rest = instance_.rest_above(index, floor);
    if (rest + item.height > capacity_) {
      (*blames_)[index] += 1;
      return false;
    }
    trail_.set(rest_, index, rest);
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      for (Section s = piece->first, last = piece->last; s < last; ++s) {
        if (witnesses[s] == index) work_.unwitnessed.push_back(s);
      }
    }
  }
  return true;
}

/// Finds an item that rests on the section's floor. Where there is none the floor is too low and is
/// raised to the lowest rest. False: there is too little slack for that.
bool SkylineState::find_witness(Section section) {
  if (to_come_[section] == 0) return true;
  const Units* const rests = rest_.data();
  const std::span<const ItemIndex> unplaced = unplaced_[section];
  const Units floor = floor_[section];
  ASHLAR_ASSERT(!unplaced.empty(), "skyline(2): an open section without an unplaced item");
  ItemIndex witness = unplaced.front();
  for (const ItemIndex index : unplaced) {
    if (rests[witness] == floor) break;
    steps_ += 1;
    if (rests[index] < rests[witness]) witness = index;
  }
  if (witness_[section] != witness) trail_.set(witness_, section, witness);
  if (rests[witness] == floor || raise(section, rests[witness])) return true;
  for (const ItemIndex index : unplaced) (*blames_)[index] += 1;
  return false;
}

bool SkylineState::stands_level(const Item& item, Units floor) const {
  const Items& items = instance_.items;
  for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
    for (Section s = piece->first; s < piece->last; ++s) {
      if (floor_[s] != floor) return false;
    }
  }
  return true;
}

}  // namespace ashlar::inline v0::plan::solve
