// The state of a skyline search: what the instance looks like at first, and how it changes and is put back.
#include <ashlar/plan/skyline_search.h>

#include <algorithm>
#include <map>
#include <tuple>

#include <ashlar/plan/mix.h>

namespace ashlar {
inline namespace v0 {
namespace plan {
namespace {

/// Puts `values` into rows by their keys: begin[key] .. begin[key + 1], in order of item.
struct Rows {
  std::vector<std::uint32_t> begin;
  std::vector<ItemIndex> values;
};
template <class ForEach>
Rows make_rows(std::size_t keys, ForEach&& for_each) {
  Rows rows;
  rows.begin.assign(keys + 1, 0);
  for_each([&](std::uint32_t key, ItemIndex) { rows.begin[key + 1] += 1; });
  for (std::size_t k = 0; k < keys; ++k) rows.begin[k + 1] += rows.begin[k];
  rows.values.resize(rows.begin[keys]);
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for_each([&](std::uint32_t key, ItemIndex index) { rows.values[next[key]++] = index; });
  return rows;
}

bool is_pinned(const Item& item) { return item.pinned != kNotPinned; }

}  // namespace

bool SkylineSearch::can_search(const Items& items) {
  const auto to_place = std::count_if(items.items.begin(), items.items.end(), [](const Item& item) { return !is_pinned(item); });
  return to_place <= kItemsMax && cover_of(items) <= kCoverMax;
}

SkylineSearch::SkylineSearch(const Items& items) : items_(items) {
  const ItemIndex n = items.size();
  const Section sections = items.sections();
  const auto for_each_cover = [&](bool pinned) {
    return [&items, n, pinned](auto&& f) {
      for (ItemIndex i = 0; i < n; ++i) {
        const Item& item = items.items[i];
        if (is_pinned(item) != pinned) continue;
        for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
          for (Section s = piece->first; s < piece->last; ++s) f(s, i);
        }
      }
    };
  };
  const auto for_each_simple = [&](bool at_last) {
    return [&items, n, at_last](auto&& f) {
      for (ItemIndex i = 0; i < n; ++i) {
        const Item& item = items.items[i];
        if (item.pieces_end - item.pieces_begin == 1 && !is_pinned(item)) f(at_last ? item.last : item.first, i);
      }
    };
  };
  Rows cover = make_rows(sections, for_each_cover(false));
  cover_begin_ = std::move(cover.begin);
  cover_ = std::move(cover.values);
  Rows starts = make_rows(sections + 1, for_each_simple(false));
  starts_begin_ = std::move(starts.begin);
  starts_ = std::move(starts.values);
  Rows ends = make_rows(sections + 1, for_each_simple(true));
  ends_begin_ = std::move(ends.begin);
  ends_ = std::move(ends.values);

  const Rows pins = make_rows(sections, for_each_cover(true));
  pins_begin_.assign(sections + 1, 0);
  for (Section s = 0; s < sections; ++s) {
    const std::size_t from = pins_.size();
    for (std::uint32_t k = pins.begin[s]; k < pins.begin[s + 1]; ++k) {
      const Item& item = items.items[pins.values[k]];
      for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
        if (s >= piece->first && s < piece->last) pins_.push_back({item.pinned, item.pinned + piece->height});
      }
    }
    std::sort(pins_.begin() + static_cast<std::ptrdiff_t>(from), pins_.end(),
              [](const Interval& a, const Interval& b) { return a.bottom < b.bottom; });
    // Those that touch are one.
    std::size_t kept = from;
    for (std::size_t k = from; k < pins_.size(); ++k) {
      if (kept > from && pins_[kept - 1].top == pins_[k].bottom) {
        pins_[kept - 1].top = pins_[k].top;
      } else {
        pins_[kept++] = pins_[k];
      }
    }
    pins_.resize(kept);
    pins_begin_[s] = static_cast<std::uint32_t>(from);
  }

  pins_begin_[sections] = static_cast<std::uint32_t>(pins_.size());

  using Shape = std::tuple<Units, std::vector<std::tuple<Section, Section, Units>>>;
  std::map<Shape, ItemIndex> shapes;
  forbidden_begin_.push_back(0);
  for (ItemIndex i = 0; i < n; ++i) {
    const Item& item = items.items[i];
    Shape shape{item.alignment, {}};
    Units least = item.height;
    const std::size_t from = forbidden_.size();
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      std::get<1>(shape).emplace_back(piece->first, piece->last, piece->height);
      least = std::min(least, piece->height);
      if (is_pinned(item)) continue;
      for (Section s = piece->first; s < piece->last; ++s) {
        for (std::uint32_t k = pins_begin_[s]; k < pins_begin_[s + 1]; ++k) {
          forbidden_.push_back({pins_[k].bottom - piece->height, pins_[k].top});
        }
      }
    }
    const auto begin = forbidden_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto key = [](const Interval& x) { return std::tuple(x.bottom, x.top); };
    std::sort(begin, forbidden_.end(), [&](const Interval& a, const Interval& b) { return key(a) < key(b); });
    forbidden_.erase(std::unique(begin, forbidden_.end(), [&](const Interval& a, const Interval& b) { return key(a) == key(b); }),
                     forbidden_.end());
    forbidden_begin_.push_back(static_cast<std::uint32_t>(forbidden_.size()));
    least_height_.push_back(least);
    twin_.push_back(is_pinned(item) ? i : shapes.emplace(std::move(shape), i).first->second);
    if (item.pieces_end - item.pieces_begin > 1 && !is_pinned(item)) broken_.push_back(i);
    item_key_.push_back(mix(i));
  }
}

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
  rest_.assign(n, 0);
  floor_.assign(sections, 0);
  to_come_ = items_.load;
  witness_.assign(sections, kNoItem);
  crossed_.assign(sections + 1, 0);
  slack_.assign(sections, 0);
  for (ItemIndex i = 0; i < n; ++i) {
    const Item& item = items_.items[i];
    if (is_pinned(item)) {
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
      floor = std::max(floor, *std::max_element(floor_.begin() + piece->first, floor_.begin() + piece->last));
    }
    rest_[i] = rest_above(i, floor);
    if (rest_[i] + item.height > capacity_) return false;
  }
  return propagate();
}

