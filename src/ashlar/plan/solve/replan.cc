#include <ashlar/plan/replan.h>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan {
namespace {

constexpr std::size_t kTakenBackMax = 64;

bool fits(const Problem& problem, const Plan& plan) {
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
    if (plan.spaces[s].fits(problem.spaces[s].capacity) != Fits::kYes) return false;
  }
  return true;
}

/// The problem with what is kept pinned. A pin that makes it unsound is taken back.
Problem pin(const Problem& problem, const std::vector<Bytes>& kept) {
  Problem pinned = problem;
  for (std::size_t b = 0; b < kept.size(); ++b) {
    Buffer& buffer = pinned.buffers[b];
    if (buffer.pinned != kNowhere || kept[b] == kNowhere || kept[b] % buffer.alignment != 0)
      continue;
    if (kept[b] > kPlanBytesMax || buffer.size > kPlanBytesMax - kept[b]) continue;
    if (kept[b] + buffer.size > pinned.spaces[buffer.space].capacity) continue;
    buffer.pinned = kept[b];
  }
  const auto is_ours = [&](std::uint32_t b) {
    return pinned.buffers[b].pinned != problem.buffers[b].pinned;
  };
  for (std::size_t taken_back = 0;; ++taken_back) {
    const ProblemFault fault = check_problem(pinned);
    if (fault.status.is_ok()) return pinned;
    // Many in each other's way: each costs a look at all. Then none is kept.
    if (taken_back == kTakenBackMax || (!is_ours(fault.buffer) && !is_ours(fault.other)))
      return problem;
    const std::uint32_t b = is_ours(fault.buffer) ? fault.buffer : fault.other;
    pinned.buffers[b].pinned = problem.buffers[b].pinned;
  }
}

}  // namespace

Replanned replan(const Problem& problem, const std::vector<Bytes>& kept,
                 const PlanOptions& options) {
  ASHLAR_ASSERT(kept.size() == problem.buffers.size(),
                "replan: an offset or kNowhere for each buffer");
  Replanned out;
  out.plan = make_plan(pin(problem, kept), options);
  if (!fits(problem, out.plan)) {
    PlanOptions anew = options;
    anew.warm_start = &kept;
    out.plan = make_plan(problem, anew);
  } else {
    // A bound that pins have raised is none of the problem.
    for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
      const solve::Items items = solve::make_items(problem, s);
      out.plan.spaces[s].lower_bound = items.unit * static_cast<std::uint64_t>(items.lower_bound);
    }
  }
  for (std::size_t b = 0; b < kept.size(); ++b) {
    out.moved += kept[b] != kNowhere && kept[b] != out.plan.offsets[b] ? 1 : 0;
  }
  return out;
}

}  // namespace ashlar::inline v0::plan
