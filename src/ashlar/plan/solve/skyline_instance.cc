// The instance of a skyline search: tables of what does not change.
#include <ashlar/plan/solve/skyline_search.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <ashlar/plan/solve/mix.h>

namespace ashlar::inline v0::plan::solve {
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
  const auto to_place = std::count_if(items.items.begin(), items.items.end(),
                                      [](const Item& item) { return !is_pinned(item); });
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
        if (item.pieces_end - item.pieces_begin == 1 && !is_pinned(item))
          f(at_last ? item.last : item.first, i);
      }
    };
  };
  Rows cover = make_rows(sections, for_each_cover(false));
  cover_begin_ = std::move(cover.begin);
  cover_first_ = std::move(cover.values);
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
        if (s >= piece->first && s < piece->last)
          pins_.push_back({item.pinned, item.pinned + piece->height});
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
  std::size_t slots = 0;
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
    std::sort(begin, forbidden_.end(),
              [&](const Interval& a, const Interval& b) { return key(a) < key(b); });
    forbidden_.erase(
        std::unique(begin, forbidden_.end(),
                    [&](const Interval& a, const Interval& b) { return key(a) == key(b); }),
        forbidden_.end());
    forbidden_begin_.push_back(static_cast<std::uint32_t>(forbidden_.size()));
    least_height_.push_back(least);
    twin_.push_back(is_pinned(item) ? i : shapes.emplace(std::move(shape), i).first->second);
    if (item.pieces_end - item.pieces_begin > 1 && !is_pinned(item)) broken_.push_back(i);
    item_key_.push_back(mix(i));
    slots_begin_.push_back(slots);
    slots += is_pinned(item) ? 0 : item.last - item.first;
  }
  cover_slot_.resize(slots);
}

}  // namespace ashlar::inline v0::plan::solve