// Changes. ------------------------------------------------------------------------------------------------------------

void SkylineSearch::set(std::vector<Units>& in, std::uint32_t at, Units value) {
  units_trail_.push_back({&in[at], in[at]});
  in[at] = value;
}

void SkylineSearch::set(std::vector<std::uint32_t>& in, std::uint32_t at, std::uint32_t value) {
  words_trail_.push_back({&in[at], in[at]});
  in[at] = value;
}

void SkylineSearch::undo(Mark to) noexcept {
  for (; units_trail_.size() > to.units; units_trail_.pop_back()) *units_trail_.back().where = units_trail_.back().was;
  for (; words_trail_.size() > to.words; words_trail_.pop_back()) *words_trail_.back().where = words_trail_.back().was;
  risen_.clear();
  unwitnessed_.clear();
}

/// Puts an item onto floors that are all `offset`. propagate() has the rest to do.
void SkylineSearch::place(ItemIndex index, Units offset) {
  const Item& item = items_.items[index];
  ASHLAR_ASSERT(placed_[index] == 0 && rest_[index] == offset, "skyline(1): an item is placed where it cannot rest");
  set(placed_, index, 1);
  offset_[index] = offset;
  for (Section s = item.first + 1; s < item.last; ++s) set(crossed_, s, crossed_[s] - 1);
  for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
    for (Section s = piece->first; s < piece->last; ++s) {
      set(floor_, s, above_pins(s, offset + piece->height));
      set(to_come_, s, to_come_[s] - piece->height);
      risen_.push_back(s);
      if (witness_[s] == index) unwitnessed_.push_back(s);
    }
  }
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

/// Restores the invariants after floors rose. False: there is no plan from here (and the work is left undone: undo()).
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
  steps_ += cover_begin_[risen + 1] - cover_begin_[risen];
  for (std::uint32_t k = cover_begin_[risen]; k < cover_begin_[risen + 1]; ++k) {
    const ItemIndex index = cover_[k];
    if (rest_[index] >= floor || placed_[index] != 0) continue;
    const Item& item = items_.items[index];
    const Units rest = rest_above(index, floor);
    if (rest + item.height > capacity_) return false;
    set(rest_, index, rest);
    for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
      for (Section s = piece->first; s < piece->last; ++s) {
        if (witness_[s] == index) unwitnessed_.push_back(s);
      }
    }
  }
  return true;
}

/// An item that rests on the section's floor; where there is none the floor is too low.
bool SkylineSearch::find_witness(Section section) {
  if (to_come_[section] == 0) return true;
  ItemIndex witness = kNoItem;
  Units least = kNoUnits;
  for (std::uint32_t k = cover_begin_[section]; k < cover_begin_[section + 1]; ++k) {
    const ItemIndex index = cover_[k];
    steps_ += 1;
    if (placed_[index] != 0 || rest_[index] >= least) continue;
    witness = index;
    least = rest_[index];
    if (least == floor_[section]) break;
  }
  ASHLAR_ASSERT(witness != kNoItem, "skyline(2): nobody is to come where something is");
  if (witness_[section] != witness) set(witness_, section, witness);
  return least == floor_[section] || raise(section, least);
}

/// The lowest offset at or above `floor` that the item may have by its alignment and the pinned items.
Units SkylineSearch::rest_above(ItemIndex index, Units floor) const {
  const Units alignment = items_.items[index].alignment;
  Units rest = aligned(floor, alignment);
  for (std::uint32_t k = forbidden_begin_[index]; k < forbidden_begin_[index + 1]; ++k) {
    if (forbidden_[k].bottom < rest && rest < forbidden_[k].top) rest = aligned(forbidden_[k].top, alignment);
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

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
