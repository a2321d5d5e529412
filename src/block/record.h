// Records of blocks and segments, and the slab that holds them.
//
// Purpose: what a pool knows about a block lives here, out of line: device memory is never touched. One record is one
// cache line. States stand apart, a byte each: a free looks at both neighbours' and, where neither is free, at nothing else of
// theirs. In the records that was two lines of memory more, the furthest away (measured: 15 % with 10^5 blocks live).
// Thread safety: none; the pool's owner brings the lock.
//
// Invariants:
//   (1) An index stays valid while its record is in use; addresses of records do not (the slab grows by moving). Every
//       link is therefore a 32-bit index, and no reference to a record is held over grow().
//   (2) Giving a record back never allocates.
//   (3) Record 0 is nobody's: it is what a null link names. Its state is kUnused, its links mean nothing and may be written.
//       So a neighbour's state is read, and its link set, without asking whether there is one: a branch that was wrong at
//       the end of every other segment (measured: 2 ns an operation).
//   (4) A record on the list of unused ones, and nobody's, has the state kUnused; no other has.
//
// One array rather than chunks: a chunk table costs a dependent load at every hop of every list and tree, and the
// array's copies on growth are amortised over the takes that filled it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <ashlar/base/assert.h>
#include <ashlar/base/table.h>

namespace ashlar {
inline namespace v0 {
namespace block {

/// No record: a null link (invariant 3).
inline constexpr std::uint32_t kNone = 0;

/// The state of a record that is not in use. A block's other states are State's; a segment in use has kInUse.
inline constexpr std::uint8_t kUnused = 0xff;
inline constexpr std::uint8_t kInUse = 0;

/// A block, nobody, or an unused record on the slab's list (threaded through `next`).
struct alignas(64) BlockRecord {
  /// While free: the place in the free index (fit_tree.h).
  struct Links {
    std::uint32_t leaf;
    std::uint32_t slot;
  };
  /// While live or pending: the caller's numbers.
  struct Caller {
    std::uint64_t requested;
    std::uint64_t user;
  };

  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t stamp = 0;
  union {
    Links links;
    Caller caller{};
  };
  // prev and next do not touch: read as one word just after one of them was written, they stall (measured: 6 ns a pair).
  std::uint32_t prev = kNone;    ///< of the same segment, by address
  std::uint32_t segment = kNone;
  std::uint32_t next = kNone;
  std::uint32_t chain = kNone;   ///< in the address map, while live or pending
};
static_assert(sizeof(BlockRecord) == 64, "a block's record is one cache line");

/// A segment, or an unused record.
struct SegmentRecord {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t user = 0;
  std::uint32_t first = kNone;  ///< its lowest block; the record never changes while the segment lives
  std::uint32_t prev = kNone;   ///< in the pool's list of segments
  std::uint32_t next = kNone;
};

/// An array of records and their states, with a list of the unused ones.
template <class T>
class Slab {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  T& operator[](std::uint32_t index) {
    ASHLAR_ASSERT(index < capacity_, "record(1): index out of the slab");
    return items_[index];
  }
  const T& operator[](std::uint32_t index) const {
    ASHLAR_ASSERT(index < capacity_, "record(1): index out of the slab");
    return items_[index];
  }
  std::uint8_t& state(std::uint32_t index) {
    ASHLAR_ASSERT(index < capacity_, "record(1): index out of the slab");
    return states_[index];
  }
  std::uint8_t state(std::uint32_t index) const {
    ASHLAR_ASSERT(index < capacity_, "record(1): index out of the slab");
    return states_[index];
  }
  std::uint32_t capacity() const { return capacity_; }
  /// Is the list of unused records sound, and are all others but `used` of them, and nobody's, on it? Cost: O(unused).
  bool holds(std::uint64_t used) const noexcept {
    if (states_[kNone] != kUnused) return false;
    std::uint64_t count = 0;
    for (std::uint32_t i = unused_; i != kNone; i = items_[i].next) {
      if (i >= capacity_ || count == capacity_ || states_[i] != kUnused) return false;
      count += 1;
    }
    return count + used + 1 == capacity_;
  }

  /// Makes sure that one take() succeeds. False if the host has no memory (nothing changed). Amortised O(1).
  bool reserve_one() noexcept { return has_unused() || grow(); }
  bool has_unused() const noexcept { return unused_ != kNone; }
  /// The capacity after the next growth.
  std::uint32_t capacity_next() const noexcept { return capacity_ == 1 ? kCapacityFirst : capacity_ * 2; }

  /// An unused record, which is in that state now. REQUIRES: reserve_one() held.
  std::uint32_t take(std::uint8_t state) noexcept {
    ASHLAR_ASSERT(unused_ != kNone, "record: take() without a reserved record");
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
  static constexpr std::uint32_t kCapacityMax = 1u << 30;  ///< the free index numbers twice as many leaves, in 31 bits

  [[gnu::cold]] bool grow() noexcept {
    if (capacity_ == kCapacityMax) return false;
    const std::uint32_t capacity = capacity_next();
    Table<T> items = make_table<T>(capacity + (capacity + sizeof(T) - 1) / sizeof(T));  // the states are behind the records
    if (items == nullptr) return false;
    auto* const states = reinterpret_cast<std::uint8_t*>(items.get() + capacity);
    std::uninitialized_copy(items_, items_ + capacity_, items.get());
    std::uninitialized_default_construct(items.get() + capacity_, items.get() + capacity);
    std::copy(states_, states_ + capacity_, states);
    std::fill(states + capacity_, states + capacity, kUnused);
    for (std::uint32_t i = capacity; i-- > capacity_;) {
      items[i].next = unused_;
      unused_ = i;
    }
    items_ = items.get();
    states_ = states;
    owned_ = std::move(items);
    capacity_ = capacity;
    return true;
  }

  /// Record 0 of every slab that has no other yet, and so is not written.
  inline static const T nobody_{};
  inline static const std::uint8_t nobodys_state_ = kUnused;

  T* items_ = const_cast<T*>(&nobody_);
  std::uint8_t* states_ = const_cast<std::uint8_t*>(&nobodys_state_);
  std::uint32_t capacity_ = 1;
  std::uint32_t unused_ = kNone;
  Table<T> owned_;
};

}  // namespace block
}  // namespace v0
}  // namespace ashlar
