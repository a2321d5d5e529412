// The order in which a schedule runs the nodes: the graph's, or one with fewer splits.
//
// Purpose: a node that needs little, such as the cast of an attention mask, may stand in the graph between
// nodes of another backend, and would divide them. It can run earlier.
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/graph/graph.h>

namespace ashlar::inline v0::sched {

/// Positions in Graph::nodes(), each once: behind its sources, and in the graph's order with every node
/// that writes what it reads, or reads or writes what it writes. The graph's own order, unless the
/// nodes of one backend can be brought together so that there are fewer splits. `backend_of` is by
/// tensor. Cost: O(n log n). Throws std::bad_alloc.
/// Source: list scheduling; the backend is kept as long as a node of it is ready.
std::vector<std::uint32_t> order_nodes(const graph::Graph& graph,
                                       std::span<const std::uint32_t> backend_of);

}  // namespace ashlar::inline v0::sched
