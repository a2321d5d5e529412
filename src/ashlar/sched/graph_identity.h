// The identity of a graph: a hash of all that a schedule and its run depend on.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>

#include <ashlar/graph/graph.h>

namespace ashlar::inline v0::sched {

/// Two graphs of the same identity have the same tensors: operations, types, shapes, strides, sources,
/// places of views, flags and numbers; not names. Cost: linear. Never throws.
/// Source: base/mix.h.
std::uint64_t identity_of(const graph::Graph& graph) noexcept;

}  // namespace ashlar::inline v0::sched
