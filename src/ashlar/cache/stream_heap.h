// One stream's memory: its pools, the uses that its blocks wait for, its epochs. Nothing here calls
// the device.
//
// Purpose: a hit and a plain free touch this object and nothing that another stream touches.
// Thread safety: fields and members name the lock they need; the compiler checks it.
//
// Invariants:
//   (1) a free block's stamp is at most the epoch now; work that used its bytes was enqueued before
//       the epoch passed it;
//   (2) every stamp that the clock calls complete belongs to work known complete;
//   (3) spare use nodes >= live blocks, so that a free with a stream never allocates;
//   (4) a pending block has at least one node, in a queue, in the unrecorded list or in a taker's
//       hands; when its last node is dropped it is released (C7);
//   (5) a queue holds one stream's events by their sequence (pending_uses.h);
//   (6) a heap serves one stream, of one memory pool, until that is dead, all of its memory complete and given away, and
//       no use node names it; then it may serve another (stream_life.h). A thread that found the
//       heap without its lock checks serves() under it;
//   (7) a heap remembers places exactly if it has a log of one of its pools;
//   (8) its loans are the live and pending blocks of other heaps that its stream borrows, by their pool.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include <ashlar/base/memory_pool.h>
#include <ashlar/base/spin_lock.h>
#include <ashlar/block/block_pool.h>
#include <ashlar/cache/ask_again.h>
#include <ashlar/cache/config.h>
#include <ashlar/cache/epoch_clock.h>
#include <ashlar/cache/epoch_marks.h>
#include <ashlar/cache/heap_stats.h>
#include <ashlar/cache/host_refusals.h>
#include <ashlar/cache/page_map.h>
#include <ashlar/cache/pending_uses.h>
#include <ashlar/cache/place_log.h>
#include <ashlar/cache/reclaim_lock.h>
#include <ashlar/cache/request.h>
#include <ashlar/cache/steal_turns.h>
#include <ashlar/cache/stream_life.h>

namespace ashlar::inline v0::cache {

class DeviceCache;

/// Every stream's identity is below this: CUDA counts streams from 1, and Reclaimer::make_heap refuses
/// others. Numbers from here on are the keys of memory pools' heaps.
inline constexpr std::uint64_t kStreamIdEnd = std::uint64_t{1} << 63;

/// The maximum number of free blocks that a walk looks at before it lets go of the heap's lock (C31).
inline constexpr unsigned kLooksPerHold = 64;

/// What a heap's misses leave behind.
struct MissState {
  unsigned under_way = 0;                 ///< while there is one, the heap stays its stream's
  bool remembers = false;                 ///< has_places(): a hit asks this alone (invariant 7)
  std::array<StealTurns, kPools> steals;  ///< by pool
  /// by pool, with Move::kEager: since a miss on it last asked the driver for memory
  std::array<unsigned, kPools> moves{};
  /// by pool: where its blocks lay, once the heap has been short of pages; nullptr before
  std::array<std::unique_ptr<PlaceLog>, kPools> places;

