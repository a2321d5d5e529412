// SimSlots: items by index. The index removed last is the next one handed out.
//
// Thread safety: none. Cost: every call O(1); no allocation once the slab has reached its size.
#pragma once

#include <cstdint>
#include <vector>

namespace ashlar::spec {

template <class T>
class SimSlots {
 public:
  void reserve(std::size_t count) {
    items_.reserve(count);
    unused_.reserve(count);
  }
  /// An index in use from now on. Its item is as the last user of the index left it, or fresh.
  std::uint32_t add() {
    if (unused_.empty()) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t index = unused_.back();
    unused_.pop_back();
    return index;
  }
  /// REQUIRES: the index is in use.
  void remove(std::uint32_t index) { unused_.push_back(index); }

  /// All items, of unused indices too.
  std::size_t size() const { return items_.size(); }
  T& operator[](std::size_t index) { return items_[index]; }
  const T& operator[](std::size_t index) const { return items_[index]; }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace ashlar::spec
