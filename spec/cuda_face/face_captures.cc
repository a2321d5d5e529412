// What a stream has captured so far. The machine knows marks; here each is a node, whose dependencies are the earlier
// marks of the capture that its stream had behind it.
#include "spec/cuda_face/face_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <ashlar/base/mutex.h>

namespace ashlar::spec::cuda_face {
namespace {

struct CapturedNodes {
  Mutex lock;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<GraphNode>> before
      ASHLAR_GUARDED_BY(lock);
  std::set<GraphNode> placed
      ASHLAR_GUARDED_BY(lock);  ///< that their streams' later nodes come behind
};
CapturedNodes captured_nodes;

GraphNode node_of(device::CaptureMark mark) {
  return reinterpret_cast<GraphNode>(mark.capture << 32 | mark.node);
}

bool is_placed(device::CaptureMark mark) {
  const MutexGuard guard(captured_nodes.lock);
  return captured_nodes.placed.contains(node_of(mark));
}

CallResult stream_get_capture_info(StreamPointer stream, int* status, std::uint64_t* id,
                                   Graph* graph, const GraphNode** dependencies,
                                   std::size_t* count) {
  return on_current([&](device::Device& on) {
    const Result<device::CaptureStatus> asked = on.capture_status(handle_of(stream));
    if (!asked.is_ok()) return result_of(asked.status());
    *status = static_cast<int>(asked.value());
    *id = ~std::uint64_t{0};  // says nothing outside a capture
    if (asked.value() != device::CaptureStatus::kActive) return CallResult{kSuccess};
    const Result<device::CaptureMark> now = on.capture_mark(handle_of(stream));
    if (!now.is_ok()) return result_of(now.status());
    std::vector<GraphNode> before;
    for (std::uint64_t node = 1; node < now.value().node; ++node) {
      const device::CaptureMark earlier{now.value().capture, node};
      if (is_placed(earlier) && on.capture_covers(handle_of(stream), earlier).is_ok())
        before.push_back(node_of(earlier));
    }
    *id = now.value().capture;
    *graph = reinterpret_cast<Graph>(now.value().capture);
    thread_local GraphNode last = nullptr;
    last = node_of(now.value());
    *dependencies = &last;
    *count = 1;
    const MutexGuard guard(captured_nodes.lock);
    captured_nodes.before[{now.value().capture, now.value().node}] = std::move(before);
    return CallResult{kSuccess};
  });
}

/// The node of a mark is empty, and stands where the next one would.
CallResult graph_add_empty_node(GraphNode* node, Graph graph, const GraphNode* dependencies,
                                std::size_t count) {
  if (const CallResult planned = take_planned(); planned != kSuccess) return planned;
  if (graph == nullptr || count != 1) return kErrorInvalidValue;
  *node = dependencies[0];
  return kSuccess;
}

CallResult stream_update_capture_dependencies(StreamPointer stream, GraphNode* dependencies,
                                              std::size_t count, unsigned flags) {
  static_cast<void>(stream);
  if (const CallResult planned = take_planned(); planned != kSuccess) return planned;
  if (dependencies == nullptr || count != 1 || flags != kSetDependencies) return kErrorInvalidValue;
  const MutexGuard guard(captured_nodes.lock);
  captured_nodes.placed.insert(dependencies[0]);
  return kSuccess;
}

CallResult graph_node_get_dependencies(GraphNode node, GraphNode* dependencies,
                                       std::size_t* count) {
  const auto number = reinterpret_cast<std::uintptr_t>(node);
  const MutexGuard guard(captured_nodes.lock);
  const auto at = captured_nodes.before.find({number >> 32, number & 0xffffffff});
  if (at == captured_nodes.before.end()) return kErrorInvalidValue;
  if (dependencies != nullptr) std::copy_n(at->second.begin(), *count, dependencies);
  *count = at->second.size();
  return kSuccess;
}

}  // namespace

void forget_captures() {
  const MutexGuard guard(captured_nodes.lock);
  captured_nodes.before.clear();
  captured_nodes.placed.clear();
}

std::span<const FaceFunction> capture_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuStreamGetCaptureInfo", 11030, pointer_of(stream_get_capture_info)},
      {"cuStreamUpdateCaptureDependencies", 11030, pointer_of(stream_update_capture_dependencies)},
      {"cuGraphAddEmptyNode", 10000, pointer_of(graph_add_empty_node)},
      {"cuGraphNodeGetDependencies", 10000, pointer_of(graph_node_get_dependencies)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
