// NameTable: what the symbolic names p0, p1, ... of an op sequence stand for.
//
// Thread safety: none. Cost: O(1); small numbers index a vector, the rest a hash map.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ashlar::spec {

template <class T>
class NameTable {
 public:
  /// The entry, made with T{} on first sight. The reference holds until the next call.
  T& operator[](std::uint64_t name) {
    if (name >= kDenseMax) return sparse_[name];
    if (dense_.capacity() == 0) dense_.reserve(kUsual);
    if (name >= dense_.size())
      dense_.resize(static_cast<std::size_t>(name) + 1 + dense_.size() / 2);
    return dense_[static_cast<std::size_t>(name)];
  }

 private:
  static constexpr std::size_t kUsual = 32;  ///< what most sequences stay below
  static constexpr std::uint64_t kDenseMax = 1u << 22;
  std::vector<T> dense_;
  std::unordered_map<std::uint64_t, T> sparse_;
};

}  // namespace ashlar::spec
