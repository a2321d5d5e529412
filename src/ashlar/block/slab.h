// A slab: a growing array of records that are taken and given back, with parallel columns.
//
// Purpose: the pool keeps what it knows in slabs of host memory, out of line, so that it never
// touches device memory. Data that is read seldom, or without the rest of the record, has a column
// of its own (a structure of arrays): one byte of state for each record, and further columns named
// by their element type.
// Thread safety: none; the pool's owner holds a lock.
//
// Invariants:
//   (1) An index stays valid while its record is in use. The address of a record does not, because
//       a slab may move when it grows. Records therefore refer to each other by 32-bit indices, and
//       no reference to a record is kept across reserve_one().
//   (2) Giving a record back never allocates.
//   (3) Record 0 is the null sentinel: kNone names it. Its state is kUnused; its prev and next may
//       be written and mean nothing; it has no columns. A neighbour's state can thus be read, and
//       its prev or next set, without testing whether there is a neighbour. That test was a branch
//       that mispredicted at the end of every other segment (measured: 2 ns an operation).
//   (4) The null sentinel and the records on the list of unused ones have the state kUnused; no
//       other of the first touched() records has. The records from touched() on, up to capacity(),
//       were never written.
//   (5) Reserving a record takes a bounded number of steps: a small slab is copied, a large one
//       grows in place (growing_table.h), and at most kReadiedAtOnce records are readied for use.
//       The arrays of a slab of kStagedCapacityMin records or more grow one after another, ahead of
//       need, so that no single call pays for all of them (grow_ahead).
//
// One array rather than chunks: a table of chunks costs a dependent load at every hop of every list
// and tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>

#include <ashlar/base/assert.h>
#include <ashlar/base/growing_table.h>
#include <ashlar/base/step_count.h>

namespace ashlar::inline v0::block {

/// The null index (invariant 3).
inline constexpr std::uint32_t kNone = 0;

/// The state of a record that is not in use. The states of a block in use are BlockState's; a
/// segment in use has kInUse.
inline constexpr std::uint8_t kUnused = 0xff;
inline constexpr std::uint8_t kInUse = 0;

/// The most records in a slab: the free index numbers twice as many leaves in 28 bits of a link.
inline constexpr std::uint32_t kRecordsMax = 1u << 27;

/// An array of records T, their states, and columns that begin uninitialised. The list of unused
/// records is threaded through T::next. A column whose type has kIsLazy is not copied on growth
/// until the first write_lazy(), so its pages use no memory before.
template <class T, class... Columns>
class Slab {
 public:
  T& operator[](std::uint32_t index) {
    check(index);
    return items_[index];
  }
  const T& operator[](std::uint32_t index) const {
    check(index);
    return items_[index];
  }
  std::uint8_t& state(std::uint32_t index) {
    check(index);
    return states_[index];
  }
  std::uint8_t state(std::uint32_t index) const {
    check(index);
    return states_[index];
  }
  /// The record's element in the column of that type. REQUIRES: index is not kNone.
  template <class Column>
  Column& column(std::uint32_t index) {
    check(index);
    ASHLAR_ASSERT(index != kNone, "slab(3): the null sentinel has no columns");
    return std::get<Column*>(columns_)[index];
  }
  template <class Column>
  const Column& column(std::uint32_t index) const {
    check(index);
    ASHLAR_ASSERT(index != kNone, "slab(3): the null sentinel has no columns");
    return std::get<Column*>(columns_)[index];
  }
  /// As column(), for writing to a lazy column.
  template <class Column>
  Column& write_lazy(std::uint32_t index) {
    static_assert(Column::kIsLazy);
    lazy_written_ = true;
    return column<Column>(index);
  }
  /// The records that there is memory for, and those of them that were ever readied for use: only
  /// these may be read.
  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t touched() const { return touched_; }
  /// True if the list of unused records is sound and holds all touched records but the null
  /// sentinel and `used` others. Cost: O(unused).
  bool accounts_for(std::uint64_t used) const noexcept {
    if (states_[kNone] != kUnused || touched_ > capacity_) return false;
    std::uint64_t count = 0;
    for (std::uint32_t i = unused_; i != kNone; i = items_[i].next) {
      if (i >= touched_ || count == touched_ || states_[i] != kUnused) return false;
      count += 1;
    }
    return count + used + 1 == touched_;
  }

