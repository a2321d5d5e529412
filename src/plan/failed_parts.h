// What a search has tried in vain: a set of keys with a bound on its memory.
//
// Thread safety: none. A key is forgotten when another one needs its place: to forget is to search again, never to be wrong.
// A key is 128 bits of hash: that two states share one is less likely than that the machine errs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ashlar/plan/items.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

class FailedParts {
 public:
  struct Key {
    std::uint64_t place = 0;
    std::uint64_t check = 0;
  };
  /// What failed within some capacity fails within any smaller one, and only there.
  void begin(Units capacity) {
    if (capacity > capacity_) {
      keys_.clear();
      count_ = 0;
    }
    capacity_ = capacity;
  }
  bool holds(Key key) const {
    if (keys_.empty()) return false;
    const std::size_t at = key.place & (keys_.size() - 1);
    return is_same(keys_[at], key) || is_same(keys_[at ^ 1], key);
  }
  void add(Key key) {
    if (count_ >= keys_.size() / 2 && keys_.size() < kKeysMax) grow();
    put(key);
    count_ += 1;
  }

 private:
  static constexpr std::size_t kKeysFirst = std::size_t{1} << 8;
  static constexpr std::size_t kKeysMax = std::size_t{1} << 20;  ///< 16 MiB

  static bool is_same(const Key& a, const Key& b) { return a.place == b.place && a.check == b.check; }
  void put(Key key) {
    const std::size_t at = key.place & (keys_.size() - 1);
    keys_[at ^ 1] = keys_[at];
    keys_[at] = key;
  }
  void grow() {
    std::vector<Key> before(std::max(kKeysFirst, 4 * keys_.size()));
    before.swap(keys_);
    for (const Key& key : before) {
      if (!is_same(key, Key{})) put(key);
    }
  }

  std::vector<Key> keys_;  // a power of two, in pairs
  std::size_t count_ = 0;
  Units capacity_ = 0;
};

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
