// One stream's memory: its two pools, its pending frees, its epochs. Everything here is done under
// the heap's lock and nothing here calls the device.
//
// Purpose: a hit and a plain free touch this object and nothing that another stream touches.
// Thread safety: each member says; "locked" means the caller holds `lock`.
//
// Invariants:
//   (1) a free block's stamp is at most `epoch`; work that used its bytes was enqueued before
//       `epoch` passed it;
//   (2) every stamp <= `completed` belongs to work known complete;
//   (3) spare nodes >= live blocks, so that a free with a stream never allocates;
//   (4) a pending block has at least one node, in a queue, in the unrecorded list or in a caller's
//       hands; when its last node is dropped it is released (C7);
//   (5) a queue holds one stream's events by their sequence, so a stuck stream delays only itself
//       (H8). The order is that of recording, but for two records that crossed on their way to the
//       driver;
//   (6) a heap serves one stream until that is dead, everything of it is complete and given away,
//       and no use note names it; then it may serve another. Who found it without a lock looks
//       again under it, or notes nothing, or only waits for the wrong stream.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <ashlar/base/spin_lock.h>
#include <ashlar/cache/heap_stats.h>
#include <ashlar/cache/page_map.h>
#include <ashlar/cache/use_node.h>

namespace ashlar::inline v0::cache {

class DeviceCache;

/// An event on the heap's own stream: when it is done, every stamp up to `covers` is complete.
struct EpochMark {
  EventSlot slot;
  std::uint64_t covers = 0;
  std::uint64_t sequence = 0;
};
inline constexpr unsigned kEpochMarksMax = 4;
inline constexpr std::uint64_t kEverything = ~std::uint64_t{0};

class StreamHeap {
 public:
  StreamHeap(DeviceCache& owner, Stream name, Bytes granule) noexcept
      : id(name.id.value()), cache(owner), stream(name), small_(granule), large_(granule) {}
  ~StreamHeap() {
    // One by one: a chain of owners would be destroyed by recursion.
    while (slabs_) slabs_ = std::unique_ptr<NodeSlab>(slabs_->before.release());
  }
  StreamHeap(const StreamHeap&) = delete;
  StreamHeap& operator=(const StreamHeap&) = delete;

  block::BlockPool& pool(bool is_small) noexcept { return is_small ? small_ : large_; }
  const block::BlockPool& pool(bool is_small) const noexcept { return is_small ? small_ : large_; }

  /// Locked. Makes sure that invariant 3 outlives `n` more live blocks or nodes taken. False when
  /// the host has no memory.
  bool reserve_nodes(unsigned n) noexcept {
    return spare_nodes_ >= live_blocks() + n || grow_nodes();
  }
  /// Locked. REQUIRES: a spare node.
  UseNode* take_node() noexcept;
  /// Locked. Nobody may wait for the node's event any more.
  void give_node(UseNode* node) noexcept;
  /// The node, of another heap perhaps, is a use by this heap's stream. False, and it is not, when
  /// the heap is just being given to another: then the one that was named is dead, and all its work
  /// complete.
  bool refer(UseNode* node) noexcept {
    references.fetch_add(1);
    node->stream = this;
    if (life.load() != Life::kPassing) [[likely]]
      return true;
    node->stream = nullptr;
    references.fetch_sub(1);
    return false;
  }

  /// Locked. Is this the heap of that stream, and the stream not dead?
  bool serves(const Stream& who) const noexcept {
    return stream.id == who.id && life.load(std::memory_order_relaxed) == Life::kAlive;
  }
  /// Locked, reclaiming. Is the stream dead, and nothing left of it (invariant 6)?
  bool is_forgotten() const noexcept;
  /// Locked, reclaiming, under the streams lock. From now on nobody can refer to the heap until it
  /// serves another stream. False, and all is as it was, when something is left of its own.
  bool begin_passing() noexcept;
  /// Likewise. From now on the heap is that stream's. REQUIRES: begin_passing() held.
  void serve(const Stream& another) noexcept;

  /// Locked. The first use of a live or pending block.
  static UseNode* first_use(std::uint64_t user) noexcept {
    return reinterpret_cast<UseNode*>(static_cast<std::uintptr_t>(user));
  }
  /// A pointer as a block's or a segment's user word.
  static std::uint64_t as_word(const void* pointer) noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
  }

