// Use nodes that are spare, and the slabs that all nodes of a heap are parts of.
//
// Purpose: a free takes a node without allocating one. A node keeps its event, so spare nodes are
// events of the driver's too: a trim gives the nodes beyond need back, with their events (C29).
// Thread safety: none; guarded by the heap's lock, but for what a shrink does (shrink_nodes).
//
// Invariants:
//   (1) a node of a slab is spare, or taken: of a block, or in the hands of the one shrink that is
//       under way.
#pragma once

#include <cstdint>
#include <utility>

#include <ashlar/cache/use_node.h>

namespace ashlar::inline v0::cache {

/// Nodes that are made, and freed, together.
struct NodeSlab {
  static constexpr unsigned kNodes = 32;
  NodeSlab* before = nullptr;  ///< in the list of all slabs of the heap
  NodeSlab* after = nullptr;
  unsigned unused = 0;  ///< nodes in the hands of the shrink, without an event
  UseNode nodes[kNodes];
};

class UseNodes {
 public:
  UseNodes() = default;
  ~UseNodes();
  UseNodes(const UseNodes&) = delete;
  UseNodes& operator=(const UseNodes&) = delete;

  /// Makes sure that at least `n` nodes are spare. False if the host has no memory.
  bool reserve(std::uint64_t n) noexcept { return spare_count_ >= n || grow(); }
  std::uint64_t spare_count() const noexcept { return spare_count_; }
  std::uint64_t taken_count() const noexcept { return made_count_ - spare_count_; }
  /// REQUIRES: a spare node.
  UseNode* take() noexcept;
  /// Nobody waits for the node's event any more.
  void give(UseNode* node) noexcept;
  /// A shrink begins. False if another one is under way: two would take parts of the same slabs.
  bool begin_shrink() noexcept { return !std::exchange(is_shrinking_, true); }
  void end_shrink() noexcept { is_shrinking_ = false; }
  /// Takes the slab, none of whose nodes is spare, out of the list.
  void remove(NodeSlab* slab) noexcept;
  /// At the allocator's end: destroys every event in a node's slot.
  void destroy_events() noexcept;
  /// nullptr, or what is broken.
  const char* validate() const noexcept;

 private:
  friend struct CachePeer;
  [[gnu::cold]] bool grow() noexcept;

  UseNode* spare_ = nullptr;
  std::uint64_t spare_count_ = 0;
  std::uint64_t made_count_ = 0;
  bool is_shrinking_ = false;
  NodeSlab* slabs_ = nullptr;
};

}  // namespace ashlar::inline v0::cache
