// The free index: exact best fit, smallest size that fits, then lowest address.
//
// Purpose: a two-level bitmap leads to a class of free blocks in O(1); a tree inside the class
// (fit_tree.h) to the block, with work bounded by kFitStepsMax whatever the pool holds.
// Thread safety: none; the pool's owner brings the lock. const members may run together.
//
// Sizes and addresses are multiples of 2^g, the granule. Let 2^(g+o) <= size < 2^(g+o+1); o is the
// size's octave, and the blocks of one octave are a group. A block's place in its group is
//   (the o bits of its size that may be set below the leading one; its address's bits from o on)
// read as one number; its first kSubBits bits choose the class, the rest is the key. So a group has
// classes by size, and where sizes have few bits (a granule or two) by where a block lies.
//
// Why a key fits a word: the address bits dropped lose nothing. Take two free blocks of one group
// at addresses a < b: they are disjoint and each is at least 2^(g+o) long, so (b >> (g+o)) >= (a >>
// (g+o)) + 1: still distinct, and in the same order. A place then has o bits of size and (address
// bits) - g - o of address: the o cancels, and what is left after the class is at most 64 - 4 - 5
// bits, whatever the size. (Address bits below those do no harm: they come last.) Addresses are
// taken relative to a *window* that holds every segment the pool has seen, because the bits all
// addresses share say nothing, and would take the place of those that choose the class. A segment
// outside it makes a new one, at least twice as large, and the index is built anew: at most 64
// times in a pool's life.
//
// The record inserted last waits outside the trees: allocators free and allocate in short turns,
// and a block that is merged or taken at once never needs a place (a free+malloc pair then touches
// no tree).
//
// Invariants (validate() checks them as the pool's (3)):
//   (1) A class's bit is set exactly when its tree has a record; a group's bit exactly when a
//       class's bit is set in it.
//   (2) No two records have the same class and key.
//   (3) Every record of the index is in the tree of its class, but for at most one: latest_.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include <ashlar/block/block_records.h>
#include <ashlar/block/fit_tree.h>

namespace ashlar::inline v0::block {

/// No search, insertion or removal visits more nodes than this on its way down: a branch for each
/// bit of a key, a leaf.
inline constexpr unsigned kFitStepsMax = 60;

class FreeIndex {
 public:
  using Records = BlockRecords;

  explicit FreeIndex(unsigned granule_bits) : granule_bits_(granule_bits) { roots_.fill(kNoNode); }

  /// Makes sure that `records` records can be in the index together. False if the host has no
  /// memory. Cost: as copying the nodes in use, when the number grows.
  bool reserve(std::uint32_t records) noexcept { return trees_.reserve(records); }
  /// Adds a record by its address and size. REQUIRES: not in the index; its address is in the
  /// window; reserve() has counted it.
  void insert(Records& records, std::uint32_t index) noexcept {
    if (latest_ != kNone) insert_in_tree(records, latest_);
    latest_ = index;
  }
  /// Takes a record out. REQUIRES: in the index; its address and size as they were at insert().
  void remove(Records& records, std::uint32_t index) noexcept {
    if (latest_ == index) {
      latest_ = kNone;
    } else {
      remove_from_tree(records, index);
    }
  }
  /// The record with the smallest (size, address) whose size is at least `size` bytes, or kNone.
  std::uint32_t lower_bound(const Records& records, std::uint64_t size) const noexcept;
  /// The record that follows in (size, address) order, or kNone. REQUIRES: in the index.
  std::uint32_t successor(const Records& records, std::uint32_t index) const noexcept;
  /// A record of the largest size, or kNone.
  std::uint32_t largest(const Records& records) const noexcept;

  /// Makes the window hold [base, base + size). True when the keys of all records changed: then the
  /// owner calls clear() and inserts every free record again.
  bool extend_window(std::uint64_t base, std::uint64_t size) noexcept;
  /// Does the index hold `count` records, all free, each where its address and size say? nullptr,
  /// or the invariant that broke. Cost: O(classes + count).
  const char* validate(const Records& records, std::uint64_t count) const noexcept;
  /// Forgets every record.
  void clear() noexcept {
    if (!trees_.is_empty()) roots_.fill(kNoNode);
    subs_.fill(0);
    groups_ = 0;
    latest_ = kNone;
    trees_.clear();
  }

 private:
  friend struct PoolPeer;

  static constexpr unsigned kSubBits = 5;
  static constexpr unsigned kSubs = 1u << kSubBits;
  static constexpr unsigned kGroups = 60;  ///< 64-bit sizes, granules of at least 2^4 bytes
  static constexpr unsigned kWordBits = 64;
  static constexpr unsigned kGroupsAtOnce = 10;
  static_assert(kGroups % kGroupsAtOnce == 0);
  static_assert(kSubBits > FitTrees::kSlotBits,
                "what the class takes from the front is free at the key's end");

