// Where the kernel takes the memory from that this thread touches first.
//
// Purpose: page-locked memory of one NUMA node. The kernel chooses the node at a page's first touch, by the
// policy of the thread that touches it.
// Thread safety: each object is used by the thread that made it.
// Source: set_mempolicy(2). The node is preferred, not required: a node that is full does not end the process.
#pragma once

#include <array>

#include <ashlar/base/status.h>
#include <ashlar/pinned/numa_node.h>

namespace ashlar::inline v0::pinned {

/// While it lives, the thread prefers memory of that node; kAnyNode changes nothing.
class ThreadNumaPolicy {
 public:
  /// REQUIRES: `node` is kAnyNode, or 0 to kNodesMax - 1.
  explicit ThreadNumaPolicy(int node) noexcept;
  ~ThreadNumaPolicy();
  ThreadNumaPolicy(const ThreadNumaPolicy&) = delete;
  ThreadNumaPolicy& operator=(const ThreadNumaPolicy&) = delete;

  /// kInvalidArgument if there is no such node; kUnsupported if the kernel has no policies or does not permit
  /// this one.
  Status status() const noexcept { return status_; }

 private:
  static constexpr unsigned kWordBits = 8 * sizeof(unsigned long);
  using NodeMask = std::array<unsigned long, kNodesMax / kWordBits>;

  Status status_;
  bool is_changed_ = false;
  int mode_before_ = 0;
  NodeMask mask_before_{};
};

}  // namespace ashlar::inline v0::pinned
