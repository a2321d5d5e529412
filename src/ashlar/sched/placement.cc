#include <ashlar/sched/placement.h>

#include <algorithm>
#include <span>
#include <utility>

#include <ashlar/sched/min_cut.h>

namespace ashlar::inline v0::sched {
namespace {

/// Rounds of expansion moves, each over all backends.
constexpr int kRoundsMax = 16;

/// The only backend on which the item may be; problem.backends: there are several.
std::uint32_t only_backend(const PlacementProblem& problem, std::uint32_t item) {
  std::uint32_t only = problem.backends;
  for (std::uint32_t b = 0; b < problem.backends; ++b) {
    if (!problem.is_allowed(item, b)) continue;
    if (only != problem.backends) return problem.backends;
    only = b;
  }
  return only;
}

/// Whether everything about the flow is decided, and no copy is needed: a weight beside its node.
bool is_never_copied(const PlacementProblem& problem, const PlacedFlow& flow) {
  const std::uint32_t from = only_backend(problem, flow.producer);
  if (from == problem.backends) return false;
  return std::all_of(flow.consumers.begin(), flow.consumers.end(), [&](std::uint32_t consumer) {
    const std::uint32_t at = only_backend(problem, consumer);
    return at != problem.backends && problem.can_read(at, from);
  });
}

/// The three costs as one number each, so that no sum of a lower one reaches a higher one.
struct Weights {
  MinCut::Capacity byte = 1, copy = 0, change = 0;

  Weights(const PlacementProblem& problem, std::span<const PlacedFlow* const> flows) {
    double bytes = 1;
    double copies = 1;
    for (const PlacedFlow* const flow : flows) {
      bytes += static_cast<double>(flow->bytes.count()) * problem.backends;
      copies += problem.backends;
    }
    const double changes = static_cast<double>(problem.work.size()) + 1;
    // Without room for all three the number of bytes alone counts.
    if (bytes * copies * changes > static_cast<double>(MinCut::kUncuttable) / 4) return;
    change = 1;
    copy = static_cast<MinCut::Capacity>(changes);
    byte = static_cast<MinCut::Capacity>(changes * copies);
  }
  MinCut::Capacity of(Bytes bytes) const {
    return static_cast<MinCut::Capacity>(bytes.count()) * byte + copy;
  }
};

/// One expansion move: every item may stay where it is (the source's side) or go to one backend (the
/// sink's side).
class Expansion {
 public:
  Expansion(const PlacementProblem& problem, std::span<const PlacedFlow* const> flows,
            const Weights& weights, const std::vector<std::uint32_t>& before, std::uint32_t target)
      : problem_(problem), flows_(flows), weights_(weights), before_(before), target_(target) {}

  std::vector<std::uint32_t> move() {
    for (std::uint32_t item = 0; item < problem_.items; ++item) {
      const MinCut::Vertex vertex = cut_.add_vertex();
      if (is_there(item)) {
        cut_.add_edge(vertex, MinCut::kSink, MinCut::kUncuttable);
      } else if (!problem_.is_allowed(item, target_)) {
        cut_.add_edge(MinCut::kSource, vertex, MinCut::kUncuttable);
      }
    }
    for (const PlacedFlow* const flow : flows_) add_flow(*flow);
    add_changes();
    cut_.solve();
    std::vector<std::uint32_t> after = before_;
    for (std::uint32_t item = 0; item < problem_.items; ++item) {
      const bool stays = cut_.is_on_source_side(vertex_of(item));
      if (!stays && problem_.is_allowed(item, target_)) after[item] = target_;
    }
    return after;
  }

 private:
  static MinCut::Vertex vertex_of(std::uint32_t item) { return item + 2; }
  bool is_there(std::uint32_t item) const { return before_[item] == target_; }

  /// Copies of one value to one memory: what makes them needed.
  void add_flow(const PlacedFlow& flow) {
    const MinCut::Capacity cost = weights_.of(flow.bytes);
    const std::uint32_t from = before_[flow.producer];
    const MinCut::Vertex producer = vertex_of(flow.producer);
    // To the memories in which consumers are now, as long as one of them stays.
    memories_.clear();
    for (const std::uint32_t consumer : flow.consumers) {
      const std::uint32_t memory = problem_.memory[before_[consumer]];
      if (memory == problem_.memory[target_]) continue;
      if (std::find(memories_.begin(), memories_.end(), memory) == memories_.end())
        memories_.push_back(memory);
    }
    for (const std::uint32_t memory : memories_) add_copy_from(flow, memory, from, producer, cost);
    // To the target's memory, if a consumer is or goes there.
    if (problem_.can_read(target_, from)) return;
    const MinCut::Vertex any = cut_.add_vertex();
    cut_.add_edge(producer, any, cost);
    for (const std::uint32_t consumer : flow.consumers) {
      // One that shares the target's memory and cannot read the value needs the copy where it is, too.
      const bool is_needed_here = problem_.memory[before_[consumer]] == problem_.memory[target_] &&
                                  !problem_.can_read(before_[consumer], from);
      cut_.add_edge(any, is_needed_here ? MinCut::kSink : vertex_of(consumer), MinCut::kUncuttable);
    }
  }

