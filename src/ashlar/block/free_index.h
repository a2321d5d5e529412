// The free index: exact best fit, smallest size that fits, then lowest address.
//
// Purpose: a two-level bitmap leads to a class of free blocks in O(1); the class's tree
// (fit_tree.h) leads to the block, in at most kFitStepsMax steps whatever the pool holds.
// Thread safety: none; the pool's owner holds a lock. const members may run concurrently.
//
// Invariants (validate() checks them as the pool's (3)):
//   (1) A class's bit is set exactly when its tree has a record; a group's bit is set exactly when
//       the bit of one of its classes is.
//   (2) No two records have the same class and key.
//   (3) Every record of the index is in the tree of its class, except for at most one: latest_.
//
// From size and address to class and key (block_pool.h works an example). Sizes and addresses are
// multiples of the granule, 2^g bytes. A size with 2^(g+o) <= size < 2^(g+o+1) has the octave o,
// and the blocks of one octave form a group. A block's place in its group is one 64-bit number: the
// o bits of its size below the leading one, then the bits of its address, highest first, as many as
// fit. The place's first kClassBits bits choose the class within the group; the rest is the key. So
// a group is divided into classes by size, and, where o < kClassBits (few granules), by address
// too.
//
// Why a key fits a word: dropping low address bits loses nothing. Two free blocks of one group at
// addresses a < b are disjoint and each at least 2^(g+o) long, so (b >> (g+o)) >= (a >> (g+o)) + 1:
// the shifted addresses are still distinct and in order. A place then needs o bits of size and
// (address bits) - g - o bits of address. The o cancels, and at most 64 - 4 - 5 bits are left after
// the class, whatever the size. (Lower address bits that fit too come last and do no harm.)
//
// Addresses are relative to a *window* that contains every segment the pool has had. Address bits
// that all blocks share carry no information and would displace those that choose the class. A
// segment outside the window causes a new one, at least twice as large, and a rebuild of the index:
// at most 64 times in a pool's life.
//
// The record inserted last stays outside the trees, in latest_. Allocators free and allocate in
// short turns, and a block that is merged or taken at once needs no place in a tree (a free+malloc
// pair then touches no tree).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include <ashlar/block/block_records.h>
#include <ashlar/block/fit_tree.h>

namespace ashlar::inline v0::block {

/// The most nodes that a search, insertion or removal visits on a path: one branch for each bit of
/// a key, and a leaf.
inline constexpr unsigned kFitStepsMax = 60;

class FreeIndex {
 public:
  using Records = BlockRecords;

  explicit FreeIndex(unsigned granule_bits) : granule_bits_(granule_bits) { roots_.fill(kNoNode); }

  /// Makes room for `records` records in the index. False if the host has no memory. Cost: a copy
  /// of the nodes in use, when the number grows.
  bool reserve(std::uint32_t records) noexcept { return trees_.reserve(records); }
  /// Inserts a record by its address and size. REQUIRES: it is not in the index; its address is in
  /// the window; reserve() made room for it.
  void insert(Records& records, std::uint32_t index) noexcept {
    if (latest_ != kNone) insert_in_tree(records, latest_);
    latest_ = index;
  }
  /// Removes a record. REQUIRES: it is in the index, with its address and size as at insert().
  void remove(Records& records, std::uint32_t index) noexcept {
    if (latest_ == index) {
      latest_ = kNone;
    } else {
      remove_from_tree(records, index);
    }
  }
  /// The record with the smallest (size, address) whose size is at least `size` bytes, or kNone.
  std::uint32_t lower_bound(const Records& records, std::uint64_t size) const noexcept;
  /// The next record in (size, address) order, or kNone. REQUIRES: `index` is in the index.
  std::uint32_t successor(const Records& records, std::uint32_t index) const noexcept;
  /// The record with the largest (size, address), or kNone.
  std::uint32_t largest(const Records& records) const noexcept;

