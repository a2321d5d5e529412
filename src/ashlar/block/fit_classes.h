// The classes of the free index: a two-level bitmap over the trees of one address window.
//
// Purpose: leads from a size to the class of the smallest block that fits, in O(1).
// Thread safety: none; the pool's owner holds a lock. const members may run concurrently.
//
// Invariants:
//   (1) A class's bit is set exactly when its tree has a record; a group's bit is set exactly when
//       the bit of one of its classes is.
//   (2) No two records have the same class and key.
//
// From size and position to class and key (block_pool.h works an example). Sizes and positions are
// multiples of the granule, 2^g bytes. A size with 2^(g+o) <= size < 2^(g+o+1) has the octave o,
// and the blocks of one octave form a group. A block's place in its group is one 64-bit number: the
// o bits of its size below the leading one, then the bits of its position, highest first, as many as
// fit. The place's first kClassBits bits choose the class within the group; the rest is the key. So
// a group is divided into classes by size, and, where o < kClassBits (few granules), by
// position too.
//
// Why a key fits a word: dropping low position bits loses nothing. Two free blocks of one group at
// positions a < b are disjoint and each at least 2^(g+o) long, so (b >> (g+o)) >= (a >> (g+o)) + 1:
// the shifted positions are still distinct and in order. A place then needs o bits of size and
// (position bits) - g - o bits of position. The o cancels, and at most 64 - 4 - 5 bits are left after
// the class, whatever the size. (Lower position bits that fit too come last and do no harm.)
//
// Positions are relative to a *window* that contains them all. Position bits that all blocks share
// carry no information and would displace those that choose the class.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include <ashlar/block/block_records.h>
#include <ashlar/block/fit_tree.h>

namespace ashlar::inline v0::block {

class FitClasses {
 public:
  using Records = BlockRecords;
  using Trees = FitTrees;

  static constexpr unsigned kClassBits = 5;
  static constexpr unsigned kClassesPerGroup = 1u << kClassBits;
  static constexpr unsigned kGroups = 60;  ///< 64-bit sizes, granules of at least 2^4 bytes
  static_assert(kClassBits > Trees::kSlotBits,
                "the bits that the class takes leave room for a slot at the key's end");

  explicit FitClasses(unsigned granule_bits) : granule_bits_(granule_bits) { roots_.fill(kNoNode); }

  /// No record's number.
  static constexpr std::uint32_t kOthers = kRecordsMax;

  /// A block's class, and its key within the class.
  struct Place {
    unsigned size_class;
    std::uint64_t key;
  };
  /// `offset` is the position relative to the window's base.
  Place place_of(std::uint64_t size, std::uint64_t offset) const {
    const auto zeros = static_cast<unsigned>(std::countl_zero(size));
    const unsigned octave = (kWordBits - 1 - granule_bits_) - zeros;
    const std::uint64_t place =
        (size << zeros << 1) | ((offset << (kWordBits - window_bits_)) >> octave);
    return Place{(octave << kClassBits) | static_cast<unsigned>(place >> (kWordBits - kClassBits)),
                 place << kClassBits};
  }
  Place place_of(const Records& records, std::uint32_t index) const {
    return place_of(records.size(index), records.position(index) - window_base_);
  }
  /// The place of the first block behind that one in (size, position) order, which may lie outside
  /// the window.
  Place place_behind(const Records& records, std::uint32_t index) const noexcept {
    return place_behind(records.size(index), records.position(index));
  }
  Place place_behind(std::uint64_t size, std::uint64_t position) const noexcept;

  /// True if every byte from `first` to `last` is in the window.
  bool contains(std::uint64_t first, std::uint64_t last) const {
    return first >= window_base_ &&
           last - window_base_ <= ~std::uint64_t{0} >> (kWordBits - window_bits_);
  }
  /// Chooses a window around [first, last], at least twice as long. REQUIRES: is_empty().
  void set_window(std::uint64_t first, std::uint64_t last) noexcept;
  /// Makes all positions the window. REQUIRES: is_empty().
  void set_widest_window() noexcept {
    window_bits_ = kWordBits;
    window_base_ = 0;
  }

  /// True if no tree has a record.
  bool is_empty() const { return (group_bits_ & ~kOthersBit) == 0; }
  /// Says whether the caller has other classes to search too. While it has, lower_bound() gives
  /// kOthers in place of kNone, so that a caller who asks for them only when something was found
  /// asks at the right time, and a search that finds nothing costs no question.
  void set_others(bool has_others) noexcept {
    group_bits_ = has_others ? group_bits_ | kOthersBit : group_bits_ & ~kOthersBit;
  }
  /// Inserts a record. The leaves of its tree name its class, with `mark` in the bits above.
  /// REQUIRES: its position is in the window.
  void insert(Trees& trees, Records& records, std::uint32_t index, unsigned mark) noexcept {
    const Place place = place_of(records, index);
    const unsigned group = place.size_class >> kClassBits;
    group_bits_ |= std::uint64_t{1} << group;
    class_bits_[group] |= 1u << (place.size_class & (kClassesPerGroup - 1));
    trees.insert(records, roots_[place.size_class], place.size_class | mark, place.key, index);
  }
  /// A record of the class was removed from its tree, which `is_empty` now or is not.
  void on_removed(unsigned size_class, bool is_empty) noexcept {
    const unsigned group = size_class >> kClassBits;
    const std::uint32_t classes = class_bits_[group] & ~(static_cast<std::uint32_t>(is_empty)
                                                         << (size_class & (kClassesPerGroup - 1)));
    class_bits_[group] = classes;
    group_bits_ &= ~(static_cast<std::uint64_t>(classes == 0) << group);
  }
  std::uint32_t& root(unsigned size_class) { return roots_[size_class]; }

