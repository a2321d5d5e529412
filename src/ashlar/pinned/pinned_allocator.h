// The caching allocator of page-locked host memory: fast transfers between the host and devices without locking
// memory each time.
//
// Purpose: rows PIN-1 to PIN-6. Any thread allocates; the streams that use a block are recorded; the free never
// waits; the memory is available again when those uses are complete. It is a CachingAllocator (cache/) over one
// more device, the host's page-locked memory (pinned_space.h), and obeys the same clauses: what holds of a
// device's memory that other devices' streams use holds here. Blocks are split and merged, so that an allocation of at
// most 1 MiB (Config::small_request_max) has less than 512 bytes (Config::granule) more than it asked for, and a larger
// one 1 MiB more at most.
//
// Thread safety: every member from any thread. A thread allocates from one of several *arenas*, so that threads
// rarely share a lock.
//
// The caller's side:
//   (a) a stream that uses a block is named by record_use() after the work is enqueued and before the free;
//   (b) the stream is retired (caching().retire_stream()) before it is destroyed;
//   (c) a capture is announced (caching().begin_capture()) before it begins.
// What that means: \ref callers_contract.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/cache/caching_allocator.h>
#include <ashlar/pinned/pinned_space.h>

namespace ashlar::inline v0::pinned {

class Reaper;

/// The settings of a PinnedAllocator.
struct PinnedConfig {
  /// rounding, sizes of segments, limits and waits. `backing` has no effect: memory comes in segments
  cache::Config cache;
  PinnedSpaceOptions space;  ///< how memory is locked, on which node, and how much at most
  /// locked when the allocator is made, and kept for allocations until a trim; 0: nothing
  Bytes reserve;
  /// threads are spread over so many heaps, rounded up to a power of two, at most 64; 0: one for each core
  unsigned arenas = 0;
  /// A request is rounded up to a power of two, as PyTorch does it; statistics count what it was rounded to as
  /// what was asked for
  bool rounds_to_power_of_two = false;
  /// a thread frees every so many milliseconds what is done with; 0: no such thread, allocations do it
  std::uint32_t reap_ms = 0;
};

/// A caching allocator of page-locked host memory. See the head of this file.
class ASHLAR_API PinnedAllocator {
 public:
  /// Whether the calling thread's allocations go to a memory pool. The rules of StreamFilter hold.
  using ThreadFilter = std::function<bool()>;

  /// Makes an allocator of memory that all of `devices` can reach; `devices[i]` has DeviceId i and outlives it.
  /// The first of them locks the memory. Errors: as CachingAllocator::create; kInvalidArgument for an option
  /// out of its range; where `reserve` or `reap_ms` is set, those of the first allocation and kHostOutOfMemory.
  static Result<std::unique_ptr<PinnedAllocator>> create(std::span<device::Device* const> devices,
                                                         const PinnedConfig& config) noexcept;
  /// As ~CachingAllocator, in a forked child as well.
  ~PinnedAllocator();
  PinnedAllocator(const PinnedAllocator&) = delete;
  PinnedAllocator& operator=(const PinnedAllocator&) = delete;

  /// Allocates at least `size` bytes, aligned to Config::granule, which the CPU and all devices reach. Null for zero
  /// bytes. Its *context*, for interfaces that have one beside the address (PyTorch's DataPtr), is context_of() it.
  /// Errors and cost: as CachingAllocator::allocate.
  Result<Address> allocate(Bytes size, cache::OutOfMemory* account = nullptr) noexcept;
  /// What names the allocation for free_context() and record_use(). Null for null.
  static void* context_of(Address address) noexcept { return address.pointer(); }
  /// Ends the allocation at that address. Null is a no-op. Never waits. Errors and cost: as
  /// CachingAllocator::free.
  Status free(Address address) noexcept { return caching().free(address); }
  /// The same, of the allocation with that context.
  Status free_context(void* context) noexcept { return free(Address::of(context)); }
  /// Work on `stream` uses the allocation that `context` names, or if it names none, the one that starts at
  /// `address`. Errors, without effect: kUnknownPointer if neither names a live one (memory that is not this
  /// allocator's is the usual case: a caller may ask of any pointer); kInvalidHandle if the stream is dead;
  /// otherwise as cache::record_use_of_alive().
  Status record_use(Address address, const void* context, const Stream& stream) noexcept;
  /// Copies `size` bytes between two allocations, with the CPU. kUnknownPointer if one is no live allocation's start,
  /// kInvalidArgument if `size` is more than one of them has; nothing is copied then.
  Status copy(Address to, Address from, Bytes size) noexcept;
  /// cache::process_events() of this memory: what the reaper does.
  Status process_events() noexcept { return cache::process_events(caching(), device()); }

  /// Routes later allocations of the threads that `filter` accepts to that memory pool, which a graph or a user
  /// owns: CachingAllocator::begin_pool(). Its other calls are caching()'s, with device().
  Status begin_pool(MemoryPoolId pool, ThreadFilter filter) noexcept;

  /// The allocator below, for all else: streams' ends, captures, memory pools, trim, limits, statistics,
  /// snapshots, observers. Its last device, device(), is this memory.
  cache::CachingAllocator& caching() noexcept { return *caching_; }
  /// The same, for queries.
  const cache::CachingAllocator& caching() const noexcept { return *caching_; }
  /// The id of page-locked memory in caching().
  DeviceId device() const noexcept { return space_.id(); }
  /// The memory itself: how long locking took.
  const PinnedSpace& space() const noexcept { return space_; }
  /// The stream of the arena that the calling thread allocates from.
  const Stream& arena() const noexcept;

 private:
  PinnedAllocator(DeviceId id, std::span<device::Device* const> devices,
                  const PinnedConfig& config);
  /// Throws std::bad_alloc.
  static std::unique_ptr<PinnedAllocator> make(DeviceId id,
                                               std::span<device::Device* const> devices,
                                               const PinnedConfig& config);
  /// Locks the reserve and starts the reaper.
  Status begin(const PinnedConfig& config) noexcept;

  PinnedSpace space_;
  const bool rounds_to_power_of_two_;
  std::vector<Stream> arenas_;  ///< a power of two of them
  const std::size_t arena_mask_;
  std::unique_ptr<cache::CachingAllocator> caching_;
  std::unique_ptr<Reaper> reaper_;  ///< null where there is no such thread
};

}  // namespace ashlar::inline v0::pinned
