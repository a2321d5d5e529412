// The identity of a graph: a hash of all that a schedule and its run depend on.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>

#include <ashlar/graph/graph.h>

namespace ashlar::inline v0::sched {

/// A 64-bit hash of wiring, operations, types, shapes, strides, view offsets and numbers; names are left out. Graphs that
/// differ have different identities, barring a collision. Cost: linear. Never throws.
/// Source: base/mix.h.
std::uint64_t identity_of(const graph::Graph& graph) noexcept;

}  // namespace ashlar::inline v0::sched
