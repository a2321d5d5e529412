// A use: one stream's work on one block, from record_use until that work is known complete.
//
// Purpose: everything that a free needs is made beforehand, so that free never allocates: a node
// holds its event and is its own link in the block's list and in the stream's queue.
// Thread safety: guarded by the lock of the heap that owns the block, except while a pending free
// has taken the nodes private to record their events.
#pragma once

#include <cstdint>
#include <utility>

#include <ashlar/base/pool_id.h>
#include <ashlar/block/block_pool.h>
#include <ashlar/cache/event_pool.h>

namespace ashlar::inline v0::cache {

class StreamHeap;

struct UseNode;

/// What the head of a queue holds besides (use_queues.h).
struct QueueLinks {
  UseNode* last = nullptr;  ///< the queue's last node
  UseNode* next = nullptr;  ///< the neighbours in the order in which queues are polled
  UseNode* prev = nullptr;
  UseNode* child[2] = {};  ///< in the tree over the queues' streams
};

struct NodeSlab;

/// Was a use announced while a capture of the stream was? Then it is work of the graph, which has not run.
enum class InGraph : std::uint8_t {
  kNo,
  kWork,
  kBody,  ///< a use by all of a conditional's body (live_uses.cc): not over before the body is
};

struct UseNode {
  StreamHeap* user = nullptr;  ///< whose work on the block is awaited (StreamHeap::refer)
  /// its event is recorded after the free; before, it holds what an earlier use left
  EventSlot slot;
  /// Another device's event that was in `slot`, where that device's pool has no room. It is not
  /// destroyed at once, because somebody may be waiting for it, and it must not be in the way.
  EventSlot aside;
  /// order of recording on the stream's device: the oldest goes first. 0: never tried
  std::uint64_t sequence = 0;
  UseNode* sibling = nullptr;  ///< next use of the same block
  UseNode* sibling_before = nullptr;
  UseNode* next = nullptr;  ///< next in the queue, the unrecorded list, or the spare list
  QueueLinks queue;
  block::BlockIndex block = block::kNoBlock;
  PoolId pool = PoolId::kLarge;  ///< the heap's pool that holds the block
  NodeSlab* slab = nullptr;      ///< that it is part of
  bool is_borrower = false;  ///< the stream the block was allocated on, if that is not the heap's
  /// Does the slot's event stand for the use? If not, the last event of the retired stream does.
  bool has_event = false;
  InGraph in_graph = InGraph::kNo;
  /// made at the free: the use is over for who captures behind it (UseTracker::is_over_in_graph)
  device::CaptureMark mark;

  /// As it was made, but for the events and the slab.
  void reset() noexcept {
    const EventSlot had = slot;
    const EventSlot had_aside = aside;
    NodeSlab* const part_of = slab;
    *this = UseNode{};
    slot = had;
    aside = had_aside;
    slab = part_of;
  }
  /// Destroys the events in its slots. The first error, and that one is still there.
  Status destroy_events() noexcept {
    const Status first = EventPool::destroy(slot);
    const Status second = EventPool::destroy(aside);
    return first.is_ok() ? second : first;
  }
  /// Puts an event of that pool's device, or none, into `slot`, if the node has either.
  void prefer_event_of(const EventPool& events) noexcept {
    const bool is_foreign = slot.pool != nullptr && slot.pool != &events;
    if (is_foreign && (aside.pool == nullptr || aside.pool == &events)) std::swap(slot, aside);
  }
};

}  // namespace ashlar::inline v0::cache
