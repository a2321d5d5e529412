#include <ashlar/plan/solve/space_solver.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <utility>

#include <ashlar/plan/solve/compact.h>
#include <ashlar/plan/solve/first_fit.h>
#include <ashlar/plan/solve/large_first.h>
#include <ashlar/plan/solve/parallel.h>
#include <ashlar/plan/solve/skyline_search.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// Smaller spaces are not repaired but searched whole.
constexpr ItemIndex kRepairItemsMin = 1000;
/// A round is some fills and a repair of the best of them. A space that can be searched has a few
/// rounds first.
constexpr std::uint32_t kFillsInRound = 8;
constexpr std::uint32_t kRoundsBeforeSearch = 2;
/// Steps of search for less than one alignment of memory: about a tenth of a second.
constexpr std::uint64_t kLastAlignmentSteps = 20'000'000;
/// Fewer items are filled sooner than a thread starts.
constexpr ItemIndex kFillThreadsItemsMin = 500;

}  // namespace

/// Attempts that threads make at the same time.
struct SpaceSolver::FillRound {
  explicit FillRound(std::uint32_t count) : filled(count) {}

  std::vector<Filled> filled;
  std::uint32_t next = 0;            // the first attempt that is not counted yet
  bool is_cut = false;               // an attempt before `next` was cut
  std::mutex mutex;                  // of this and of the solver
  std::atomic<bool> is_over{false};  // the attempts that still run are not needed
  StopCondition stop;
};

SpaceSolver::SpaceSolver(const Problem& problem, std::uint32_t space, const PlanOptions& options,
                         const StopCondition& stop)
    : problem_(problem),
      space_(space),
      options_(options),
      stop_(stop),
      items_(make_rounded_items(problem, space)),
      fills_(items_),
      work_left_(options.work.value_or(0)),
      lower_bound_(items_.lower_bound) {
  const Bytes capacity = problem.spaces[space].capacity;
  goal_ = capacity == kNowhere ? 0 : static_cast<Units>(capacity / items_.unit);
}

void SpaceSolver::solve() {
  solve_to_alignment();
  search_last_alignment();
}

void SpaceSolver::solve_to_alignment() {
  if (items_.size() == 0) {
    best_ = 0;
    return;
  }
  if (options_.warm_start != nullptr) start_from_given_plan();
  start_from_hints();
  fill(fills_.initial_count());
  if (items_.size() >= kRepairItemsMin) fill_and_repair();
  if (!is_done()) search();
}

void SpaceSolver::write(Plan* plan) const {
  write_offsets(items_, best_offsets_, &plan->offsets);
  SpaceAnswer& answer = plan->spaces[space_];
  answer.peak = peak_in_bytes(problem_, items_, best_offsets_);
  answer.lower_bound = std::max(items_.bound_in_bytes(lower_bound_), proved_);
}

/// Takes a plan if it is better than the best so far.
void SpaceSolver::offer(Units peak, std::vector<Units> offsets) {
  if (peak >= best_) return;
  best_ = peak;
  best_offsets_ = std::move(offsets);
  if (options_.progress) report(peak_in_bytes(problem_, items_, best_offsets_), lower_bound_);
}

void SpaceSolver::report(Bytes peak, Units lower_bound) const {
  if (options_.progress) options_.progress(space_, peak, items_.bound_in_bytes(lower_bound));
}

/// Moves the plan of options_.warm_start down and takes it, if it is valid for the space.
void SpaceSolver::start_from_given_plan() {
  const Units unknown = -1;
  std::vector<Units> given(items_.size(), unknown), offsets;
  for (std::uint32_t b = 0; b < items_.item_of.size(); ++b) {
    const ItemIndex item = items_.item_of[b];
    if (item == kNoItem) continue;
    const Bytes offset = (*options_.warm_start)[b];
    if (offset > kPlanBytesMax || offset % items_.unit != 0) return;
    const auto units = static_cast<Units>(offset / items_.unit);
    if (given[item] != unknown && given[item] != units) return;
    given[item] = units;
  }
  if (!compact(items_, given, &offsets)) return;
  const Units peak = peak_of(items_, offsets);
  offer(peak, std::move(offsets));
}

