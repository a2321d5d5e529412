#include <ashlar/plan/solve/search_lanes.h>

#include <algorithm>

#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/parallel.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// The wrong choices that a first attempt may make.
constexpr std::uint64_t kErrorsFirst = 300;

/// The capacity of an attempt above the bound: some eighths of the way from the bound to below the
/// best peak so far.
Units capacity_above(PeakBounds bounds, std::uint64_t attempt) {
  constexpr Units kEighths[] = {3, 5, 6, 7};
  const Units eighths = kEighths[attempt % 4];
  const Units room = bounds.best - 1 - bounds.lower_bound;
  return bounds.lower_bound + room / 8 * eighths + room % 8 * eighths / 8;
}

}  // namespace

class SearchLanes::LaneMonitor : public SearchMonitor {
 public:
  LaneMonitor(SearchLanes* lanes, std::size_t lane)
      : lanes_(*lanes), lane_(lane), key_{lanes_.lanes_[lane].time, lane} {}
  bool should_stop(std::uint64_t steps) override {
    return lanes_.should_stop(lane_, key_, key_.first + steps);
  }

 private:
  SearchLanes& lanes_;
  const std::size_t lane_;
  const Key key_;
};

SearchLanes::SearchLanes(const Items& items, PeakBounds bounds, Units goal, Progress progress)
    : items_(items),
      goal_(goal),
      progress_(std::move(progress)),
      bounds_(bounds),
      settled_(bounds) {}

void SearchLanes::run(const Limits& limits) {
  limits_ = limits;
  const auto workers = std::min<std::uint32_t>(std::max(limits.threads, 1u), kLanes);
  for_each_job(workers, workers, [this](std::uint32_t) {
    const std::exception_ptr thrown = exception_of([this] { work(); });
    if (!thrown) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_broken_ = true;
      changed_.notify_all();
    }
    std::rethrow_exception(thrown);
  });
  conclude();
}

void SearchLanes::work() {
  std::optional<SkylineSearch> search;  // one per thread; nothing carries over from run to run
  std::unique_lock<std::mutex> lock(mutex_);
  for (std::size_t lane = next_lane(&lock); lane != kLanes; lane = next_lane(&lock)) {
    lanes_[lane].is_running = true;
    lanes_[lane].reached = lanes_[lane].time;
    attempt(&search, lane, &lock);
    lanes_[lane].is_running = false;
    changed_.notify_all();
  }
}

/// Waits until the next attempt's lane may begin it, and returns the lane; kLanes if there is no
/// attempt to begin.
std::size_t SearchLanes::next_lane(std::unique_lock<std::mutex>* lock) {
  for (;;) {
    if (is_broken_ || solved_ || limits_.stop->is_met()) return kLanes;
    const std::size_t lane = furthest_behind();
    if (lane == kLanes || lanes_[lane].time >= lane_time_end()) return kLanes;
    if (is_any_running_before(lanes_[lane].time)) {
      waiting_ += 1;
      changed_.wait(*lock);
      waiting_ -= 1;
      continue;
    }
    const PeakBounds bounds = bounds_at(lanes_[lane].time);
    if (lane != kAbove || bounds.best - 1 > bounds.lower_bound) return lane;
    lanes_[lane].is_retired = true;  // no capacity is left between the bound and the best peak
  }
}

std::size_t SearchLanes::furthest_behind() const {
  std::size_t least = kLanes;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (lanes_[lane].is_running || lanes_[lane].is_retired) continue;
    if (least == kLanes || lanes_[lane].time < lanes_[least].time) least = lane;
  }
  return least;
}

/// Whether a running attempt has not reached the time yet, and so may still end by then.
bool SearchLanes::is_any_running_before(std::uint64_t time) const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [&](const Lane& lane) { return lane.is_running && lane.reached < time; });
}

/// The time at which a lane may begin no more attempts: its share of the work.
std::uint64_t SearchLanes::lane_time_end() const {
  if (!limits_.work) return kNever;
  std::uint64_t left = *limits_.work, lanes = 0;
  for (const Lane& lane : lanes_) {
    lanes += lane.is_retired ? 0 : 1;
    left -= lane.is_retired ? std::min(left, lane.time) : 0;
  }
  return left / lanes;
}

/// What is known from all attempts that ended by then.
PeakBounds SearchLanes::bounds_at(std::uint64_t time) const {
  PeakBounds bounds = settled_;
  for (const Finding& finding : findings_) {
    if (finding.end > time) continue;
    bounds.best = std::min(bounds.best, finding.bounds.best);
    bounds.lower_bound = std::max(bounds.lower_bound, finding.bounds.lower_bound);
  }
  return bounds;
}

