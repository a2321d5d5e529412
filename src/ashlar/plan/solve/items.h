// One space of a problem as the solvers see it: items over sections, in units.
//
// Purpose: reduces a problem to what is hard about it.
//   - Times become sections. From one section to the next some buffer ends and another begins, so
//     the buffers of a section are a largest set of buffers that are live together, and times
//     within a section need not be told apart.
//   - A buffer, or all buffers of an alias group together, become an item. Gaps make an item of
//     several pieces.
//   - Bytes become units of their greatest common divisor.
// Thread safety: immutable once made.
//
// Invariants:
//   (1) An item has at least one piece; its pieces are in order and do not overlap.
//   (2) Every piece covers at least one section. Two items conflict exactly when a piece of one and
//       a piece of the other share a section.
//   (3) A plan of the items, each offset times the unit, is a plan of the buffers with the same
//       peak. The least peak is a multiple of the unit, because in a plan where nothing can be
//       moved down every offset is one.
//
// Rounded items. Where all items have one alignment A, every offset is a multiple of A. Then
// a + size <= b exactly when a + (size rounded up to A) <= b: the memory behind a buffer, up to the
// next multiple of A, is of no use to another. So rounding heights up to A changes which plans are
// valid in no way, and the rounded items count in units of A, with no alignment left to think of.
// Invariant (3) then reads: the same plans, with a peak that is the rounded one less what rounding
// added to the highest piece. So, with `rounding` the most that was added to any piece,
//       rounded peak - rounding <= peak <= rounded peak,
// and if no plan has a rounded peak below R, none has a peak below R - rounding. A plan with the
// least rounded peak is less than A above the least peak.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan::solve {

/// A number of units of memory, or an offset counted in them.
using Units = std::int64_t;
using Section = std::uint32_t;
using ItemIndex = std::uint32_t;

/// A rectangle of an item: sections [first, last), and its height.
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
  Units height;   ///< of its highest piece
  Units alignment;
  Units pinned;  ///< its offset, or kNotPinned
};
inline constexpr Units kNotPinned = -1;

struct Items {
  std::vector<Item> items;
  std::vector<Piece> pieces;
  /// by buffer of the problem; kNoItem for buffers of other spaces
  std::vector<ItemIndex> item_of;
  std::vector<Units> load;   ///< by section: the sum of the heights of the items there
  std::vector<Time> moment;  ///< by section: a time at which all its items are live
  Bytes unit{1};
  Units lower_bound = 0;  ///< the greatest load or end of a pinned item: no peak is below
  Bytes rounding;         ///< the most that rounding added to a height; zero: nothing was rounded
  Bytes lower_bound_unrounded;  ///< lower_bound in bytes, of the heights before rounding

  std::uint32_t size() const { return static_cast<std::uint32_t>(items.size()); }
  Section sections() const { return static_cast<Section>(load.size()); }
  /// A bound in bytes on the peak of any plan, where no plan of these items is below `bound`.
  Bytes bound_in_bytes(Units bound) const {
    return std::max(lower_bound_unrounded, unit * static_cast<std::uint64_t>(bound) - rounding);
  }
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

/// The sum of all items' widths in sections: the size of a table of the items over each section.
/// Cost: O(pieces).
std::uint64_t cover_of(const Items& items);

/// The items of one space. REQUIRES: check_problem() is ok. Cost: O(n log n).
Items make_items(const Problem& problem, std::uint32_t space);

/// The same, with heights rounded up to the alignment that all items have; without a common
/// alignment as make_items() makes them.
Items make_rounded_items(const Problem& problem, std::uint32_t space);

/// The highest end of a buffer of the space, whose items are at these offsets. Cost: O(buffers).
Bytes peak_in_bytes(const Problem& problem, const Items& items, const std::vector<Units>& offsets);

/// Writes the offsets of the space's buffers, by buffer of the problem, from those of its items.
/// The offsets of other spaces' buffers stay as they are.
void write_offsets(const Items& items, const std::vector<Units>& offsets, std::vector<Bytes>* out);

}  // namespace ashlar::inline v0::plan::solve
