// From any address to the heap that holds it, without a lock.
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
//   (3) what a reader finds may be out of date: it looks again under the heap's lock, where only a live block's address
//       is found.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include <ashlar/base/types.h>

namespace ashlar {
inline namespace v0 {

class StreamHeap;

/// Who holds a range: a heap, and which of its two pools. One word, so that readers need no lock.
class Owner {
 public:
  constexpr Owner() = default;
  Owner(StreamHeap* heap, bool is_small) noexcept : word_(reinterpret_cast<std::uintptr_t>(heap) | (is_small ? 1 : 0)) {}
  static Owner from_word(std::uintptr_t word) noexcept {
    Owner owner;
    owner.word_ = word;
    return owner;
  }
  StreamHeap* heap() const noexcept { return reinterpret_cast<StreamHeap*>(word_ & ~std::uintptr_t{1}); }
  bool is_small() const noexcept { return (word_ & 1) != 0; }
  bool is_nobody() const noexcept { return word_ == 0; }
  std::uintptr_t word() const noexcept { return word_; }
  friend bool operator==(const Owner&, const Owner&) = default;

 private:
  std::uintptr_t word_ = 0;
};

/// One segment of the device. Recycled, and freed with the allocator.
struct SegmentRecord {
  Address base;
  Bytes size;
  std::atomic<StreamHeap*> heap{nullptr};  ///< changes only while the segment has no live or pending block
  bool is_small = false;
  std::uint64_t ordinal = 0;
  std::uint32_t index = 0;                 ///< in its pool (block::SegmentIndex); guarded by the heap's lock
  SegmentRecord* next = nullptr;           ///< free list, or a reclaim's own list
  SegmentRecord* made_before = nullptr;    ///< every record ever made, for the owner's destructor

  Owner owner() const noexcept { return {heap.load(std::memory_order_relaxed), is_small}; }
};

/// Segments are at least this long (invariant 1 rests on it, and check_config holds every setting to it).
inline constexpr Bytes kSegmentBytesMin = 2_MiB;

class PageMap {
 public:
  PageMap() noexcept;
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// The at most two segments' owners on the page of an address.
  struct Found {
    Owner first;
    Owner second;
    bool leads_to(Owner owner) const noexcept { return first == owner || second == owner; }
  };
  /// Cost: four dependent loads.
  Found find(Address a) const noexcept {
    if ((a.value() >> kAddressBits) != 0 || !root_) return {};
    const std::uint64_t page = a.value() >> kPageBits;
    const Middle* middle = root_->children[page >> (2 * kLevelBits)].load(std::memory_order_acquire);
    if (middle == nullptr) return {};
    const Leaf* leaf = middle->children[(page >> kLevelBits) & kLevelMask].load(std::memory_order_acquire);
    if (leaf == nullptr) return {};
    const Entry& entry = leaf->entries[page & kLevelMask];
    return {Owner::from_word(entry.first.load(std::memory_order_acquire)),
            Owner::from_word(entry.second.load(std::memory_order_acquire))};
  }

  /// Makes the tree's nodes for [base, base + size). False when the host has no memory or the address is beyond 57 bits.
  bool reserve(Address base, Bytes size) noexcept;
  /// Enters a segment under its owner, or its new owner. REQUIRES: reserve() succeeded for its range. Never allocates.
  void insert(const SegmentRecord& segment) noexcept;
  /// Takes a segment out. Never allocates.
  void erase(const SegmentRecord& segment) noexcept;

 private:
  static constexpr unsigned kPageBits = 21;
  static constexpr unsigned kLevelBits = 12;
  static constexpr unsigned kAddressBits = kPageBits + 3 * kLevelBits;
  static constexpr std::uint64_t kLevelMask = (std::uint64_t{1} << kLevelBits) - 1;

  struct Entry {
    std::atomic<std::uintptr_t> first{0};
    std::atomic<std::uintptr_t> second{0};
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
  void set(const SegmentRecord& segment, Owner owner) noexcept;

  std::unique_ptr<Root> root_;
  std::mutex mutex_;
};

}  // namespace v0
}  // namespace ashlar
