#include <ashlar/plan/solve/large_first.h>

#include <ashlar/plan/solve/fills.h>
#include <ashlar/plan/solve/first_fit.h>
#include <ashlar/plan/solve/space_solver.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// The maximum of steps to plan the large items: about a tenth of a second. Mostly the first fills do.
constexpr std::uint64_t kLargeSteps = 20'000'000;

/// The problem of the large items' buffers alone, and the number of each in the whole problem.
struct LargePart {
  Problem problem;
  std::vector<std::uint32_t> buffers;
};

LargePart large_part(const Problem& problem, const Items& items, Units small) {
  LargePart part;
  part.problem.gaps = problem.gaps;
  part.problem.groups = problem.groups;
  for (std::uint32_t b = 0; b < items.item_of.size(); ++b) {
    if (items.item_of[b] == kNoItem) continue;
    const Item& item = items.items[items.item_of[b]];
    if (item.height <= small && item.pinned == kNotPinned) continue;
    Buffer buffer = problem.buffers[b];
    buffer.space = 0;
    buffer.hint = kNowhere;
    part.problem.buffers.push_back(buffer);
    part.buffers.push_back(b);
  }
  return part;
}

}  // namespace

LargeFirst large_first(const Problem& problem, const Items& items, Units small,
                       const LargeFirstLimits& limits) {
  LargeFirst result{limits.stop_at, {}, 0};
  const LargePart part = large_part(problem, items, small);
  // An item of several buffers is counted as often. That may only miss that all items are large.
  if (part.buffers.empty() || part.buffers.size() >= items.size()) return result;
  PlanOptions options;
  options.work = kLargeSteps;
  options.threads = limits.threads;
  Plan plan;
  plan.offsets.resize(part.buffers.size());
  plan.spaces.resize(1);
  SpaceSolver solver(part.problem, 0, options, *limits.stop);
  solver.solve_to_alignment();
  solver.write(&plan);
  std::vector<Units> large(items.size(), kNotPinned);
  for (std::size_t k = 0; k < part.buffers.size(); ++k) {
    large[items.item_of[part.buffers[k]]] = static_cast<Units>(plan.offsets[k] / items.unit);
  }
  result.peak = first_fit_with_hints(items, large, order_by_size(items, false), limits.stop_at,
                                     limits.stop, &result.offsets);
  result.steps = solver.steps() + std::uint64_t{items.size()} * items.size() / 4;
  return result;
}

}  // namespace ashlar::inline v0::plan::solve
