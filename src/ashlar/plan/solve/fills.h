// Greedy attempts at one space's items, without end: which they are, and what each costs.
//
// Purpose: valley fills in orders that mostly are good, both first fits, and then fills in random
// orders: luck is cheap, and of large graphs mostly enough.
// Thread safety: run() and cost() from any thread. Deterministic but for `stop`.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/stop.h>

namespace ashlar::inline v0::plan::solve {

/// Items by height, or by height and width; the largest first.
std::vector<ItemIndex> order_by_size(const Items& items, bool by_area);

class Fills {
 public:
  /// `items` outlive it.
  explicit Fills(const Items& items);

  /// How many attempts are worth making before anything else is tried.
  std::uint32_t known() const { return known_; }
  /// Attempt k, from 0. The peak; stop_at where it cannot be below that, or `stop` (if given) says
  /// so: then the offsets mean nothing.
  Units run(std::uint32_t k, Units stop_at, const Stop* stop, std::vector<Units>* offsets);
  /// In steps of some nanoseconds, whatever comes of it.
  std::uint64_t cost(std::uint32_t k) const;

 private:
  bool is_first_fit(std::uint32_t k) const {
    return has_first_fit_ && (k == first_fit_ || k == first_fit_ + 1);
  }

  const Items& items_;
  std::uint64_t to_place_ = 0;  // items that are not pinned
  bool has_first_fit_;
  std::uint32_t first_fit_;  // by size is attempt first_fit_, by area the next
  std::uint32_t known_;
  std::once_flag mirror_once_;
  Items mirrored_;
};

}  // namespace ashlar::inline v0::plan::solve
