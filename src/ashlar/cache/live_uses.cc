// The part of StreamHeap that changes the uses by one stream of all live blocks: at the end of a memory pool, and
// where a stream captures the body of a conditional (row DEV-8).
//
// While a body is captured, what was live when it began must not serve it, whoever frees it: a body that runs
// twice would find in its second run what its first had written there (C8). So each such block gets a use by
// the body, which is over with the body. What is made in the body has none, and serves it again once freed.
#include <ashlar/base/step_count.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

namespace {

/// Between two slices of a walk: lets go of the heap's lock, and of the reclaim lock if it is awaited.
void let_others_in(const StreamHeap& heap, ReclaimLock* reclaim) noexcept
    ASHLAR_REQUIRES(reclaiming, heap.lock) {
  if (reclaim == nullptr || !reclaim->is_awaited()) return heap.lock.let_others_in();
  heap.lock.unlock();
  static_cast<void>(reclaim->let_others_in());
  heap.lock.lock();
}

/// The use of the block by that stream, or nullptr; with `captured` the one in its capture.
UseNode* find_use(UseNode* use, const StreamHeap& user, bool captured) noexcept {
  for (; use != nullptr; use = use->sibling) {
    count_steps(1);
    if (use->user == &user && (use->in_graph != InGraph::kNo || !captured)) return use;
  }
  return nullptr;
}

/// One live block's part of StreamHeap::change_live_uses().
bool change_live_use(StreamHeap& heap, PoolId which, block::BlockIndex block, StreamHeap& user,
                     LiveUses change) noexcept ASHLAR_REQUIRES(heap.lock) {
  switch (change) {
    case LiveUses::kDrop: heap.drop_finished_uses(which, block, &user); return true;
    case LiveUses::kDropOfBody:
    case LiveUses::kPassOn: heap.end_body_uses(which, block, user, change); return true;
    case LiveUses::kAdd:
    case LiveUses::kAddOfBody: break;
  }
  // Not has_use(): in a pool in use the stream's own heap needs no node.
  UseNode* use = find_use(StreamHeap::first_use(heap.pool(which).user(block)), user, false);
  if (use == nullptr) {
    if (!heap.reserve_nodes(1)) return false;
    heap.add_use(which, block, user);
    use = find_use(StreamHeap::first_use(heap.pool(which).user(block)), user, false);
  }
  // One that is not captured, of work before the body, waits for longer.
  if (change == LiveUses::kAddOfBody && use != nullptr && use->in_graph != InGraph::kNo)
    use->in_graph = InGraph::kBody;
  return true;
}

}  // namespace

bool pass_to_parent(StreamHeap& parent, UseNode* node) noexcept {
  StreamHeap& body = *node->user;
  if (!parent.refer(node)) return false;
  body.life.drop_reference();
  node->in_graph = InGraph::kWork;
  node->mark = {};  // it was made in the body's graph
  return true;
}

void StreamHeap::end_body_uses(PoolId which, block::BlockIndex block, StreamHeap& body,
                               LiveUses change) noexcept {
  block::BlockPool& in = pool(which);
  for (UseNode* use = first_use(in.user(block)); use != nullptr;) {
    UseNode* const next = use->sibling;
    const bool ends = use->user == &body && use->in_graph != InGraph::kNo &&
                      (change == LiveUses::kPassOn || use->in_graph == InGraph::kBody);
    if (ends) {
      StreamHeap* const parent = change == LiveUses::kPassOn ? body.life.parent() : nullptr;
      const bool passes = parent != nullptr && !is_in_order_of(*this, *parent) &&
                          find_use(first_use(in.user(block)), *parent, true) == nullptr;
      if (!passes || !pass_to_parent(*parent, use)) {
        unlink_use(in, block, use);
        uses.nodes().give(use);
      }
    }
    use = next;
  }
}

bool StreamHeap::change_live_uses(StreamHeap& user, LiveUses change,
                                  ReclaimLock* lets_in) noexcept {
  const Guard guard(lock);
  unsigned looks = 0;
  for (const PoolId which : kPoolIds) {
    block::BlockPool& in = pool(which);
    for (auto segment = in.first_segment(); segment != block::kNoSegment;
         segment = in.next(segment)) {
      for (auto at = in.view(segment).first; at != block::kNoBlock;) {
        count_steps(1);
        if (in.state(at) == BlockState::kLive && !change_live_use(*this, which, at, user, change))
          return false;
        // A slice ends at a block that find() knows: live, or pending.
        if (++looks < kLooksPerHold || !block::is_owned(block::raw(in.state(at)))) {
          at = in.next(at);
          continue;
        }
        looks = 0;
        const Address here = in.address(at);
        let_others_in(*this, lets_in);
        // If the block was freed while the lock was open, it may have merged, and its index is void:
        // the segment is walked again. That costs one live block each time and none is made, so the
        // walk ends.
        at = in.find(here) == block::kNoBlock ? in.view(segment).first : in.next(at);
      }
    }
  }
  return true;
}

}  // namespace ashlar::inline v0::cache