/// Called in the midst of an attempt, every few nodes.
bool SearchLanes::should_stop(std::size_t lane, Key key, std::uint64_t reached) {
  const std::lock_guard<std::mutex> lock(mutex_);
  lanes_[lane].reached = reached;
  if (waiting_ > 0) changed_.notify_all();
  // Once the space is solved, attempts before the solution run to their end, whatever the clock
  // says, and attempts after it stop.
  return is_broken_ || (solved_ ? *solved_ < key : limits_.stop->is_met());
}

void SearchLanes::attempt(std::optional<SkylineSearch>* searcher, std::size_t index,
                          std::unique_lock<std::mutex>* lock) {
  // What the attempt may use, and its limits, are read before another lane can begin or retire.
  Lane& lane = lanes_[index];
  const PeakBounds bounds = bounds_at(lane.time);
  const Units capacity =
      index == kAtBound ? bounds.lower_bound : capacity_above(bounds, lane.attempts);
  lane.attempts += 1;
  LaneMonitor monitor(this, index);
  // Enough nodes for one way down without a wrong choice, and for some wrong choices: a good order
  // needs no more, and a bad one is better given up for the next.
  const SkylineSearch::Limits limits{items_.size() + kErrorsFirst * luby(lane.attempts),
                                     lane_time_end() - lane.time, limits_.stop, &monitor};
  lock->unlock();
  if (!*searcher) searcher->emplace(items_);
  SkylineSearch* const search = &**searcher;
  const std::uint64_t before = search->steps();
  const std::vector<std::int32_t> ranks = search_ranks(items_, lane.attempts, lane.memory.blames);
  const SkylineSearch::Outcome outcome = search->run(capacity, ranks, limits, &lane.memory);
  Finding finding{
      {lane.time, index}, lane.time + search->steps() - before + items_.size(), bounds, {}};
  if (outcome == SkylineSearch::Outcome::kFound) {
    const Units peak = peak_of(items_, search->offsets());
    if (peak < bounds.best) {
      finding.bounds.best = peak;
      finding.offsets = search->offsets();
    }
  } else if (outcome == SkylineSearch::Outcome::kNone) {
    finding.bounds.lower_bound = capacity + 1;
  }
  if (limits_.attempted) limits_.attempted(index);
  lock->lock();
  lane.time = finding.end;
  if (outcome != SkylineSearch::Outcome::kStopped) add(std::move(finding));
  if (!solved_) settle_shared();
}

void SearchLanes::add(Finding finding) {
  const bool is_better = finding.bounds.best < bounds_.best;
  bounds_.best = std::min(bounds_.best, finding.bounds.best);
  bounds_.lower_bound = std::max(bounds_.lower_bound, finding.bounds.lower_bound);
  if (is_better && progress_) progress_(bounds_);
  const auto at = std::upper_bound(findings_.begin(), findings_.end(), finding.key,
                                   [](Key key, const Finding& f) { return key < f.key; });
  findings_.insert(at, std::move(finding));
  if (!is_solved(bounds_)) return;
  PeakBounds bounds = settled_;
  for (const Finding& one : findings_) {
    bounds.best = std::min(bounds.best, one.bounds.best);
    bounds.lower_bound = std::max(bounds.lower_bound, one.bounds.lower_bound);
    if (!is_solved(bounds)) continue;
    solved_ = one.key;
    return;
  }
}

/// Merges a finding into settled_. Of equal peaks the first in the order of attempts is kept.
void SearchLanes::settle(Finding* finding) {
  if (finding->bounds.best < settled_.best) {
    settled_.best = finding->bounds.best;
    offsets_ = std::move(finding->offsets);
  }
  settled_.lower_bound = std::max(settled_.lower_bound, finding->bounds.lower_bound);
}

/// Settles the findings that every later attempt may use, so that findings_ stays short: a search
/// may have tens of thousands.
void SearchLanes::settle_shared() {
  std::uint64_t least = kNever;
  for (const Lane& lane : lanes_) least = lane.is_retired ? least : std::min(least, lane.time);
  auto finding = findings_.begin();
  for (; finding != findings_.end() && finding->end <= least; ++finding) settle(&*finding);
  findings_.erase(findings_.begin(), finding);
}

/// Settles the remaining findings that count: those up to the one that solves the space.
void SearchLanes::conclude() {
  for (Finding& finding : findings_) {
    if (solved_ && *solved_ < finding.key) break;
    settle(&finding);
  }
  bounds_ = settled_;
}

}  // namespace ashlar::inline v0::plan::solve
