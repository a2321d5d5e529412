// The planner: an answer at once, and a better one for as long as it is allowed to look.
//
// Purpose: puts the solvers in order. Greedy fills first (valley_fill.h, first_fit.h); then exact
// search (skyline_search.h) at capacities between the lower bound and the best peak so far, until
// the peak is proved least, the capacity is met, or time or work is up.
// Thread safety: pure function; its threads have ended when it returns.
//
// Clauses (P2..P4 of the contract):
//   (P2) no answer is below its lower bound, and the bound is never above the least peak;
//   (P3) more time, work, capacity or threads never give a worse answer: what is tried, and in
//        which order, depends on the instance alone; a capacity only says when to stop;
//   (P4) without a time limit the same problem and work give the same bytes on every machine, for
//        any number of threads. So does a problem that is solved.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <ashlar/plan/plan.h>

namespace ashlar::inline v0::plan {

struct PlanOptions {
  std::optional<std::chrono::nanoseconds> time_limit;
  /// Steps of search in each space; a step is some nanoseconds. Nothing: until proved, or time is
  /// up.
  std::optional<std::uint64_t> work;
  /// How many threads may look at once: they make it faster and change no answer that is solved, or
  /// that has this much work.
  unsigned threads = 1;
  /// A plan to begin from, by buffer; one that is not valid for the problem, though all be moved
  /// down, is passed over.
  const std::vector<Bytes>* warm_start = nullptr;
  /// Told of every better peak: space, peak, lower bound. By one thread at a time, not always the
  /// caller's.
  std::function<void(std::uint32_t, Bytes, Bytes)> progress;
};

/// A plan for every space. Never fails: capacities that are not met are said so in the answer.
/// REQUIRES: check_problem() is ok, and time_limit or work is set. Host memory: up to 400 bytes a
/// buffer, and 100 MB where instances are searched; both for each thread.
ASHLAR_API Plan make_plan(const Problem& problem, const PlanOptions& options);

}  // namespace ashlar::inline v0::plan
