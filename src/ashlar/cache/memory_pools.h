// The memory pools of one device: memory of their own for graphs and for users (rows DEV-7, DEV-8).
//
// Purpose: a captured graph's addresses are baked into it, so no other allocation may get them while it
// can be launched (C8). An allocation is routed to a pool by the stream it names. A pool has a heap for
// each stream, like any other heap of the device but for one flag: StreamHeap::is_reserved keeps its
// memory from other heaps, and from the driver.
// Thread safety: any thread; one lock, which comes after the reclaim lock. A route's filter is called
// under it: after end() has returned, no thread is in the filter. What the filter may call is bounded by
// FilterScope. release(), checkpoint() and restore() walk the pool's blocks without it, and where they change
// some, under the reclaim lock: meanwhile the pool is closed, and no other call changes it. A retirement needs no
// pool: it finds the stream's heaps in the device's list (Reclaimer::retire).
//
// What must eventually happen: after a pool is released, its memory becomes available to the device's
// other heaps and to the driver once its allocations are freed and all work enqueued before the release
// is done. If no capture was announced while the pool existed, no graph uses it: the release records an
// event for each heap, as a retirement does. Otherwise no event covers the launches of graphs, which may
// run on streams that the allocator does not know, so the release puts each heap in the state kLost
// (stream_life.h): only a synchronisation of the device shows that the work is done. Each block that is
// still live gets a use by its own stream, which may go on using it until the free.
//
// A block on loan from a dead stream's heap of the pool (stream_reuse.h) waits for its borrower when it is freed. A
// checkpoint holds blocks and no borrowers, so while one is live the pool has no checkpoints.
//
// Invariants:
//   (1) a pool in the list has uses > 0; its heaps have its id, one for each stream, and are reserved
//       unless the pool is closed;
//   (2) a route's pool is in the list, and has one route;
//   (3) every reserved heap is that of a pool in the list: nobody else can have its memory.
#pragma once

#include <memory>
#include <vector>

#include <ashlar/base/memory_pool.h>
#include <ashlar/base/mutex.h>
#include <ashlar/cache/pool_checkpoint.h>
#include <ashlar/cache/shared_state.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

class MemoryPools {
 public:
  MemoryPools(DeviceCache& cache, SharedState& shared) noexcept : cache_(cache), shared_(shared) {}

  // CachingAllocator's members of the same meaning.
  Status retain(MemoryPoolId id) noexcept ASHLAR_EXCLUDES(lock_);
  Status create(MemoryPoolId id, const MemoryPoolOptions& options) noexcept ASHLAR_EXCLUDES(lock_);
  Status begin(MemoryPoolId id, StreamFilter filter) noexcept ASHLAR_EXCLUDES(lock_);
  Status end(MemoryPoolId id) noexcept ASHLAR_EXCLUDES(lock_);
  Status release(MemoryPoolId id) noexcept ASHLAR_EXCLUDES(lock_);
  Result<PoolCheckpoint> checkpoint(DeviceId device, MemoryPoolId id) noexcept
      ASHLAR_EXCLUDES(lock_);
  Status restore(const PoolCheckpoint& to, RestoredPool* out) noexcept ASHLAR_EXCLUDES(lock_);

  /// Where an allocation goes; heap is nullptr if to no memory pool.
  struct Routed {
    StreamHeap* heap = nullptr;
    MemoryPoolId pool;
    Stream stream;  ///< whose heap it is: of the body of a conditional, the outermost parent's
  };
  /// The heap that serves an allocation on the stream: of the pool begun last whose filter accepts it.
  /// Makes the heap if the pool has none for the stream. The pool may be released before the heap's
  /// lock is taken (StreamHeap::is_reserved_for). Errors: as Reclaimer::make_heap; kBusy for a stream that has
  /// a body of its capture captured; kInvalidHandle for one that captures a body and was found destroyed.
  Result<Routed> route(const Stream& stream) noexcept ASHLAR_EXCLUDES(lock_);

  /// nullptr, or the broken invariant. Quiescent.
  const char* validate() const noexcept ASHLAR_EXCLUDES(lock_);

 private:
  friend struct CachePeer;
  static constexpr std::uint64_t kAnyCapture = ~std::uint64_t{0};
  struct Pool {
    MemoryPoolId id;
    std::uint64_t uses = 1;
    MemoryPoolOptions options;
    std::vector<StreamHeap*> heaps;
    /// of no other pool of this process: a pool that was released may be made again under its name
    std::uint64_t serial = 0;
    /// SharedState::captures_begun when it was made; kAnyCapture if one was announced then
    std::uint64_t captures_before = 0;
    bool is_closed = false;  ///< a call changes the pool as a whole: no other may change it
  };
  struct Route {
    Pool* pool;
    StreamFilter accepts;
  };

  Pool* find(MemoryPoolId id) const noexcept ASHLAR_REQUIRES(lock_);
  /// The pool, made if it is new, with one use more. kHostOutOfMemory; kBusy if it is closed.
  Result<Pool*> use(MemoryPoolId id) noexcept ASHLAR_REQUIRES(lock_);
  /// A new pool with one use. kHostOutOfMemory.
  Result<Pool*> make(MemoryPoolId id, const MemoryPoolOptions& options) noexcept
      ASHLAR_REQUIRES(lock_);
  /// The pool, closed until open(). kNotFound; kBusy if it is begun, or closed already.
  Result<Pool*> close(MemoryPoolId id) noexcept ASHLAR_REQUIRES(lock_);
  void open(Pool* pool) noexcept ASHLAR_EXCLUDES(lock_);
  /// Gives up a use of the pool. If it was the last one: the pool, closed, which still counts that use, so that a
  /// release that fails can open it again. nullptr if the pool has more uses.
  Result<Pool*> give_up(MemoryPoolId id) noexcept ASHLAR_EXCLUDES(lock_);
  /// May a graph have been captured that uses the pool's memory?
  bool may_have_graphs(const Pool& pool) const noexcept {
    return pool.captures_before != shared_.captures_begun.load();
  }
  /// The pool's heap of that stream, or nullptr.
  static StreamHeap* heap_in(const Pool& pool, const Stream& stream) noexcept;
  /// What is known without a heap being made: true if the answer is in `*routed`. `own`: of a stream that
  /// captures a body, its own heap, else nullptr.
  bool find_heap(const Stream& stream, const StreamHeap* own, Routed* routed) const noexcept
      ASHLAR_REQUIRES(lock_);
  /// The pool of the innermost route that accepts the stream, or one that it captures a body for; or nullptr.
  Pool* pool_for(const Stream& stream, const StreamHeap* own) const noexcept ASHLAR_REQUIRES(lock_);

  DeviceCache& cache_;
  SharedState& shared_;
  mutable Mutex lock_;
  std::vector<std::unique_ptr<Pool>> pools_ ASHLAR_GUARDED_BY(lock_);
  std::vector<Route> routes_ ASHLAR_GUARDED_BY(lock_);  ///< the innermost last
  std::uint64_t route_changes_ ASHLAR_GUARDED_BY(lock_) = 0;
};

}  // namespace ashlar::inline v0::cache
