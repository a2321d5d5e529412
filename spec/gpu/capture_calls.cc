#include "spec/gpu/capture_calls.h"

#include <utility>

namespace ashlar::spec {

Status CaptureCalls::begin(const Stream& stream, device::CaptureMode mode) {
  const std::uint32_t device = index_of(stream.device);
  const Status alive = state_.gate.check_alive(device);
  if (!alive.is_ok()) return alive;
  const Result<std::uint32_t> lane = streams_.resolve(stream);
  if (!lane.is_ok()) return lane.status();
  ASHLAR_REQUIRE(lane.value() != streams_.legacy_lane(device), Code::kCaptureUnsafe,
                 "the legacy default stream cannot capture (cudaErrorStreamCaptureUnsupported)");
  return state_.captures.begin(lane.value(), state_.threads.current(), mode);
}

Result<GraphId> CaptureCalls::end(const Stream& stream) {
  const Status alive = state_.gate.check_alive(index_of(stream.device));
  const Result<std::uint32_t> lane = streams_.resolve(stream);
  if (!alive.is_ok()) {
    // The capture can never be ended in a graph, and must not forbid calls on the other devices.
    if (lane.is_ok()) state_.captures.abandon(lane.value());
    return alive;
  }
  if (!lane.is_ok()) return lane.status();
  Graph graph;
  const Status ended = state_.captures.end(lane.value(), state_.threads.current(), graph.contents);
  if (!ended.is_ok()) return ended;
  graph.alive = true;
  graphs_.push_back(std::move(graph));
  return GraphId{static_cast<std::uint32_t>(graphs_.size())};
}

Status CaptureCalls::begin_body(const Stream& stream, const Stream& parent) {
  const Status alive = state_.gate.check_alive(index_of(stream.device));
  if (!alive.is_ok()) return alive;
  const Result<std::uint32_t> of_parent = streams_.resolve(parent);
  if (!of_parent.is_ok()) return of_parent.status();
  const Result<std::uint32_t> lane = streams_.resolve(stream);
  return lane.is_ok() ? state_.captures.begin_body(lane.value(), of_parent.value()) : lane.status();
}

Status CaptureCalls::end_body(const Stream& stream) {
  const Status alive = state_.gate.check_alive(index_of(stream.device));
  const Result<std::uint32_t> lane = streams_.resolve(stream);
  // As of end(): the whole capture is over.
  if (!alive.is_ok() && lane.is_ok()) state_.captures.abandon(lane.value());
  if (!alive.is_ok()) return alive;
  return lane.is_ok() ? state_.captures.end_body(lane.value()) : lane.status();
}

Result<device::CaptureStatus> CaptureCalls::status(std::uint32_t device, StreamHandle stream) {
  const Result<std::uint32_t> lane = streams_.resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  if (lane.value() == streams_.legacy_lane(device)) {
    for (const std::uint32_t blocking : streams_.blocking_lanes(device)) {
      ASHLAR_REQUIRE(state_.captures.of_lane(blocking) == 0, Code::kCaptureUnsafe,
                     "a blocking stream captures (cudaErrorStreamCaptureImplicit)");
    }
  }
  return state_.captures.status(lane.value());
}

Result<device::CaptureMark> CaptureCalls::mark(std::uint32_t device, StreamHandle stream) {
  const Result<std::uint32_t> lane = streams_.resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  return state_.captures.mark(lane.value());
}

Status CaptureCalls::covers(std::uint32_t device, StreamHandle stream, device::CaptureMark mark) {
  const Result<std::uint32_t> lane = streams_.resolve(device, stream);
  if (!lane.is_ok()) return lane.status();
  return state_.captures.covers(lane.value(), mark);
}

const CaptureCalls::Graph* CaptureCalls::find(GraphId graph) const {
  const std::uint32_t number = graph.value();
  if (number == 0 || number > graphs_.size() || !graphs_[number - 1].alive) return nullptr;
  return &graphs_[number - 1];
}

Status CaptureCalls::launch(const Stream& stream, GraphId graph, BodyRuns runs) {
  const Graph* found = find(graph);
  ASHLAR_REQUIRE(found != nullptr, Code::kInvalidHandle, "no such graph");
  // Without tags: by now the allocations may be freed.
  launched_.clear();
  for (const std::size_t each : run_order(found->contents, runs)) {
    launched_.push_back(found->contents.touches[each]);
    launched_.back().tag = kNoTag;
  }
  return work_.enqueue(stream, Entry{EntryKind::kKernel}, launched_);
}

CapturedGraph CaptureCalls::contents(GraphId graph) const {
  const Graph* const found = find(graph);
  return found == nullptr ? CapturedGraph{} : found->contents;
}

Status CaptureCalls::destroy(GraphId graph) {
  ASHLAR_REQUIRE(find(graph) != nullptr, Code::kInvalidHandle, "no such graph");
  graphs_[graph.value() - 1] = Graph{};
  return Status::ok();
}

}  // namespace ashlar::spec
