// What each operation computes, in doubles, element by element, as the table of operations says it.
//
// Purpose: the reference for kernels. It shares no code with them.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <ashlar/graph/graph.h>

namespace ashlar::props {

using Place = std::array<std::uint64_t, graph::kDimensions>;
/// An element of a node's source, by the source's place.
using Fetch = std::function<double(std::size_t source, const Place& at)>;

/// The elements of a node's result, in the order of the dimensions. Of OPT_STEP_ADAMW the parameter alone.
std::vector<double> reference_values(const graph::Graph& graph, graph::TensorId node,
                                     const Fetch& fetch);

/// The n-th place of a shape, in the order of the dimensions.
Place place_of(const graph::Shape& shape, std::uint64_t n);

}  // namespace ashlar::props
