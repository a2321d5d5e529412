// The free index: exact best fit, smallest size that fits, then lowest position
// (position.h).
//
// Purpose: a two-level bitmap leads to a class of free blocks in O(1) (fit_classes.h); the class's
// tree (fit_tree.h) leads to the block, in at most kFitStepsMax steps whatever the pool holds.
// Thread safety: none; the pool's owner holds a lock. const members may run concurrently.
//
// Invariants (validate() checks them as the pool's (3)):
//   (1) In the near classes and in the wide ones a class's bit is set exactly when its tree has a
//       record; a group's bit is set exactly when the bit of one of its classes is.
//   (2) No two records have the same class and key.
//   (3) Every record of the index is in the tree of its class, near or wide, except for at most
//       one: latest_.
//   (4) While the index is settled the wide classes are empty and the near window contains every
//       segment the pool has had. While it moves to wide, records are inserted into the wide
//       classes only; while it moves to near, into the near ones only, and the near window contains
//       every segment.
//
// Positions are relative to a window, and a segment outside the window changes all keys. Then the
// index does not rebuild: it moves its records, a few at every insertion into a tree. First they
// move to the wide classes, whose window is all positions, so that they have a place for any
// segment that may still come; when the near classes are empty they get a new window, and the
// records move back. Meanwhile a search looks into both. The wide window is no good for longer: it
// chooses the classes of small blocks by position bits that all of them share. A window is at least
// twice as large as the one before, so this happens at most 64 times while the pool has segments; a
// pool without any forgets its window.
//
// A window may become far longer than what lies in it: positions rise while segments come and go
// (segment_ledger.h). Then the bits that should choose the classes of small blocks are the same for
// all of them, and each size has one tree. That costs a mix of 10^4 live blocks a tenth of its time,
// and no more however long the window becomes (measured).
//
// The record inserted last stays outside the trees, in latest_. Allocators free and allocate in
// short turns, and a block that is merged or taken at once needs no place in a tree (a free+malloc
// pair then touches no tree).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include <ashlar/base/host_table.h>
#include <ashlar/block/block_records.h>
#include <ashlar/block/fit_classes.h>

namespace ashlar::inline v0::block {

class FreeIndex {
 public:
  using Records = BlockRecords;

  explicit FreeIndex(unsigned granule_bits) : granule_bits_(granule_bits), near_(granule_bits) {}

  /// Makes room for `records` records in the index. False if the host has no memory.
  bool reserve(std::uint32_t records) noexcept { return trees_.reserve(records); }
  /// As FitTrees::grow_ahead().
  bool grow_ahead(std::uint32_t records) noexcept { return trees_.grow_ahead(records); }
  /// Inserts a record by its position and size. REQUIRES: it is not in the index; extend_window()
  /// was called for its segment; reserve() made room for it.
  void insert(Records& records, std::uint32_t index) noexcept {
    if (latest_ != kNone) insert_in_tree(records, latest_);
    latest_ = index;
  }
  /// Removes a record. REQUIRES: it is in the index, with its position and size as at insert().
  void remove(Records& records, std::uint32_t index) noexcept {
    if (latest_ == index) {
      latest_ = kNone;
    } else {
      remove_from_tree(records, index);
    }
  }
  /// The record with the smallest (size, position) whose size is at least `size` bytes, or kNone.
  std::uint32_t lower_bound(const Records& records, std::uint64_t size) const noexcept;
  /// The next record in (size, position) order, or kNone. REQUIRES: `index` is in the index.
  std::uint32_t successor(const Records& records, std::uint32_t index) const noexcept;
  /// The first record behind that (size, position), or kNone. A walk that is interrupted goes on with
  /// it: the record that it looked at last may be gone.
  std::uint32_t first_behind(const Records& records, std::uint64_t size,
                             std::uint64_t position) const noexcept;
  /// The record with the largest (size, position), or kNone.
  std::uint32_t largest(const Records& records) const noexcept;

  /// Guarantees that extend_window() with this segment succeeds. False if the host has no memory
  /// (nothing changed).
  bool reserve_window(std::uint64_t position, std::uint64_t size) noexcept;
  /// The pool has a segment more, at positions [position, position + size). REQUIRES: reserve_window() returned true.
  void extend_window(std::uint64_t position, std::uint64_t size) noexcept;
  /// The pool has no segment, so that the next one chooses the window anew.
  void forget_window() noexcept { span_last_ = 0; }
  /// Checks that the index holds `count` records, all in that state, each in the place that its
  /// position and size determine. Returns nullptr, or the text of the broken invariant. Cost: O(classes +
  /// count).
  const char* validate(const Records& records, std::uint64_t count,
                       std::uint8_t state) const noexcept;

