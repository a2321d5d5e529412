// ShortList: a list whose first few items need no allocation. The detector has one for every
// allocation, and every event has one.
//
// Thread safety: none. Invariant: all items are in inline_ while they fit, else all are in more_.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace ashlar::spec {

template <class T, std::size_t kInline>
class ShortList {
 public:
  T* begin() { return more_.empty() ? inline_.data() : more_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return more_.empty() ? inline_.data() : more_.data(); }
  const T* end() const { return begin() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return begin()[i]; }
  const T& operator[](std::size_t i) const { return begin()[i]; }

  void push_back(const T& item) {
    if (more_.empty() && size_ < kInline) {
      inline_[size_++] = item;
      return;
    }
    if (more_.empty()) more_.assign(inline_.begin(), inline_.end());
    more_.push_back(item);
    ++size_;
  }
  /// Removes the i-th item; the last one takes its place. REQUIRES: i < size().
  void remove(std::size_t i) {
    begin()[i] = begin()[size_ - 1];
    if (!more_.empty()) more_.pop_back();
    --size_;
  }
  /// Appends T{} until the list has at least `size` items.
  void extend(std::size_t size) {
    while (size_ < size) push_back(T{});
  }
  void clear() {
    more_.clear();
    size_ = 0;
  }

 private:
  std::array<T, kInline> inline_{};
  std::vector<T> more_;
  std::size_t size_ = 0;
};

}  // namespace ashlar::spec
