#include <ashlar/plan/planner.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include <ashlar/plan/solve/compact.h>
#include <ashlar/plan/solve/explain.h>
#include <ashlar/plan/solve/fills.h>
#include <ashlar/plan/solve/first_fit.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/parallel.h>
#include <ashlar/plan/solve/repair.h>
#include <ashlar/plan/solve/search_lanes.h>
#include <ashlar/plan/solve/skyline_search.h>

namespace ashlar::inline v0::plan {
namespace {
using namespace solve;  // the public function is plan::make_plan; everything behind it is private

/// Of search, to leave buffers out of an explanation: about a second.
constexpr std::uint64_t kExplainSteps = 200'000'000;
constexpr ItemIndex kRepairItemsMin = 1000;
/// Between two repairs; and how many rounds of both there are before what can be searched is
/// searched.
constexpr std::uint32_t kFillsInRound = 8;
constexpr std::uint32_t kRoundsBeforeSearch = 2;
/// Fewer are filled before a thread has begun.
constexpr ItemIndex kFillThreadsItemsMin = 500;
constexpr Units kNoPeak = std::numeric_limits<Units>::max();

/// Solves one space.
class SpaceSolver {
 public:
  SpaceSolver(const Problem& problem, std::uint32_t space, const PlanOptions& options, Stop* stop)
      : problem_(problem),
        items_(make_items(problem, space)),
        fills_(items_),
        space_(space),
        options_(options),
        stop_(stop),
        work_(options.work.value_or(0)) {
    const Bytes capacity = problem.spaces[space].capacity;
    enough_ = capacity == kNowhere ? 0 : static_cast<Units>(capacity / items_.unit);
    lower_bound_ = items_.lower_bound;
  }

  void solve() {
    if (items_.size() == 0) {
      best_ = 0;
      return;
    }
    if (options_.warm_start != nullptr) begin_warm();
    begin_hinted();
    fill(fills_.known());
    improve();
    if (!is_done()) search();
  }

  void write(Plan* plan) const {
    write_offsets(items_, best_offsets_, &plan->offsets);
    SpaceAnswer& answer = plan->spaces[space_];
    answer.peak = items_.unit * static_cast<std::uint64_t>(best_);
    answer.lower_bound = items_.unit * static_cast<std::uint64_t>(lower_bound_);
  }

 private:
  bool is_done() const { return best_ <= std::max(lower_bound_, enough_); }
  bool is_out_of_work() const { return options_.work && work_ == 0; }
  bool is_stopped() const { return stop_->now() || is_out_of_work(); }

  void offer(Units peak, std::vector<Units> offsets) {
    if (peak >= best_) return;
    best_ = peak;
    best_offsets_ = std::move(offsets);
    tell({lower_bound_, best_});
  }
  void tell(Known known) const {
    if (!options_.progress) return;
    options_.progress(space_, items_.unit * static_cast<std::uint64_t>(known.best),
                      items_.unit * static_cast<std::uint64_t>(known.lower_bound));
  }

  void begin_warm();
  void begin_hinted();
  void fill(std::uint32_t count);
  void improve();
  void repair(Repair* repair);
  void search();

