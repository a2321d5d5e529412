#include <ashlar/plan/planner.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include <ashlar/plan/solve/explain.h>
#include <ashlar/plan/solve/space_solver.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan {
namespace {

/// Steps of search to leave buffers out of an explanation: about a second.
constexpr std::uint64_t kExplainSteps = 200'000'000;

/// The order in which spaces are solved: those of few buffers first, so that the large ones have
/// the time that they leave.
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
  using Clock = solve::StopCondition::Clock;
  const auto start = Clock::now();
  const std::uint64_t explain_steps = std::min(options.work.value_or(kExplainSteps), kExplainSteps);
  Plan plan;
  plan.offsets.assign(problem.buffers.size(), Bytes{});
  plan.spaces.resize(problem.spaces.size());
  const std::vector<std::uint32_t> order = smallest_first(problem);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t space = order[k];
    solve::StopCondition stop;
    if (options.time_limit) {  // an equal share of the time that is left
      const auto now = Clock::now();
      const auto left = std::max(start + *options.time_limit - now, Clock::duration{});
      stop = solve::StopCondition(now + left / static_cast<std::int64_t>(order.size() - k));
    }
    if (options.stop != nullptr) stop = stop.or_when(options.stop);
    solve::SpaceSolver solver(problem, space, options, stop);
    solver.solve();
    solver.write(&plan);
    if (plan.spaces[space].fits(problem.spaces[space].capacity) != Fits::kNo) continue;
    const std::vector<std::uint32_t> misfits =
        solve::explain_misfit(problem, space, explain_steps, stop);
    plan.cannot_fit.insert(plan.cannot_fit.end(), misfits.begin(), misfits.end());
  }
  return plan;
}

}  // namespace ashlar::inline v0::plan
