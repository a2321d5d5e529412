// Pinned items as ceilings: the lowest one at or above a floor, over some sections.
//
// Thread safety: none; const calls from any thread. Cost: O(log^2 n) a look; O(log n) memory a pin.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

/// Where a pinned item's piece is.
struct PinnedRange {
  Section first;
  Section last;
  Units bottom;
  Units top;
};

class PinCeilings {
 public:
  explicit PinCeilings(const Items& items);

  bool empty() const { return pins_.empty(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(pins_.size()); }
  const PinnedRange& operator[](std::uint32_t pin) const { return pins_[pin]; }
  static constexpr std::uint32_t kNone = 0xffffffffu;
  /// The lowest with a section in [first, last) and a bottom not below `floor`, or kNone.
  std::uint32_t lowest(Section first, Section last, Units floor) const;

 private:
  void add(std::uint32_t pin);
  static std::uint32_t from(const std::vector<std::uint32_t>& pins, std::uint32_t least);

  // ascending by bottom: a lower one has a lower number
  std::vector<PinnedRange> pins_;
  std::size_t leaves_ = 1;
  // by node of a tree over the sections: pins over all of it, but not of more
  std::vector<std::vector<std::uint32_t>> over_;
  std::vector<std::vector<std::uint32_t>> touching_;  // pins over some section of it
};

}  // namespace ashlar::inline v0::plan::solve