/// Takes a plan with as many buffers as possible at their hints. They stay there unless a better
/// plan is found.
void SpaceSolver::start_from_hints() {
  std::vector<Units> hints(items_.size(), kNotPinned), offsets;
  bool has_hint = false;
  for (std::uint32_t b = 0; b < items_.item_of.size(); ++b) {
    const ItemIndex item = items_.item_of[b];
    const Bytes hint = problem_.buffers[b].hint;
    if (item == kNoItem || hint == kNowhere || hint % items_.unit != 0 || hints[item] != kNotPinned)
      continue;
    hints[item] = static_cast<Units>(hint / items_.unit);
    has_hint = true;
  }
  if (!has_hint || items_.size() > kFirstFitItemsMax) return;
  const Units peak =
      first_fit_with_hints(items_, hints, order_by_size(items_, false), best_, &stop_, &offsets);
  offer(peak, std::move(offsets));
}

/// Makes the next `count` fills. Which of them count, and which of equal ones is taken, is as if
/// each began when the one before it had ended.
void SpaceSolver::fill(std::uint32_t count) {
  FillRound round(count);
  round.stop = stop_.or_when(&round.is_over);
  for_each_job(items_.size() < kFillThreadsItemsMin ? 1 : options_.threads, count,
               [&](std::uint32_t k) { run_fill(k, &round); });
  fills_made_ += count;
}

void SpaceSolver::run_fill(std::uint32_t k, FillRound* round) {
  Filled own;
  std::unique_lock<std::mutex> lock(round->mutex);
  // The first fill of all runs to its end, so that there is an answer whatever the time.
  const bool is_needed = k == 0 && best_ == kNoPeak;
  if (is_needed || (!is_done() && !is_stopped())) {
    const Units stop_at = best_;
    lock.unlock();
    own.peak =
        fills_.run(fills_made_ + k, stop_at, is_needed ? nullptr : &round->stop, &own.offsets);
    lock.lock();
    own.is_cut = own.peak >= stop_at && stop_.is_met();
  } else {
    own.is_cut = true;
  }
  own.has_ended = true;
  round->filled[k] = std::move(own);
  count_fills(round);
}

/// Offers the plans of the attempts that have ended, in the attempts' order.
void SpaceSolver::count_fills(FillRound* round) {
  std::vector<Filled>& filled = round->filled;
  for (; round->next < filled.size() && filled[round->next].has_ended; ++round->next) {
    Filled& one = filled[round->next];
    round->is_cut =
        round->is_cut || one.is_cut || (best_ != kNoPeak && (is_done() || is_out_of_work()));
    if (!round->is_cut) offer(one.peak, std::move(one.offsets));
    one.offsets = {};
    spend(fills_.cost(fills_made_ + round->next));
  }
  round->is_over = is_done();
}

/// Makes rounds: large items first, then some fills, and a repair of the best plan. A space that can be searched has few rounds;
/// another one goes on until it is done or stopped.
void SpaceSolver::fill_and_repair() {
  const bool can_search = SkylineSearch::can_search(items_);
  std::optional<Repair> repairer;
  Units repaired = kNoPeak;
  for (std::uint32_t round = 0;
       !is_done() && !is_stopped() && (!can_search || round < kRoundsBeforeSearch); ++round) {
    // Of what can be searched, a search finds more with the same work.
    if (!can_search) place_large_first(round);
    if (is_done() || is_stopped()) return;
    fill(kFillsInRound);
    if (is_done() || is_stopped()) return;
    if (!repairer) repairer.emplace(items_);
    if (best_ < repaired) repair(&*repairer);
    repaired = best_;
  }
}

