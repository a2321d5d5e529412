// GraphBook: the graphs that were captured, and what a replay of each may overwrite (C8).
//
// A replay runs the graph's kernels again, so it writes what they wrote: also bytes that were freed in
// the capture. It may, because no live tensor held them when the graph was captured. What was live then
// it must leave alone, but for what the graph itself uses or allocated. And however often the bodies of its
// conditionals run, each kernel finds what its allocation held before: no other has the same bytes meanwhile.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ashlar/base/types.h>

#include "spec/gpu/captured_graph.h"
#include "spec/model/body_book.h"
#include "spec/model/owned_blocks.h"
#include "spec/model/page_witness.h"

namespace ashlar::spec {

class GraphBook {
 public:
  struct Graph {
    GraphId id;
    DeviceId device;
    std::uint64_t capture = 0;     ///< StreamBook::graph_of()
    AllocationTag before_tag = 0;  ///< of the allocations made before the capture began
    AllocationTag newest_tag = 0;  ///< of those made before it had ended
    CapturedGraph contents;
    /// live when the capture ended: what a replay wrote of them it leaves there
    std::vector<AllocationTag> outputs;
  };
  /// An allocation that does not hold any more what it should.
  struct Overwritten {
    AllocationTag tag;
    AllocationTag by;
  };

  /// Those of graphs that are being captured.
  BodyBook& bodies() { return bodies_; }
  const BodyBook& bodies() const { return bodies_; }

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

  static bool is_write(const Touch& touch) { return touch.access != Access::kRead; }
  static bool is_read(const Touch& touch) { return touch.access != Access::kWrite; }
  /// May the graph's write overwrite the live block, which shares bytes with it?
  static bool may_overwrite(const Graph& graph, const Touch& write, const OwnedBlock& block) {
    const bool was_live_then = block.tag <= graph.newest_tag;
    const bool is_graphs = block.tag == write.tag || block.capture == graph.capture;
    return !was_live_then || is_graphs;
  }
  /// The first allocation that a kernel reads, or that is left at the end, after another has overwritten it.
  /// `order`: the touches of a launch (run_order). `bytes`: those of each touch.
  static std::optional<Overwritten> find_overwritten(
      const Graph& graph, const std::vector<std::size_t>& order,
      const std::vector<std::vector<ByteRange>>& bytes);

 private:
  std::vector<Graph> graphs_;
  BodyBook bodies_;
};

}  // namespace ashlar::spec
