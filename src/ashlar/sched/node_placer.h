// Turns a graph into a placement problem, and its answer into a backend for each tensor.
//
// Thread safety: none.
//
// What has to be at one place is one item: a root, the nodes that write views of it, and the roots that one node
// writes together. A pure view is no item: it is where its root is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ashlar/sched/placement.h>
#include <ashlar/sched/schedule.h>

namespace ashlar::inline v0::sched {

/// A value that is copied as one: a tensor between two writes of its root.
struct FlowKey {
  graph::TensorId tensor;
  std::uint32_t writes = 0;  ///< how many nodes have written its root before
  friend constexpr bool operator==(const FlowKey&, const FlowKey&) = default;
  friend constexpr auto operator<=>(const FlowKey&, const FlowKey&) = default;
};

/// The tensor that is copied for a reader of `source`: itself, or its root if it covers that, or if its
/// elements overlap, so that no copy could have its layout.
graph::TensorId copied_for(const graph::Graph& graph, graph::TensorId source);

/// Counts, node by node, how often each root has been written.
class WriteCounts {
 public:
  explicit WriteCounts(const graph::Graph& graph)
      : graph_(graph), writes_(graph.tensors().size()) {}
  FlowKey key_of(graph::TensorId source) const {
    const graph::TensorId copied = copied_for(graph_, source);
    return {copied, writes_[graph_[copied].root.value()]};
  }
  /// The node has run.
  void pass(graph::TensorId node) {
    graph::for_each_written_root(graph_, node,
                                 [this](graph::TensorId root) { writes_[root.value()] += 1; });
  }

 private:
  const graph::Graph& graph_;
  std::vector<std::uint32_t> writes_;  // by root
};

/// A backend and a cause by tensor.
struct NodePlaces {
  std::vector<std::uint32_t> backend_of;
  std::vector<PlacedBy> placed_by;
};

/// Errors as make_schedule(). Throws std::bad_alloc.
Result<NodePlaces> place_nodes(const graph::Graph& graph, std::span<Backend* const> backends,
                               const ScheduleRequest& request, std::string* error);

}  // namespace ashlar::inline v0::sched
