// What a heap's blocks wait for: use nodes, in a queue for each stream that used them.
//
// Purpose: a free of a block that other streams used parks it here; a hit polls the queues' heads.
// Thread safety: none; guarded by the heap's lock. Nodes taken out (take_queues, take_unrecorded)
// belong to the taker until it puts them back or gives them up; in_hand() counts the takers.
//
// Invariants:
//   (1) spare nodes >= the heap's live blocks, so that a free with a stream never allocates
//       (heap(3)). The heap checks it: it knows the live blocks;
//   (2) a queue holds one stream's events by their sequence, so a stuck stream delays only itself
//       (heap(5), H8). The order is that of recording, but for two records that crossed on their
//       way to the driver.
#pragma once

#include <cstdint>
#include <memory>

#include <ashlar/base/assert.h>
#include <ashlar/cache/use_node.h>

namespace ashlar::inline v0::cache {

class PendingUses {
 public:
  PendingUses() = default;
  ~PendingUses();
  PendingUses(const PendingUses&) = delete;
  PendingUses& operator=(const PendingUses&) = delete;

  // Spare nodes.
  /// Makes sure that at least `n` nodes are spare. False if the host has no memory.
  bool reserve(std::uint64_t n) noexcept { return spare_count_ >= n || grow(); }
  std::uint64_t spare_count() const noexcept { return spare_count_; }
  /// REQUIRES: a spare node.
  UseNode* take_spare() noexcept;
  /// Nobody waits for the node's event any more.
  void give_spare(UseNode* node) noexcept;

  // Queues of recorded uses.
  bool has_queues() const noexcept { return queues_ != nullptr; }
  /// A node whose event is recorded joins its stream's queue.
  void enqueue(UseNode* node) noexcept;
  /// Takes up to `n` queues off the list, for polling without the lock; the others keep their
  /// order.
  unsigned take_queues(UseNode** out, unsigned n) noexcept;
  /// A queue comes back: behind the others (so that more stuck streams than one poll asks starve
  /// nobody), or merged into the queue that its stream has by now.
  void put_queue(UseNode* head) noexcept;
  /// Drops a queue's head; returns the queue's new head, or nullptr when it is empty.
  static UseNode* advance_queue(UseNode* head) noexcept;
  /// The queue's head with the smallest sequence, or nullptr.
  UseNode* oldest() const noexcept;
  /// Takes that queue off the list.
  UseNode* take_oldest_queue() noexcept;
  unsigned queue_count() const noexcept;
  /// Nodes in all queues. Cost: a walk over them.
  std::uint64_t queued_count() const noexcept;

  // Uses whose event could not be recorded (a capture, a failing driver, a stream that is gone).
  bool has_unrecorded() const noexcept { return unrecorded_ != nullptr; }
  /// The node goes behind the others.
  void add_unrecorded(UseNode* node) noexcept;
  /// Takes up to `n` nodes from the front of the list: a list by `next`.
  UseNode* take_unrecorded(std::uint64_t n) noexcept;
  /// The first of the list; walk by `next`.
  const UseNode* unrecorded() const noexcept { return unrecorded_; }

  // Takers: polls and settlements that hold nodes of this heap now, so that the queues do not show
  // everything.
  void begin_in_hand() noexcept { ++in_hand_; }
  void end_in_hand() noexcept { --in_hand_; }
  bool is_in_hand() const noexcept { return in_hand_ > 0; }

  bool is_empty() const noexcept { return !has_queues() && !has_unrecorded(); }
  /// At the allocator's end: destroys every event in a node's slot.
  void destroy_events() noexcept;
  /// nullptr, or the broken invariant; `is_pending` says whether a node's block is pending.
  template <class IsPending>
  const char* validate(IsPending&& is_pending) const noexcept {
    std::uint64_t spare = 0;
    for (const UseNode* node = spare_; node != nullptr; node = node->next) ++spare;
    if (spare != spare_count_) return "heap(3): the spare list is not what its counter says";
    for (const UseNode* head = queues_; head != nullptr; head = head->next_queue) {
      for (const UseNode* node = head; node != nullptr; node = node->next) {
        if (node->stream != head->stream) return "heap(5): a queue mixes streams";
        if (!is_pending(*node)) return "heap(4): a queued block is not pending";
        if (node->next != nullptr && node->next->sequence < node->sequence)
          return "heap(5): a queue is not in order";
        if (node->next == nullptr && head->tail != node)
          return "heap(5): a queue's tail is not its last";
      }
    }
    return nullptr;
  }

 private:
  struct NodeSlab {
    std::unique_ptr<NodeSlab> before;
    UseNode nodes[32];
  };

  [[gnu::cold]] bool grow() noexcept;

  UseNode* queues_ = nullptr;
  UseNode* queues_last_ = nullptr;
  UseNode* unrecorded_ = nullptr;
  UseNode* unrecorded_last_ = nullptr;
  UseNode* spare_ = nullptr;
  std::uint64_t spare_count_ = 0;
  unsigned in_hand_ = 0;
  std::unique_ptr<NodeSlab> slabs_;
};

}  // namespace ashlar::inline v0::cache
