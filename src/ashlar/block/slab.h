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
//       the slab moves when it grows. Records therefore refer to each other by 32-bit indices, and
//       no reference to a record is kept across grow().
//   (2) Giving a record back never allocates.
//   (3) Record 0 is the null sentinel: kNone names it. Its state is kUnused; its prev and next may
//       be written and mean nothing; it has no columns. A neighbour's state can thus be read, and
//       its prev or next set, without testing whether there is a neighbour. That test was a branch
//       that mispredicted at the end of every other segment (measured: 2 ns an operation).
//   (4) The null sentinel and the records on the list of unused ones have the state kUnused; no
//       other record has.
//
// One array rather than chunks: a table of chunks costs a dependent load at every hop of every list
// and tree. The copies made by growth are amortised over the takes that filled the array.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ashlar/base/assert.h>
#include <ashlar/base/host_table.h>

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
/// records is threaded through T::next. Columns are ordered by alignment, widest first. A column
/// whose type has kIsLazy is not copied on growth until the first write_lazy(), so its pages use no
/// memory before.
template <class T, class... Columns>
class Slab {
  static_assert(std::is_trivially_copyable_v<T> && (std::is_trivially_copyable_v<Columns> && ...));
  static constexpr bool alignments_descend() {
    const std::size_t alignments[] = {alignof(T), alignof(Columns)...};
    return std::is_sorted(std::begin(alignments), std::end(alignments), std::greater<>{});
  }
  static_assert(alignments_descend(), "each column begins where the one before it ends");

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
  std::uint32_t capacity() const { return capacity_; }
  /// True if the list of unused records is sound and holds all records but the null sentinel and
  /// `used` others. Cost: O(unused).
  bool accounts_for(std::uint64_t used) const noexcept {
    if (states_[kNone] != kUnused) return false;
    std::uint64_t count = 0;
    for (std::uint32_t i = unused_; i != kNone; i = items_[i].next) {
      if (i >= capacity_ || count == capacity_ || states_[i] != kUnused) return false;
      count += 1;
    }
    return count + used + 1 == capacity_;
  }

  /// Guarantees that one take() succeeds. False if the host has no memory (nothing changed).
  /// Amortised O(1).
  bool reserve_one() noexcept { return has_unused() || grow(); }
  bool has_unused() const noexcept { return unused_ != kNone; }
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

  void check([[maybe_unused]] std::uint32_t index) const {
    ASHLAR_ASSERT(index < capacity_, "slab(1): index out of the slab");
  }

  /// Moves an array to `memory`, with its present elements if `copies`. Returns the end of
  /// `capacity` elements there.
  template <class Element>
  std::byte* move(Element*& array, std::byte* memory, std::uint32_t capacity,
                  bool copies = true) const noexcept {
    if (array != nullptr && copies) {
      std::memcpy(memory, static_cast<const void*>(array),
                  std::size_t{capacity_} * sizeof(Element));
    }
    array = reinterpret_cast<Element*>(memory);
    return memory + std::size_t{capacity} * sizeof(Element);
  }

  [[gnu::cold]] bool grow() noexcept {
    const std::uint32_t capacity = capacity_next();
    if (capacity == capacity_) return false;
    constexpr std::size_t kBytesEach = sizeof(T) + (sizeof(Columns) + ... + sizeof(std::uint8_t));
    HostTable<T> memory = make_host_table<T>((capacity * kBytesEach + sizeof(T) - 1) / sizeof(T));
    if (memory == nullptr) return false;
    std::byte* at = move(items_, reinterpret_cast<std::byte*>(memory.get()), capacity);
    ((at = move(std::get<Columns*>(columns_), at, capacity, !Columns::kIsLazy || lazy_written_)),
     ...);
    move(states_, at, capacity);
    std::uninitialized_default_construct(items_ + capacity_, items_ + capacity);
    std::fill(states_ + capacity_, states_ + capacity, kUnused);
    for (std::uint32_t i = capacity; i-- > capacity_;) {
      items_[i].next = unused_;
      unused_ = i;
    }
    owned_ = std::move(memory);
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
  std::uint32_t unused_ = kNone;
  bool lazy_written_ = false;
  HostTable<T> owned_;
};

}  // namespace ashlar::inline v0::block
