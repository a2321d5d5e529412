// Whether a miss may take memory from other live streams, or asks the driver for memory of its own first (C20).
//
// Purpose: two streams whose needs fit into each other's idle memory would take the same memory from each other for ever, a
// miss and an event each time. So after some steals a stream grows. One whose demand keeps rising may steal again after each
// growth: that is another program phase, which the memory of an earlier phase serves. One that grows although it has needed as
// much before runs a step that repeats: it steals less before each such growth, until it has memory of its own for all of the
// step.
// Thread safety: none; guarded by the heap's lock.
#pragma once

#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// Of one heap's misses on one of its pools.
class StealTurns {
 public:
  bool may_steal() const noexcept { return steals_ + repeated_growths_ < kStealsPerGrowth; }
  void on_steal() noexcept { ++steals_; }
  /// The driver is asked, for a request with which the stream holds `demand`.
  void on_growth(Bytes demand) noexcept {
    if (demand > demand_max_) {
      demand_max_ = demand;
      repeated_growths_ = 0;
    } else if (!may_steal() && repeated_growths_ < kStealsPerGrowth) {
      ++repeated_growths_;
    }
    steals_ = 0;
  }

 private:
  friend struct CachePeer;
  /// The steals before each growth for a demand that rises. With one, the driver is asked more often, and a step was seen to
  /// settle later: of 75,008 random steps of several streams the last was in round 17, with two in round 8.
  static constexpr unsigned kStealsPerGrowth = 2;

  unsigned steals_ = 0;  ///< since the driver was asked last
  unsigned repeated_growths_ = 0;
  Bytes demand_max_;  ///< at a growth
};

}  // namespace ashlar::inline v0::cache
