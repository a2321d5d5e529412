// Pinned items as ceilings: finds the lowest pin at or above a floor, over some sections.
//
// Thread safety: immutable once made. Cost: O(log^2 n) a look; memory: O(log n) a pin.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

/// Where a piece of a pinned item is.
struct PinnedSpan {
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
  const PinnedSpan& operator[](std::uint32_t pin) const { return pins_[pin]; }
  static constexpr std::uint32_t kNone = 0xffffffffu;
  /// The lowest pin with a section in [first, last) and a bottom at or above `floor`, or kNone.
  std::uint32_t lowest(Section first, Section last, Units floor) const;

 private:
  void add(std::uint32_t pin);
  static std::uint32_t from(const std::vector<std::uint32_t>& pins, std::uint32_t least);

  // ascending by bottom: the lower pin has the lower number
  std::vector<PinnedSpan> pins_;
  std::size_t leaves_ = 1;
  // By node of a segment tree over the sections: the pins that cover the node but not its parent,
  std::vector<std::vector<std::uint32_t>> over_;
  std::vector<std::vector<std::uint32_t>> touching_;  // and the pins over some section of it
};

}  // namespace ashlar::inline v0::plan::solve
