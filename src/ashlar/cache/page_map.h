// From any address to the heap that holds it, without a lock.
//
// Purpose: free(p) must find p's heap without a lock that streams share. PyTorch shards such a map
// over 67 locks; this one has none for readers (row DEV-20). A radix tree over pages of 2 MiB:
// leaves of 4096 pages (8 GiB) under three levels of 256, which covers 57-bit addresses; small
// nodes, because an allocator that holds one segment pays for a node of each level. A direct-mapped
// cache of leaves, indexed by the low bits of their numbers, covers 256 GiB: a free then reaches
// its lock by three dependent loads, not five (measured: 5 % of a free with 10^4 blocks live). A
// page's entry is one byte, the number of its owner: it is the first cache miss of a free, and 160
// GB of blocks take 80 KB of bytes (measured: a word per page cost a tenth of a free with 10^5
// blocks live). Segments are at least a page long but need not be page aligned (the driver promises
// 256 bytes), so a page has at most two owners: of the segment that covers its first byte, and of
// the one that begins later inside it. A page needs a word as well in two cases: a segment begins
// inside it, or its owner has no number because all 254 are given. Words are allocated for 64 pages
// at a time. Without a cache (Config::caches) segments are as short as their requests, so a page has many; then
// every block begins where its segment does, and the map is *by base*: a page's word names a table with a place
// for each address at which a segment may begin.
// Thread safety: find() from any thread, lock-free; reserve/insert/erase are serialised by the
// map's own mutex.
//
// Invariants:
//   (1) a page's byte is the number of the owner of its first byte, or kWord: then its word is that
//       owner, or names the page's pair: `first` is that owner, `second` begins inside the page. A
//       page has a pair from the first time on that room was made for a segment that begins inside
//       it;
//   (2) tree nodes, words, pairs and numbers are never given back before the map dies, so a reader
//       never follows a dangling pointer;
//   (3) what a reader finds may be out of date: it looks again under the heap's lock, where only
//       the address of a live block is found;
//   (4) exactly the pages of the segments entered have an owner: a segment that was taken out leaves
//       none;
//   (5) of a map by base, in place of (1) and (4): every page's byte is kNobody or kWord, its word names its table
//       of bases, and exactly the bases of the segments entered have an owner.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <ashlar/base/memory_pool.h>
#include <ashlar/base/mutex.h>
#include <ashlar/base/pool_id.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/block/position.h>
#include <ashlar/cache/page_table.h>

namespace ashlar::inline v0::cache {

class StreamHeap;

/// The owner of a range: a heap, and one of its pools. One word, so that readers need no lock.
class Owner {
 public:
  constexpr Owner() = default;
  Owner(StreamHeap* heap, PoolId pool) noexcept
      : word_(reinterpret_cast<std::uintptr_t>(heap) | index_of(pool)) {}
  static Owner from_word(std::uintptr_t word) noexcept {
    Owner owner;
    owner.word_ = word;
    return owner;
  }
  StreamHeap* heap() const noexcept { return reinterpret_cast<StreamHeap*>(word_ & ~kPoolBits); }
  PoolId pool() const noexcept { return static_cast<PoolId>(word_ & kPoolBits); }
  bool is_nobody() const noexcept { return word_ == 0; }
  std::uintptr_t word() const noexcept { return word_; }
  friend bool operator==(const Owner&, const Owner&) = default;

 private:
  /// A heap's alignment leaves its address's low bits to the pool's number.
  static constexpr std::uintptr_t kPoolBits = kPoolsMax - 1;

  std::uintptr_t word_ = 0;
};

/// One segment of the device. Recycled, and freed with the allocator.
struct DeviceSegment {
  static constexpr std::uint64_t kNoStamp = ~std::uint64_t{0};

