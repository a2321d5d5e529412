// The exact search of one space in two lanes, which may run at the same time and give the answer
// that they give one after the other.
//
// Purpose: a search is many attempts (runs of SkylineSearch) at two kinds of capacity: at the lower
// bound itself, where slack prunes most; and between the bound and the best peak so far. Each kind
// is a lane with a memory of its own, and threads run lanes.
// Thread safety: one run() to an object; its threads are its own.
//
// Why the answer is the same for any number of threads: time is counted in steps. A lane's time is
// the work of its attempts so far. The lane that is furthest behind begins the next attempt. It may
// use what was found by attempts that ended at or before its time: nothing later, although another
// thread may already have found more; and nothing less, so it waits for running attempts that may
// still end by then. So attempts have an order, which is by their lane's time when they begin. The
// first attempt in that order that solves the space ends the search: attempts before it are run to
// their end, attempts after it do not count.
//
// Invariants, under the mutex:
//   (1) an attempt begins only when the next attempt of every other lane, or the end of its running
//       one, is no earlier;
//   (2) findings_ are in the order of attempts, and any run that has a prefix of them knows the
//       same from it.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/skyline_search.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

/// What is known of a space: the least peak is between the two.
struct PeakBounds {
  Units lower_bound;
  Units best;
};

class SearchLanes {
 public:
  struct Limits {
    std::optional<std::uint64_t> work;  ///< steps of both lanes together
    unsigned threads;
    const StopCondition* stop;
    /// Called after each attempt with its lane, before the lane publishes what it found. For tests,
    /// which delay lanes by it.
    std::function<void(std::size_t)> attempted = nullptr;
  };
  /// Called with every better peak as it is found; by one thread at a time.
  using Progress = std::function<void(PeakBounds)>;

  /// The search ends at a peak of at most `goal`. REQUIRES: SkylineSearch::can_search(items), which
  /// outlive it; bounds.best > max(bounds.lower_bound, goal).
  SearchLanes(const Items& items, PeakBounds bounds, Units goal, Progress progress);

  /// Searches until the space is solved or a limit is reached.
  void run(const Limits& limits);
  PeakBounds bounds() const { return bounds_; }
  /// The plan of bounds().best; empty if that is still the best given to the constructor.
  const std::vector<Units>& offsets() const { return offsets_; }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kLanes = 2;
  enum Kind : std::size_t { kAtBound, kAbove };

  /// An attempt's place in the order: its lane's time when it begins, and the lane.
  using Key = std::pair<std::uint64_t, std::size_t>;
  /// What an attempt has found.
  struct Finding {
    Key key;
    std::uint64_t end;  ///< the lane's time when the attempt ended
    PeakBounds bounds;
    std::vector<Units> offsets;  ///< of bounds.best; empty if the attempt found a lower bound
  };
  struct Lane {
    std::uint64_t time = 0;
    std::uint64_t attempts = 0;
    SearchMemory memory;
    bool is_running = false;
    bool is_retired = false;    ///< no capacity is left to try; its work goes to the other lane
    std::uint64_t reached = 0;  ///< its time in the midst of an attempt
  };
  class LaneMonitor;

  void work();
  std::size_t next_lane(std::unique_lock<std::mutex>* lock);
  std::size_t furthest_behind() const;
  bool is_any_running_before(std::uint64_t time) const;
  bool should_stop(std::size_t lane, Key key, std::uint64_t reached);
  std::uint64_t lane_time_end() const;
  PeakBounds bounds_at(std::uint64_t time) const;
  bool is_solved(PeakBounds bounds) const {
    return bounds.best <= std::max(bounds.lower_bound, goal_);
  }
  void attempt(std::optional<SkylineSearch>* searcher, std::size_t index,
               std::unique_lock<std::mutex>* lock);
  void add(Finding finding);
  void settle(Finding* finding);
  void settle_shared();
  void conclude();

  const Items& items_;
  const Units goal_;
  const Progress progress_;
  Limits limits_{};

  std::mutex mutex_;
  PeakBounds bounds_;           // known from all attempts so far
  PeakBounds settled_;          // known from the settled ones, which every later attempt may use
  std::vector<Units> offsets_;  // of settled_.best; empty: it was given
  std::condition_variable changed_;
  std::array<Lane, kLanes> lanes_;
  std::vector<Finding> findings_;  // not settled yet
  std::optional<Key> solved_;      // the first attempt so far that solves the space
  unsigned waiting_ = 0;           // threads that wait for a running attempt to get further
  bool is_broken_ = false;         // a thread has thrown, and the others have to return
};

}  // namespace ashlar::inline v0::plan::solve
