// CaptureCalls: captures by stream handle, and the graphs they end in.
//
// Thread safety: none (the machine's lock).
#pragma once

#include <cstdint>
#include <vector>

#include "spec/gpu/enqueuer.h"

namespace ashlar::spec {

class CaptureCalls {
 public:
  /// All arguments must outlive this.
  CaptureCalls(MachineState& state, SimStreams& streams, Enqueuer& work)
      : state_(state), streams_(streams), work_(work) {}

  Status begin(const Stream& stream, device::CaptureMode mode);
  Result<GraphId> end(const Stream& stream);
  Result<device::CaptureStatus> status(std::uint32_t device, StreamHandle stream);
  Result<device::CaptureMark> mark(std::uint32_t device, StreamHandle stream);
  Status covers(std::uint32_t device, StreamHandle stream, device::CaptureMark mark);
  Status begin_body(const Stream& stream, const Stream& parent);
  Status end_body(const Stream& stream);
  Status launch(const Stream& stream, GraphId graph, BodyRuns runs);
  /// What the graph's kernels touch, with the tags that they named; none where there is no such graph.
  CapturedGraph contents(GraphId graph) const;
  Status destroy(GraphId graph);

 private:
  struct Graph {
    CapturedGraph contents;
    bool alive = false;
  };

  /// nullptr if there is none.
  const Graph* find(GraphId graph) const;

  MachineState& state_;
  SimStreams& streams_;
  Enqueuer& work_;
  std::vector<Graph> graphs_;    // by number minus 1
  std::vector<Touch> launched_;  // scratch
};

}  // namespace ashlar::spec