  /// Extends the window to contain [base, base + size). True if this changed the keys of all
  /// records; the caller then calls clear() and inserts every free record again.
  bool extend_window(std::uint64_t base, std::uint64_t size) noexcept;
  /// Checks that the index holds `count` records, all free, each in the place that its address and
  /// size determine. Returns nullptr, or the text of the broken invariant. Cost: O(classes +
  /// count).
  const char* validate(const Records& records, std::uint64_t count) const noexcept;
  /// Removes every record.
  void clear() noexcept {
    if (!trees_.has_no_trees()) roots_.fill(kNoNode);
    class_bits_.fill(0);
    group_bits_ = 0;
    latest_ = kNone;
    trees_.clear();
  }

 private:
  friend struct PoolPeer;

  static constexpr unsigned kClassBits = 5;
  static constexpr unsigned kClassesPerGroup = 1u << kClassBits;
  static constexpr unsigned kGroups = 60;  ///< 64-bit sizes, granules of at least 2^4 bytes
  static constexpr unsigned kWordBits = 64;
  static constexpr unsigned kGroupsPerStep = 10;
  static_assert(kGroups % kGroupsPerStep == 0);
  static_assert(kClassBits > FitTrees::kSlotBits,
                "the bits that the class takes leave room for a slot at the key's end");

  /// A block's class, and its key within the class.
  struct Place {
    unsigned size_class;
    std::uint64_t key;
  };
  /// `offset` is the address relative to the window's base.
  Place place_of(std::uint64_t size, std::uint64_t offset) const {
    const auto zeros = static_cast<unsigned>(std::countl_zero(size));
    const unsigned octave = (kWordBits - 1 - granule_bits_) - zeros;
    const std::uint64_t place =
        (size << zeros << 1) | ((offset << (kWordBits - window_bits_)) >> octave);
    return Place{(octave << kClassBits) | static_cast<unsigned>(place >> (kWordBits - kClassBits)),
                 place << kClassBits};
  }
  Place place_of(const Records& records, std::uint32_t index) const {
    return place_of(records.size(index), records.address(index) - window_base_);
  }

  void insert_in_tree(Records& records, std::uint32_t index) noexcept;
  void remove_from_tree(Records& records, std::uint32_t index) noexcept;
  std::uint32_t lower_bound_from(unsigned size_class, std::uint64_t key) const noexcept;
  std::uint32_t smallest_of(unsigned group, std::uint32_t classes) const noexcept;
  std::uint32_t smallest_above(unsigned group) const noexcept;
  bool are_groups_empty(unsigned first) const noexcept;

  /// True if record `a` comes before `b` in (size, address) order.
  static bool precedes(const Records& records, std::uint32_t a, std::uint32_t b) {
    const std::uint64_t size = records.size(a), other = records.size(b);
    return size < other || (size == other && records.address(a) < records.address(b));
  }

