// WalkSchedule: at which calls the map is walked and the statistics are read.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ashlar::spec {

class WalkSchedule {
 public:
  /// Every so many calls; 0 is 1.
  WalkSchedule(std::uint32_t walk_every, std::uint32_t stats_every, std::uint32_t validate_every)
      : walk_every_(std::max(walk_every, 1u)),
        stats_every_(std::max(stats_every, 1u)),
        validate_every_(std::max(validate_every, 1u)) {}

  void count_call() { ++calls_; }
  void count_walk() { ++walks_; }
  std::uint64_t calls() const { return calls_; }
  std::uint64_t walks() const { return walks_; }

  /// Of the call last counted. Two in a row, where walks are sparse: some clauses need the maps
  /// before and after a call.
  bool walk_is_due() const {
    return !is_deferring_ && (calls_ % walk_every_ == 0 || (calls_ + 1) % walk_every_ == 0);
  }
  bool stats_are_due() const { return !is_deferring_ && calls_ % stats_every_ == 0; }
  /// Of the walk last counted: C5.
  bool validation_is_due() const { return walks_ % validate_every_ == 0; }
  bool walks_every_call() const { return walk_every_ == 1; }
  bool reads_stats_every_call() const { return stats_every_ == 1; }

  /// Nothing is due while deferring.
  void set_deferring(bool is_deferring) { is_deferring_ = is_deferring; }
  bool is_deferring() const { return is_deferring_; }

 private:
  std::uint32_t walk_every_;
  std::uint32_t stats_every_;
  std::uint32_t validate_every_;
  std::uint64_t calls_ = 0;
  std::uint64_t walks_ = 0;
  bool is_deferring_ = false;
};

}  // namespace ashlar::spec
