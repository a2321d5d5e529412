// A slab: an array of records that are taken and given back, and arrays of what else there is to
// each.
//
// Purpose: what a pool knows lives in slabs, out of line: device memory is never touched. What is
// seldom looked at, or without the rest, stands in an array of its own: a state is a byte, and a
// side is named by its type.
// Thread safety: none; the pool's owner brings the lock.
//
// Invariants:
//   (1) An index stays valid while its record is in use; addresses of records do not (the slab
//       grows by moving). Records therefore name each other by 32-bit indices, and no reference to
//       a record is held over grow().
//   (2) Giving a record back never allocates.
//   (3) Record 0 is nobody's: it is what a null index names. Its state is kUnused; its prev and
//       next mean nothing and may be written; it has no sides. So a neighbour's state is read, and
//       its prev or next set, without asking whether there is one: a branch that was wrong at the
//       end of every other segment (measured: 2 ns an operation).
//   (4) A record on the list of unused ones, and nobody's, has the state kUnused; no other has.
//
// One array rather than chunks: a chunk table costs a dependent load at every hop of every list and
// tree, and the array's copies on growth are amortised over the takes that filled it.
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

/// No record: a null link (invariant 3).
inline constexpr std::uint32_t kNone = 0;

/// The state of a record that is not in use. A block's other states are BlockState's; a segment in
/// use has kInUse.
inline constexpr std::uint8_t kUnused = 0xff;
inline constexpr std::uint8_t kInUse = 0;

/// The most records in a slab: the free index numbers twice as many leaves, in 28 bits of a link.
inline constexpr std::uint32_t kRecordsMax = 1u << 27;

/// An array of records and their states, with a list of the unused ones (threaded through `next`),
/// and the sides, which begin uninitialised. Sides come from the widest down to the narrowest. Of a
/// side that says kIsSeldom nothing is copied, and so no memory used, before write_seldom() was
/// called once.
template <class T, class... Sides>
class Slab {
  static_assert(std::is_trivially_copyable_v<T> && (std::is_trivially_copyable_v<Sides> && ...));
  static constexpr bool alignments_descend() {
    const std::size_t alignments[] = {alignof(T), alignof(Sides)...};
    return std::is_sorted(std::begin(alignments), std::end(alignments), std::greater<>{});
  }
  static_assert(alignments_descend(), "each array begins where the one before it ends");

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
  /// REQUIRES: not nobody's (kNone).
  template <class Side>
  Side& side(std::uint32_t index) {
    check(index);
    ASHLAR_ASSERT(index != kNone, "slab(3): nobody has no sides");
    return std::get<Side*>(sides_)[index];
  }
  template <class Side>
  const Side& side(std::uint32_t index) const {
    check(index);
    ASHLAR_ASSERT(index != kNone, "slab(3): nobody has no sides");
    return std::get<Side*>(sides_)[index];
  }
  template <class Side>
  Side& write_seldom(std::uint32_t index) {
    static_assert(Side::kIsSeldom);
    seldom_written_ = true;
    return side<Side>(index);
  }
  std::uint32_t capacity() const { return capacity_; }
  /// Is the list of unused records sound, and are all others but `used` of them, and nobody's, on
  /// it? Cost: O(unused).
  bool holds(std::uint64_t used) const noexcept {
    if (states_[kNone] != kUnused) return false;
    std::uint64_t count = 0;
    for (std::uint32_t i = unused_; i != kNone; i = items_[i].next) {
      if (i >= capacity_ || count == capacity_ || states_[i] != kUnused) return false;
      count += 1;
    }
    return count + used + 1 == capacity_;
  }

  /// Makes sure that one take() succeeds. False if the host has no memory (nothing changed).
  /// Amortised O(1).
  bool reserve_one() noexcept { return has_unused() || grow(); }
  bool has_unused() const noexcept { return unused_ != kNone; }
  /// The capacity after the next growth; that of now where there is none.
  std::uint32_t capacity_next() const noexcept {
    return capacity_ == 1 ? kCapacityFirst : std::min(capacity_ * 2, kRecordsMax);
  }

  /// An unused record, which is in that state now. REQUIRES: reserve_one() held.
  std::uint32_t take(std::uint8_t state) noexcept {
    ASHLAR_ASSERT(unused_ != kNone, "slab: take() without a reserved record");
    const std::uint32_t index = unused_;
    unused_ = items_[index].next;
    states_[index] = state;
    return index;
  }

  /// Gives a record back.
  void put(std::uint32_t index) noexcept {
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

  /// `memory` is where the array is from now on, and what it has, if that is worth a copy; returns
  /// the end of `capacity` elements there.
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
    constexpr std::size_t kBytesEach = sizeof(T) + (sizeof(Sides) + ... + sizeof(std::uint8_t));
    HostTable<T> memory = make_host_table<T>((capacity * kBytesEach + sizeof(T) - 1) / sizeof(T));
    if (memory == nullptr) return false;
    std::byte* at = move(items_, reinterpret_cast<std::byte*>(memory.get()), capacity);
    ((at = move(std::get<Sides*>(sides_), at, capacity, !Sides::kIsSeldom || seldom_written_)),
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

  /// Record 0 of every slab that has no other yet, and so is not written.
  inline static const T nobody_{};
  inline static const std::uint8_t nobodys_state_ = kUnused;

  T* items_ = const_cast<T*>(&nobody_);
  std::uint8_t* states_ = const_cast<std::uint8_t*>(&nobodys_state_);
  std::tuple<Sides*...> sides_{};
  std::uint32_t capacity_ = 1;
  std::uint32_t unused_ = kNone;
  bool seldom_written_ = false;
  HostTable<T> owned_;
};

}  // namespace ashlar::inline v0::block
