// PinBook: the judge's books of a device about memory that stays: what is pinned, which generations the subject
// has named, and what its observers were told.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <ashlar/cache/mapping.h>

#include "spec/model/range_set.h"

namespace ashlar::spec {

class PinBook {
 public:
  /// What the subject has said of the memory under a range.
  struct Named {
    std::uint64_t size = 0;
    std::uint64_t generation = 0;
    std::uint64_t newest = 0;  ///< BackingWitness::newest() then
  };

  bool is_empty() const { return pins_.empty(); }
  /// `memory`: the whole pages or the segment under it.
  void add(const cache::PinnedRange& range, const AddressRange& memory) {
    pins_.push_back({range, memory});
  }
  bool is_pinned(const cache::PinnedRange& range) const { return find(range) != pins_.end(); }
  /// Ends one pin of the range; false if there is none.
  bool remove(const cache::PinnedRange& range) {
    const auto found = find(range);
    if (found == pins_.end()) return false;
    pins_.erase(found);
    return true;
  }
  /// Must memory of the range stay?
  bool touches(const AddressRange& range) const {
    return std::any_of(pins_.begin(), pins_.end(),
                       [&range](const Pin& each) { return each.memory.touches(range); });
  }
  /// Of the last range that was asked about at that address.
  Named& named(std::uint64_t address) { return named_[address]; }
  /// The memory that observers of mappings know of.
  RangeSet& told() { return told_; }
  const RangeSet& told() const { return told_; }
  /// What must stay.
  RangeSet memory() const {
    RangeSet all;
    for (const Pin& each : pins_) all.add(each.memory);
    return all;
  }

 private:
  struct Pin {
    cache::PinnedRange range;
    AddressRange memory;
  };
  std::vector<Pin>::const_iterator find(const cache::PinnedRange& range) const {
    return std::find_if(pins_.begin(), pins_.end(),
                        [&range](const Pin& each) { return each.range == range; });
  }

  std::vector<Pin> pins_;
  std::unordered_map<std::uint64_t, Named> named_;
  RangeSet told_;
};

}  // namespace ashlar::spec
