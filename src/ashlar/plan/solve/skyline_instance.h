// The instance of a skyline search: tables that do not change while it runs.
//
// Thread safety: immutable once made. Memory: proportional to the sum of the items' widths in
// sections (cover_of), and to the pins over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

/// Offsets from bottom to top.
struct Interval {
  Units bottom;
  Units top;
};

/// Values in rows by key, in one array.
template <class T>
struct Rows {
  std::vector<std::uint32_t> begin;  ///< one more than there are keys
  std::vector<T> values;

  std::span<const T> operator[](std::size_t key) const { return between(key, key + 1); }
  /// The rows [first, last), joined. REQUIRES: first <= last.
  std::span<const T> between(std::size_t first, std::size_t last) const {
    return {values.data() + begin[first], values.data() + begin[last]};
  }
};

struct SkylineInstance {
  /// `all` outlives the instance.
  explicit SkylineInstance(const Items& all);

  /// Whether the item has a piece over the section.
  bool covers(const Item& item, Section section) const {
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      if (section >= piece->first && section < piece->last) return true;
    }
    return false;
  }
  bool share_section(const Item& a, const Item& b) const {
    for (const Piece* piece = items.begin_of(a); piece != items.end_of(a); ++piece) {
      for (const Piece* other = items.begin_of(b); other != items.end_of(b); ++other) {
        if (piece->first < other->last && other->first < piece->last) return true;
      }
    }
    return false;
  }

  /// The lowest offset at or above `floor` that alignment and pinned items permit the item.
  Units rest_above(ItemIndex index, Units floor) const {
    const Units alignment = items.items[index].alignment;
    Units rest = aligned(floor, alignment);
    for (const Interval& interval : forbidden[index]) {
      if (interval.bottom < rest && rest < interval.top) rest = aligned(interval.top, alignment);
    }
    return rest;
  }
  /// The lowest floor at or above `floor` that is neither inside a pinned item nor at the bottom of
  /// one.
  Units above_pins(Section section, Units floor) const {
    for (const Interval& pin : pins[section]) {
      if (pin.bottom <= floor && floor < pin.top) floor = pin.top;
    }
    return floor;
  }
  /// The memory between two floors that no pinned item has.
  Units waste_between(Section section, Units from, Units to) const {
    Units waste = to - from;
    for (const Interval& pin : pins[section]) {
      if (pin.bottom >= from && pin.top <= to) waste -= pin.top - pin.bottom;
    }
    return waste;
  }

  const Items& items;
  Rows<ItemIndex> over;           ///< by section: the items to place that have a piece there
  Rows<ItemIndex> starts;         ///< by first section: the items to place, of one piece
  Rows<ItemIndex> ends;           ///< by last section: the same items
  std::vector<ItemIndex> broken;  ///< the items to place, of several pieces
  Rows<Interval> pins;            ///< by section: where pinned items are; ascending, apart
  /// By item: offsets strictly inside an interval would meet a pinned item. Ascending.
  Rows<Interval> forbidden;
  std::vector<ItemIndex> twin;      ///< by item: the first item that is just like it
  std::vector<Units> least_height;  ///< by item: of its pieces
  std::vector<std::uint64_t> key;   ///< by item: a hash of its number
  /// By item: where its part of a table over (item, section of its life) begins.
  std::vector<std::size_t> slots_begin;
  std::size_t slots;  ///< the size of such a table
};

}  // namespace ashlar::inline v0::plan::solve
