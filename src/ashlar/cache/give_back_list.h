// Where nothing is cached: the heaps that may have something to give back, so that a free and a miss look at these and not at
// every heap that was ever made.
//
// Purpose: a heap is noted at each free, and when its memory pool returns to a checkpoint. It leaves the list when a walk finds
// that it has no free block and that nothing waits for uses. With a cache nobody notes a heap, and the list stays empty.
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

  /// The walk sees what was noted before.
  void begin_walk() noexcept ASHLAR_REQUIRES(reclaiming) {
    ++walks_;
    for (StreamHeap* heap = noted_.exchange(nullptr); heap != nullptr;) {
      StreamHeap* const rest = std::exchange(heap->links.next_noted, nullptr);
      append(*heap);
      heap = rest;
    }
  }
  /// If nobody else walks, heaps without anything to give back leave the list. Cost: their number.
  void end_walk() noexcept ASHLAR_REQUIRES(reclaiming) {
    if (--walks_ != 0) return;
    StreamHeap* heap = std::exchange(first_, nullptr);
    last_ = nullptr;
    while (heap != nullptr) {
      // Before the heap leaves: from then on another thread may note it.
      StreamHeap* const rest = std::exchange(heap->links.next_noted, nullptr);
      if (stays(*heap)) append(*heap);
      heap = rest;
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
  Iterator begin() const noexcept ASHLAR_REQUIRES(reclaiming) { return Iterator(first_); }
  Iterator end() const noexcept { return Iterator(nullptr); }

 private:
  /// False if the heap has left the list.
  static bool stays(StreamHeap& heap) noexcept ASHLAR_EXCLUDES(heap.lock) {
    // Under the lock: who changes the heap later finds the flag down, and notes it anew.
    const Guard guard(heap.lock);
    const bool stays = may_give_back(heap);
    if (!stays) heap.links.is_noted.store(false);
    return stays;
  }
  void append(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming) {
    (last_ == nullptr ? first_ : last_->links.next_noted) = &heap;
    last_ = &heap;
  }

  std::atomic<StreamHeap*> noted_{nullptr};  ///< since the last walk began
  StreamHeap* first_ ASHLAR_GUARDED_BY(reclaiming) = nullptr;
  StreamHeap* last_ ASHLAR_GUARDED_BY(reclaiming) = nullptr;
  unsigned walks_ ASHLAR_GUARDED_BY(reclaiming) = 0;  ///< begun and not ended
};

}  // namespace ashlar::inline v0::cache