  /// Locked. A node whose event is recorded joins its stream's queue.
  void enqueue(UseNode* node) noexcept;
  /// Locked. A node whose event cannot be recorded now (or whose stream is gone) waits for a slow
  /// path.
  void add_unrecorded(UseNode* node) noexcept;
  UseNode* take_unrecorded() noexcept;
  /// Locked. The first of the unrecorded list; walk by next.
  const UseNode* unrecorded() const noexcept { return unrecorded_; }
  bool has_pending() const noexcept { return queues_ != nullptr; }
  bool has_unrecorded() const noexcept { return unrecorded_ != nullptr; }
  /// Locked. Takes up to `n` queues off the list, for polling outside the lock; the rest keep their
  /// order.
  unsigned take_queues(UseNode** out, unsigned n) noexcept;
  /// Locked. A queue comes back, behind the others (so that more than a poll's worth of stuck
  /// streams starve nobody), or into the one its stream has.
  void put_queue(UseNode* head) noexcept;
  /// Locked. Drops a queue's head; returns the queue's new head, or nullptr when it is empty.
  static UseNode* advance_queue(UseNode* head) noexcept;
  /// Locked. A node's work is complete: drops it, and releases the block with its last one.
  void finish_use(UseNode* node) noexcept;
  /// Locked. The first of the queue list; walk by next_queue.
  UseNode* queues() noexcept { return queues_; }
  /// Locked.
  unsigned queue_count() const noexcept {
    unsigned count = 0;
    for (const UseNode* head = queues_; head != nullptr; head = head->next_queue) ++count;
    return count;
  }
  /// Locked. The queue's head with the smallest sequence, or nullptr.
  UseNode* oldest_pending() const noexcept;
  /// Locked. Takes that queue off the list.
  UseNode* take_oldest_queue() noexcept;

  /// Locked. A live block without uses becomes free.
  void release_now(bool is_small, block::BlockIndex block) noexcept {
    block::BlockPool& in = pool(is_small);
    const block::PoolCounts& counts = in.counts();
    const Bytes size = in.size(block);
    const std::uint64_t free_blocks = counts.blocks[static_cast<unsigned>(BlockState::kFree)];
    const block::BlockIndex merged = in.release(block, epoch);
    newest_release = epoch;
    if (in.is_whole(merged)) return;  // so what was split there is not any more
    const bool is_one_more = counts.blocks[static_cast<unsigned>(BlockState::kFree)] > free_blocks;
    stats.on_split(is_small, size, is_one_more, counts, pool(!is_small).counts());
  }
  /// Locked.
  void add_stats(HeapStats::Sums* sums) const noexcept {
    stats.add_to(sums, small_.counts(), large_.counts());
  }

  std::uint64_t live_blocks() const noexcept {
    constexpr auto kLive = static_cast<unsigned>(BlockState::kLive);
    return small_.counts().blocks[kLive] + large_.counts().blocks[kLive];
  }

  /// At the allocator's end: destroys every event that stands in a slot of this heap's.
  void destroy_events() noexcept;
  /// Locked, quiescent: nullptr or the broken invariant.
  const char* validate() const noexcept;

  enum class Life : std::uint8_t {
    kAlive,
    kRetired,  ///< announced dead: `marks[0]`, if any, covers everything
    /// dead without a word, or its last event failed: only a device synchronisation covers it
    kLost,
    kPassing,  ///< dead, forgotten, and about to serve another stream
  };

  // A line of their own: other streams' threads look at whose heap this is, on their way to theirs.
  alignas(64) std::atomic<std::uint64_t> id;    ///< stream.id, for readers without a lock
  std::atomic<StreamHeap*> next_heap{nullptr};  ///< the device's list of heaps
  DeviceCache& cache;
  Stream stream;  ///< constant while anybody refers to it (invariant 6)

  alignas(64) mutable SpinLock lock;
  std::atomic<Life> life{Life::kAlive};
  unsigned pins = 0;                 ///< locked: allocations on their slow way
  HeapStats stats;                   // locked
  std::uint64_t epoch = 1;           // locked; the stamp of what is released now
  std::uint64_t newest_release = 0;  // locked
  std::uint64_t completed = 0;       // locked
  /// Locked. Polls and settlements that have nodes of this heap in hand now: its queues do not tell
  /// the whole story.
  unsigned in_hand = 0;
  std::atomic<std::uint64_t> references{0};  ///< nodes, of any heap, that name this one's stream

  // Guarded by the device's reclaim lock.
  /// the unrecorded uses a device synchronisation is about to answer
  UseNode* untold = nullptr;
  std::uint64_t told_before = 0;  ///< the stamps it answers
  /// [0, mark_count) stand; the last is where the next one is recorded
  EpochMark marks[kEpochMarksMax + 1];
  unsigned mark_count = 0;
  bool mark_failed = false;  ///< no event could be recorded when last one was needed

  std::atomic<bool> capturing{false};
  /// Threads that record an event on this stream's handle now: a retirement waits for them, and a
  /// passing on does not begin.
  std::atomic<unsigned> recording{0};

 private:
  [[gnu::cold]] bool grow_nodes() noexcept;
  struct NodeSlab {
    std::unique_ptr<NodeSlab> before;
    UseNode nodes[32];
  };

  block::BlockPool small_;
  block::BlockPool large_;
  UseNode* queues_ = nullptr;
  UseNode* queues_last_ = nullptr;
  UseNode* unrecorded_ = nullptr;
  UseNode* spare_ = nullptr;
  std::uint64_t spare_nodes_ = 0;
  std::unique_ptr<NodeSlab> slabs_;
};

}  // namespace ashlar::inline v0::cache
