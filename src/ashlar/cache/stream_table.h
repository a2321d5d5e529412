// From a stream's identity to its heap, without a lock for readers.
//
// Purpose: the first step of every allocation. Open addressing over atomic pointers; a heap holds
// the identity of its stream. A full table is replaced by a larger one and kept until the end, so
// that a reader in the middle of a probe never reads freed memory.
// Thread safety: find() from any thread; insert() and erase() by one thread at a time (under the
// heap list's lock).
//
// Invariants:
//   (1) no slot is empty between a heap's home slot and the heap, except during an erase: a reader
//       may then miss the heap, and looks again under the lock;
//   (2) a heap that find() returns served that stream at the moment of the probe. Heaps are never
//       freed, but a dead stream's heap may serve another stream (StreamHeap::serve): the caller
//       checks StreamHeap::serves() under the heap's lock.
#pragma once

#include <atomic>
#include <memory>
#include <new>

#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

class StreamTable {
 public:
  /// The heap of that stream, or nullptr. Cost: one or two probes.
  StreamHeap* find(StreamId id) const noexcept {
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return nullptr;
    for (std::uint64_t at = hash(id.value());; ++at) {
      StreamHeap* heap = table->slots[at & table->mask].load(std::memory_order_acquire);
      if (heap == nullptr || heap->id.load(std::memory_order_acquire) == id.value()) return heap;
    }
  }

  /// Enters the heap under its id. False if the host has no memory, which cannot happen right after
  /// an erase. REQUIRES: not in the table.
  bool insert(StreamHeap* heap) noexcept {
    const Table* table = table_.load(std::memory_order_relaxed);
    if ((table == nullptr || 2 * (count_ + 1) > table->mask) && !grow()) return false;
    put(*current_, heap);
    ++count_;
    return true;
  }

  /// Takes the heap out. REQUIRES: in the table, under its id. Source: Knuth, TAOCP 3, 6.4, R.
  void erase(const StreamHeap* heap) noexcept {
    const std::uint64_t mask = current_->mask;
    std::atomic<StreamHeap*>* const slots = current_->slots.get();
    std::uint64_t hole = home(heap) & mask;
    while (slots[hole].load(std::memory_order_relaxed) != heap) hole = (hole + 1) & mask;
    for (std::uint64_t at = (hole + 1) & mask;; at = (at + 1) & mask) {
      StreamHeap* next = slots[at].load(std::memory_order_relaxed);
      if (next == nullptr) break;
      const bool reaches_hole = ((at - home(next)) & mask) >= ((at - hole) & mask);
      if (!reaches_hole) continue;
      slots[hole].store(next, std::memory_order_release);
      hole = at;
    }
    slots[hole].store(nullptr, std::memory_order_release);
    --count_;
  }

 private:
  struct Table {
    std::uint64_t mask = 0;
    std::unique_ptr<std::atomic<StreamHeap*>[]> slots;
    std::unique_ptr<Table> before;
  };
  static constexpr std::uint64_t kSlotsFirst = 16;

  static std::uint64_t hash(std::uint64_t id) noexcept {
    return (id * 0x9E3779B97F4A7C15u) >> 32;  // Fibonacci hashing (Knuth, TAOCP 3, 6.4)
  }
  static std::uint64_t home(const StreamHeap* heap) noexcept {
    return hash(heap->id.load(std::memory_order_relaxed));
  }
  static void put(Table& table, StreamHeap* heap) noexcept {
    std::uint64_t at = home(heap);
    while (table.slots[at & table.mask].load(std::memory_order_relaxed) != nullptr) ++at;
    table.slots[at & table.mask].store(heap, std::memory_order_release);
  }
  bool grow() noexcept {
    const std::uint64_t slots = current_ == nullptr ? kSlotsFirst : 2 * (current_->mask + 1);
    std::unique_ptr<Table> next(new (std::nothrow) Table);
    if (!next) return false;
    next->slots.reset(new (std::nothrow) std::atomic<StreamHeap*>[slots]());
    if (!next->slots) return false;
    next->mask = slots - 1;
    for (std::uint64_t i = 0; current_ != nullptr && i <= current_->mask; ++i) {
      if (StreamHeap* heap = current_->slots[i].load(std::memory_order_relaxed)) put(*next, heap);
    }
    next->before = std::move(current_);
    current_ = std::move(next);
    table_.store(current_.get(), std::memory_order_release);
    return true;
  }

  std::atomic<Table*> table_{nullptr};  ///< current_, for readers
  std::unique_ptr<Table> current_;
  std::uint64_t count_ = 0;
};

}  // namespace ashlar::inline v0::cache
