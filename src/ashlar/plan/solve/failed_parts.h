// What a search has tried in vain: a set of keys with a bound on its memory.
//
// Thread safety: none. A key is forgotten when another one needs its place: to forget is to search
// again, never to be wrong. A key is 128 bits of hash: that two states share one is less likely
// than that the machine errs.
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
    std::uint64_t place = 0;
    std::uint64_t check = 0;
  };
  /// What failed within some capacity fails within any smaller one, and only there.
  void begin(Units capacity) { capacity_ = capacity; }
  bool holds(Key key) const {
    if (entries_.empty()) return false;
    const std::size_t at = key.place & (entries_.size() - 1);
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
    Units capacity = -1;  ///< none
  };
  static constexpr std::size_t kEntriesFirst = std::size_t{1} << 8;
  static constexpr std::size_t kEntriesMax = std::size_t{1} << 20;  ///< 24 MiB

  bool is_same(const Entry& entry, const Key& key) const {
    return entry.key.place == key.place && entry.key.check == key.check &&
           entry.capacity >= capacity_;
  }
  void put(const Entry& entry) {
    const std::size_t at = entry.key.place & (entries_.size() - 1);
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

  std::vector<Entry> entries_;  // a power of two, in pairs
  std::size_t count_ = 0;
  Units capacity_ = 0;
};

}  // namespace ashlar::inline v0::plan::solve
