// The exact search of one space, in lanes that may run at once and give the answer that they give
// one after another.
//
// Purpose: a search is many attempts: at the lower bound itself, where waste prunes most; and
// nearer to the best so far. Each kind is a lane of its own, with a memory of its own, and threads
// run lanes.
// Thread safety: one run() to an object; its threads are its own.
//
// What makes it the same for any number of threads: time is counted in steps. A lane's time is the
// work of its attempts so far. The lane that is least far begins the next attempt, and knows what
// attempts that ended by then have found: no more, though a thread may have found more by accident,
// and no less, so it waits for those that have yet to come so far. Attempts so have an order, by
// the lane's time when they begin, and the search ends with the first one in that order that solves
// the space: those before it are carried through, those behind it do not count.
//
// Invariants, under the mutex:
//   (1) an attempt begins when every other lane's next one, or the end of its running one, is no
//       earlier;
//   (2) finds_ are in the order of attempts, and what is solved by a prefix of them is so in every
//       run.
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
#include <ashlar/plan/solve/stop.h>

namespace ashlar::inline v0::plan::solve {

/// What is known of a space: the least peak is between the two.
struct Known {
  Units lower_bound;
  Units best;
};

class SearchLanes {
 public:
  struct Limits {
    std::optional<std::uint64_t> work;  ///< steps of all lanes
    unsigned threads;
    Stop* stop;
    /// by a lane, before it tells: suites hold lanes up with it
    std::function<void(std::size_t)> attempted = nullptr;
  };
  /// Told of every better peak as it is found; by one thread at a time.
  using Progress = std::function<void(Known)>;

  /// A peak of `enough` is all that is asked for. REQUIRES: SkylineSearch::can_search(items), which
  /// outlive it; known.best > max(known.lower_bound, enough).
  SearchLanes(const Items& items, Known known, Units enough, Progress progress);

  /// Until solved, or a limit is reached.
  void run(const Limits& limits);
  Known known() const { return known_; }
  /// The plan of known().best; empty where nothing better than what was known was found.
  const std::vector<Units>& offsets() const { return offsets_; }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kLanes = 2;
  enum Kind : std::size_t { kAtBound, kAbove };

  /// Where an attempt is in the order: its lane's time, and the lane.
  using Key = std::pair<std::uint64_t, std::size_t>;
  struct Find {
    Key key;
    std::uint64_t end;  ///< the lane's time when it was found
    Known known;
    std::vector<Units> offsets;  ///< empty: the bound is what was found
  };
  struct Lane {
    std::uint64_t time = 0;
    std::uint64_t attempts = 0;
    SearchMemory memory;
    bool is_running = false;
    /// it has no capacity left to try; the others have its work
    bool is_retired = false;
    std::uint64_t reached = 0;  ///< its time in the midst of an attempt
  };
  class LanePace;

  void work();
  std::size_t next(std::unique_lock<std::mutex>* lock);
  std::size_t least_far() const;
  bool is_behind(std::uint64_t time) const;
  bool is_over(std::size_t lane, Key key, std::uint64_t reached);
  std::uint64_t work_end() const;
  Known known_at(std::uint64_t time) const;
  bool is_solved(Known known) const { return known.best <= std::max(known.lower_bound, enough_); }
  void attempt(std::optional<SkylineSearch>* searcher, std::size_t lane,
               std::unique_lock<std::mutex>* lock);
  void add(Find find);
  void settle(Find* find);
  void settle_known();
  void conclude();

  const Items& items_;
  const Units enough_;
  const Progress progress_;
  Limits limits_{};

  std::mutex mutex_;
  Known known_;                 // by all attempts so far
  Known settled_;               // by those that every attempt to come knows of
  std::vector<Units> offsets_;  // of settled_.best; empty: it was given
  std::condition_variable changed_;
  std::array<Lane, kLanes> lanes_;
  std::vector<Find> finds_;    // the others
  std::optional<Key> solved_;  // the first attempt that solves the space, of those made so far
  unsigned waiting_ = 0;       // threads that wait for lanes to come as far as theirs
  bool is_broken_ = false;     // a thread has thrown: the others are to come home
};

}  // namespace ashlar::inline v0::plan::solve