  Address base;
  Bytes size;
  /// changes only while the segment has no live or pending block
  std::atomic<StreamHeap*> heap{nullptr};
  PoolId pool = PoolId::kLarge;
  std::uint64_t ordinal = 0;
  /// Where its memory is from.
  struct Origin {
    device::Device* source = nullptr;  ///< Driver::segment_alloc
    bool is_of_stream = false;  ///< Driver::stream_alloc: may go back behind its stream's work
  };
  Origin origin;
  block::Position position{};  ///< behind every older segment's (segment_ledger.h)
  /// Its place in a heap's pool, guarded by that heap's lock.
  struct Entry {
    std::uint32_t index = 0;  ///< block::SegmentIndex
    /// Whose memory it is for a history: that heap's, from when it is entered there until another heap has it or
    /// it is about to go back to the driver. Written under the lock of the heap that gets or loses it and, while
    /// the history is on, with its event (HistoryLog::note_passing).
    std::atomic<const StreamHeap*> shown_in{nullptr};
  };
  Entry entry;
  /// What the way back to the driver knows of it (segment_release.h); by the role `reclaiming`.
  struct Idle {
    /// the last pass over the idle segments that asked the driver to take it back
    std::uint64_t asked_in = 0;
    /// The collection that first found it idle, and the stamp of its block then: another stamp is that of a
    /// later use.
    std::uint64_t since = 0;
    std::uint64_t stamp = kNoStamp;
  };
  Idle idle;
  /// Of its memory, if that came with the segment; else each page has one (page_table.h).
  std::uint64_t generation = 0;
  /// How many pinned ranges are in it, and calls that read its pages: while there are any, neither the
  /// segment nor its addresses go back (pins.h).
  std::atomic<std::uint32_t> holds{0};
  PageTable page_table;            ///< made for a paged segment, whose memory comes page by page
  DeviceSegment* older = nullptr;  ///< the ledger's list of records in use, by ordinal
  DeviceSegment* newer = nullptr;  ///< in that list; or the next spare record
  DeviceSegment* made_before = nullptr;  ///< every record ever made, for the owner's destructor

  Owner owner() const noexcept { return {heap.load(std::memory_order_relaxed), pool}; }
  bool is_held() const noexcept { return holds.load(std::memory_order_acquire) != 0; }
};

/// Segments are at least this long: invariant 1 rests on it. check_config() holds every setting to it,
/// and segment_size() every size.
inline constexpr Bytes kSegmentBytesMin = 2_MiB;

/// What a device must not hand out: no processor's address space is as large today.
inline constexpr Status kAddressTooHigh{
    Code::kUnsupported, "the device's address has over 57 bits, more than the page map covers"};

class PageMap {
 public:
  explicit PageMap(bool is_by_base = false) noexcept : is_by_base_(is_by_base) {}
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// The owners of the segments on an address's page, at most two.
  struct Found {
    Owner first;
    Owner second;
    bool leads_to(Owner owner) const noexcept { return first == owner || second == owner; }
  };
  /// Cost: three dependent loads if the leaf is cached, else five (the first level is part of
  /// the map itself); one more where the page has a word, two where that names a pair.
  Found find(Address a) const noexcept {
    const std::uint64_t page = a.value() >> kPageBits;
    const Leaf* leaf = cached_leaf(page >> kLeafBits).load(std::memory_order_acquire);
    if (leaf != nullptr && leaf->number == page >> kLeafBits) [[likely]]
      return found(*leaf, a);
    return (a.value() >> kAddressBits) == 0 ? find_by_descent(a) : Found{};
  }

  /// Makes the nodes, words and pairs that a segment of that owner at [base, base + size) needs.
  /// kHostOutOfMemory if the host has no memory; kUnsupported if an address of the segment has more
  /// than 57 bits.
  Status reserve(Address base, Bytes size, Owner owner) noexcept ASHLAR_EXCLUDES(mutex_);
  /// Enters a segment under its owner, or its new owner. REQUIRES: reserve() succeeded for both.
  /// Never allocates.
  void insert(const DeviceSegment& segment) noexcept ASHLAR_EXCLUDES(mutex_);
  /// Takes a segment out. Never allocates.
  void erase(const DeviceSegment& segment) noexcept ASHLAR_EXCLUDES(mutex_);

