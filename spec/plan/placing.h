// Placing by hand: buffers go, one after another, each to its lowest offset that is still free for
// it.
//
// Purpose: what the brute force repeats for every order, and a planner plain enough to be right by
// reading. Its parts are units: an alias group, or a buffer that is in none. A unit has one offset;
// two units stand in each other's way by what their members need.
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
    Bytes pinned = plan::kNowhere;  ///< where one of them is pinned
    std::uint32_t space = 0;
  };

  /// Pinned units are placed at once.
  explicit Placing(const plan::Problem& problem);

  const std::vector<Unit>& units() const { return units_; }
  bool is_placed(std::size_t unit) const { return offset_of(unit) != plan::kNowhere; }
  /// Places it as low as its alignment and the units placed so far allow. REQUIRES: it is not
  /// placed.
  void place(std::size_t unit);
  void take_back(std::size_t unit) { set(unit, plan::kNowhere); }

  Bytes offset_of(std::size_t unit) const { return offsets_[units_[unit].members[0]]; }
  /// Its highest end. REQUIRES: it is placed.
  Bytes end_of(std::size_t unit) const;
  /// By buffer; kNowhere where it is not placed.
  const std::vector<Bytes>& offsets() const { return offsets_; }

 private:
  void set(std::size_t unit, Bytes offset);
  bool in_the_way(std::uint32_t placed, std::uint32_t other, Bytes at) const;

  const plan::Problem& problem_;
  std::vector<Unit> units_;
  std::vector<std::vector<bool>> conflicts_;  // by two buffers
  std::vector<Bytes> offsets_;
};

/// The valid plan that placing in this order gives; `order` has units() once each, pinned ones
/// anywhere.
std::vector<Bytes> place_in_order(const plan::Problem& problem,
                                  const std::vector<std::size_t>& order);

}  // namespace ashlar::spec
