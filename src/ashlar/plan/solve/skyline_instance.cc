#include <ashlar/plan/solve/skyline_instance.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <ashlar/base/mix.h>

namespace ashlar::inline v0::plan::solve {
namespace {

bool is_pinned(const Item& item) { return item.pinned != kNotPinned; }

/// Collects items in rows. `for_each(f)` calls f(key, item) for every entry, and is called twice.
template <class ForEach>
Rows<ItemIndex> make_rows(std::size_t keys, ForEach&& for_each) {
  Rows<ItemIndex> rows;
  rows.begin.assign(keys + 1, 0);
  for_each([&](std::uint32_t key, ItemIndex) { rows.begin[key + 1] += 1; });
  for (std::size_t k = 0; k < keys; ++k) rows.begin[k + 1] += rows.begin[k];
  rows.values.resize(rows.begin[keys]);
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for_each([&](std::uint32_t key, ItemIndex index) { rows.values[next[key]++] = index; });
  return rows;
}

/// By section: the items over it, either the pinned ones or the others.
Rows<ItemIndex> items_over(const Items& items, bool pinned) {
  return make_rows(items.sections(), [&](auto&& f) {
    for (ItemIndex i = 0; i < items.size(); ++i) {
      const Item& item = items.items[i];
      if (is_pinned(item) != pinned) continue;
      for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
        for (Section s = piece->first; s < piece->last; ++s) f(s, i);
      }
    }
  });
}

/// The items to place that have one piece, by the section that `end` names.
Rows<ItemIndex> simple_items_by(const Items& items, Section Item::*end) {
  return make_rows(items.sections() + std::size_t{1}, [&](auto&& f) {
    for (ItemIndex i = 0; i < items.size(); ++i) {
      const Item& item = items.items[i];
      if (item.pieces_end - item.pieces_begin == 1 && !is_pinned(item)) f(item.*end, i);
    }
  });
}

std::vector<ItemIndex> broken_items(const Items& items) {
  std::vector<ItemIndex> broken;
  for (ItemIndex i = 0; i < items.size(); ++i) {
    const Item& item = items.items[i];
    if (item.pieces_end - item.pieces_begin > 1 && !is_pinned(item)) broken.push_back(i);
  }
  return broken;
}

/// Sorts the values from `from` on, and makes one interval of those that touch.
void join_touching(std::vector<Interval>* intervals, std::size_t from) {
  std::sort(intervals->begin() + static_cast<std::ptrdiff_t>(from), intervals->end(),
            [](const Interval& a, const Interval& b) { return a.bottom < b.bottom; });
  std::size_t kept = from;
  for (std::size_t k = from; k < intervals->size(); ++k) {
    if (kept > from && (*intervals)[kept - 1].top == (*intervals)[k].bottom) {
      (*intervals)[kept - 1].top = (*intervals)[k].top;
    } else {
      (*intervals)[kept++] = (*intervals)[k];
    }
  }
  intervals->resize(kept);
}

/// By section: where pinned items are.
Rows<Interval> pins_of(const Items& items) {
  const Rows<ItemIndex> pinned = items_over(items, true);
  Rows<Interval> pins;
  pins.begin.push_back(0);
  for (Section s = 0; s < items.sections(); ++s) {
    const std::size_t from = pins.values.size();
    for (const ItemIndex index : pinned[s]) {
      const Item& item = items.items[index];
      for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
        if (s >= piece->first && s < piece->last)
          pins.values.push_back({item.pinned, item.pinned + piece->height});
      }
    }
    join_touching(&pins.values, from);
    pins.begin.push_back(static_cast<std::uint32_t>(pins.values.size()));
  }
  return pins;
}

/// Sorts the values from `from` on, and drops those that occur twice.
void keep_distinct(std::vector<Interval>* intervals, std::size_t from) {
  const auto key = [](const Interval& x) { return std::tuple(x.bottom, x.top); };
  const auto begin = intervals->begin() + static_cast<std::ptrdiff_t>(from);
  std::sort(begin, intervals->end(),
            [&](const Interval& a, const Interval& b) { return key(a) < key(b); });
  const auto end = std::unique(begin, intervals->end(), [&](const Interval& a, const Interval& b) {
    return key(a) == key(b);
  });
  intervals->erase(end, intervals->end());
}

/// By item: the offsets that would meet a pinned item.
Rows<Interval> forbidden_of(const Items& items, const Rows<Interval>& pins) {
  Rows<Interval> forbidden;
  forbidden.begin.push_back(0);
  for (const Item& item : items.items) {
    const std::size_t from = forbidden.values.size();
    for (const Piece* piece = items.begin_of(item); !is_pinned(item) && piece != items.end_of(item);
         ++piece) {
      for (const Interval& pin : pins.between(piece->first, piece->last))
        forbidden.values.push_back({pin.bottom - piece->height, pin.top});
    }
    keep_distinct(&forbidden.values, from);
    forbidden.begin.push_back(static_cast<std::uint32_t>(forbidden.values.size()));
  }
  return forbidden;
}

/// By item: the first item to place of the same alignment and pieces. A pinned item is its own.
std::vector<ItemIndex> twins_of(const Items& items) {
  using Shape = std::pair<Units, std::vector<std::tuple<Section, Section, Units>>>;
  std::map<Shape, ItemIndex> shapes;
  std::vector<ItemIndex> twins;
  for (ItemIndex i = 0; i < items.size(); ++i) {
    const Item& item = items.items[i];
    if (is_pinned(item)) {
      twins.push_back(i);
      continue;
    }
    Shape shape{item.alignment, {}};
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece)
      shape.second.emplace_back(piece->first, piece->last, piece->height);
    twins.push_back(shapes.emplace(std::move(shape), i).first->second);
  }
  return twins;
}

}  // namespace

SkylineInstance::SkylineInstance(const Items& all)
    : items(all),
      over(items_over(all, false)),
      starts(simple_items_by(all, &Item::first)),
      ends(simple_items_by(all, &Item::last)),
      broken(broken_items(all)),
      pins(pins_of(all)),
      forbidden(forbidden_of(all, pins)),
      twin(twins_of(all)),
      slots(0) {
  for (ItemIndex i = 0; i < all.size(); ++i) {
    const Item& item = all.items[i];
    Units least = item.height;
    for (const Piece* piece = all.begin_of(item); piece != all.end_of(item); ++piece)
      least = std::min(least, piece->height);
    least_height.push_back(least);
    key.push_back(mix(i));
    slots_begin.push_back(slots);
    slots += is_pinned(item) ? 0 : item.last - item.first;
  }
}

}  // namespace ashlar::inline v0::plan::solve
