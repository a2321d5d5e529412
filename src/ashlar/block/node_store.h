// A node store: an array of tree nodes (fit_tree.h) with a list of the unused ones.
//
// Purpose: room is reserved for the worst case, so that taking a node never fails. Nodes are not
// touched before their first use, so the reserve costs address space, not memory. (A Slab readies
// records before their first use, and so would use the memory.)
// Thread safety: none; the pool's owner holds a lock.
//
// Invariants:
//   (1) The first touched() nodes are in use or on the list of unused ones, which is threaded
//       through `parent`; the others were never written.
//   (2) Taking a node and giving it back never allocate; only reserve() does, in a bounded number of
//       steps (growing_table.h).
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>

#include <ashlar/base/assert.h>
#include <ashlar/base/growing_table.h>

namespace ashlar::inline v0::block {

/// The null node.
inline constexpr std::uint32_t kNoNode = 0xffffffffu;

/// `kNodesMax` is the most nodes that can ever be needed.
template <class T, std::uint64_t kNodesMax>
class NodeStore {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  T& operator[](std::uint32_t index) {
    ASHLAR_ASSERT(index < touched_, "node store(1): no such node");
    return items_[index];
  }
  const T& operator[](std::uint32_t index) const {
    ASHLAR_ASSERT(index < touched_, "node store(1): no such node");
    return items_[index];
  }
  std::uint32_t touched() const { return touched_; }
  std::uint32_t taken() const { return taken_; }
  std::uint32_t capacity() const { return capacity_; }
  /// True if the list of unused nodes is sound and holds all touched nodes but `taken` of them.
  /// Cost: O(unused).
  bool accounts_for(std::uint64_t taken) const noexcept {
    std::uint64_t unused = 0;
    for (std::uint32_t i = unused_; i != kNoNode; i = items_[i].parent) {
      if (i >= touched_ || unused == touched_) return false;
      unused += 1;
    }
    return taken == taken_ && unused + taken == touched_;
  }

  /// Makes room for `capacity` nodes. False if the host has no memory (nothing changed).
  bool reserve(std::uint32_t capacity) noexcept { return capacity <= capacity_ || grow(capacity); }
  /// Takes a new node, or an unused one with the contents it was given back with.
  /// REQUIRES: fewer nodes are taken than reserved.
  std::uint32_t take() noexcept {
    taken_ += 1;
    if (unused_ != kNoNode) {
      const std::uint32_t index = unused_;
      unused_ = items_[index].parent;
      return index;
    }
    ASHLAR_ASSERT(touched_ < capacity_, "node store(2): more nodes than were reserved");
    ::new (static_cast<void*>(&items_[touched_])) T();
    return touched_++;
  }
  void give_back(std::uint32_t index) noexcept {
    (*this)[index].parent = unused_;
    unused_ = index;
    taken_ -= 1;
  }

 private:
  [[gnu::cold]] bool grow(std::uint32_t capacity) noexcept {
    if (!table_.grow(capacity, touched_, kNodesMax)) return false;
    items_ = table_.data();
    capacity_ = capacity;
    return true;
  }

  T* items_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::uint32_t touched_ = 0;
  std::uint32_t taken_ = 0;
  std::uint32_t unused_ = kNoNode;
  GrowingTable<T> table_;
};

}  // namespace ashlar::inline v0::block
