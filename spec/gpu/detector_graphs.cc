// The detector's half for graphs: the order of the nodes of one capture. See detector.h.
//
// A capture's nodes run at each replay, in whatever way its edges leave open. So their order is judged once,
// while it is captured, and the verdict is that of every replay.
#include <algorithm>

#include "spec/gpu/detector.h"

namespace ashlar::spec {

void HappensBefore::on_pass(AllocationTag tag, std::uint32_t lane) {
  if (Allocation* const made = find(tag); made != nullptr) made->graph_lane = lane;
}

void HappensBefore::report_unordered(FaultKind kind, Blame by, const Allocation& made,
                                     const GraphUse& use) {
  faults_.report(kind, by, "C6: allocation ", made.tag, " for stream #", made.graph_lane + 1,
                 " has bytes that allocation ", use.owner, " used at node ", use.node.place,
                 " of stream #", use.lane + 1, " in the same graph, which is not ordered before");
}

void HappensBefore::on_captured_touch(const Touch& touch, std::uint32_t lane) {
  Allocation* const made = find(touch.tag);
  if (touch.tag == kNoTag) return;
  if (made == nullptr) {
    faults_.report(FaultKind::kUseAfterFree, Blame::kCaller, "a kernel was captured on allocation ",
                   touch.tag, " after its free");
    return;
  }
  check_bounds(touch, *made);
  for (std::size_t i = 0; i < made->graph_races.size();) {
    const GraphUse use = made->graph_races[i];
    const bool is_here = captures_.of_lane(lane) == use.node.capture;
    const bool is_ordered = captures_.before_next_of(use.node, lane);
    if (is_here && !is_ordered)
      report_unordered(FaultKind::kUnorderedUse, Blame::kCaller, *made, use);
    if (!captures_.is_open(use.node.capture) || (is_here && !is_ordered)) {
      made->graph_races.remove(i);
    } else {
      ++i;
    }
  }
  const GraphUse use{captures_.next_node(lane), lane, true, touch.tag};
  for (GraphUse& each : made->graph_uses) {
    if (each.node.capture != use.node.capture || each.node.member != use.node.member) continue;
    each = use;
    return;
  }
  made->graph_uses.push_back(use);
}

// As on_free() of work that runs.
void HappensBefore::free_captured(const Allocation& made) {
  if (captures_.none_open()) graph_priors_.clear();
  for (GraphUse use : made.graph_uses) {
    if (!captures_.is_open(use.node.capture)) continue;
    const bool announced =
        std::find(made.announced.begin(), made.announced.end(), use.lane) != made.announced.end();
    use.covered = use.lane == made.graph_lane || announced ||
                  captures_.before_next_of(use.node, made.graph_lane);
    graph_priors_.push_back({made.pieces, use});
  }
}

// As check_priors() of work that runs. Bytes that go to a stream outside the capture are the business of
// C8: no node of the graph touches them for their new owner.
void HappensBefore::check_graph_priors(Allocation& made) {
  std::erase_if(graph_priors_, [this](const GraphPrior& each) {
    return !captures_.is_open(each.use.node.capture);
  });
  for (const GraphPrior& prior : graph_priors_) {
    const bool shares =
        std::any_of(prior.pieces.begin(), prior.pieces.end(),
                    [&made](const MemoryPiece& piece) { return share_bytes(made.pieces, piece); });
    if (!shares) continue;
    const bool is_here = captures_.of_lane(made.graph_lane) == prior.use.node.capture;
    if (!is_here || captures_.before_next_of(prior.use.node, made.graph_lane)) {
      made.graph_races.push_back(prior.use);
    } else if (prior.use.covered) {
      report_unordered(FaultKind::kEarlyReuse, Blame::kAllocator, made, prior.use);
    } else {
      report_unordered(FaultKind::kUnannouncedUse, Blame::kCaller, made, prior.use);
    }
  }
}

}  // namespace ashlar::spec
