#include <ashlar/cuda/captured_order.h>

#include <unordered_set>
#include <vector>

#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::cuda {
namespace {

/// Where a stream is in a capture.
struct CapturePosition {
  std::uint64_t capture = 0;  ///< 0: it does not capture
  Graph graph = nullptr;
  const GraphNode* last = nullptr;  ///< what its next node comes behind, `count` of them
  std::size_t count = 0;
};

/// kCaptureInvalidated, and the driver's errors.
Status read_position(PrimaryContext& context, StreamPointer stream, CapturePosition* out) noexcept {
  ASHLAR_REQUIRE(context.driver().has_capture_order(), Code::kUnsupported,
                 "the driver does not tell the order of a capture");
  int status = 0;
  const Status asked = context.call([&] {
    return context.driver().captures.get_info(stream, &status, &out->capture, &out->graph,
                                              &out->last, &out->count);
  });
  if (!asked.is_ok()) return asked;
  const auto capturing = static_cast<device::CaptureStatus>(status);  // the driver's numbers
  if (capturing == device::CaptureStatus::kInvalidated) return status_of(kErrorCaptureInvalidated);
  if (capturing == device::CaptureStatus::kNone) out->capture = 0;
  return Status::ok();
}

/// Reads what comes right before a node.
Status read_before(PrimaryContext& context, GraphNode node, std::vector<GraphNode>* out) {
  const auto ask = [&](GraphNode* into, std::size_t* count) {
    return context.call(
        [&] { return context.driver().captures.node_get_dependencies(node, into, count); });
  };
  std::size_t count = 0;
  const Status counted = ask(nullptr, &count);
  out->resize(counted.is_ok() ? count : 0);
  return out->empty() ? counted : ask(out->data(), &count);
}

/// Ok if `wanted` is one of `ends` or comes before one, kNotReady if not. Throws std::bad_alloc.
Status find_before(PrimaryContext& context, std::vector<GraphNode> ends, GraphNode wanted) {
  std::unordered_set<GraphNode> seen(ends.begin(), ends.end());
  std::vector<GraphNode> before;
  while (!ends.empty()) {
    const GraphNode node = ends.back();
    ends.pop_back();
    if (node == wanted) return Status::ok();
    if (const Status read = read_before(context, node, &before); !read.is_ok()) return read;
    for (const GraphNode each : before) {
      if (seen.insert(each).second) ends.push_back(each);
    }
  }
  return {Code::kNotReady, "a replay may run what comes next before the mark"};
}

}  // namespace

Result<device::CaptureMark> mark_capture(PrimaryContext& context, StreamPointer stream) noexcept {
  CapturePosition at;
  if (const Status read = read_position(context, stream, &at); !read.is_ok()) return read;
  ASHLAR_REQUIRE(at.capture != 0, Code::kInvalidArgument, "the stream does not capture");
  const CaptureFunctions& calls = context.driver().captures;
  GraphNode node = nullptr;
  Status made =
      context.call([&] { return calls.add_empty_node(&node, at.graph, at.last, at.count); });
  if (made.is_ok()) {
    made =
        context.call([&] { return calls.update_dependencies(stream, &node, 1, kSetDependencies); });
  }
  if (!made.is_ok()) return made;
  return device::CaptureMark{at.capture, reinterpret_cast<std::uintptr_t>(node)};
}

Status covers_mark(PrimaryContext& context, StreamPointer stream,
                   device::CaptureMark mark) noexcept {
  CapturePosition at;
  if (const Status read = read_position(context, stream, &at); !read.is_ok()) return read;
  ASHLAR_REQUIRE(at.capture != 0 && at.capture == mark.capture, Code::kNotReady,
                 "the stream is not in that capture");
  Status found{Code::kHostOutOfMemory, "no memory to walk over a captured graph"};
  static_cast<void>(with_host_memory([&] {
    found = find_before(context, std::vector<GraphNode>(at.last, at.last + at.count),
                        reinterpret_cast<GraphNode>(mark.node));
  }));
  return found;
}

}  // namespace ashlar::inline v0::cuda
