#include <ashlar/plan/solve/search_lanes.h>

#include <algorithm>

#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/parallel.h>

namespace ashlar::inline v0::plan::solve {
namespace {

constexpr std::uint64_t kErrorsLeast = 300;

/// The capacities that a lane tries above the bound: parts of the room below the best so far, in
/// eighths.
Units capacity_above(Known known, std::uint64_t attempt) {
  constexpr Units kEighths[] = {3, 5, 6, 7};
  const Units eighths = kEighths[attempt % 4];
  const Units room = known.best - 1 - known.lower_bound;
  return known.lower_bound + room / 8 * eighths + room % 8 * eighths / 8;
}

}  // namespace

class SearchLanes::LanePace : public Pace {
 public:
  LanePace(SearchLanes* lanes, std::size_t lane)
      : lanes_(*lanes), lane_(lane), key_{lanes_.lanes_[lane].time, lane} {}
  bool is_over(std::uint64_t steps) override {
    return lanes_.is_over(lane_, key_, key_.first + steps);
  }

 private:
  SearchLanes& lanes_;
  const std::size_t lane_;
  const Key key_;
};

SearchLanes::SearchLanes(const Items& items, Known known, Units enough, Progress progress)
    : items_(items),
      enough_(enough),
      progress_(std::move(progress)),
      known_(known),
      settled_(known) {}

void SearchLanes::run(const Limits& limits) {
  limits_ = limits;
  const auto workers = std::min<std::uint32_t>(std::max(limits.threads, 1u), kLanes);
  for_each_job(workers, workers, [this](std::uint32_t) {
    try {
      work();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_broken_ = true;
      changed_.notify_all();
      throw;
    }
  });
  conclude();
}

void SearchLanes::work() {
  std::optional<SkylineSearch> search;  // one to a thread: a run leaves nothing behind in it
  std::unique_lock<std::mutex> lock(mutex_);
  for (std::size_t lane = next(&lock); lane != kLanes; lane = next(&lock)) {
    lanes_[lane].is_running = true;
    lanes_[lane].reached = lanes_[lane].time;
    attempt(&search, lane, &lock);
    lanes_[lane].is_running = false;
    changed_.notify_all();
  }
}

/// The lane whose attempt is the next, as soon as all is known that it may know; kLanes where there
/// is none to begin.
std::size_t SearchLanes::next(std::unique_lock<std::mutex>* lock) {
  for (;;) {
    if (is_broken_ || solved_ || limits_.stop->now()) return kLanes;
    const std::size_t lane = least_far();
    if (lane == kLanes || lanes_[lane].time >= work_end()) return kLanes;
    if (is_behind(lanes_[lane].time)) {
      waiting_ += 1;
      changed_.wait(*lock);
      waiting_ -= 1;
      continue;
    }
    const Known known = known_at(lanes_[lane].time);
    if (lane != kAbove || known.best - 1 > known.lower_bound) return lane;
    lanes_[lane].is_retired = true;  // all that is left is to search at the bound
  }
}

std::size_t SearchLanes::least_far() const {
  std::size_t least = kLanes;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (lanes_[lane].is_running || lanes_[lane].is_retired) continue;
    if (least == kLanes || lanes_[lane].time < lanes_[least].time) least = lane;
  }
  return least;
}

/// Is a running attempt not yet so far, so that it may still end by then?
bool SearchLanes::is_behind(std::uint64_t time) const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [&](const Lane& lane) { return lane.is_running && lane.reached < time; });
}

/// How far each lane may come.
std::uint64_t SearchLanes::work_end() const {
  if (!limits_.work) return kNever;
  std::uint64_t left = *limits_.work, lanes = 0;
  for (const Lane& lane : lanes_) {
    lanes += lane.is_retired ? 0 : 1;
    left -= lane.is_retired ? std::min(left, lane.time) : 0;
  }
  return left / lanes;
}

/// What all attempts that ended by then have found.
Known SearchLanes::known_at(std::uint64_t time) const {
  Known known = settled_;
  for (const Find& find : finds_) {
    if (find.end > time) continue;
    known.best = std::min(known.best, find.known.best);
    known.lower_bound = std::max(known.lower_bound, find.known.lower_bound);
  }
  return known;
}