  /// Guarantees that one take() succeeds. False if the host has no memory (nothing changed).
  bool reserve_one() noexcept {
    if (has_unused()) [[likely]]
      return true;
    return ready_some();
  }
  bool has_unused() const noexcept { return unused_ != kNone; }
  /// True if the slab grows at the next reserve_one().
  bool must_grow() const noexcept { return unused_ == kNone && touched_ == capacity_; }
  /// True if little room is left, and growing in one call would take long.
  bool is_nearly_full() const noexcept {
    return capacity_ >= kStagedCapacityMin && capacity_ - touched_ < capacity_ / 4;
  }
  /// Grows one array that lacks room for capacity_next() records. True if there was one, whether or
  /// not the host had memory for it: reserve_one() tries again.
  bool grow_ahead() noexcept {
    return grow_ahead(items_, touched_) ||
           (grow_ahead(std::get<Columns*>(columns_), kept_of<Columns>(touched_)) || ...) ||
           grow_ahead(states_, touched_);
  }
  /// The capacity after the next growth; the present capacity at the limit kRecordsMax.
  std::uint32_t capacity_next() const noexcept {
    return capacity_ == 1 ? kCapacityFirst : std::min(capacity_ * 2, kRecordsMax);
  }

  /// Takes an unused record and sets its state. REQUIRES: reserve_one() returned true.
  std::uint32_t take(std::uint8_t state) noexcept {
    ASHLAR_ASSERT(unused_ != kNone, "slab: take() without a reserved record");
    const std::uint32_t index = unused_;
    unused_ = items_[index].next;
    states_[index] = state;
    return index;
  }

  void give_back(std::uint32_t index) noexcept {
    state(index) = kUnused;
    items_[index].next = unused_;
    unused_ = index;
  }

 private:
  friend struct PoolPeer;

  static constexpr std::uint32_t kCapacityFirst = 16;
  static constexpr std::uint32_t kReadiedAtOnce = 64;
  /// The arrays of smaller slabs are a few KiB. The last quarter of larger ones is readied in four
  /// steps or more.
  static constexpr std::uint32_t kStagedCapacityMin = 1024;

  void check([[maybe_unused]] std::uint32_t index) const {
    ASHLAR_ASSERT(index < touched_, "slab(1): index out of the slab");
  }

  /// Puts the next few untouched records on the empty list of unused ones, in rising order.
  [[gnu::cold]] bool ready_some() noexcept {
    if (touched_ == capacity_ && !grow()) return false;
    const std::uint32_t end = std::min(capacity_, touched_ + kReadiedAtOnce);
    count_steps(end - touched_);
    std::uninitialized_default_construct(items_ + touched_, items_ + end);
    std::fill(states_ + touched_, states_ + end, kUnused);
    for (std::uint32_t i = end; i-- > touched_;) {
      items_[i].next = unused_;
      unused_ = i;
    }
    touched_ = end;
    return true;
  }

  /// The elements of a column that keep their values when it grows.
  template <class Column>
  std::uint32_t kept_of(std::uint32_t used) const noexcept {
    if constexpr (Column::kIsLazy) return lazy_written_ ? used : 0;
    return used;
  }
  template <class Element>
  bool grow_ahead(Element*& array, std::uint32_t kept) noexcept {
    if (std::get<GrowingTable<Element>>(owned_).has_room(capacity_next())) return false;
    static_cast<void>(grow(array, capacity_next(), kept));
    return true;
  }
  /// Makes room in one array. `kept` elements of it are in use.
  template <class Element>
  bool grow(Element*& array, std::uint32_t capacity, std::uint32_t kept) noexcept {
    GrowingTable<Element>& table = std::get<GrowingTable<Element>>(owned_);
    if (!table.grow(capacity, array == nullptr ? 0 : kept, kRecordsMax)) return false;
    array = table.data();
    return true;
  }

  bool grow() noexcept {
    const std::uint32_t capacity = capacity_next();
    if (capacity == capacity_) return false;
    // A slab without memory has only its null sentinel, which is made anew. An array that has grown
    // when another could not is longer than capacity_ says, and stays so.
    const bool is_first = capacity_ == 1;
    const std::uint32_t kept = is_first ? 0 : touched_;
    const bool has_grown =
        grow(items_, capacity, kept) &&
        (grow(std::get<Columns*>(columns_), capacity, kept_of<Columns>(kept)) && ...) &&
        grow(states_, capacity, kept);
    if (!has_grown) return false;
    if (is_first) {
      std::uninitialized_default_construct(items_, items_ + 1);
      states_[kNone] = kUnused;
    }
    capacity_ = capacity;
    return true;
  }

  /// Record 0 of every slab that has no memory yet; it is never written there.
  inline static const T null_record_{};
  inline static const std::uint8_t null_state_ = kUnused;

  T* items_ = const_cast<T*>(&null_record_);
  std::uint8_t* states_ = const_cast<std::uint8_t*>(&null_state_);
  std::tuple<Columns*...> columns_{};
  std::uint32_t capacity_ = 1;
  std::uint32_t touched_ = 1;
  std::uint32_t unused_ = kNone;
  bool lazy_written_ = false;
  std::tuple<GrowingTable<T>, GrowingTable<Columns>..., GrowingTable<std::uint8_t>> owned_;
};

}  // namespace ashlar::inline v0::block
