// Descriptors: open file descriptors with an owner.
//
// Thread safety: one thread's at a time.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace ashlar::inline v0::share {

/// Open file descriptors; closes what it still owns when it is destroyed.
class Descriptors {
 public:
  Descriptors() = default;
  /// Owns what `from` owned, which is empty afterwards.
  Descriptors(Descriptors&& from) noexcept : open_(std::exchange(from.open_, {})) {}
  /// Exchanges what the two own.
  Descriptors& operator=(Descriptors&& from) noexcept {
    std::swap(open_, from.open_);
    return *this;
  }
  ~Descriptors() {
    for (const int descriptor : open_) close(descriptor);
  }

  /// Room for so many, so that add() does not allocate. Throws std::bad_alloc.
  void reserve(std::size_t count) { open_.reserve(count); }
  /// Owns that one from now on. REQUIRES: room for it.
  void add(int descriptor) noexcept { open_.push_back(descriptor); }
  /// What it owns, in the order of add(). Valid until the next call that changes it.
  std::span<const int> all() const noexcept { return open_; }

 private:
  std::vector<int> open_;
};

}  // namespace ashlar::inline v0::share
