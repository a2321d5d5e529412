// The planner: makes a good plan at once, and improves it while time or work is left.
//
// How: greedy fills first, then exact search at capacities between the lower bound and the best
// peak so far; solve/README.md tells it. The search ends when the peak is proved least, when every
// capacity is met, or when time or work is used up. Where all buffers of a space have one alignment,
// "least" is in whole alignments: within the last one, only a short search looks for a lower peak.
// Thread safety: pure function; its own threads have ended when it returns.
//
// Clauses (P2 to P4 of the contract):
//   (P2) no peak is below its lower bound, and no lower bound is above the least peak;
//   (P3) more time, work, capacity or threads never give a worse answer: the attempts and their
//        order depend on the instance alone, and a capacity only decides when to stop;
//   (P4) without a time limit the same problem and work give the same bytes on every machine and
//        for any number of threads. With one, that holds for a problem that is solved in time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <ashlar/plan/plan.h>

namespace ashlar::inline v0::plan {

/// How long make_plan() searches, and from what it starts.
struct PlanOptions {
  /// Wall time for all spaces together; not limited if unset. A first answer is made in any case.
  std::optional<std::chrono::nanoseconds> time_limit;
  /// Steps of search for each space, some nanoseconds each; not limited if unset.
  std::optional<std::uint64_t> work;
  /// The maximum number of threads to use, the caller's among them. More threads make planning
  /// faster; they change no answer that is solved or limited by work alone.
  unsigned threads = 1;
  /// The search ends, as at a time limit, soon after this is true. Not owned; null for none.
  const std::atomic<bool>* stop = nullptr;
  /// A plan to start from: offsets in bytes, by buffer. Its buffers are moved down first. It is
  /// ignored in a space where it is not valid. Not owned; null for none.
  const std::vector<Bytes>* warm_start = nullptr;
  /// Called with every better peak: space, peak in bytes, lower bound in bytes. Called by one
  /// thread at a time, which need not be the caller's. It may throw: make_plan() then ends with
  /// that exception.
  std::function<void(std::uint32_t, Bytes, Bytes)> progress;
};

/// Makes a plan for every space of `problem`. It always makes one: a capacity that is not met shows
/// in the answer (SpaceAnswer::fits). REQUIRES: check_problem(problem) is ok; a time limit or work
/// is set; warm_start, if given, has an offset for each buffer.
///
/// Cost: O(n log n) for the first answer; then what the options permit. Host memory: up to 400 bytes
/// per buffer, and 100 MB for an instance that is searched; both for each thread.
/// Throws std::bad_alloc if host memory runs out, and what `progress` throws.
/// Thread safety: any number of calls at the same time.
ASHLAR_API Plan make_plan(const Problem& problem, const PlanOptions& options);

}  // namespace ashlar::inline v0::plan
