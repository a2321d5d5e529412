// CachePeer: a test's access to the private state of a caching allocator, to read it.
//
// Thread safety: none; no other call may run.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/cache/caching_allocator_impl.h>

namespace ashlar::inline v0::cache {

struct CachePeer {
  static DeviceCache& device(CachingAllocator& allocator, std::uint32_t device) {
    return *allocator.impl_->devices[device];
  }
  static const SharedState& shared(CachingAllocator& allocator) { return allocator.impl_->shared; }
  static unsigned pooled_events(const EventPool& events) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return events.count_;
  }
  /// The first queue; QueueLinks::next leads to the others.
  static const UseNode* first_queue(PendingUses& uses) { return uses.queues().first_; }
  /// The spare nodes' list, by UseNode::next.
  static const UseNode* spare(const UseNodes& nodes) { return nodes.spare_; }
  /// Hits until the next poll, and the delay after one that finds nothing.
  static std::uint64_t poll_due_in(const PendingUses& uses) {
    const std::uint64_t due = uses.poll_again_.due_;
    return due > uses.hits_ ? due - uses.hits_ : 0;
  }
  static std::uint64_t poll_delay(const PendingUses& uses) { return uses.poll_again_.delay_; }
};

}  // namespace ashlar::inline v0::cache
