// How NUMA nodes of the host are named.
//
// Thread safety: constants.
#pragma once

namespace ashlar::inline v0::pinned {

/// No node is preferred.
inline constexpr int kAnyNode = -1;
/// Nodes are numbered below this: what the kernel supports on any machine.
inline constexpr int kNodesMax = 1024;

}  // namespace ashlar::inline v0::pinned
