// One space of a problem as solvers see it: items over sections, in units.
//
// Purpose: what is hard about a problem and nothing else. Times become sections: between two of
// them some buffer ends and another begins, so each is a largest set of buffers that are live
// together, and within one nothing need be told apart. An alias group becomes one item; gaps make
// an item of several pieces; bytes become units of their greatest common divisor.
// Thread safety: immutable once made.
//
// Invariants:
//   (1) An item has one piece at least; its pieces are in order and do not overlap.
//   (2) Every piece covers at least one section, and two items conflict exactly when pieces of
//       theirs share a section.
//   (3) A plan of the items in units is a plan of the buffers: offset * unit, and the peaks agree.
//       The least peak is a multiple of the unit, for so is every offset in a plan where nothing
//       can be moved down.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan::solve {

/// A number of units of memory, or an offset counted in them.
using Units = std::int64_t;
using Section = std::uint32_t;
using ItemIndex = std::uint32_t;

/// Where an item is over sections [first, last), and how high.
struct Piece {
  Section first;
  Section last;
  Units height;
  friend constexpr bool operator==(const Piece&, const Piece&) = default;
};

struct Item {
  std::uint32_t pieces_begin;  ///< [pieces_begin, pieces_end) of Items::pieces
  std::uint32_t pieces_end;
  Section first;  ///< of its first piece
  Section last;   ///< of its last piece
  Units height;   ///< the greatest of its pieces
  Units alignment;
  Units pinned;  ///< kNotPinned, or its offset
};
inline constexpr Units kNotPinned = -1;

struct Items {
  std::vector<Item> items;
  std::vector<Piece> pieces;
  /// by buffer of the problem; kNoItem for buffers of other spaces
  std::vector<ItemIndex> item_of;
  std::vector<Units> load;   ///< by section: the heights of the items there
  std::vector<Time> moment;  ///< by section: a time at which all its items are live
  Bytes unit{1};
  Units lower_bound = 0;  ///< the greatest load, and the ends of pinned items

  std::uint32_t size() const { return static_cast<std::uint32_t>(items.size()); }
  Section sections() const { return static_cast<Section>(load.size()); }
  const Piece* begin_of(const Item& item) const { return pieces.data() + item.pieces_begin; }
  const Piece* end_of(const Item& item) const { return pieces.data() + item.pieces_end; }
};
inline constexpr ItemIndex kNoItem = 0xffffffffu;

/// The lowest multiple of the alignment at or above `at`. REQUIRES: neither is negative.
inline Units aligned(Units at, Units alignment) {
  return (at + alignment - 1) / alignment * alignment;
}

/// The highest end of an item. Cost: O(items).
Units peak_of(const Items& items, const std::vector<Units>& offsets);

/// The sum of all items' widths in sections: what tables of the items over each section take. Cost:
/// O(pieces).
std::uint64_t cover_of(const Items& items);

/// The items of one space. REQUIRES: check_problem() is ok. Cost: O(n log n).
Items make_items(const Problem& problem, std::uint32_t space);

/// The offsets of the problem's buffers in that space, from those of its items. Others are left as
/// they are.
void write_offsets(const Items& items, const std::vector<Units>& offsets, std::vector<Bytes>* out);

}  // namespace ashlar::inline v0::plan::solve