  bool has_places() const noexcept {
    return std::any_of(places.begin(), places.end(),
                       [](const auto& log) { return log != nullptr; });
  }
};

/// The memory pool that a heap's memory belongs to.
struct PoolMembership {
  MemoryPoolId id;            ///< constant while anybody refers to the heap (invariant 6)
  MemoryPoolOptions options;  ///< likewise
  /// The pool is in use: the memory goes to nobody outside it (C8). Written under the heap's lock and
  /// the role `reclaiming`.
  std::atomic<bool> is_reserved;
  /// A call reads or changes the pool as a whole: no allocation begins in the heap. Written likewise.
  std::atomic<bool> is_suspended = false;
};

/// The lists that a heap is in.
struct HeapLinks {
  std::atomic<StreamHeap*> next{nullptr};  ///< the device's list of heaps
  StreamHeap* next_of_handle = nullptr;    ///< HandleIndex; by the list's lock
  std::atomic<bool> is_noted{false};       ///< GiveBackList
  StreamHeap* next_noted = nullptr;        ///< likewise
  StreamHeap* previous_noted = nullptr;    ///< likewise
  bool waits_noted = false;                ///< likewise: in its list of those that wait
};

/// What a heap's stream borrows of other heaps (StreamReuse::lend), by pool. Thread safety: any thread; a lender's lock is not
/// its borrower's.
class Loans {
 public:
  Bytes bytes(PoolId pool) const noexcept {
    return Bytes{bytes_[index_of(pool)].load(std::memory_order_relaxed)};
  }
  void add(PoolId pool, Bytes size) noexcept {
    bytes_[index_of(pool)].fetch_add(size.count(), std::memory_order_relaxed);
  }
  void remove(PoolId pool, Bytes size) noexcept {
    bytes_[index_of(pool)].fetch_sub(size.count(), std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kPools> bytes_{};
};

/// Whose memory a heap holds.
struct HeapOwner {
  Stream stream;
  MemoryPoolId pool;
  /// what the heap is found by: the stream's identity, or a number of its own for a memory pool's heap
  StreamId key;
  MemoryPoolOptions options{};

  static HeapOwner of(const Stream& stream) noexcept { return {stream, {}, stream.id}; }
};

/// The event that covers all work of a retired stream. Written under the reclaim lock before
/// StreamLife::retire(); from then on constant, and read by whoever refers to the heap, until the
/// heap serves another stream.
struct LastEvent {
  EventSlot slot;
  std::uint64_t sequence = 0;  ///< of its recording on the device
  AskAgain<64> ask_again;      ///< by calls that look for forgotten heaps; under the reclaim lock
};

/// The bytes of a pool's segments that have memory.
inline Bytes mapped_bytes(const block::PoolCounts& counts) noexcept {
  return counts.segment_bytes - counts.bytes[static_cast<unsigned>(BlockState::kUnmapped)];
}

/// The blocks of a heap, by PoolId.
struct BlockPools {
  explicit BlockPools(Bytes granule) noexcept : small(granule), large(granule) {}
  block::BlockPool small;
  block::BlockPool large;
};

/// What StreamHeap::change_live_uses() does to the uses by one stream.
enum class LiveUses : std::uint8_t {
  kAdd,   ///< notes one, where there is none
  kDrop,  ///< undoes that. REQUIRES: there was none before
  // The stream captures the body of a conditional.
  kAddOfBody,   ///< notes a use by all of the body (InGraph::kBody)
  kDropOfBody,  ///< undoes that
  kPassOn,      ///< the body is over: what it uses its parent's stream uses
};

class StreamHeap {
 public:
  StreamHeap(DeviceCache& in, const HeapOwner& owner, Bytes granule) noexcept
      : id(owner.key.value()),
        cache(in),
        stream(owner.stream),
        membership{owner.pool, owner.options, !owner.pool.is_default()},
        pools_(granule) {}
  ~StreamHeap() = default;
  StreamHeap(const StreamHeap&) = delete;
  StreamHeap& operator=(const StreamHeap&) = delete;

  block::BlockPool& pool(PoolId pool) noexcept ASHLAR_REQUIRES(lock) {
    return pool == PoolId::kSmall ? pools_.small : pools_.large;
  }
  const block::BlockPool& pool(PoolId pool) const noexcept ASHLAR_REQUIRES(lock) {
    return pool == PoolId::kSmall ? pools_.small : pools_.large;
  }
  bool has_memory() const noexcept ASHLAR_REQUIRES(lock) {
    return mapped_bytes(pools_.small.counts()) + mapped_bytes(pools_.large.counts()) != Bytes{};
  }
  std::uint64_t live_blocks() const noexcept ASHLAR_REQUIRES(lock) {
    return pools_.small.counts().blocks[kLive] + pools_.large.counts().blocks[kLive];
  }

  // Taking and releasing blocks.
  /// Makes sure that invariant 3 outlives `n` more live blocks or nodes taken. False if the host
  /// has no memory, which is noted (host_refusals.h).
  bool reserve_nodes(unsigned n) noexcept ASHLAR_REQUIRES(lock) {
    if (uses.nodes().reserve(live_blocks() + n)) [[likely]]
      return true;
    HostRefusals::note();
    return false;
  }
  /// Serves the request from the heap's own free blocks; the null address if none fits, or the host
  /// has no memory for a node or a record (noted). Inline: stream_heap_inl.h.
  Address take_fit(const Request& request, const Config& config) noexcept ASHLAR_REQUIRES(lock);
  /// The same, out of line, for slow paths: the null address if none fits, kHostOutOfMemory if the
  /// host has no memory.
  Result<Address> search(const Request& request) noexcept ASHLAR_REQUIRES(lock);
  /// Hands out `block`, which is free and large enough; `owner` is the node of the stream that it
  /// is lent to, or nullptr. The null address if the host has no memory (noted).
  Address take_block(const Request& request, block::BlockIndex block, UseNode* owner) noexcept
      ASHLAR_REQUIRES(lock);
  /// A live block without uses, or a pending one without any left, becomes free.
  void release(PoolId which, block::BlockIndex block) noexcept ASHLAR_REQUIRES(lock);
  /// A node's work is complete: drops it, and releases the block with its last one.
  void finish_use(UseNode* node) noexcept ASHLAR_REQUIRES(lock);

  // Uses of a block by streams; a block's user word points to its first use.
  static UseNode* first_use(std::uint64_t user) noexcept {
    return reinterpret_cast<UseNode*>(static_cast<std::uintptr_t>(user));
  }
  /// A pointer as a block's or a segment's user word.
  static std::uint64_t as_word(const void* pointer) noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
  }
  /// Is `user` the heap's own stream, or among the block's uses? The heap's own stream needs no node:
  /// what the heap hands out again is ordered behind its work (epochs; C6). A use that is only in a graph
  /// is none: it does not stand for work that is announced now.
  bool has_use(PoolId which, block::BlockIndex block, const StreamHeap& user) const noexcept
      ASHLAR_REQUIRES(lock);
  /// Drops the live block's uses by streams that are finished, and those that are only in a graph: a block
  /// that lives long would keep a node, and the heap, of every stream that ever used it (C29). `also`: those
  /// by that one too.
  void drop_finished_uses(PoolId which, block::BlockIndex block,
                          const StreamHeap* also = nullptr) noexcept ASHLAR_REQUIRES(lock);
  /// Notes a use of the block by the stream of `user`; a stream that is dead and forgotten uses
  /// nothing any more. REQUIRES: a spare node.
  void add_use(PoolId which, block::BlockIndex block, StreamHeap& user) noexcept
      ASHLAR_REQUIRES(lock);
  /// The block's part of what the body's end changes: kDropOfBody or kPassOn.
  void end_body_uses(PoolId which, block::BlockIndex block, StreamHeap& body,
                     LiveUses change) noexcept ASHLAR_REQUIRES(lock);
  /// Changes the uses by `user` of every live block, up to the first that fails: live_uses.cc. False if the
  /// host has no memory for a use. Lets go of the lock between slices (C31), and of the reclaim lock too if
  /// it is given (C30). What becomes live meanwhile may be passed over. REQUIRES: with a reclaim lock, the
  /// heap is suspended and has no miss under way, so that no block becomes live and the segments stay.
  bool change_live_uses(StreamHeap& user, LiveUses change, ReclaimLock* lets_in) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(lock);
  /// The node, perhaps of another heap, becomes a use by this heap's stream. False as
  /// StreamLife::refer.
  bool refer(UseNode* node) noexcept {
    if (!life.refer()) return false;
    node->user = this;
    return true;
  }

  // The stream it serves.
  /// Does the heap serve that stream, and is the stream alive?
  bool serves(const Stream& who) const noexcept ASHLAR_REQUIRES(lock) {
    return stream.id == who.id && life.is_alive_relaxed();
  }
  /// Does the memory belong to a memory pool in use (C8)? For the holder of the lock, or of the role
  /// `reclaiming`; to others the answer may be out of date.
  bool is_reserved() const noexcept {
    return membership.is_reserved.load(std::memory_order_relaxed);
  }
  /// May the pool in use lend to allocations outside of memory pools, in place of an out-of-memory? For
  /// whom is_reserved() is.
  bool overflows() const noexcept {
    return is_reserved() && membership.options.overflow && !membership.is_suspended.load();
  }
  /// Does the heap hold that stream's memory in that memory pool, is the pool in use, and may an allocation
  /// begin?
  bool is_reserved_for(const Stream& who, MemoryPoolId memory_pool) const noexcept
      ASHLAR_REQUIRES(lock) {
    return stream.id == who.id && membership.id == memory_pool && is_reserved() &&
           !membership.is_suspended.load(std::memory_order_relaxed);
  }
  /// Is the stream dead, and nothing left of it (invariant 6)?
  bool is_forgotten() const noexcept ASHLAR_REQUIRES(lock, reclaiming);
  /// From now on nobody can refer to the heap until it serves another stream. False, and all is as
  /// it was, if something is left of its own.
  bool begin_passing() noexcept ASHLAR_REQUIRES(lock, reclaiming);
  /// From now on the heap is that owner's. REQUIRES: begin_passing() returned true.
  void serve(const HeapOwner& another) noexcept ASHLAR_REQUIRES(lock, reclaiming);

  void add_stats(HeapStats::Sums* sums) const noexcept ASHLAR_REQUIRES(lock) {
    stats.add_to(sums, pool_counts());
  }
  void reset_peak_stats() noexcept ASHLAR_REQUIRES(lock) { stats.reset_peaks(pool_counts()); }
  void reset_accumulated_stats() noexcept ASHLAR_REQUIRES(lock) {
    stats.reset_accumulated(pool_counts());
  }
  /// At the allocator's end: destroys every event in a slot of this heap's. No other thread is
  /// left, and the device is called, so no lock is held.
  void destroy_events() noexcept ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    marks.destroy_events();
    uses.nodes().destroy_events();
    static_cast<void>(EventPool::destroy(last_event.slot));
  }
  /// nullptr or the broken invariant. The heap is quiescent.
  const char* validate() const noexcept ASHLAR_REQUIRES(lock);

