// The plan of a graph's memory: for each tensor a buffer and an offset.
//
// Thread safety: plain values; make_graph_plan() is pure.
//
// Invariants:
//   (1) G1  two tensors whose lives share a step do not overlap, unless one is computed in place over
//           the other or is a view of it (lifetimes.h).
//   (2) G2  each tensor ends within its buffer's planned bytes, and begins at a multiple of the
//           buffer type's alignment.
//   (3) G3  the plan holds for a graph of the same wiring and request in which no tensor needs more
//           than its reserved bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/memory_request.h>

namespace ashlar::inline v0::graph {

/// Where a root, or a part of one, is.
struct PlannedPlace {
  std::uint16_t type = 0;   ///< the buffer type
  std::uint32_t chunk = 0;  ///< the buffer among those of the type; kNowhereChunk: it has no memory
  Bytes offset;             ///< from the buffer's first byte
  Bytes reserved;           ///< the bytes that are its own there
};
inline constexpr std::uint32_t kNowhereChunk = 0xffffffffu;

/// A graph's plan.
struct GraphPlan {
  std::uint64_t wiring = 0;  ///< Graph::wiring()
  std::uint32_t tensors = 0;
  MemoryRequest request;
  std::vector<PlannedPlace> places;             ///< by tensor; only roots have memory
  std::vector<PlannedPlace> parts;              ///< by part of the request
  std::vector<std::vector<Bytes>> chunk_bytes;  ///< by buffer type: bytes of each buffer
  Bytes lower_bound;                 ///< no plan of these lives needs fewer bytes, over all types
  std::uint32_t in_place_nodes = 0;  ///< nodes that are computed in place
};

/// The bytes that a tensor needs in a buffer type.
inline Bytes bytes_in(const BufferType& type, const Tensor& tensor) {
  return type.tensor_bytes == nullptr ? tensor.extent : type.tensor_bytes(tensor);
}

/// kInvalidArgument: an open region, no buffer type, an index that does not exist, parts out of order or of a view or
/// an external tensor, a view of a split tensor. Cost: O(tensors + views x log parts).
Status check_request(const Graph& graph, const MemoryRequest& request, std::size_t types) noexcept;

/// Plans a graph. `work` is for the packer (plan::PlanOptions::work). `at_least` is a plan of the same wiring and
/// request: each tensor gets the bytes that it has there, if it needs fewer. Errors as check_request() and
/// steps_of(), and kSizeOverflow if all sizes together exceed plan::kPlanBytesMax.
/// Cost: O(n log n) and the packer's; O(n^2) for a type whose tensors exceed its buffer_max. Throws std::bad_alloc.
Result<GraphPlan> make_graph_plan(const Graph& graph, const MemoryRequest& request,
                                  std::span<const BufferType> types, std::uint64_t work,
                                  const GraphPlan* at_least = nullptr);

}  // namespace ashlar::inline v0::graph