  const Problem& problem_;
  Items items_;
  Fills fills_;
  std::uint32_t fills_run_ = 0;
  std::uint32_t space_;
  const PlanOptions& options_;
  Stop* stop_;
  std::uint64_t work_;  // left
  Units enough_ = 0;    // a peak of so much is all that is asked for
  Units lower_bound_ = 0;
  Units best_ = kNoPeak;
  std::vector<Units> best_offsets_;
};

/// The next attempts. Which of them count, and which of equals is taken, is as if each began when
/// the one before it had ended.
void SpaceSolver::fill(std::uint32_t count) {
  struct Filled {
    bool is_there = false;
    // for want of time, or of need: as nothing after it would have begun, nothing after it counts
    bool is_cut = false;
    Units peak = kNoPeak;
    std::vector<Units> offsets;
  };
  std::vector<Filled> filled(count);
  std::uint32_t next = 0;  // to be offered
  bool is_cut = false;     // before that
  std::mutex mutex;
  std::atomic<bool> is_over{false};  // what still runs comes after what is enough
  const Stop stop = stop_->or_when(&is_over);
  for_each_job(
      items_.size() < kFillThreadsItemsMin ? 1 : options_.threads, count, [&](std::uint32_t k) {
        Filled own;
        std::unique_lock<std::mutex> lock(mutex);
        // Where nothing is known, the first runs to its end: there is an answer whatever the time.
        const bool is_needed = k == 0 && best_ == kNoPeak;
        if (is_needed || (!is_done() && !is_stopped())) {
          const Units stop_at = best_;
          lock.unlock();
          own.peak = fills_.run(fills_run_ + k, stop_at, is_needed ? nullptr : &stop, &own.offsets);
          lock.lock();
          own.is_cut = own.peak >= stop_at && stop_->now();
        } else {
          own.is_cut = true;
        }
        own.is_there = true;
        filled[k] = std::move(own);
        for (; next < count && filled[next].is_there; ++next) {
          is_cut = is_cut || filled[next].is_cut ||
                   (best_ != kNoPeak && (is_done() || is_out_of_work()));
          if (!is_cut) offer(filled[next].peak, std::move(filled[next].offsets));
          filled[next].offsets = {};
          work_ -= std::min(work_, fills_.cost(fills_run_ + next));
        }
        is_over = is_done();
      });
  fills_run_ += count;
}

/// Repairs the best fill, and fills again in the hope of a better one. What is not to be searched
/// goes on until time is up.
void SpaceSolver::improve() {
  if (items_.size() < kRepairItemsMin) return;  // searched whole
  const bool can_search = SkylineSearch::can_search(items_);
  std::optional<Repair> repairer;
  Units repaired = kNoPeak;
  for (std::uint32_t round = 0;
       !is_done() && !is_stopped() && (!can_search || round < kRoundsBeforeSearch); ++round) {
    fill(kFillsInRound);
    if (is_done() || is_stopped()) return;
    if (!repairer) repairer.emplace(items_);
    if (best_ < repaired) repair(&*repairer);
    repaired = best_;
  }
}

/// Takes the peak half of the way to the lower bound, again and again; where that fails, a quarter,
/// an eighth.
void SpaceSolver::repair(Repair* repair) {
  for (Units part = 1; part <= 16 && !is_done() && !is_stopped();) {
    const Units room = best_ - lower_bound_;
    const Units target = best_ - std::max<Units>(part == 1 ? room : room / part, 1);
    std::vector<Units> offsets = best_offsets_;
    const std::uint64_t before = repair->steps();
    const bool is_lower =
        repair->lower(target, &offsets, options_.work ? work_ : ~std::uint64_t{0}, stop_);
    work_ -= std::min(work_, repair->steps() - before);
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
  SearchLanes lanes(items_, {lower_bound_, best_}, enough_, [this](Known known) { tell(known); });
  std::optional<std::uint64_t> work;
  if (options_.work) work = work_;
  lanes.run({work, options_.threads, stop_});
  lower_bound_ = lanes.known().lower_bound;
  if (lanes.known().best == best_) return;
  best_ = lanes.known().best;
  best_offsets_ = lanes.offsets();
}

void SpaceSolver::begin_warm() {
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

/// Everything at its hint that can be: it stays there unless a better plan is found.
void SpaceSolver::begin_hinted() {
  std::vector<Units> wishes(items_.size(), kNotPinned), offsets;
  bool has_one = false;
  for (std::uint32_t b = 0; b < items_.item_of.size(); ++b) {
    const ItemIndex item = items_.item_of[b];
    const Bytes hint = problem_.buffers[b].hint;
    if (item == kNoItem || hint == kNowhere || hint % items_.unit != 0 ||
        wishes[item] != kNotPinned)
      continue;
    wishes[item] = static_cast<Units>(hint / items_.unit);
    has_one = true;
  }
  if (!has_one || items_.size() > kFirstFitItemsMax) return;
  const Units peak = first_fit_from(items_, wishes, order_by_size(items_, false), &offsets);
  offer(peak, std::move(offsets));
}

/// The spaces in the order in which they are solved: the small ones first, so that what time they
/// leave is the large ones'.
std::vector<std::uint32_t> smallest_first(const Problem& problem) {
  std::vector<std::uint32_t> buffers(problem.spaces.size(), 0), order(problem.spaces.size());
  for (const Buffer& buffer : problem.buffers) buffers[buffer.space] += 1;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return buffers[a] != buffers[b] ? buffers[a] < buffers[b] : a < b;
  });
  return order;
}

}  // namespace

Plan make_plan(const Problem& problem, const PlanOptions& options) {
  ASHLAR_ASSERT(options.time_limit || options.work,
                "planner: neither a time limit nor a limit of work");
  const auto start = Stop::Clock::now();
  const std::uint64_t explain_steps = std::min(options.work.value_or(kExplainSteps), kExplainSteps);
  Plan plan;
  plan.offsets.assign(problem.buffers.size(), Bytes{});
  plan.spaces.resize(problem.spaces.size());
  const std::vector<std::uint32_t> order = smallest_first(problem);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t space = order[k];
    Stop stop;
    if (options.time_limit) {
      const auto now = Stop::Clock::now();
      const auto left = std::max(start + *options.time_limit - now, Stop::Clock::duration{});
      stop = Stop(now + left / static_cast<std::int64_t>(order.size() - k));
    }
    SpaceSolver solver(problem, space, options, &stop);
    solver.solve();
    solver.write(&plan);
    const bool is_misfit = plan.spaces[space].fits(problem.spaces[space].capacity) == Fits::kNo;
    if (!is_misfit) continue;
    const std::vector<std::uint32_t> misfits = explain_misfit(problem, space, explain_steps, &stop);
    plan.cannot_fit.insert(plan.cannot_fit.end(), misfits.begin(), misfits.end());
  }
  return plan;
}

}  // namespace ashlar::inline v0::plan
