// The judge of a graph's memory: clauses G1 and G2 by definition.
//
// Purpose: decides from addresses alone whether running the graph in them can lose a value. It restates
// when a tensor's values are needed and which operations can be computed in place, and shares no code
// with src/ashlar/graph but plain types.
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ashlar/graph/graph.h>
#include <ashlar/graph/memory_request.h>

#include "spec/graph/imaginary_buffers.h"

namespace ashlar::spec {

/// The first violation of G1 or G2, one line that names both tensors; std::nullopt if there is none.
/// Addresses of external tensors are not judged, and neither are parts. Cost: O(sources + pairs of
/// roots that live at one time).
std::optional<std::string> judge_memory(const graph::Graph& graph,
                                        const graph::MemoryRequest& request,
                                        std::span<const graph::BufferType> types,
                                        std::span<const JudgedBuffer> buffers,
                                        std::span<const Address> addresses);

/// The steps [first, second) in which each root's memory is its own, by tensor; {0, 0} for a tensor
/// without memory. Cost: O(sources).
std::vector<std::pair<std::uint32_t, std::uint32_t>> lives_by_definition(
    const graph::Graph& graph, const graph::MemoryRequest& request);

}  // namespace ashlar::spec
