// CachePeer: a test's access to the private state of a caching allocator, to read and to damage it.
//
// Thread safety: none; no other call may run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ashlar/cache/caching_allocator_impl.h>
#include <ashlar/cache/snapshot_copy.h>

namespace ashlar::inline v0::cache {

struct CachePeer {
  static DeviceCache& device(CachingAllocator& allocator, std::uint32_t device) {
    return *allocator.impl_->devices[device];
  }
  static SharedState& shared(CachingAllocator& allocator) { return allocator.impl_->shared; }
  // Of a heap, without its lock.
  static PendingUses& uses(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { return heap.uses; }
  static EpochMarks& marks(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { return heap.marks; }
  static EpochClock& clock(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { return heap.clock; }
  static MissState& misses(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return heap.misses;
  }
  /// Everything that decides when it may steal.
  static std::array<std::uint64_t, 3> words(const StealTurns& turns) {
    return {turns.steals_, turns.repeated_growths_, turns.demand_max_.count()};
  }
  static std::uint64_t& uses_of_first(MemoryPools& pools) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return pools.pools_.front()->uses;
  }
  /// While true, as if another thread released, checkpointed or restored the first pool.
  static bool& is_first_closed(MemoryPools& pools) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return pools.pools_.front()->is_closed;
  }
  /// While it lives the first route stands twice.
  struct SecondRoute {
    explicit SecondRoute(MemoryPools& damaged) ASHLAR_NO_THREAD_SAFETY_ANALYSIS : pools(damaged) {
      pools.routes_.push_back(pools.routes_.front());
    }
    ~SecondRoute() ASHLAR_NO_THREAD_SAFETY_ANALYSIS { pools.routes_.pop_back(); }
    SecondRoute(const SecondRoute&) = delete;
    SecondRoute& operator=(const SecondRoute&) = delete;
    MemoryPools& pools;
  };
  static unsigned pooled_events(const EventPool& events) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return events.count_;
  }
  /// How many threads wait for the lock.
  static unsigned waiting(const ReclaimLock& lock) { return lock.waiting_.load(); }
  /// The first queue; QueueLinks::next leads to the others.
  static UseNode* first_queue(PendingUses& uses) { return uses.queues().first_; }
  static std::uint64_t& queue_count(PendingUses& uses) { return uses.queues().count_; }
  static std::uint64_t& unrecorded_count(PendingUses& uses) { return uses.unrecorded_count_; }
  static std::uint64_t& spare_count(UseNodes& nodes) { return nodes.spare_count_; }
  static std::uint64_t& made_count(UseNodes& nodes) { return nodes.made_count_; }
  /// The spare nodes' list, by UseNode::next.
  static const UseNode* spare(const UseNodes& nodes) { return nodes.spare_; }
  /// The stamp of the heap's newest release.
  static std::uint64_t& newest_release(EpochClock& clock) { return clock.newest_release_; }
  static EpochMark& mark(EpochMarks& marks, unsigned i) { return marks.marks_[i]; }
  static Bytes& charged(SegmentLedger& ledger) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return ledger.charged_;
  }
  static DeviceSegment* newest(SegmentLedger& ledger) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return ledger.newest_;
  }
  static Stat& segments(SegmentLedger& ledger) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return ledger.segments_[0];
  }
  static Stat& reserved(SegmentLedger& ledger) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return ledger.reserved_bytes_[0];
  }
  /// Hits until the next poll, and the delay after one that finds nothing.
  static std::uint64_t poll_due_in(const PendingUses& uses) {
    const std::uint64_t due = uses.poll_again_.due_;
    return due > uses.hits_ ? due - uses.hits_ : 0;
  }
  static std::uint64_t poll_delay(const PendingUses& uses) { return uses.poll_again_.delay_; }
  static bool has_new(const PendingUses& uses) { return uses.has_new_; }
  /// One slice of a copy, and what PoolCopy::run() does before it. True if it was the last.
  static bool copy_slice(PoolCopy& copy, const StreamHeap& heap) {
    copy.reserve_slice();
    const Guard guard(heap.lock);
    return slice_of(copy);
  }
  static unsigned& setbacks(PoolCopy& copy) { return copy.setbacks_; }
  static bool is_in_segment(const PoolCopy& copy) { return copy.is_in_segment_; }

 private:
  static bool slice_of(PoolCopy& copy) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return copy.copy_slice();
  }
};

}  // namespace ashlar::inline v0::cache
