// What a heap's blocks wait for: use nodes, spare, queued, or without an event.
//
// Purpose: a free of a block that other streams used parks it here; allocations poll the queues'
// heads.
// Thread safety: none; guarded by the heap's lock. Nodes taken out (UseQueues::take,
// take_unrecorded) belong to the taker until it puts them back or gives them up; is_in_hand() says
// whether there is a taker.
//
// Invariants:
//   (1) spare nodes >= the heap's live blocks, so that a free with a stream never allocates
//       (heap(3)). The heap checks it: it knows the live blocks;
//   (2) a node is spare, of a live block, in one queue (use_queues.h), in the unrecorded list, or in
//       a taker's hands; where it is not spare it names its user.
#pragma once

#include <cstdint>

#include <ashlar/cache/ask_again.h>
#include <ashlar/cache/under_way.h>
#include <ashlar/cache/use_nodes.h>
#include <ashlar/cache/use_queues.h>

namespace ashlar::inline v0::cache {

class PendingUses {
 public:
  PendingUses() = default;
  ~PendingUses() = default;
  PendingUses(const PendingUses&) = delete;
  PendingUses& operator=(const PendingUses&) = delete;

  UseNodes& nodes() noexcept { return nodes_; }
  const UseNodes& nodes() const noexcept { return nodes_; }

  // Queues of recorded uses.
  bool has_queues() const noexcept { return !queues_.is_empty(); }
  UseQueues& queues() noexcept { return queues_; }
  /// A node whose event is recorded joins its stream's queue, and the next hit polls. So it depends on a step's own
  /// frees when its uses are polled, and a step that repeats finds its blocks where it found them before (C20).
  void add_queued(UseNode* node) noexcept {
    queues_.add(node);
    has_new_ = true;
  }
  /// Is a hit to poll? While polls find nothing done, only every 2nd, 4th, ... at last every 256th
  /// hit does, and the first one behind a free, so that streams which are stuck cost a hit hardly anything.
  bool is_poll_due() noexcept {
    if (!has_queues()) return false;
    ++hits_;
    return has_new_ || poll_again_.is_due(hits_);
  }
  /// A poll is over; `has_found` says whether any use was complete. A poll that was not due by the delay, as those
  /// of a miss, does not lengthen it: so the delay is at most the number of hits that have found nothing (C20).
  void note_poll(bool has_found) noexcept {
    has_new_ = false;
    if (has_found) {
      poll_again_.reset();
    } else if (poll_again_.is_due(hits_)) {
      poll_again_.postpone(hits_);
    }
  }

  // Uses whose event could not be recorded (a capture, a failing driver, a stream that is gone).
  bool has_unrecorded() const noexcept { return unrecorded_ != nullptr; }
  std::uint64_t unrecorded_count() const noexcept { return unrecorded_count_; }
  /// The node goes behind the others.
  void add_unrecorded(UseNode* node) noexcept;
  /// Takes up to `n` nodes from the front of the list: a list by `next`.
  UseNode* take_unrecorded(std::uint64_t n) noexcept;
  /// The first of the list; walk by `next`.
  const UseNode* unrecorded() const noexcept { return unrecorded_; }

  // Takers: polls and recordings that hold nodes of this heap now, so that the queues do not show
  // everything.
  UnderWay<unsigned>& takers() noexcept { return takers_; }
  bool is_in_hand() const noexcept { return takers_.any(); }

  bool is_empty() const noexcept { return !has_queues() && !has_unrecorded(); }
  /// Falls with every event recorded for a use that had none, and with every use finished.
  std::uint64_t work_left() const noexcept { return unrecorded_count_ + nodes_.taken_count(); }
  /// nullptr, or the broken invariant; `is_pending` says whether a node's block is pending.
  /// `live` and `pending` nodes hang on live and on pending blocks. Quiescent.
  template <class IsPending>
  const char* validate(std::uint64_t live, std::uint64_t pending,
                       IsPending&& is_pending) const noexcept {
    if (is_in_hand()) return "heap(4): a taker has not put its nodes back";
    if (const char* broken = nodes_.validate()) return broken;
    if (length(unrecorded_) != unrecorded_count_)
      return "heap(4): the unrecorded uses are not what their counter says";
    if (queues_.node_count() + unrecorded_count_ != pending)
      return "heap(4): the uses that wait are not those of the pending blocks";
    if (nodes_.taken_count() != live + pending)
      return "uses(2): a node is neither spare nor a block's";
    return queues_.validate(is_pending);
  }

 private:
  friend struct CachePeer;
  static std::uint64_t length(const UseNode* list) noexcept {
    std::uint64_t nodes = 0;
    for (; list != nullptr; list = list->next) ++nodes;
    return nodes;
  }

  UseNodes nodes_;
  UseQueues queues_;
  std::uint64_t hits_ = 0;  ///< hits while something is queued
  AskAgain<256> poll_again_;
  bool has_new_ = false;  ///< a node was queued since the last poll
  UseNode* unrecorded_ = nullptr;
  UseNode* unrecorded_last_ = nullptr;
  std::uint64_t unrecorded_count_ = 0;
  UnderWay<unsigned> takers_;
};

}  // namespace ashlar::inline v0::cache
