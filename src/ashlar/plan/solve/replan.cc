#include <ashlar/plan/replan.h>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan {
namespace {

/// How many conflicting pins are removed one by one, each by a check of the whole problem.
constexpr std::size_t kUnpinnedMax = 64;

bool fits(const Problem& problem, const Plan& plan) {
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
    if (plan.spaces[s].fits(problem.spaces[s].capacity) != Fits::kYes) return false;
  }
  return true;
}

/// The problem with the kept buffers pinned, without the pins that make it unsound. The problem
/// itself if there are too many of those.
Problem with_kept_pinned(const Problem& problem, const std::vector<Bytes>& kept) {
  Problem pinned = problem;
  for (std::size_t b = 0; b < kept.size(); ++b) {
    Buffer& buffer = pinned.buffers[b];
    if (buffer.pinned != kNowhere || kept[b] == kNowhere || kept[b] % buffer.alignment != 0)
      continue;
    if (kept[b] > kPlanBytesMax || buffer.size > kPlanBytesMax - kept[b]) continue;
    if (kept[b] + buffer.size > pinned.spaces[buffer.space].capacity) continue;
    buffer.pinned = kept[b];
  }
  const auto is_pinned_here = [&](std::uint32_t b) {
    return pinned.buffers[b].pinned != problem.buffers[b].pinned;
  };
  for (std::size_t unpinned = 0;; ++unpinned) {
    const ProblemFault fault = check_problem(pinned);
    if (fault.status.is_ok()) return pinned;
    if (unpinned == kUnpinnedMax || (!is_pinned_here(fault.buffer) && !is_pinned_here(fault.other)))
      return problem;
    const std::uint32_t b = is_pinned_here(fault.buffer) ? fault.buffer : fault.other;
    pinned.buffers[b].pinned = problem.buffers[b].pinned;
  }
}

}  // namespace

Replanned replan(const Problem& problem, const std::vector<Bytes>& kept,
                 const PlanOptions& options) {
  ASHLAR_ASSERT(kept.size() == problem.buffers.size(),
                "replan: an offset or kNowhere for each buffer");
  Replanned out;
  out.plan = make_plan(with_kept_pinned(problem, kept), options);
  if (!fits(problem, out.plan)) {
    PlanOptions from_kept = options;
    from_kept.warm_start = &kept;
    out.plan = make_plan(problem, from_kept);
  } else {
    // The added pins may have raised the lower bounds, which then do not hold for the problem.
    for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
      const solve::Items items = solve::make_rounded_items(problem, s);
      out.plan.spaces[s].lower_bound = items.bound_in_bytes(items.lower_bound);
    }
  }
  for (std::size_t b = 0; b < kept.size(); ++b) {
    out.moved += kept[b] != kNowhere && kept[b] != out.plan.offsets[b] ? 1 : 0;
  }
  return out;
}

}  // namespace ashlar::inline v0::plan
