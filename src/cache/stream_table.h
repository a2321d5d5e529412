// From a stream's identity to its heap, without a lock for readers.
//
// Purpose: the first step of every allocation. Open addressing over atomics; a full table is replaced by a larger one and
// kept until the end, so a reader in the middle of a probe never reads freed memory.
// Thread safety: find() from any thread; insert() by one thread at a time (the device's streams lock). Nothing is taken out.
#pragma once

#include <atomic>
#include <memory>
#include <new>

#include <ashlar/cache/stream_heap.h>

namespace ashlar {
inline namespace v0 {

class StreamTable {
 public:
  /// The heap of that stream, or nullptr. Cost: one or two probes.
  StreamHeap* find(StreamId id) const noexcept {
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return nullptr;
    for (std::uint64_t at = hash(id);; ++at) {
      const Slot& slot = table->slots[at & table->mask];
      StreamHeap* heap = slot.heap.load(std::memory_order_acquire);
      if (heap == nullptr) {
        if (slot.used.load(std::memory_order_acquire)) continue;  // another stream is being entered there
        return nullptr;
      }
      if (slot.id.load(std::memory_order_relaxed) == id.value()) return heap;
    }
  }

  /// False when the host has no memory. REQUIRES: not in the table.
  bool insert(StreamId id, StreamHeap* heap) noexcept {
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr || 2 * (count_ + 1) > table->mask) {
      if (!grow()) return false;
      table = table_.load(std::memory_order_relaxed);
    }
    put(*table, id, heap);
    ++count_;
    return true;
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> id{0};
    std::atomic<StreamHeap*> heap{nullptr};
    std::atomic<bool> used{false};
  };
  struct Table {
    std::uint64_t mask = 0;
    std::unique_ptr<Slot[]> slots;
    std::unique_ptr<Table> before;
  };
  static constexpr std::uint64_t kSlotsFirst = 16;

  static std::uint64_t hash(StreamId id) noexcept {
    const std::uint64_t mixed = id.value() * 0x9E3779B97F4A7C15u;  // Fibonacci hashing (Knuth, TAOCP 3, 6.4)
    return mixed >> 32;
  }
  static void put(Table& table, StreamId id, StreamHeap* heap) noexcept {
    for (std::uint64_t at = hash(id);; ++at) {
      Slot& slot = table.slots[at & table.mask];
      if (slot.used.load(std::memory_order_relaxed)) continue;
      slot.id.store(id.value(), std::memory_order_relaxed);
      slot.used.store(true, std::memory_order_release);
      slot.heap.store(heap, std::memory_order_release);
      return;
    }
  }
  bool grow() noexcept {
    Table* old = table_.load(std::memory_order_relaxed);
    const std::uint64_t slots = old == nullptr ? kSlotsFirst : 2 * (old->mask + 1);
    std::unique_ptr<Table> next(new (std::nothrow) Table);
    if (!next) return false;
    next->slots.reset(new (std::nothrow) Slot[slots]);
    if (!next->slots) return false;
    next->mask = slots - 1;
    for (std::uint64_t i = 0; old != nullptr && i <= old->mask; ++i) {
      const Slot& slot = old->slots[i];
      if (StreamHeap* heap = slot.heap.load(std::memory_order_relaxed)) {
        put(*next, StreamId{slot.id.load(std::memory_order_relaxed)}, heap);
      }
    }
    next->before = std::move(current_);
    current_ = std::move(next);
    table_.store(current_.get(), std::memory_order_release);
    return true;
  }

  std::atomic<Table*> table_{nullptr};
  std::unique_ptr<Table> current_;
  std::uint64_t count_ = 0;
};

}  // namespace v0
}  // namespace ashlar
