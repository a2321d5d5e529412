// A device's heaps: from a stream's identity to its heap, and the walk over all of them, those of
// memory pools included.
//
// Purpose: the first step of every allocation, without a lock; and one place that makes heaps.
// Thread safety: any thread. The list only grows, so it is walked without a lock; heaps die with
// it.
//
// Invariants:
//   (1) every heap of the list is in the table, under its owner's key: the identity of the stream that
//       it serves, or for a memory pool's heap a number that is no stream's identity;
//   (2) no two heaps have one key.
#pragma once

#include <atomic>

#include <ashlar/base/mutex.h>
#include <ashlar/cache/handle_index.h>
#include <ashlar/cache/history_log.h>
#include <ashlar/cache/stream_table.h>

namespace ashlar::inline v0::cache {

class HeapList {
 public:
  HeapList(DeviceCache& owner, Bytes granule) noexcept : owner_(owner), granule_(granule) {}
  ~HeapList();
  HeapList(const HeapList&) = delete;
  HeapList& operator=(const HeapList&) = delete;

  /// The heap of that stream, or nullptr. Cost: as StreamTable::find; less for the first stream.
  StreamHeap* find(StreamId id) const noexcept {
    // Most allocate on one stream, the first: its heap is found before the identity is hashed.
    StreamHeap* heap = first_.load(std::memory_order_acquire);
    if (heap != nullptr && heap->id.load(std::memory_order_acquire) == id.value()) return heap;
    return table_.find(id);
  }
  /// The same, also while another thread's hand-over of a heap is under way.
  StreamHeap* find_stable(StreamId id) const noexcept ASHLAR_EXCLUDES(lock_);
  /// The heap of that stream; if it has none, `forgotten` becomes its heap, or a new one.
  /// `forgotten` is nullptr or was forgotten a moment ago. nullptr if the host has no memory.
  StreamHeap* get_or_make(const Stream& stream, StreamHeap* forgotten) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(lock_);
  /// The same without a forgotten heap, for callers that may not wait for the slow rungs.
  StreamHeap* get_or_make(const Stream& stream) noexcept ASHLAR_EXCLUDES(lock_);
  /// A heap for that stream in that memory pool: `forgotten`, as above, if it has no segments, or a
  /// new one. nullptr if the host has no memory. REQUIRES: the pool has no heap for that stream
  /// (memory_pools.h).
  StreamHeap* make_for_pool(const Stream& stream, MemoryPoolId pool,
                            const MemoryPoolOptions& options, StreamHeap* forgotten) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(lock_);
  /// The identity of another alive stream whose handle is that of `stream`; 0 if there is none. Of
  /// the two, one was destroyed without an announcement (H2).
  StreamId find_other_of_handle(const Stream& stream) const noexcept ASHLAR_EXCLUDES(lock_);
  /// That stream turns out to be destroyed (StreamLife::lose): the heaps that serve it, of whatever
  /// memory pool. Cost: a walk over all heaps.
  void lose(StreamId id, std::uint64_t sequence) noexcept ASHLAR_EXCLUDES(lock_);

  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// nullptr, or the broken invariant. Quiescent.
  /// What changes in the heaps, for users who ask for it.
  HistoryLog& history() noexcept { return history_; }
  /// Returns when everybody who held a heap's lock before has let it go, of every heap: what was stored before the
  /// call is read under those locks from then on.
  void wait_for_holders() const noexcept ASHLAR_EXCLUDES(lock_);
  const char* validate() const noexcept ASHLAR_EXCLUDES(lock_);

  class Iterator {
   public:
    explicit Iterator(StreamHeap* heap) noexcept : heap_(heap) {}
    StreamHeap& operator*() const noexcept { return *heap_; }
    Iterator& operator++() noexcept {
      heap_ = heap_->links.next.load();
      return *this;
    }
    friend bool operator==(Iterator a, Iterator b) = default;

   private:
    StreamHeap* heap_;
  };
  /// The heap after that one, round and round: the first after the last, or after nullptr; nullptr
  /// if there is no heap.
  StreamHeap* next_after(StreamHeap* heap) const noexcept {
    StreamHeap* const next = heap == nullptr ? nullptr : heap->links.next.load();
    return next != nullptr ? next : first_.load();
  }
  Iterator begin() const noexcept { return Iterator(first_.load()); }
  Iterator end() const noexcept { return Iterator(nullptr); }

 private:
  StreamHeap* add(const HeapOwner& owner) noexcept ASHLAR_REQUIRES(lock_);
  /// False if something is left of the dead stream after all.
  bool pass_on(StreamHeap& heap, const HeapOwner& owner) noexcept
      ASHLAR_REQUIRES(lock_, reclaiming);

  DeviceCache& owner_;
  const Bytes granule_;
  StreamTable table_ ASHLAR_UNGUARDED;  ///< read without the lock, changed under it
  alignas(64) std::atomic<StreamHeap*> first_{nullptr};
  std::atomic<std::uint64_t> count_{0};
  alignas(64) mutable Mutex lock_;
  HandleIndex handles_ ASHLAR_GUARDED_BY(lock_);
  StreamHeap* last_ ASHLAR_GUARDED_BY(lock_) = nullptr;
  std::uint64_t pool_heaps_made_ ASHLAR_GUARDED_BY(lock_) = 0;
  HistoryLog history_ ASHLAR_UNGUARDED;  ///< has locks of its own
};

}  // namespace ashlar::inline v0::cache
