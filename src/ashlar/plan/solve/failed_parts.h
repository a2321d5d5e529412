// The parts that a search has proved to have no plan: a set of keys of bounded size.
//
// Thread safety: none.
//
// A new key may replace an older one. A replaced key costs repeated search and never a wrong
// answer. A key is 128 bits of hash: two different parts with the same key are less likely than a
// hardware error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

class FailedParts {
 public:
  struct Key {
    std::uint64_t bucket = 0;  ///< its low bits choose the bucket
    std::uint64_t check = 0;
  };
  /// Sets the capacity of the following calls. A part that failed within some capacity also fails
  /// within every smaller one, and may succeed within a larger one.
  void begin(Units capacity) { capacity_ = capacity; }
  bool holds(Key key) const {
    if (entries_.empty()) return false;
    const std::size_t at = key.bucket & (entries_.size() - 1);
    return is_same(entries_[at], key) || is_same(entries_[at ^ 1], key);
  }
  void add(Key key) {
    if (count_ >= entries_.size() / 2 && entries_.size() < kEntriesMax) grow();
    put({key, capacity_});
    count_ += 1;
  }

 private:
  struct Entry {
    Key key;
    Units capacity = -1;  ///< -1: the entry is empty
  };
  static constexpr std::size_t kEntriesFirst = std::size_t{1} << 8;
  static constexpr std::size_t kEntriesMax = std::size_t{1} << 20;  ///< 24 MiB

  bool is_same(const Entry& entry, const Key& key) const {
    return entry.key.bucket == key.bucket && entry.key.check == key.check &&
           entry.capacity >= capacity_;
  }
  void put(const Entry& entry) {
    const std::size_t at = entry.key.bucket & (entries_.size() - 1);
    entries_[at ^ 1] = entries_[at];
    entries_[at] = entry;
  }
  void grow() {
    std::vector<Entry> before(std::max(kEntriesFirst, 4 * entries_.size()));
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (entry.capacity >= 0) put(entry);
    }
  }

  std::vector<Entry> entries_;  // a power of two; entries 2k and 2k + 1 form a bucket
  std::size_t count_ = 0;
  Units capacity_ = 0;
};

}  // namespace ashlar::inline v0::plan::solve
