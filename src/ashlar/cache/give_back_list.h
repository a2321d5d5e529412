// Where nothing is cached: the heaps that may have something to give back, so that a free and a miss look at these and not at
// every heap that was ever made.
//
// Purpose: a heap is noted at each free, and when its memory pool returns to a checkpoint. It leaves the list when a walk finds
// that it has no free block and that nothing waits for uses. With a cache nobody notes a heap, and the list stays empty.
// A walk visits what was noted since the last one, the heap that the caller names, and so many more of the others, each in its
// turn: so no call pays for all heaps whose work is never done.
// Thread safety: note() from any thread, with or without the heap's lock; the rest by the role `reclaiming`.
// Between begin_walk() and end_walk() the reclaim lock may be let go: no heap leaves the list while anybody walks.
//
// Invariants:
//   (1) a heap that may give something back is in the list, or a thread that has just changed it is about to note it.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

class GiveBackList {
 public:
  /// After a change to the heap that leaves a free block, or a use that waits. Cost: O(1).
  void note(StreamHeap& heap) noexcept {
    if (heap.links.is_noted.exchange(true)) return;
    StreamHeap* before = noted_.load(std::memory_order_relaxed);
    do {
      heap.links.next_noted = before;
    } while (!noted_.compare_exchange_weak(before, &heap));
  }
  /// Has the heap a free block, or one that waits for uses?
  static bool may_give_back(StreamHeap& heap) noexcept ASHLAR_REQUIRES(heap.lock) {
    constexpr auto kFree = static_cast<unsigned>(BlockState::kFree);
    if (!heap.uses.is_empty() || heap.uses.is_in_hand()) return true;
    return std::any_of(kPoolIds.begin(), kPoolIds.end(),
                       [&heap](PoolId id) ASHLAR_REQUIRES(heap.lock) {
                         return heap.pool(id).counts().bytes[kFree] != Bytes{};
                       });
  }

  /// The walk sees what was noted before, `named` if it is in the list, and at most `others_max` more.
  void begin_walk(StreamHeap* named, unsigned others_max) noexcept ASHLAR_REQUIRES(reclaiming) {
    ++walks_;
    for (StreamHeap* heap = noted_.exchange(nullptr); heap != nullptr;) {
      StreamHeap* const rest = std::exchange(heap->links.next_noted, nullptr);
      walked_.append(*heap);
      heap = rest;
    }
    if (named != nullptr && named->links.waits_noted) walk_too(*named);
    for (; others_max > 0 && waiting_.first != nullptr; --others_max) walk_too(*waiting_.first);
  }
  /// If nobody else walks, the walked heaps that have something to give back wait for their next turn, and the others leave the
  /// list. Cost: their number.
  void end_walk() noexcept ASHLAR_REQUIRES(reclaiming) {
    if (--walks_ != 0) return;
    while (StreamHeap* const heap = walked_.first) {
      // Before the heap leaves: from then on another thread may note it.
      walked_.remove(*heap);
      heap->links.waits_noted = stays(*heap);
      if (heap->links.waits_noted) waiting_.append(*heap);
    }
  }

  class Iterator {
   public:
    explicit Iterator(StreamHeap* heap) noexcept : heap_(heap) {}
    StreamHeap& operator*() const noexcept { return *heap_; }
    Iterator& operator++() noexcept {
      heap_ = heap_->links.next_noted;
      return *this;
    }
    friend bool operator==(Iterator a, Iterator b) = default;

   private:
    StreamHeap* heap_;
  };
  /// Those of the walk.
  Iterator begin() const noexcept ASHLAR_REQUIRES(reclaiming) { return Iterator(walked_.first); }
  Iterator end() const noexcept { return Iterator(nullptr); }

 private:
  struct List {
    StreamHeap* first = nullptr;
    StreamHeap* last = nullptr;

    void append(StreamHeap& heap) noexcept {
      heap.links.previous_noted = last;
      heap.links.next_noted = nullptr;
      (last == nullptr ? first : last->links.next_noted) = &heap;
      last = &heap;
    }
    void remove(StreamHeap& heap) noexcept {
      StreamHeap* const before = std::exchange(heap.links.previous_noted, nullptr);
      StreamHeap* const after = std::exchange(heap.links.next_noted, nullptr);
      (before == nullptr ? first : before->links.next_noted) = after;
      (after == nullptr ? last : after->links.previous_noted) = before;
    }
  };

  void walk_too(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) {
    waiting_.remove(heap);
    heap.links.waits_noted = false;
    walked_.append(heap);
  }
  /// False if the heap has left the list.
  static bool stays(StreamHeap& heap) noexcept ASHLAR_EXCLUDES(heap.lock) {
    // Under the lock: who changes the heap later finds the flag down, and notes it anew.
    const Guard guard(heap.lock);
    const bool stays = may_give_back(heap);
    if (!stays) heap.links.is_noted.store(false);
    return stays;
  }

  std::atomic<StreamHeap*> noted_{nullptr};           ///< since the last walk began
  List walked_ ASHLAR_GUARDED_BY(reclaiming);         ///< by the walks that are under way
  List waiting_ ASHLAR_GUARDED_BY(reclaiming);        ///< for their turn; the next one first
  unsigned walks_ ASHLAR_GUARDED_BY(reclaiming) = 0;  ///< begun and not ended
};

}  // namespace ashlar::inline v0::cache
