// Lifetimes: from which step to which step each tensor's memory is its own, and which tensors are
// computed in place.
//
// Thread safety: pure functions.
//
// Rules (clause G1 rests on them; spec/graph states them again, by definition):
//   (1) A step is a node, or a group of nodes between two barriers.
//   (2) The memory of a root is in use from the step of its node, or of a further use before that, to the
//       last step that reads it or a view of it, both included. A leaf, an input and a parameter are in
//       use from the first step. Until the end: an output, a parameter, and a root of which it or one
//       of its views is read by no node.
//   (3) A use in a loop of what was computed outside of it lasts to the loop's end, because the next
//       run of the body reads it again (executorch#21490).
//   (4) A node takes over the memory of a source's root if Tensor::in_place_sources permits it, the root is
//       neither external nor kept to the end, the node is its only user in its last step, has no further
//       use of it and does not use it again in a loop, both have one buffer type, neither is split, the
//       node is not used before it is computed, and it needs no more bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/graph.h>
#include <ashlar/graph/memory_request.h>

namespace ashlar::inline v0::graph {

/// By position in Graph::nodes(): the step in which the node runs.
struct Steps {
  std::vector<std::uint32_t> of_node;
  std::uint32_t count = 0;
};

/// The steps of a graph in the given parse order (MemoryRequest::order). kInvalidArgument: the order
/// does not have each node once, behind its sources, and in the graph's order with every node that writes a
/// root that both use; or the graph has regions. Nodes of one group that depend on each other run in the
/// order of the list. Cost: linear.
/// Throws std::bad_alloc.
Result<Steps> steps_of(const Graph& graph, std::span<const std::uint32_t> order);

/// The life of a root's memory.
struct RootLife {
  std::uint32_t begin = 0;  ///< in use in the steps [begin, end); [0, 0) for a view or an external
  std::uint32_t end = 0;    ///< tensor
  TensorId takes_over = kNoTensor;  ///< the root whose memory it gets when that ends
};

/// The lives by tensor. `padded` is the number of bytes that each tensor takes; a tensor with
/// kNeverInPlace neither takes over memory nor leaves it. REQUIRES: check_request() is ok.
/// Cost: O(sources x depth of nested regions). Throws std::bad_alloc.
std::vector<RootLife> lifetimes_of(const Graph& graph, const Steps& steps,
                                   std::span<const Bytes> padded, const MemoryRequest& request);
inline constexpr Bytes kNeverInPlace = Bytes::max();

}  // namespace ashlar::inline v0::graph
