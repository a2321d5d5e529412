// Solves one space: runs the solvers in turn until one of them finishes the space.
//
// Purpose: greedy fills first (fills.h), which give an answer at once; then, for large spaces,
// plans that place the large items first (large_first.h) and repairs of the best fill (repair.h);
// then exact search (search_lanes.h), for spaces that can be searched. Stops when the peak is proved
// least, the capacity is met, or time or work is used up. Where the items are rounded (items.h),
// all of this is about the rounded peak; once that is proved least, a short search looks for a
// lower peak within the last alignment.
// Thread safety: none; its own threads have ended when solve() returns.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <ashlar/plan/planner.h>
#include <ashlar/plan/solve/fills.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/repair.h>
#include <ashlar/plan/solve/search_lanes.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

class SpaceSolver {
 public:
  /// All arguments outlive the solver.
  SpaceSolver(const Problem& problem, std::uint32_t space, const PlanOptions& options,
              const StopCondition& stop);
  SpaceSolver(const SpaceSolver&) = delete;
  SpaceSolver& operator=(const SpaceSolver&) = delete;

  void solve();
  /// As solve(), but where the items are rounded the peak may be less than an alignment too high.
  void solve_to_alignment();
  /// The work it took, or more. REQUIRES: options.work.
  std::uint64_t steps() const {
    return has_searched_ ? *options_.work : *options_.work - work_left_;
  }
  /// Writes the space's offsets and answer. REQUIRES: one of the two was called.
  void write(Plan* plan) const;

 private:
  static constexpr Units kNoPeak = std::numeric_limits<Units>::max();
  /// One greedy attempt.
  struct Filled {
    bool has_ended = false;
    /// It was stopped early or not begun: one after the other, nothing behind it would have begun,
    /// so neither it nor anything behind it counts.
    bool is_cut = false;
    Units peak = kNoPeak;
    std::vector<Units> offsets;
  };
  struct FillRound;

  bool is_done() const { return best_ <= std::max(lower_bound_, goal_); }
  bool is_out_of_work() const { return options_.work && work_left_ == 0; }
  bool is_stopped() const { return stop_.is_met() || is_out_of_work(); }
  void spend(std::uint64_t steps) { work_left_ -= std::min(work_left_, steps); }
  void offer(Units peak, std::vector<Units> offsets);
  void report(Bytes peak, Units lower_bound) const;

  void start_from_given_plan();
  void start_from_hints();
  void fill(std::uint32_t count);
  void run_fill(std::uint32_t k, FillRound* round);
  void count_fills(FillRound* round);
  void fill_and_repair();
  void place_large_first(std::uint32_t round);
  void repair(Repair* repair);
  void search();
  void search_last_alignment();

  const Problem& problem_;
  const std::uint32_t space_;
  const PlanOptions& options_;
  const StopCondition& stop_;
  const Items items_;
  Fills fills_;
  std::uint32_t fills_made_ = 0;
  std::uint64_t work_left_;  // of options_.work
  bool has_searched_ = false;
  Units goal_ = 0;  // a peak of at most this ends the solver: the capacity, if there is one
  Units lower_bound_ = 0;
  Units best_ = kNoPeak;
  std::vector<Units> best_offsets_;
  Bytes proved_;  // a lower bound in bytes that search_last_alignment() found
};

}  // namespace ashlar::inline v0::plan::solve