/// Asked in the midst of an attempt, every few nodes.
bool SearchLanes::is_over(std::size_t lane, Key key, std::uint64_t reached) {
  const std::lock_guard<std::mutex> lock(mutex_);
  lanes_[lane].reached = reached;
  if (waiting_ > 0) changed_.notify_all();
  // Once solved, those before the solution are carried through, whatever the clock says, and those
  // behind it are not.
  return is_broken_ || (solved_ ? *solved_ < key : limits_.stop->now());
}

void SearchLanes::attempt(std::optional<SkylineSearch>* searcher, std::size_t index,
                          std::unique_lock<std::mutex>* lock) {
  // What it knows and may take is settled before another lane can begin, or retire.
  Lane& lane = lanes_[index];
  const Known known = known_at(lane.time);
  const Units capacity =
      index == kAtBound ? known.lower_bound : capacity_above(known, lane.attempts);
  lane.attempts += 1;
  LanePace pace(this, index);
  // Room for one way down without an error, and some errors: a lucky order needs no more, and luck
  // is what is tried for.
  const SkylineSearch::Limits limits{items_.size() + kErrorsLeast * luby(lane.attempts),
                                     work_end() - lane.time, limits_.stop, &pace};
  lock->unlock();
  if (!*searcher) searcher->emplace(items_);
  SkylineSearch* const search = &**searcher;
  const std::uint64_t before = search->steps();
  const std::vector<std::int32_t> order = order_of(items_, lane.attempts, lane.memory.blames);
  const SkylineSearch::Outcome outcome = search->run(capacity, order, limits, &lane.memory);
  Find find{{lane.time, index}, lane.time + search->steps() - before + items_.size(), known, {}};
  if (outcome == SkylineSearch::Outcome::kFound) {
    const Units peak = peak_of(items_, search->offsets());
    if (peak < known.best) {
      find.known.best = peak;
      find.offsets = search->offsets();
    }
  } else if (outcome == SkylineSearch::Outcome::kNone) {
    find.known.lower_bound = capacity + 1;
  }
  if (limits_.attempted) limits_.attempted(index);
  lock->lock();
  lane.time = find.end;
  if (outcome != SkylineSearch::Outcome::kStopped) add(std::move(find));
  if (!solved_) settle_known();
}

void SearchLanes::add(Find find) {
  const bool is_better = find.known.best < known_.best;
  known_.best = std::min(known_.best, find.known.best);
  known_.lower_bound = std::max(known_.lower_bound, find.known.lower_bound);
  if (is_better && progress_) progress_(known_);
  const auto at = std::upper_bound(finds_.begin(), finds_.end(), find.key,
                                   [](Key key, const Find& f) { return key < f.key; });
  finds_.insert(at, std::move(find));
  if (!is_solved(known_)) return;
  Known known = settled_;
  for (const Find& one : finds_) {
    known.best = std::min(known.best, one.known.best);
    known.lower_bound = std::max(known.lower_bound, one.known.lower_bound);
    if (!is_solved(known)) continue;
    solved_ = one.key;
    return;
  }
}

/// Of equal peaks the first in the order of attempts is the answer.
void SearchLanes::settle(Find* find) {
  if (find->known.best < settled_.best) {
    settled_.best = find->known.best;
    offsets_ = std::move(find->offsets);
  }
  settled_.lower_bound = std::max(settled_.lower_bound, find->known.lower_bound);
}

/// Settles what every attempt to come will know: there may be ten thousands of finds.
void SearchLanes::settle_known() {
  std::uint64_t least = kNever;
  for (const Lane& lane : lanes_) least = lane.is_retired ? least : std::min(least, lane.time);
  auto find = finds_.begin();
  for (; find != finds_.end() && find->end <= least; ++find) settle(&*find);
  finds_.erase(finds_.begin(), find);
}

/// The answer: of what is not settled, what counts.
void SearchLanes::conclude() {
  for (Find& find : finds_) {
    if (solved_ && *solved_ < find.key) break;
    settle(&find);
  }
  known_ = settled_;
}

}  // namespace ashlar::inline v0::plan::solve
