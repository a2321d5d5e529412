// From any address to the segment that holds it, without a lock.
//
// Purpose: free(p) must find p's heap without a lock that streams share (row DEV-20's 67 sharded maps, ours: none).
// A radix tree over pages of 2 MiB: three levels of 4096, which covers 57-bit addresses. Segments are at least a page long
// but need not be page aligned (the driver promises 256 bytes), so a page has at most two of them: one that covers its first
// byte, one that begins later inside it.
// Thread safety: find() from any thread, lock-free; insert/erase are serialised by the map's own mutex.
//
// Invariants:
//   (1) a leaf entry's `first` covers the page's first byte; `second` begins inside the page after its first byte;
//   (2) tree nodes are never given back before the map dies, so a reader never follows a dangling pointer;
//   (3) segment records are type-stable: a reader with a stale address reads a record, perhaps another segment's, and
//       checks again under the heap's lock.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include <ashlar/base/types.h>

namespace ashlar {
inline namespace v0 {

class StreamHeap;

/// One segment of the device. Type-stable: recycled, never freed before the allocator.
struct SegmentRecord {
  std::atomic<std::uint64_t> base{0};
  std::atomic<std::uint64_t> end{0};
  std::atomic<StreamHeap*> heap{nullptr};  ///< changes only while the segment has no live or pending block
  bool is_small = false;
  std::uint64_t ordinal = 0;
  std::uint32_t index = 0;                 ///< in its pool (block::SegmentIndex); guarded by the heap's lock
  SegmentRecord* next = nullptr;           ///< free list, or a reclaim's own list
  SegmentRecord* made_before = nullptr;    ///< every record ever made, for the owner's destructor

  bool contains(Address a) const noexcept {
    return a.value() >= base.load(std::memory_order_relaxed) && a.value() < end.load(std::memory_order_relaxed);
  }
  Address address() const noexcept { return Address{base.load(std::memory_order_relaxed)}; }
  Bytes size() const noexcept {
    return Bytes{end.load(std::memory_order_relaxed) - base.load(std::memory_order_relaxed)};
  }
};

/// Segments are at least this long (invariant 1 rests on it).
inline constexpr Bytes kSegmentBytesMin = 2_MiB;

class PageMap {
 public:
  PageMap() noexcept;
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// The segment that holds `a`, or nullptr. Cost: four dependent loads.
  SegmentRecord* find(Address a) const noexcept {
    if ((a.value() >> kAddressBits) != 0 || !root_) return nullptr;
    const std::uint64_t page = a.value() >> kPageBits;
    const Middle* middle = root_->children[page >> (2 * kLevelBits)].load(std::memory_order_acquire);
    if (middle == nullptr) return nullptr;
    const Leaf* leaf = middle->children[(page >> kLevelBits) & kLevelMask].load(std::memory_order_acquire);
    if (leaf == nullptr) return nullptr;
    const Entry& entry = leaf->entries[page & kLevelMask];
    SegmentRecord* first = entry.first.load(std::memory_order_acquire);
    if (first != nullptr && first->contains(a)) return first;
    SegmentRecord* second = entry.second.load(std::memory_order_acquire);
    return second != nullptr && second->contains(a) ? second : nullptr;
  }

  /// Makes the tree's nodes for [base, base + size). False when the host has no memory or the address is beyond 57 bits.
  bool reserve(Address base, Bytes size) noexcept;
  /// Enters a segment. REQUIRES: reserve() succeeded for its range. Never allocates.
  void insert(SegmentRecord* segment) noexcept;
  /// Takes a segment out. Never allocates.
  void erase(SegmentRecord* segment) noexcept;

 private:
  static constexpr unsigned kPageBits = 21;
  static constexpr unsigned kLevelBits = 12;
  static constexpr unsigned kAddressBits = kPageBits + 3 * kLevelBits;
  static constexpr std::uint64_t kLevelMask = (std::uint64_t{1} << kLevelBits) - 1;

  struct Entry {
    std::atomic<SegmentRecord*> first{nullptr};
    std::atomic<SegmentRecord*> second{nullptr};
  };
  struct Leaf {
    std::array<Entry, kLevelMask + 1> entries;
  };
  struct Middle {
    std::array<std::atomic<Leaf*>, kLevelMask + 1> children{};
    ~Middle() {
      for (auto& child : children) delete child.load(std::memory_order_relaxed);
    }
  };
  struct Root {
    std::array<std::atomic<Middle*>, kLevelMask + 1> children{};
    ~Root() {
      for (auto& child : children) delete child.load(std::memory_order_relaxed);
    }
  };

  Entry& entry(std::uint64_t page) noexcept;
  template <class F>
  void for_pages(const SegmentRecord& segment, F&& f) noexcept;

  std::unique_ptr<Root> root_;
  std::mutex mutex_;
};

}  // namespace v0
}  // namespace ashlar
