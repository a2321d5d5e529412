// From a stream's handle to the heaps whose stream has, or had, that handle.
//
// Purpose: a handle that is seen under a second identity shows that one of the two streams is dead
// (H2). A new heap looks for the other here instead of at every heap.
// Thread safety: none; guarded by the heap list's lock.
//
// Invariant:
//   (1) every heap of the list is in the chain of its stream's handle.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

class HandleIndex {
 public:
  /// Makes room for one heap more. False if the host has no memory; then insert() still works, with
  /// longer chains, once there is a first table.
  bool reserve_one() noexcept { return count_ < cells_ || grow() || cells_ > 0; }
  /// REQUIRES: reserve_one() returned true; the heap is not in the index.
  void insert(StreamHeap* heap) noexcept {
    link(heap);
    ++count_;
  }
  /// REQUIRES: the heap is in the index, under its stream's handle.
  void erase(StreamHeap* heap) noexcept {
    StreamHeap** at = &table_[cell_of(heap->stream.handle)];
    while (*at != heap) at = &(*at)->links.next_of_handle;
    *at = heap->links.next_of_handle;
    --count_;
  }
  /// The heap of another alive stream with the handle of `stream`; nullptr if there is none. A
  /// handle that names another stream on each thread clashes with nothing.
  StreamHeap* find_alive(const Stream& stream) const noexcept {
    if (cells_ == 0 || stream.thread_bound) return nullptr;
    for (StreamHeap* heap = table_[cell_of(stream.handle)]; heap != nullptr;
         heap = heap->links.next_of_handle) {
      const bool is_other = heap->stream.handle == stream.handle && heap->stream.id != stream.id &&
                            !heap->stream.thread_bound;
      if (is_other && heap->life.is_alive()) return heap;
    }
    return nullptr;
  }

 private:
  static constexpr std::uint64_t kCellsFirst = 64;

  std::uint64_t cell_of(StreamHandle handle) const noexcept {
    // Fibonacci hashing (Knuth, TAOCP 3, 6.4)
    return ((handle.value() * 0x9E3779B97F4A7C15u) >> 32) & (cells_ - 1);
  }
  void link(StreamHeap* heap) noexcept {
    StreamHeap*& cell = table_[cell_of(heap->stream.handle)];
    heap->links.next_of_handle = cell;
    cell = heap;
  }
  bool grow() noexcept {
    const std::uint64_t cells = cells_ == 0 ? kCellsFirst : 2 * cells_;
    std::unique_ptr<StreamHeap*[]> next(new (std::nothrow) StreamHeap*[cells]());
    if (!next) return false;
    const std::unique_ptr<StreamHeap*[]> before = std::move(table_);
    const std::uint64_t cells_before = cells_;
    table_ = std::move(next);
    cells_ = cells;
    for (std::uint64_t i = 0; i < cells_before; ++i) {
      for (StreamHeap* heap = before[i]; heap != nullptr;) {
        StreamHeap* const rest = heap->links.next_of_handle;
        link(heap);
        heap = rest;
      }
    }
    return true;
  }

  std::unique_ptr<StreamHeap*[]> table_;
  std::uint64_t cells_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace ashlar::inline v0::cache
