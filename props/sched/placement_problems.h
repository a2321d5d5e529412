// Random placement problems, and what a placement costs by definition: for the suites of placement.
//
// Thread safety: none; each call works on what it is given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <ashlar/sched/placement.h>

namespace ashlar::props {

/// Bytes, copies and changes, compared in this order.
using CostByDefinition = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

/// Bytes, copies and changes of a placement, from the definition.
inline CostByDefinition cost_by_definition(const sched::PlacementProblem& problem,
                                           const std::vector<std::uint32_t>& at) {
  std::uint64_t bytes = 0, copies = 0, changes = 0;
  for (const sched::PlacedFlow& flow : problem.flows) {
    std::set<std::uint32_t> memories;
    for (const std::uint32_t consumer : flow.consumers) {
      if (!problem.can_read(at[consumer], at[flow.producer]))
        memories.insert(problem.memory[at[consumer]]);
    }
    bytes += memories.size() * flow.bytes.count();
    copies += memories.size();
  }
  for (std::size_t k = 1; k < problem.work.size(); ++k)
    changes += at[problem.work[k]] != at[problem.work[k - 1]] ? 1 : 0;
  return {bytes, copies, changes};
}

/// The least cost of all placements.
inline CostByDefinition least_by_brute_force(const sched::PlacementProblem& problem) {
  std::vector<std::uint32_t> at(problem.items, 0);
  CostByDefinition least{~std::uint64_t{0}, 0, 0};
  for (;;) {
    bool is_allowed = true;
    for (std::uint32_t item = 0; item < problem.items; ++item)
      is_allowed = is_allowed && problem.is_allowed(item, at[item]);
    if (is_allowed) least = std::min(least, cost_by_definition(problem, at));
    std::uint32_t item = 0;
    while (item < problem.items && ++at[item] == problem.backends) at[item++] = 0;
    if (item == problem.items) return least;
  }
}

/// A problem whose backends have memories of their own, or share some.
/// Sizes are small, so that copies and changes decide in many problems.
inline sched::PlacementProblem random_problem(std::mt19937_64& random, std::uint32_t backends,
                                              bool has_shared_memory) {
  const auto below = [&random](std::uint64_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  sched::PlacementProblem problem;
  problem.backends = backends;
  problem.items = 1 + below(backends == 2 ? 8 : 5);
  for (std::uint32_t b = 0; b < backends; ++b) {
    const bool is_shared = has_shared_memory && b > 0 && below(2) == 0;
    problem.memory.push_back(is_shared ? problem.memory[b - 1] : b);
  }
  for (std::uint32_t reader = 0; reader < backends; ++reader) {
    for (std::uint32_t owner = 0; owner < backends; ++owner)
      problem.reads.push_back(problem.memory[reader] == problem.memory[owner] ? 1 : 0);
  }
  for (std::uint32_t item = 0; item < problem.items; ++item) {
    const std::uint32_t fixed = below(std::uint64_t{3} * backends);
    for (std::uint32_t b = 0; b < backends; ++b)
      problem.allowed.push_back(fixed >= backends || fixed == b ? 1 : 0);
    if (below(3) != 0) problem.work.push_back(item);
    if (below(4) == 0) problem.work.push_back(below(item + 1));
  }
  const std::uint32_t flows = below(10), size_max = below(3) == 0 ? 20 : 3;
  for (std::uint32_t k = 0; k < flows; ++k) {
    sched::PlacedFlow flow;
    flow.producer = below(problem.items);
    flow.bytes = Bytes{below(size_max)};
    std::set<std::uint32_t> consumers;
    const std::uint32_t count = 1 + below(4);
    for (std::uint32_t c = 0; c < count; ++c) consumers.insert(below(problem.items));
    consumers.erase(flow.producer);
    flow.consumers.assign(consumers.begin(), consumers.end());
    problem.flows.push_back(flow);
  }
  return problem;
}

}  // namespace ashlar::props