  // On a cache line of their own: threads of other streams read `id` and `links` while they look for their own heap.
  alignas(64) std::atomic<std::uint64_t> id;  ///< HeapOwner::key
  HeapLinks links ASHLAR_UNGUARDED;           ///< its comments say
  DeviceCache& cache;
  Stream stream ASHLAR_UNGUARDED;  ///< constant while anybody refers to it (invariant 6)
  PoolMembership membership ASHLAR_UNGUARDED;  ///< its comments say

  alignas(64) mutable SpinLock lock;
  MissState misses ASHLAR_GUARDED_BY(lock);
  StreamLife life ASHLAR_UNGUARDED;  ///< atomics
  HeapStats stats ASHLAR_GUARDED_BY(lock);
  EpochClock clock ASHLAR_GUARDED_BY(lock);
  PendingUses uses ASHLAR_GUARDED_BY(lock);
  EpochMarks marks ASHLAR_GUARDED_BY(reclaiming);
  LastEvent last_event ASHLAR_UNGUARDED;  ///< see there
  Loans loans ASHLAR_UNGUARDED;           ///< atomics

 private:
  static constexpr auto kLive = static_cast<unsigned>(BlockState::kLive);
  static constexpr auto kFree = static_cast<unsigned>(BlockState::kFree);

