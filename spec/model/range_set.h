// RangeSet: a set of addresses as ranges, by address, neighbours joined.
//
// Thread safety: none. Cost: linear in the ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ashlar::spec {

/// Addresses [begin, end).
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool touches(const AddressRange& other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

class RangeSet {
 public:
  const std::vector<AddressRange>& ranges() const { return ranges_; }
  std::uint64_t bytes() const { return bytes_; }
  friend bool operator==(const RangeSet& a, const RangeSet& b) { return a.ranges_ == b.ranges_; }

  void add(AddressRange added) {
    cut(added);  // what was there before counts once
    bytes_ += added.end - added.begin;
    const auto is_before = [](const AddressRange& range, std::uint64_t address) {
      return range.end < address;
    };
    const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), added.begin, is_before);
    auto last = first;
    for (; last != ranges_.end() && last->begin <= added.end; ++last) {
      added.begin = std::min(added.begin, last->begin);
      added.end = std::max(added.end, last->end);
    }
    ranges_.insert(ranges_.erase(first, last), added);
  }
  void cut(const AddressRange& gone) {
    std::vector<AddressRange> rest;
    rest.reserve(ranges_.size() + 1);
    for (const AddressRange& range : ranges_) {
      if (range.begin < gone.begin) rest.push_back({range.begin, std::min(range.end, gone.begin)});
      if (range.end > gone.end) rest.push_back({std::max(range.begin, gone.end), range.end});
      const std::uint64_t from = std::max(range.begin, gone.begin);
      const std::uint64_t to = std::min(range.end, gone.end);
      if (from < to) bytes_ -= to - from;
    }
    ranges_ = std::move(rest);
  }
  /// How many of the range's bytes are in the set.
  std::uint64_t bytes_in(const AddressRange& range) const {
    std::uint64_t bytes = 0;
    for (const AddressRange& each : ranges_) {
      const std::uint64_t from = std::max(each.begin, range.begin);
      const std::uint64_t to = std::min(each.end, range.end);
      if (from < to) bytes += to - from;
    }
    return bytes;
  }
  /// Is all of it in the set?
  bool covers(const AddressRange& range) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&range](const AddressRange& each) {
      return each.begin <= range.begin && range.end <= each.end;
    });
  }
  bool covers(const RangeSet& other) const {
    return std::all_of(other.ranges_.begin(), other.ranges_.end(),
                       [this](const AddressRange& each) { return covers(each); });
  }
  bool touches(const AddressRange& range) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&range](const AddressRange& each) { return each.touches(range); });
  }

 private:
  std::vector<AddressRange> ranges_;
  std::uint64_t bytes_ = 0;
};

}  // namespace ashlar::spec
