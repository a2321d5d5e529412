// The queues of a heap's recorded uses: one for each stream that used its blocks.
//
// Purpose: a poll takes queues from the front, and puts those that are not empty back behind the
// others; a use finds its stream's queue without a walk over the queues.
// Thread safety: none; guarded by the heap's lock. A queue that is taken out belongs to the taker
// until it puts it back.
//
// Invariants:
//   (1) there is at most one queue for each stream, and it holds nodes of that stream only;
//   (2) a stuck stream delays only itself (heap(5), H8). A queue holds its nodes in the order of
//       recording, but for records that crossed on their way to the driver or here: a later event
//       at the head says of the earlier ones behind it that they are done too;
//   (3) the tree holds exactly the heads of the list.
//
// The tree is a digital search tree over the hashed streams: the bits of the hash choose the way
// down, nothing is balanced, and an insertion needs no memory, which a free must not need. Its
// depth is the logarithm of the number of queues, nearly always.
// Source: D. Knuth, The Art of Computer Programming vol. 3, 6.3 (digital tree search).
#pragma once

#include <cstdint>

#include <ashlar/cache/use_node.h>

namespace ashlar::inline v0::cache {

class UseQueues {
 public:
  bool is_empty() const noexcept { return first_ == nullptr; }
  std::uint64_t count() const noexcept { return count_; }

  /// A node whose event is recorded joins its stream's queue. Cost: O(log queues).
  void add(UseNode* node) noexcept;
  /// Takes up to `n` queues from the front. Cost: O(n log queues).
  unsigned take(UseNode** out, unsigned n) noexcept;
  /// A queue comes back: behind the others (so that more stuck streams than one poll asks starve
  /// nobody), or merged into the queue that its stream has by now. Cost: as add().
  void put(UseNode* head) noexcept;
  /// Drops a queue's head; returns the queue's new head, or nullptr when it is empty.
  static UseNode* advance(UseNode* head) noexcept;
  /// The head with the smallest sequence among the first kLookedAtMax queues, or nullptr.
  UseNode* oldest() const noexcept;

  /// The nodes of all queues. Cost: a walk.
  std::uint64_t node_count() const noexcept {
    std::uint64_t nodes = 0;
    for (const UseNode* head = first_; head != nullptr; head = head->queue.next) {
      for (const UseNode* node = head; node != nullptr; node = node->next) ++nodes;
    }
    return nodes;
  }
  /// nullptr, or the broken invariant; `is_pending` says whether a node's block is pending.
  template <class IsPending>
  const char* validate(IsPending&& is_pending) const noexcept {
    std::uint64_t queues = 0;
    for (const UseNode* head = first_; head != nullptr; head = head->queue.next) {
      ++queues;
      if (*const_cast<UseQueues*>(this)->find(head->user) != head)
        return "heap(5): a queue is not in the tree";
      for (const UseNode* node = head; node != nullptr; node = node->next) {
        if (node->user != head->user) return "heap(5): a queue mixes streams";
        if (!is_pending(*node)) return "heap(4): a queued block is not pending";
        if (node->next == nullptr && head->queue.last != node)
          return "heap(5): a queue's tail is not its last";
      }
    }
    return queues == count_ ? nullptr : "heap(5): the queues are not what their counter says";
  }

 private:
  friend struct CachePeer;
  static constexpr unsigned kLookedAtMax = 64;

  /// The link of the tree that points to that stream's queue, or where it would point.
  UseNode** find(const StreamHeap* stream) noexcept;
  void append(UseNode* head) noexcept;
  /// Takes the queue out of the list and the tree.
  void remove(UseNode* head) noexcept;

  UseNode* first_ = nullptr;
  UseNode* last_ = nullptr;
  UseNode* root_ = nullptr;
  std::uint64_t count_ = 0;
};

}  // namespace ashlar::inline v0::cache
