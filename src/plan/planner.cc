#include <ashlar/plan/planner.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include <ashlar/plan/compact.h>
#include <ashlar/plan/explain.h>
#include <ashlar/plan/first_fit.h>
#include <ashlar/plan/items.h>
#include <ashlar/plan/orders.h>
#include <ashlar/plan/repair.h>
#include <ashlar/plan/skyline_search.h>
#include <ashlar/plan/valley_fill.h>

namespace ashlar {
inline namespace v0 {
namespace plan {
namespace {

constexpr std::uint64_t kErrorsLeast = 300;
/// Of search, to leave buffers out of an explanation: about a second.
constexpr std::uint64_t kExplainSteps = 200'000'000;
constexpr ItemIndex kRepairItemsMin = 1000;
constexpr Units kNoPeak = std::numeric_limits<Units>::max();

/// Solves one space.
class SpaceSolver {
 public:
  SpaceSolver(const Problem& problem, std::uint32_t space, const PlanOptions& options, Stop* stop, std::uint64_t* work)
      : items_(make_items(problem, space)), space_(space), options_(options), stop_(stop), work_(work) {
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
    fill();
    if (!is_done()) repair();
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
  bool is_stopped() const { return stop_->now() || (options_.work && *work_ == 0); }

  void offer(Units peak, const std::vector<Units>& offsets) {
    if (peak >= best_) return;
    best_ = peak;
    best_offsets_ = offsets;
    if (options_.progress) {
      options_.progress(space_, items_.unit * static_cast<std::uint64_t>(best_),
                        items_.unit * static_cast<std::uint64_t>(lower_bound_));
    }
  }

  void begin_warm();
  void fill();
  void repair();
  struct Attempts;
  void search();
  void attempt(SkylineSearch* search, Attempts* attempts, bool is_at_bound);

  Items items_;
  std::uint32_t space_;
  const PlanOptions& options_;
  Stop* stop_;
  std::uint64_t* work_;            // left
  Units enough_ = 0;               // a peak of so much is all that is asked for
  Units lower_bound_ = 0;
  Units best_ = kNoPeak;
  std::vector<Units> best_offsets_;
};

void SpaceSolver::fill() {
  std::vector<Units> offsets, restored;
  // The first rule always runs to its end: there is an answer whatever the time.
  if (items_.is_simple) {
    for (const FillRule& rule : kFillRules) {
      if (is_done() || (best_ != kNoPeak && is_stopped())) return;
      if (rule.picks_best && items_.size() > kPickBestItemsMax) continue;
      offer(valley_fill(items_, rule, best_, best_ == kNoPeak ? nullptr : stop_, &offsets), offsets);
    }
  } else {
    const Simplified simplified = simplify(items_);
    for (const FillRule& rule : kFillRules) {
      if (is_done() || (best_ != kNoPeak && is_stopped())) return;
      if (rule.picks_best && items_.size() > kPickBestItemsMax) continue;
      if (valley_fill(simplified.items, rule, kNoPeak, best_ == kNoPeak ? nullptr : stop_, &offsets) == kNoPeak) return;
      const Units peak = restore(items_, simplified, offsets, &restored);
      offer(peak, restored);
    }
  }
  if (items_.size() > kFirstFitItemsMax) return;
  std::vector<ItemIndex> order(items_.size());
  for (const bool by_area : {false, true}) {
    if (is_done() || is_stopped()) return;
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](ItemIndex i) {
      const Item& item = items_.items[i];
      return log2_fixed(static_cast<std::uint64_t>(item.height)) + (by_area ? log2_fixed(item.last - item.first) : 0);
    };
    std::sort(order.begin(), order.end(), [&](ItemIndex a, ItemIndex b) {
      const std::int32_t key_a = key(a), key_b = key(b);
      if (key_a != key_b) return key_a > key_b;
      const Units height_a = items_.items[a].height, height_b = items_.items[b].height;
      return height_a != height_b ? height_a > height_b : a < b;
    });
    offer(first_fit(items_, order, best_, &offsets), offsets);
  }
}

/// Takes the peak half of the way to the lower bound, again and again; where that fails, a quarter, an eighth.
void SpaceSolver::repair() {
  if (items_.size() < kRepairItemsMin) return;  // searched whole
  Repair repair(items_);
  for (Units part = 1; part <= 16 && !is_done() && !is_stopped();) {
    const Units room = best_ - lower_bound_;
    const Units target = best_ - std::max<Units>(part == 1 ? room : room / part, 1);
    std::vector<Units> offsets = best_offsets_;
    const std::uint64_t before = repair.steps();
    const bool is_lower = repair.lower(target, &offsets, options_.work ? *work_ : ~std::uint64_t{0}, stop_);
    if (options_.work) *work_ -= std::min(*work_, repair.steps() - before);
    if (is_lower) {
      offer(peak_of(items_, offsets), offsets);
      part = 1;
    } else {
      part *= 2;
    }
  }
}

/// Attempts at one kind of capacity: each longer or shorter than the last, in an order of its own.
struct SpaceSolver::Attempts {
  std::uint64_t count = 0;
  std::uint64_t steps = 0;
  FailedParts failed;
};

void SpaceSolver::search() {
  if (!SkylineSearch::can_search(items_)) return;
  SkylineSearch search(items_);
  // At the lower bound itself, where waste prunes most; and, for as many steps, nearer to the best so far.
  Attempts at_bound, above;
  while (!is_done() && !is_stopped()) {
    const bool is_at_bound = at_bound.steps <= above.steps || best_ - 1 == lower_bound_;
    attempt(&search, is_at_bound ? &at_bound : &above, is_at_bound);
  }
}

void SpaceSolver::attempt(SkylineSearch* search, Attempts* attempts, bool is_at_bound) {
  constexpr Units kEighths[] = {4, 6, 7, 2};
  const Units eighths = is_at_bound ? 0 : kEighths[attempts->count % 4];
  const Units room = best_ - 1 - lower_bound_;
  const Units capacity = lower_bound_ + room / 8 * eighths + room % 8 * eighths / 8;
  attempts->count += 1;
  // Room for one way down without an error, and some errors: a lucky order needs no more, and luck is what is tried for.
  SkylineSearch::Limits limits{items_.size() + kErrorsLeast * luby(attempts->count), ~std::uint64_t{0}, stop_};
  if (options_.work) limits.steps = *work_;
  const std::uint64_t before = search->steps();
  const SkylineSearch::Outcome outcome = search->run(capacity, order_of(items_, attempts->count), limits, &attempts->failed);
  const std::uint64_t steps = search->steps() - before;
  attempts->steps += steps + items_.size();
  if (options_.work) *work_ -= std::min(*work_, steps + items_.size());
  if (outcome == SkylineSearch::Outcome::kFound) {
    offer(peak_of(items_, search->offsets()), search->offsets());
  } else if (outcome == SkylineSearch::Outcome::kNone) {
    lower_bound_ = capacity + 1;
  }
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
  if (compact(items_, given, &offsets)) offer(peak_of(items_, offsets), offsets);
}

}  // namespace

Plan make_plan(const Problem& problem, const PlanOptions& options) {
  ASHLAR_ASSERT(options.time_limit || options.work, "planner: neither a time limit nor a limit of work");
  Stop stop;
  if (options.time_limit) stop = Stop(Stop::Clock::now() + *options.time_limit);
  std::uint64_t work = options.work.value_or(0);
  const std::uint64_t explain_steps = std::min(options.work.value_or(kExplainSteps), kExplainSteps);
  Plan plan;
  plan.offsets.assign(problem.buffers.size(), Bytes{});
  plan.spaces.resize(problem.spaces.size());
  for (std::uint32_t space = 0; space < problem.spaces.size(); ++space) {
    SpaceSolver solver(problem, space, options, &stop, &work);
    solver.solve();
    solver.write(&plan);
    const bool is_misfit = plan.spaces[space].fits(problem.spaces[space].capacity) == Fits::kNo;
    if (is_misfit && plan.cannot_fit.empty()) plan.cannot_fit = explain_misfit(problem, space, explain_steps, &stop);
  }
  return plan;
}

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