  /// The first record at that place or behind it, or kNone; or kOthers.
  std::uint32_t lower_bound(const Trees& trees, Place place) const noexcept;
  /// The first record behind that (size, position), of which there may be no record, or kNone; or
  /// kOthers.
  std::uint32_t first_behind(const Trees& trees, const Records& records, std::uint64_t size,
                             std::uint64_t position) const noexcept;
  /// The last record, or kNone.
  std::uint32_t largest(const Trees& trees) const noexcept;
  /// A record of the first class that has one. REQUIRES: !is_empty().
  std::uint32_t any(const Trees& trees) const noexcept {
    const auto group = static_cast<unsigned>(std::countr_zero(group_bits_));
    return trees.any_of_first_leaf(first_root(group, class_bits_[group]));
  }

  /// Checks the trees of all classes and adds what they hold to `found`. The record `latest` must
  /// be in none. Returns nullptr, or the text of the broken invariant. Cost: O(classes + records).
  const char* validate(const Trees& trees, const Records& records, unsigned mark,
                       std::uint32_t latest, Trees::NodeCounts* found) const noexcept;

 private:
  friend struct PoolPeer;

  static constexpr unsigned kWordBits = 64;
  /// In group_bits_, above the bits of all groups.
  static constexpr std::uint64_t kOthersBit = std::uint64_t{1} << 63;
  static constexpr unsigned kGroupsPerStep = 10;
  static_assert(kGroups % kGroupsPerStep == 0);

  /// The root of the first of a group's classes whose bits are set in `classes`.
  /// REQUIRES: one is set.
  std::uint32_t first_root(unsigned group, std::uint32_t classes) const {
    return roots_[(group << kClassBits) | static_cast<unsigned>(std::countr_zero(classes))];
  }
  std::uint32_t smallest_above(const Trees& trees, unsigned group) const noexcept;
  bool are_groups_empty(unsigned first) const noexcept;

  unsigned granule_bits_;
  unsigned window_bits_ = 1;
  std::uint64_t window_base_ = 0;
  std::uint64_t group_bits_ = 0;                     ///< bit g: has group g a record in a tree?
  std::array<std::uint32_t, kGroups> class_bits_{};  ///< the same for the classes of each group
  std::array<std::uint32_t, std::size_t{kGroups} * kClassesPerGroup> roots_;
};

/// The smallest record of the groups above `group`, or kNone; or kOthers.
inline std::uint32_t FitClasses::smallest_above(const Trees& trees, unsigned group) const noexcept {
  const std::uint64_t groups = group_bits_ & (~std::uint64_t{1} << group);
  if (groups == 0) return kNone;
  if (groups == kOthersBit) [[unlikely]]
    return kOthers;
  const auto next = static_cast<unsigned>(std::countr_zero(groups));
  return trees.smallest(first_root(next, class_bits_[next]));
}

inline std::uint32_t FitClasses::lower_bound(const Trees& trees, Place place) const noexcept {
  const unsigned group = place.size_class >> kClassBits;
  const unsigned in_group = place.size_class & (kClassesPerGroup - 1);
  if ((class_bits_[group] >> in_group & 1) != 0) {
    const std::uint32_t found = trees.lower_bound(roots_[place.size_class], place.key);
    if (found != kNone) return found;
  }
  const std::uint32_t rest = class_bits_[group] & (~std::uint32_t{1} << in_group);
  if (rest == 0) return smallest_above(trees, group);
  return trees.smallest(first_root(group, rest));
}

inline std::uint32_t FitClasses::largest(const Trees& trees) const noexcept {
  if (is_empty()) return kNone;
  const unsigned group = 63 - static_cast<unsigned>(std::countl_zero(group_bits_ & ~kOthersBit));
  const unsigned in_group =
      kClassesPerGroup - 1 - static_cast<unsigned>(std::countl_zero(class_bits_[group]));
  return trees.largest(roots_[(group << kClassBits) | in_group]);
}

inline FitClasses::Place FitClasses::place_behind(std::uint64_t size,
                                                  std::uint64_t position) const noexcept {
  if (position < window_base_) return place_of(size, 0);
  if (!contains(position, position)) return place_of(size + (std::uint64_t{1} << granule_bits_), 0);
  Place place = place_of(size, position - window_base_);
  place.key += Trees::kSlotMask + 1;
  return place;
}

inline void FitClasses::set_window(std::uint64_t first, std::uint64_t last) noexcept {
  // At least twice as long, with as much room below as above. A segment outside therefore leads to
  // a window at least twice as large.
  const std::uint64_t span = last - first;
  window_bits_ = std::min(static_cast<unsigned>(std::bit_width(span)) + 1, kWordBits);
  window_base_ = 0;
  if (window_bits_ < kWordBits) {
    const std::uint64_t room = ((std::uint64_t{1} << window_bits_) - span) / 2;
    window_base_ = first < room ? 0 : first - room;
  }
}

}  // namespace ashlar::inline v0::block
