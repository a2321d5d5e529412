#include <ashlar/cache/node_shrink.h>

#include <utility>

namespace ashlar::inline v0::cache {
namespace {

/// The most nodes that are taken or given back while the heap's lock is held.
constexpr unsigned kNodesPerHold = 64;

void push(UseNode*& list, UseNode* node) noexcept {
  node->next = list;
  list = node;
}

/// Takes a few spare nodes beyond need, a list by UseNode::next; nullptr if there are none.
UseNode* take_some(StreamHeap& heap, const SharedState& shared) noexcept
    ASHLAR_EXCLUDES(heap.lock) {
  UseNode* list = nullptr;
  const Guard guard(heap.lock);
  // A thread that waits for an event raised the count before it read the event under this lock.
  if (shared.event_waiters.load() != 0) return nullptr;
  // heap(3), and a slab more, so that a heap whose few blocks come and go makes no new one each time.
  const std::uint64_t kept = heap.live_blocks() + NodeSlab::kNodes;
  for (unsigned i = 0; i < kNodesPerHold && heap.uses.nodes().spare_count() > kept; ++i) {
    count_steps(1);
    push(list, heap.uses.nodes().take());
  }
  return list;
}

/// Takes the spare nodes beyond need, and destroys their events: those of the rest stay if a capture
/// is announced. A list by UseNode::next.
UseNode* take_unused(StreamHeap& heap, const SharedState& shared, ReclaimLock& lock) noexcept
    ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock) {
  UseNode* unused = nullptr;
  bool is_over = false;
  while (UseNode* list = is_over ? nullptr : take_some(heap, shared)) {
    while (list != nullptr) {
      UseNode* const node = std::exchange(list, list->next);
      if (!is_over && node->destroy_events().is_ok()) ++node->slab->unused;
      push(unused, node);
      // A driver may take long for one event (C30).
      is_over = is_over || (lock.let_others_in() && shared.is_capturing());
    }
  }
  return unused;
}

void give_back(StreamHeap& heap, UseNode* list) noexcept ASHLAR_EXCLUDES(heap.lock) {
  while (list != nullptr) {
    const Guard guard(heap.lock);
    for (unsigned i = 0; i < kNodesPerHold && list != nullptr; ++i) {
      count_steps(1);
      UseNode* const node = std::exchange(list, list->next);
      node->slab->unused = 0;
      heap.uses.nodes().give(node);
    }
  }
}

void free_slab(StreamHeap& heap, NodeSlab* slab) noexcept ASHLAR_EXCLUDES(heap.lock) {
  {
    const Guard guard(heap.lock);
    heap.uses.nodes().remove(slab);
  }
  delete slab;
}

}  // namespace

void shrink_nodes(StreamHeap& heap, const SharedState& shared, ReclaimLock& lock) noexcept {
  {
    const Guard guard(heap.lock);
    if (!heap.uses.nodes().begin_shrink()) return;
  }
  UseNode* unused = take_unused(heap, shared, lock);
  UseNode* back = nullptr;
  UseNode* first_of_slabs = nullptr;  // the first node of each slab that is unused as a whole
  while (unused != nullptr) {
    UseNode* const node = std::exchange(unused, unused->next);
    if (node->slab->unused < NodeSlab::kNodes) {
      push(back, node);
    } else if (node == node->slab->nodes) {
      push(first_of_slabs, node);
    }
  }
  give_back(heap, back);
  while (first_of_slabs != nullptr)
    free_slab(heap, std::exchange(first_of_slabs, first_of_slabs->next)->slab);
  const Guard guard(heap.lock);
  heap.uses.nodes().end_shrink();
}

}  // namespace ashlar::inline v0::cache