  /// A copy to `memory`, paid if a consumer that is there now stays and cannot read the value: where it
  /// is made now, and where it would be made.
  void add_copy_from(const PlacedFlow& flow, std::uint32_t memory, std::uint32_t from,
                     MinCut::Vertex producer, MinCut::Capacity cost) {
    const MinCut::Vertex always = cut_.add_vertex(), if_moved = cut_.add_vertex();
    cut_.add_edge(always, MinCut::kSink, cost);
    cut_.add_edge(if_moved, producer, cost);
    for (const std::uint32_t consumer : flow.consumers) {
      const std::uint32_t at = before_[consumer];
      if (problem_.memory[at] != memory) continue;
      const bool is_needed_now = !problem_.can_read(at, from);
      const bool is_needed_then = !problem_.can_read(at, target_);
      if (is_needed_now) {
        cut_.add_edge(vertex_of(consumer), always, MinCut::kUncuttable);
      } else if (is_needed_then) {
        cut_.add_edge(vertex_of(consumer), if_moved, MinCut::kUncuttable);
      }
    }
  }

  void add_changes() {
    for (std::size_t k = 1; k < problem_.work.size(); ++k) {
      const std::uint32_t a = problem_.work[k - 1], b = problem_.work[k];
      if (a != b) add_change(a, b);
    }
  }

  void add_change(std::uint32_t a, std::uint32_t b) {
    const MinCut::Vertex first = vertex_of(a), second = vertex_of(b);
    if (before_[a] == before_[b]) {
      cut_.add_edge(first, second, weights_.change);
      cut_.add_edge(second, first, weights_.change);
      return;
    }
    const MinCut::Vertex any = cut_.add_vertex();  // paid unless both go
    cut_.add_edge(any, MinCut::kSink, weights_.change);
    cut_.add_edge(first, any, MinCut::kUncuttable);
    cut_.add_edge(second, any, MinCut::kUncuttable);
  }

  const PlacementProblem& problem_;
  const std::span<const PlacedFlow* const> flows_;
  const Weights& weights_;
  const std::vector<std::uint32_t>& before_;
  const std::uint32_t target_;
  MinCut cut_;
  std::vector<std::uint32_t> memories_;
};

}  // namespace

PlacementCost cost_of(const PlacementProblem& problem,
                      const std::vector<std::uint32_t>& backend_of) {
  PlacementCost cost;
  std::vector<std::uint32_t> memories;
  for (const PlacedFlow& flow : problem.flows) {
    memories.clear();
    for (const std::uint32_t consumer : flow.consumers) {
      const std::uint32_t at = backend_of[consumer];
      if (problem.can_read(at, backend_of[flow.producer])) continue;
      const std::uint32_t memory = problem.memory[at];
      if (std::find(memories.begin(), memories.end(), memory) != memories.end()) continue;
      memories.push_back(memory);
      cost.bytes += flow.bytes;
      cost.copies += 1;
    }
  }
  for (std::size_t k = 1; k < problem.work.size(); ++k)
    cost.changes += backend_of[problem.work[k - 1]] == backend_of[problem.work[k]] ? 0 : 1;
  return cost;
}

std::vector<std::uint32_t> place(const PlacementProblem& problem) {
  std::vector<std::uint32_t> best(problem.items, 0);
  for (std::uint32_t item = 0; item < problem.items; ++item) {
    while (!problem.is_allowed(item, best[item])) best[item] += 1;
  }
  std::vector<const PlacedFlow*> flows;  // that may be copied
  for (const PlacedFlow& flow : problem.flows) {
    if (!is_never_copied(problem, flow)) flows.push_back(&flow);
  }
  const Weights weights(problem, flows);
  PlacementCost least = cost_of(problem, best);
  for (int round = 0; round < kRoundsMax; ++round) {
    bool is_better = false;
    for (std::uint32_t target = 0; target < problem.backends; ++target) {
      std::vector<std::uint32_t> next = Expansion(problem, flows, weights, best, target).move();
      const PlacementCost cost = cost_of(problem, next);
      if (!(cost < least)) continue;
      least = cost;
      best = std::move(next);
      is_better = true;
    }
    if (!is_better) break;
  }
  return best;
}

}  // namespace ashlar::inline v0::sched