  /// Where a block belongs: its class, and its key there.
  struct Place {
    unsigned size_class;
    std::uint64_t key;
  };
  /// `offset` is the address relative to the window.
  Place place_of(std::uint64_t size, std::uint64_t offset) const {
    const auto zeros = static_cast<unsigned>(std::countl_zero(size));
    const unsigned octave = (kWordBits - 1 - granule_bits_) - zeros;
    const std::uint64_t place =
        (size << zeros << 1) | ((offset << (kWordBits - window_bits_)) >> octave);
    return Place{(octave << kSubBits) | static_cast<unsigned>(place >> (kWordBits - kSubBits)),
                 place << kSubBits};
  }
  Place place_of(const Records& records, std::uint32_t index) const {
    return place_of(records.size(index), records.address(index) - window_base_);
  }

  void insert_in_tree(Records& records, std::uint32_t index) noexcept;
  void remove_from_tree(Records& records, std::uint32_t index) noexcept;
  std::uint32_t lower_bound_from(unsigned size_class, std::uint64_t key) const noexcept;
  std::uint32_t smallest_of(unsigned group, std::uint32_t subs) const noexcept;
  std::uint32_t smallest_above(unsigned group) const noexcept;
  bool has_nothing_in(unsigned first) const noexcept;

  static bool precedes(const Records& records, std::uint32_t a, std::uint32_t b) {
    const std::uint64_t size = records.size(a), other = records.size(b);
    return size < other || (size == other && records.address(a) < records.address(b));
  }

  unsigned granule_bits_;
  unsigned window_bits_ = 1;
  std::uint64_t window_base_ = 0;
  std::uint64_t span_base_ = 0;  ///< what the segments seen so far span
  std::uint64_t span_last_ = 0;
  std::uint64_t groups_ = 0;
  std::uint32_t latest_ = kNone;
  std::array<std::uint32_t, kGroups> subs_{};
  std::array<std::uint32_t, std::size_t{kGroups} * kSubs> roots_;
  FitTrees trees_;
};

inline void FreeIndex::insert_in_tree(Records& records, std::uint32_t index) noexcept {
  const Place place = place_of(records, index);
  const unsigned group = place.size_class >> kSubBits;
  groups_ |= std::uint64_t{1} << group;
  subs_[group] |= 1u << (place.size_class & (kSubs - 1));
  trees_.insert(records, roots_[place.size_class], place.size_class, place.key, index);
}

inline void FreeIndex::remove_from_tree(Records& records, std::uint32_t index) noexcept {
  const FitTrees::Removed removed = trees_.remove(records, roots_.data(), index);
  const unsigned group = removed.size_class >> kSubBits;
  const std::uint32_t subs = subs_[group] & ~(static_cast<std::uint32_t>(removed.is_empty)
                                              << (removed.size_class & (kSubs - 1)));
  subs_[group] = subs;
  groups_ &= ~(static_cast<std::uint64_t>(subs == 0) << group);
}

/// The record with the smallest key >= `key` in the class, else the smallest of the classes above
/// it.
inline std::uint32_t FreeIndex::lower_bound_from(unsigned size_class,
                                                 std::uint64_t key) const noexcept {
  const unsigned group = size_class >> kSubBits;
  const unsigned sub = size_class & (kSubs - 1);
  if ((subs_[group] >> sub & 1) != 0) {
    const std::uint32_t found = trees_.lower_bound(roots_[size_class], key);
    if (found != kNone) return found;
  }
  const std::uint32_t rest = subs_[group] & (~std::uint32_t{1} << sub);
  if (rest == 0) return smallest_above(group);
  return smallest_of(group, rest);
}

/// The smallest record of a group's classes whose bits are set in `subs`, one at least.
inline std::uint32_t FreeIndex::smallest_of(unsigned group, std::uint32_t subs) const noexcept {
  return trees_.smallest(
      roots_[(group << kSubBits) | static_cast<unsigned>(std::countr_zero(subs))]);
}

/// The smallest record of the groups above.
inline std::uint32_t FreeIndex::smallest_above(unsigned group) const noexcept {
  const std::uint64_t groups = groups_ & (~std::uint64_t{1} << group);
  if (groups == 0) return kNone;
  const auto next = static_cast<unsigned>(std::countr_zero(groups));
  return smallest_of(next, subs_[next]);
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
  if (groups_ == 0) return latest_;
  const unsigned group = 63 - static_cast<unsigned>(std::countl_zero(groups_));
  const unsigned sub = kSubs - 1 - static_cast<unsigned>(std::countl_zero(subs_[group]));
  const std::uint32_t node = trees_.largest(roots_[(group << kSubBits) | sub]);
  return latest_ != kNone && precedes(records, node, latest_) ? latest_ : node;
}

inline bool FreeIndex::extend_window(std::uint64_t base, std::uint64_t size) noexcept {
  const std::uint64_t last = base + (size - 1);
  const bool is_first = span_last_ == 0;
  span_base_ = is_first ? base : std::min(span_base_, base);
  span_last_ = std::max(span_last_, last);
  const std::uint64_t window_size_less_one = ~std::uint64_t{0} >> (kWordBits - window_bits_);
  if (!is_first && span_base_ >= window_base_ && span_last_ - window_base_ <= window_size_less_one)
    return false;
  // Twice the span, with as much room below as above: the next window is then at least twice as
  // large as this one.
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