/// Plans the large items first: in each of the first rounds with another notion of large.
void SpaceSolver::place_large_first(std::uint32_t round) {
  constexpr std::uint32_t kShifts[] = {9, 11};
  if (round >= std::size(kShifts) || items_.size() > kFirstFitItemsMax) return;
  LargeFirst plan = large_first(problem_, items_, lower_bound_ >> kShifts[round],
                                {options_.threads, best_, &stop_});
  if (plan.peak < best_) offer(plan.peak, std::move(plan.offsets));
  spend(plan.steps);
}

/// Lowers the best peak by repairs: the whole way to the lower bound, and after each failure half,
/// a quarter, ... a 16th of the way. A success starts again with the whole way.
void SpaceSolver::repair(Repair* repair) {
  for (Units part = 1; part <= 16 && !is_done() && !is_stopped();) {
    const Units room = best_ - lower_bound_;
    const Units target = best_ - std::max<Units>(room / part, 1);
    std::vector<Units> offsets = best_offsets_;
    const std::uint64_t before = repair->steps();
    const bool is_lower =
        repair->lower(target, &offsets, options_.work ? work_left_ : ~std::uint64_t{0}, stop_);
    spend(repair->steps() - before);
    if (is_lower) {
      const Units peak = peak_of(items_, offsets);
      offer(peak, std::move(offsets));
      part = 1;
    } else {
      part *= 2;
    }
  }
}

void SpaceSolver::search() {
  if (!SkylineSearch::can_search(items_)) return;
  has_searched_ = true;
  SearchLanes lanes(items_, {lower_bound_, best_}, goal_, [this](PeakBounds bounds) {
    report(items_.unit * static_cast<std::uint64_t>(bounds.best), bounds.lower_bound);
  });
  std::optional<std::uint64_t> work;
  if (options_.work) work = work_left_;
  lanes.run({work, options_.threads, &stop_});
  lower_bound_ = lanes.bounds().lower_bound;
  if (lanes.bounds().best == best_) return;
  best_ = lanes.bounds().best;
  best_offsets_ = lanes.offsets();
}

/// Once the rounded peak is proved least: searches the heights as they are for a peak that is lower
/// within the last alignment, or for the proof that there is none. What can be gained is less than
/// one alignment, so the search is short.
void SpaceSolver::search_last_alignment() {
  if (items_.rounding == Bytes{} || best_ != lower_bound_ || is_stopped()) return;
  const Items exact = make_items(problem_, space_);
  const std::uint64_t to_exact = items_.unit / exact.unit;
  const auto best = static_cast<Units>(peak_in_bytes(problem_, items_, best_offsets_) / exact.unit);
  const auto bound = static_cast<Units>(items_.bound_in_bytes(lower_bound_) / exact.unit);
  const Bytes capacity = problem_.spaces[space_].capacity;
  const auto goal = capacity == kNowhere ? Units{0} : static_cast<Units>(capacity / exact.unit);
  if (best <= std::max(bound, goal) || !SkylineSearch::can_search(exact)) return;
  SearchLanes lanes(exact, {bound, best}, goal, [&](PeakBounds bounds) {
    report(exact.unit * static_cast<std::uint64_t>(bounds.best), lower_bound_);
  });
  const std::uint64_t work =
      options_.work ? std::min(work_left_, kLastAlignmentSteps) : kLastAlignmentSteps;
  lanes.run({work, options_.threads, &stop_});
  proved_ = exact.unit * static_cast<std::uint64_t>(lanes.bounds().lower_bound);
  if (lanes.bounds().best == best) return;
  // The same items in the same order; their offsets are multiples of the alignment.
  best_offsets_ = lanes.offsets();
  for (Units& offset : best_offsets_) offset /= static_cast<Units>(to_exact);
}

}  // namespace ashlar::inline v0::plan::solve
