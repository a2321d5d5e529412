// GraphBook: the graphs that were captured, and which bytes a replay of each may overwrite (C8).
//
// A replay runs the graph's kernels again, so it writes what they wrote: also bytes that were freed in
// the capture. It may, because no live tensor held them when the graph was captured. What was live then
// it must leave alone, but for what the graph itself uses or allocated.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ashlar/base/types.h>

#include "spec/gpu/sim_types.h"
#include "spec/model/owned_blocks.h"

namespace ashlar::spec {

class GraphBook {
 public:
  struct Graph {
    GraphId id;
    DeviceId device;
    std::uint64_t capture = 0;     ///< StreamBook::capture_of()
    AllocationTag newest_tag = 0;  ///< of the allocations made before the capture had ended
    std::vector<Touch> writes;
  };

  void add(Graph graph) { graphs_.push_back(std::move(graph)); }
  void drop(GraphId id) {
    std::erase_if(graphs_, [id](const Graph& each) { return each.id == id; });
  }
  /// nullptr if there is none.
  const Graph* find(GraphId id) const {
    const auto at = std::find_if(graphs_.begin(), graphs_.end(),
                                 [id](const Graph& each) { return each.id == id; });
    return at == graphs_.end() ? nullptr : &*at;
  }

  /// May the graph's write overwrite the live block, which shares bytes with it?
  static bool may_overwrite(const Graph& graph, const Touch& write, const OwnedBlock& block) {
    const bool was_live_then = block.tag <= graph.newest_tag;
    const bool is_graphs = block.tag == write.tag || block.capture == graph.capture;
    return !was_live_then || is_graphs;
  }

 private:
  std::vector<Graph> graphs_;
};

}  // namespace ashlar::spec
