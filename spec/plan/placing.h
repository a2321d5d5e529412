// Placing: places buffers one after another, each at its lowest free offset.
//
// Purpose: a planner plain enough to be right by reading; the brute force repeats it for every
// order. It places units: an alias group, or a buffer that is in no group. A unit has one offset.
// Two units conflict where their members do.
// REQUIRES: the problem is sound as plan/problem.h says, and outlives this.
// Thread safety: none. Cost: O(n^2) a unit, or worse: for small problems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::spec {

class Placing {
 public:
  struct Unit {
    std::vector<std::uint32_t> members;
    Bytes alignment{1};             ///< the largest of its members'
    Bytes pinned = plan::kNowhere;  ///< where a member is pinned
    std::uint32_t space = 0;
  };

  /// Pinned units are placed at once.
  explicit Placing(const plan::Problem& problem);

  const std::vector<Unit>& units() const { return units_; }
  bool is_placed(std::size_t unit) const { return offset_of(unit) != plan::kNowhere; }
  /// Places the unit as low as its alignment and the units placed so far allow. REQUIRES: it is not
  /// placed.
  void place(std::size_t unit);
  void take_back(std::size_t unit) { set(unit, plan::kNowhere); }

  Bytes offset_of(std::size_t unit) const { return offsets_[units_[unit].members[0]]; }
  /// Its highest end. REQUIRES: it is placed.
  Bytes end_of(std::size_t unit) const;
  /// By buffer; kNowhere for a buffer that is not placed.
  const std::vector<Bytes>& offsets() const { return offsets_; }

 private:
  void set(std::size_t unit, Bytes offset);
  bool in_the_way(std::uint32_t placed, std::uint32_t other, Bytes at) const;

  const plan::Problem& problem_;
  std::vector<Unit> units_;
  std::vector<std::vector<bool>> conflicts_;  // by two buffers
  std::vector<Bytes> offsets_;
};

/// The valid plan that placing in this order gives. `order` has each of units() once; pinned units
/// may be anywhere in it.
std::vector<Bytes> place_in_order(const plan::Problem& problem,
                                  const std::vector<std::size_t>& order);

}  // namespace ashlar::spec