  unsigned granule_bits_;
  unsigned window_bits_ = 1;
  std::uint64_t window_base_ = 0;
  std::uint64_t span_base_ = 0;  ///< the first and last address of all segments so far
  std::uint64_t span_last_ = 0;
  std::uint64_t group_bits_ = 0;  ///< bit g: has group g a record in a tree?
  std::uint32_t latest_ = kNone;  ///< the record inserted last, outside the trees
  std::array<std::uint32_t, kGroups> class_bits_{};  ///< the same for the classes of each group
  std::array<std::uint32_t, std::size_t{kGroups} * kClassesPerGroup> roots_;
  FitTrees trees_;
};

inline void FreeIndex::insert_in_tree(Records& records, std::uint32_t index) noexcept {
  const Place place = place_of(records, index);
  const unsigned group = place.size_class >> kClassBits;
  group_bits_ |= std::uint64_t{1} << group;
  class_bits_[group] |= 1u << (place.size_class & (kClassesPerGroup - 1));
  trees_.insert(records, roots_[place.size_class], place.size_class, place.key, index);
}

inline void FreeIndex::remove_from_tree(Records& records, std::uint32_t index) noexcept {
  const FitTrees::Removed removed = trees_.remove(records, roots_.data(), index);
  const unsigned group = removed.size_class >> kClassBits;
  const std::uint32_t classes =
      class_bits_[group] & ~(static_cast<std::uint32_t>(removed.is_empty)
                             << (removed.size_class & (kClassesPerGroup - 1)));
  class_bits_[group] = classes;
  group_bits_ &= ~(static_cast<std::uint64_t>(classes == 0) << group);
}

/// The record with the smallest key >= `key` in the class, else the smallest of the classes above
/// it, else kNone.
inline std::uint32_t FreeIndex::lower_bound_from(unsigned size_class,
                                                 std::uint64_t key) const noexcept {
  const unsigned group = size_class >> kClassBits;
  const unsigned in_group = size_class & (kClassesPerGroup - 1);
  if ((class_bits_[group] >> in_group & 1) != 0) {
    const std::uint32_t found = trees_.lower_bound(roots_[size_class], key);
    if (found != kNone) return found;
  }
  const std::uint32_t rest = class_bits_[group] & (~std::uint32_t{1} << in_group);
  if (rest == 0) return smallest_above(group);
  return smallest_of(group, rest);
}

/// The smallest record in those of a group's classes whose bits are set in `classes`.
/// REQUIRES: one is set.
inline std::uint32_t FreeIndex::smallest_of(unsigned group, std::uint32_t classes) const noexcept {
  return trees_.smallest(
      roots_[(group << kClassBits) | static_cast<unsigned>(std::countr_zero(classes))]);
}

/// The smallest record of the groups above `group`, or kNone.
inline std::uint32_t FreeIndex::smallest_above(unsigned group) const noexcept {
  const std::uint64_t groups = group_bits_ & (~std::uint64_t{1} << group);
  if (groups == 0) return kNone;
  const auto next = static_cast<unsigned>(std::countr_zero(groups));
  return smallest_of(next, class_bits_[next]);
}

inline std::uint32_t FreeIndex::lower_bound(const Records& records,
                                            std::uint64_t size) const noexcept {
  const Place place = place_of(size, 0);
  const std::uint32_t found = lower_bound_from(place.size_class, place.key);
  if (latest_ == kNone || records.size(latest_) < size) return found;
  return found == kNone || precedes(records, latest_, found) ? latest_ : found;
}

inline std::uint32_t FreeIndex::successor(const Records& records,
                                          std::uint32_t index) const noexcept {
  const Place place = place_of(records, index);
  const std::uint32_t found =
      lower_bound_from(place.size_class, place.key + FitTrees::kSlotMask + 1);
  if (latest_ == kNone || !precedes(records, index, latest_)) return found;
  return found == kNone || precedes(records, latest_, found) ? latest_ : found;
}

inline std::uint32_t FreeIndex::largest(const Records& records) const noexcept {
  if (group_bits_ == 0) return latest_;
  const unsigned group = 63 - static_cast<unsigned>(std::countl_zero(group_bits_));
  const unsigned in_group =
      kClassesPerGroup - 1 - static_cast<unsigned>(std::countl_zero(class_bits_[group]));
  const std::uint32_t node = trees_.largest(roots_[(group << kClassBits) | in_group]);
  return latest_ != kNone && precedes(records, node, latest_) ? latest_ : node;
}

inline bool FreeIndex::extend_window(std::uint64_t base, std::uint64_t size) noexcept {
  const std::uint64_t last = base + (size - 1);
  const bool is_first = span_last_ == 0;
  span_base_ = is_first ? base : std::min(span_base_, base);
  span_last_ = std::max(span_last_, last);
  const std::uint64_t window_bytes_less_one = ~std::uint64_t{0} >> (kWordBits - window_bits_);
  if (!is_first && span_base_ >= window_base_ && span_last_ - window_base_ <= window_bytes_less_one)
    return false;
  // The window is at least twice the span, with as much room below the span as above. A segment
  // outside it therefore leads to a window at least twice as large.
  const std::uint64_t span = span_last_ - span_base_;
  window_bits_ = std::min(static_cast<unsigned>(std::bit_width(span)) + 1, kWordBits);
  window_base_ = 0;
  if (window_bits_ < kWordBits) {
    const std::uint64_t room = ((std::uint64_t{1} << window_bits_) - span) / 2;
    window_base_ = span_base_ < room ? 0 : span_base_ - room;
  }
  return true;
}

}  // namespace ashlar::inline v0::block