  /// Pages that a segment touches, its first and its last one included.
  static std::uint64_t pages_of(Address base, Bytes size) noexcept {
    return ((base.value() + (size.count() - 1)) >> kPageBits) - (base.value() >> kPageBits) + 1;
  }
  /// The bases of two segments of a map by base are at least so far apart: CUDA promises as much.
  static constexpr Bytes kBaseAlignment{256};
  bool is_by_base() const noexcept { return is_by_base_; }
  /// What a segment adds to owner_count().
  std::uint64_t owners_of(Address base, Bytes size) const noexcept {
    return is_by_base_ ? 1 : pages_of(base, size);
  }
  /// The sum of owners_of() over the segments entered (invariants 4 and 5). For validate(). Cost: visits
  /// every leaf.
  std::uint64_t owner_count() const noexcept ASHLAR_EXCLUDES(mutex_);

 private:
  static constexpr unsigned kPageBits = 21;
  static constexpr unsigned kLeafBits = 12;
  static constexpr unsigned kLevelBits = 8;
  static constexpr std::uint64_t kLeafPages = std::uint64_t{1} << kLeafBits;
  static constexpr unsigned kAddressBits = kPageBits + kLeafBits + 3 * kLevelBits;
  static constexpr std::uint64_t kFanOut = std::uint64_t{1} << kLevelBits;
  static constexpr std::uint64_t kLeafCacheSize = 32;

  /// A page's byte: kNobody, an owner's number, or kWord.
  using PageEntry = std::uint8_t;
  static constexpr PageEntry kNobody = 0;
  static constexpr PageEntry kWord = 255;  ///< the page's word says who owns it

  /// An owner's word, or a pair's address with kIsPair.
  using Word = std::atomic<std::uintptr_t>;
  /// The bit above those of a pool's number; heaps and pairs are aligned to more.
  static constexpr std::uintptr_t kIsPair = kPoolsMax;
  struct alignas(2 * kPoolsMax) Pair {
    Word first{0};
    Word second{0};
    Pair* made_before = nullptr;
  };
  /// The owners of the segments that begin in a page of a map by base.
  static constexpr std::uint64_t kBasesPerPage =
      (std::uint64_t{1} << kPageBits) / kBaseAlignment.count();
  struct Bases {
    std::array<Word, kBasesPerPage> of{};
    Bases* made_before = nullptr;
  };
  static constexpr std::uint64_t kWordsPages = 64;
  struct Words {
    std::array<Word, kWordsPages> of{};
    Words* made_before = nullptr;
  };
  struct Leaf {
    std::array<std::atomic<PageEntry>, kLeafPages> entries{};
    std::array<std::atomic<Words*>, kLeafPages / kWordsPages> words{};
    const std::uint64_t number;  ///< its pages' numbers, without the bits that choose an entry
    Leaf* made_before = nullptr;
    explicit Leaf(std::uint64_t its_number) noexcept : number(its_number) {}
  };
  template <class Child>
  struct Node {
    std::array<std::atomic<Child*>, kFanOut> children{};
    Node* made_before = nullptr;
  };
  using InnerOfLeaves = Node<Leaf>;
  using Inner = Node<InnerOfLeaves>;

