// One device's cache: its parts, the way of a hit and of a free.
//
//   part           what it owns                                          its lock
//   Driver         the way to the device; its sticky error               none
//   SegmentLedger  limit, charge, segment records, reserve statistics    a spin lock
//   HeapList       heaps by stream, the walk over them, their history    a mutex; reading: none
//   UseTracker     events, recorded and polled; synchronisations         heap's, event pool's
//   SegmentSupply  growing, giving back, moving, pinning segments        the heap's, the pins'
//   Reclaimer      steal, reclaim, trim, retirement, dead streams' heaps the reclaim lock
//   MissLadder     the order of a miss's rungs                           none
//   MemoryPools    memory of graphs and users, and who allocates from it its own
//
// Thread safety: any thread. Locks, in the order they may be taken: reclaim -> memory pools -> heap
// list -> one heap's (never two at once) -> ledger / event pool / history. No device call and no callback
// under a heap's lock or the heap list's (C18); no wait for a stream's work under any of them (C30).
//
// Invariant: a block of a heap is handed to another stream only with its stamp complete, or behind
// a wait (C6; stream_reuse.h).
#pragma once

#include <ashlar/cache/memory_pools.h>
#include <ashlar/cache/miss_ladder.h>

namespace ashlar::inline v0::cache {

class DeviceCache {
 public:
  DeviceCache(device::Device& device, SharedState& shared) noexcept;
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;

  // Hits, frees and uses. `found` is what the page map says of `address`. Inline: hit_inl.h.
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) noexcept;
  /// The same while allocations are routed to memory pools.
  Result<Address> allocate_routed(Bytes size, const Stream& stream, OutOfMemory* account) noexcept;
  static Status free(const PageMap::Found& found, Address address) noexcept;
  static Status free_used_on(const PageMap::Found& found, Address address,
                             StreamHeap& user) noexcept;
  static Status record_use(const PageMap::Found& found, Address address, StreamHeap& user) noexcept;
  /// Ok if a live block starts at the address.
  static Status check(const PageMap::Found& found, Address address) noexcept;
  /// The same; then record_use() of a stream that another call makes known has a node, and is not
  /// refused after that (C32). kHostOutOfMemory if the host has no memory for one.
  static Status reserve_use(const PageMap::Found& found, Address address) noexcept;
  static Result<AllocationInfo> info(const PageMap::Found& found, Address address) noexcept;
  /// The live block that starts at the address; its segment stays until that is handed to Pins.
  static Result<HeldAllocation> hold(const PageMap::Found& found, Address address) noexcept;

  /// The heap of a stream, made if it is new. Errors: as Reclaimer::make_heap. Cost: as
  /// HeapList::find.
  Result<StreamHeap*> heap_of(const Stream& stream) noexcept {
    StreamHeap* heap = heaps_.find(stream.id);
    return heap != nullptr ? Result<StreamHeap*>(heap) : reclaimer_.make_heap(stream);
  }

  // Captures.
  /// Waits until no holder of the reclaim lock, and no growth, poll or recording that began before a
  /// capture was announced, is still running (C9). Those that begin meanwhile know of the capture
  /// and are not waited for, however many threads go on; nor is the wait of a reclaim or a trim,
  /// which holds no lock.
  void quiesce() noexcept;
  /// After the last capture: records the events that had to wait for it.
  void record_deferred() noexcept;

  // The allocator's end, in steps: has_unfinished, settle, give_everything_back, then
  // events().clear(). Each step is made for every device before the next begins, because uses cross
  // devices.
  /// Is anything of this device's heaps not known complete?
  bool has_unfinished() const noexcept;
  /// Waits for everything, if asked to.
  void settle(bool synchronize) noexcept;
  /// Is all work of the device known complete, as settle() found?
  bool is_settled() const noexcept { return is_settled_; }
  void give_everything_back() noexcept { reclaimer_.give_everything_back(is_settled_); }

  const char* validate() const noexcept;
  /// For that: how many uses name a stream of this device, how many this device's heaps hold, and the
  /// pages of its segments.
  std::uint64_t reference_count() const noexcept;
  std::uint64_t use_count() const noexcept;
  std::uint64_t page_count() const noexcept;

  bool is_capturing() const noexcept { return shared_.is_capturing(); }
  DeviceId id() const noexcept { return id_; }
  const Config& config() const noexcept { return config_; }
  Driver& driver() noexcept { return driver_; }
  SegmentLedger& ledger() noexcept { return ledger_; }
  HeapList& heaps() noexcept { return heaps_; }
  UseTracker& uses() noexcept { return uses_; }
  SegmentSupply& supply() noexcept { return supply_; }
  Reclaimer& reclaimer() noexcept { return reclaimer_; }
  MissLadder& ladder() noexcept { return ladder_; }
  MemoryPools& memory_pools() noexcept { return memory_pools_; }

 private:
  Status make_request(Bytes size, Request& request) const noexcept;
  /// Serves the request from a heap whose lock is held, and lets it go.
  Result<Address> serve(StreamHeap& heap, const Request& request, OutOfMemory* account) noexcept
      ASHLAR_RELEASE(heap.lock);
  /// The same, of a heap that remembers places.
  Result<Address> serve_remembered(StreamHeap& heap, const Request& request,
                                   OutOfMemory* account) noexcept ASHLAR_RELEASE(heap.lock);
  /// Calls end(heap, pool, block) for the live block that starts at `address`, under its heap's
  /// lock, which `end` lets go.
  template <class F>
  static Status with_live_block(const PageMap::Found& found, Address address, F&& end) noexcept;
  /// nullptr, or what is broken of the counts of uses without an event.
  const char* validate_unrecorded() const noexcept;
  /// Ends a live block.
  static Status free_block(StreamHeap& heap, PoolId pool, block::BlockIndex block) noexcept
      ASHLAR_RELEASE(heap.lock);

  SharedState& shared_;
  const Config& config_;
  const bool
      has_rules_;  ///< is a request more than a multiple of the granule: divisions, or no cache?
  const DeviceId id_;
  Driver driver_;
  SegmentLedger ledger_;
  HeapList heaps_;
  UseTracker uses_;
  SegmentSupply supply_;
  Reclaimer reclaimer_;
  MissLadder ladder_;
  MemoryPools memory_pools_;
  bool is_settled_ = false;  ///< written at the allocator's end
};

/// The body of a conditional is over (CapturedBodies::ended): what it uses of the device's memory pools its
/// parent's stream uses, and what waited for it alone is free.
void end_body(DeviceCache& cache, StreamHeap& body) noexcept;
/// Frees what waits only for uses that are complete (process_events): its errors.
Status free_finished(DeviceCache& cache) noexcept;

}  // namespace ashlar::inline v0::cache