  /// Is nothing in the pool that the dead stream owns?
  bool is_free_of_stream(PoolId which) const noexcept ASHLAR_REQUIRES(lock);
  HeapStats::CountsByPool pool_counts() const noexcept ASHLAR_REQUIRES(lock) {
    return {&pools_.small.counts(), &pools_.large.counts()};
  }
  /// Adds up the use nodes of the pool's live and pending blocks. nullptr, or what is broken.
  const char* validate_uses(PoolId which, std::uint64_t* live,
                            std::uint64_t* pending) const noexcept ASHLAR_REQUIRES(lock);
  static void unlink_use(block::BlockPool& in, block::BlockIndex block, UseNode* use) noexcept;
  Address take_now(block::BlockPool& in, const Request& request, const Config& config,
                   block::BlockIndex block, UseNode* owner) noexcept ASHLAR_REQUIRES(lock);
  /// A block of max_split_size or more is handed out (+1) or ended (-1): counted device-wide.
  [[gnu::cold]] void count_oversize(int change) noexcept;

  // By name, not in an array: then the address of the one that serves a hit is a constant offset
  // (measured: a tenth of a pair's instructions). A third pool needs another case in pool().
  BlockPools pools_ ASHLAR_GUARDED_BY(lock);
};

/// Is the use, of a block of the heap, only a part of a graph whose capture has ended? Its kernels have not
/// run, and where they do is the business of those who launch the graph, since the block is a memory pool's
/// (C8, DEV-7). Of a block outside of memory pools, or where the stream captures again, that is not known.
inline bool is_only_in_graph(const StreamHeap& heap, const UseNode& use) noexcept {
  return use.in_graph != InGraph::kNo && heap.is_reserved() && !use.user->life.is_capturing();
}

/// The stream in whose capture, or in bodies inside it, that stream captures; itself if it captures no body.
/// Both are streams' own heaps.
inline const StreamHeap& outermost_of(const StreamHeap& own) noexcept {
  const StreamHeap* outermost = &own;
  while (const StreamHeap* const parent = outermost->life.parent()) outermost = parent;
  return *outermost;
}

/// Is the user, a stream's own heap, the heap's stream, or does it capture a body inside the capture of that?
/// Then it allocates from the heap in its turn, and what it does comes before what the other does next.
inline bool is_in_order_of(const StreamHeap& heap, const StreamHeap& user) noexcept {
  const StreamHeap& outermost = outermost_of(user);
  return outermost.stream.id == heap.stream.id && &outermost.cache == &heap.cache;
}

/// The use, of a body that is over, becomes one by the body's parent. False as StreamLife::refer.
bool pass_to_parent(StreamHeap& parent, UseNode* node) noexcept;

/// The record of a segment in a pool.
inline DeviceSegment* record_of(const block::SegmentView& segment) noexcept {
  return reinterpret_cast<DeviceSegment*>(static_cast<std::uintptr_t>(segment.user));
}

/// The free block behind `block` in the order of its pool, for a walk that has looked at `looks`
/// blocks so far: after every kLooksPerHold of them it lets go of the lock and takes it again. What
/// changes meanwhile in front of the walk it sees, what changes behind it does not.
inline block::BlockIndex next_fit(const StreamHeap& heap, PoolId id, block::BlockIndex block,
                                  unsigned looks) noexcept ASHLAR_REQUIRES(heap.lock) {
  const block::BlockPool& pool = heap.pool(id);
  count_steps(1);
  if (looks % kLooksPerHold != 0) return pool.next_fit(block);
  const block::BlockView seen = pool.view(block);
  heap.lock.let_others_in();
  return pool.next_fit(seen.size, seen.position);
}

/// kInvalidHandle if the heap serves that stream no more.
inline Status check_serves(StreamHeap& heap, const Stream& stream) noexcept
    ASHLAR_EXCLUDES(heap.lock) {
  const Guard guard(heap.lock);
  ASHLAR_REQUIRE(heap.serves(stream), Code::kInvalidHandle,
                 "the stream was retired or its handle reused");
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