 private:
  friend struct PoolPeer;

  using Trees = FitClasses::Trees;
  /// Invariant 4.
  enum class Move : std::uint8_t { kSettled, kToWide, kToNear };
  /// Above the number of every class; a leaf's class has it in the wide trees.
  static constexpr unsigned kWideMark = 1u << 11;
  static_assert(kWideMark >= FitClasses::kGroups << FitClasses::kClassBits);
  static constexpr unsigned kMovedAtOnce = 4;

  void insert_in_tree(Records& records, std::uint32_t index) noexcept {
    if (move_ != Move::kSettled) [[unlikely]]
      return insert_while_moving(records, index);
    near_.insert(trees_, records, index, 0);
  }
  void remove_from_tree(Records& records, std::uint32_t index) noexcept;
  void insert_while_moving(Records& records, std::uint32_t index) noexcept;
  void end_move() noexcept;
  std::uint32_t lower_bound_while_moving(const Records& records, std::uint32_t found,
                                         std::uint64_t size) const noexcept;
  void set_move(Move move) noexcept {
    move_ = move;
    near_.set_others(move != Move::kSettled);
  }
  std::uint32_t first_with_wide(const Records& records, std::uint32_t found,
                                FitClasses::Place place) const noexcept;
  /// The first of `found`, which may be kNone, and latest_, if that has at least `size` bytes.
  std::uint32_t first_with_latest(const Records& records, std::uint32_t found,
                                  std::uint64_t size) const noexcept {
    if (latest_ == kNone || records.size(latest_) < size) return found;
    return found == kNone || precedes(records, latest_, found) ? latest_ : found;
  }
  void on_removed_from_wide(unsigned size_class, bool is_empty) noexcept;

  /// True if record `a` comes before `b` in (size, position) order.
  static bool precedes(const Records& records, std::uint32_t a, std::uint32_t b) {
    const std::uint64_t size = records.size(a), other = records.size(b);
    return size < other || (size == other && records.position(a) < records.position(b));
  }

  unsigned granule_bits_;
  Move move_ = Move::kSettled;
  std::uint32_t latest_ = kNone;  ///< the record inserted last, outside the trees
  FitClasses near_;
  std::uint64_t span_base_ = 0;  ///< the first and last position of all segments so far
  std::uint64_t span_last_ = 0;
  HostTable<FitClasses> wide_;  ///< made when the first record has to move
  Trees trees_;
};

inline void FreeIndex::remove_from_tree(Records& records, std::uint32_t index) noexcept {
  const Trees::Removed removed =
      trees_.remove(records, index, [this](unsigned size_class) -> std::uint32_t& {
        return (size_class & kWideMark) == 0 ? near_.root(size_class)
                                             : wide_[0].root(size_class ^ kWideMark);
      });
  if ((removed.size_class & kWideMark) != 0) [[unlikely]]
    return on_removed_from_wide(removed.size_class ^ kWideMark, removed.is_empty);
  near_.on_removed(removed.size_class, removed.is_empty);
}

inline std::uint32_t FreeIndex::lower_bound(const Records& records,
                                            std::uint64_t size) const noexcept {
  const std::uint32_t found = near_.lower_bound(trees_, near_.place_of(size, 0));
  if (found != kNone && move_ != Move::kSettled) [[unlikely]]
    return lower_bound_while_moving(records, found, size);
  return first_with_latest(records, found, size);
}

inline std::uint32_t FreeIndex::successor(const Records& records,
                                          std::uint32_t index) const noexcept {
  std::uint32_t found = near_.lower_bound(trees_, near_.place_behind(records, index));
  if (move_ != Move::kSettled) [[unlikely]]
    found = first_with_wide(records, found, wide_[0].place_behind(records, index));
  if (latest_ == kNone || !precedes(records, index, latest_)) return found;
  return found == kNone || precedes(records, latest_, found) ? latest_ : found;
}

inline std::uint32_t FreeIndex::largest(const Records& records) const noexcept {
  const auto last_of = [&records](std::uint32_t a, std::uint32_t b) {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return precedes(records, a, b) ? b : a;
  };
  std::uint32_t found = near_.largest(trees_);
  if (move_ != Move::kSettled) [[unlikely]]
    found = last_of(found, wide_[0].largest(trees_));
  return last_of(found, latest_);
}

}  // namespace ashlar::inline v0::block