  /// Which child of a node leads to the page; level 0 is the one above the leaves.
  static std::uint64_t index(std::uint64_t page, unsigned level) noexcept {
    return (page >> (kLeafBits + level * kLevelBits)) & (kFanOut - 1);
  }
  static std::uint64_t index_in_leaf(std::uint64_t page) noexcept {
    return page & (kLeafPages - 1);
  }
  /// Whether a segment at `base` begins inside the page, after the page's first byte. REQUIRES: the
  /// page is one of the segment's.
  static bool begins_inside(Address base, std::uint64_t page) noexcept {
    return (page << kPageBits) < base.value();
  }
  static std::uint64_t page_of(Address a) noexcept { return a.value() >> kPageBits; }
  static std::uint64_t index_of_base(Address a) noexcept {
    return (a.value() / kBaseAlignment.count()) % kBasesPerPage;
  }
  Found found(const Leaf& leaf, Address a) const noexcept {
    const std::uint64_t page = page_of(a);
    const PageEntry entry = leaf.entries[index_in_leaf(page)].load(std::memory_order_acquire);
    if (entry == kWord) [[unlikely]]
      return found_in_words(leaf, a);
    return {Owner::from_word(numbered_[entry].load(std::memory_order_relaxed)), Owner{}};
  }
  static Pair* pair_of(std::uintptr_t word) noexcept {
    return (word & kIsPair) != 0 ? reinterpret_cast<Pair*>(word & ~kIsPair) : nullptr;
  }
  std::atomic<const Leaf*>& cached_leaf(std::uint64_t leaf_number) noexcept {
    return leaf_cache_[leaf_number % kLeafCacheSize];
  }
  const std::atomic<const Leaf*>& cached_leaf(std::uint64_t leaf_number) const noexcept {
    return leaf_cache_[leaf_number % kLeafCacheSize];
  }
  Found find_by_descent(Address a) const noexcept;
  Found found_in_words(const Leaf& leaf, Address a) const noexcept;
  /// nullptr if there is none.
  Leaf* leaf_of(std::uint64_t page) const noexcept;
  template <class Child, class... Arguments>
  static Child* child_of(std::atomic<Child*>& slot, Child*& last_made,
                         Arguments... arguments) noexcept;
  PageEntry entry_of(Owner owner) noexcept ASHLAR_REQUIRES(mutex_);
  static Word* word_of(const Leaf& leaf, std::uint64_t page) noexcept;
  /// The rest of reserve(): false when the host has no memory.
  bool make_room(Address base, std::uint64_t end, Owner owner) noexcept ASHLAR_REQUIRES(mutex_);
  Word* make_word(Leaf& leaf, std::uint64_t page) noexcept ASHLAR_REQUIRES(mutex_);
  bool make_pair(Leaf& leaf, std::uint64_t page) noexcept ASHLAR_REQUIRES(mutex_);
  bool make_bases(Leaf& leaf, std::uint64_t page) noexcept ASHLAR_REQUIRES(mutex_);
  void set(const DeviceSegment& segment, Owner owner) noexcept ASHLAR_EXCLUDES(mutex_);
  void set_base(Address base, Owner owner) noexcept ASHLAR_REQUIRES(mutex_);
  /// The leaf is in the cache of leaves from now on.
  void remember(const Leaf& leaf) noexcept ASHLAR_REQUIRES(mutex_);

  const bool is_by_base_;
  /// the leaves in which a segment was entered or taken out last
  std::array<std::atomic<const Leaf*>, kLeafCacheSize> leaf_cache_{};
  std::array<Word, kWord> numbered_ ASHLAR_UNGUARDED{};  ///< owners by number; [kNobody] stays 0
  std::array<std::atomic<Inner*>, kFanOut> root_{};
  mutable Mutex mutex_;
  // Every node ever made, newest first: the destructor visits these and not each of their children.
  Inner* inners_ ASHLAR_GUARDED_BY(mutex_) = nullptr;
  InnerOfLeaves* inners_of_leaves_ ASHLAR_GUARDED_BY(mutex_) = nullptr;
  Leaf* leaves_ ASHLAR_GUARDED_BY(mutex_) = nullptr;
  Words* words_ ASHLAR_GUARDED_BY(mutex_) = nullptr;
  Pair* pairs_ ASHLAR_GUARDED_BY(mutex_) = nullptr;
  Bases* bases_ ASHLAR_GUARDED_BY(mutex_) = nullptr;
  PageEntry numbers_given_ ASHLAR_GUARDED_BY(mutex_) = 0;
};

}  // namespace ashlar::inline v0::cache
