// The rules of shapes: which sources an operation takes for a result of a given shape.
//
// Purpose: a backend that runs a node without these rules would read outside its sources. They are the
// same for every backend; which types a backend has kernels for is its own affair.
// Thread safety: pure function.
#pragma once

#include <ashlar/base/export.h>
#include <ashlar/graph/graph.h>

namespace ashlar::inline v0::graph {

/// Why the node's shape, sources and numbers do not go together; null if they do. Static text. The
/// rules are those of README.md's table of operations. REQUIRES: `id` is of the graph.
/// Cost: O(sources). Never throws.
ASHLAR_API const char* shape_fault(const Graph& graph, TensorId id) noexcept;

}  // namespace ashlar::inline v0::graph
