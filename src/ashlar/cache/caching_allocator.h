// The caching allocator: stream-ordered device memory, on any number of devices, from any number of
// threads.
//
// Purpose: rows DEV-1..6, 12..16, 19, 20 and 22's configuration. Memory that is freed on a stream
// is available to that stream again at once, without a driver call. It is available to another
// stream when its last use is complete.
//
// Thread safety: every member may be called from any thread, except add_free_memory_callback(),
// add_out_of_memory_observer() and add_mapping_observer(), which come before the first use by another thread. A hit takes
// its stream's lock; the other costs are stated at each member. No device call, callback or event
// poll runs under such a lock (C18).
//
// Exceptions: the three functions that add callbacks can throw std::bad_alloc. Every other member is
// noexcept; where the host has no memory for the allocator's own records, the answer is
// kHostOutOfMemory.

/// \page callers_contract The caller's side of the contract
/// The allocator relies on these rules. The examples use `device`, an ashlar::device::Device, and
/// the streams `own` and `other`, which its identify() returned.
///
/// ### (a) Free after the last enqueue
/// On the host, free(p) comes after every enqueue that uses p. The kernels may still be running.
/// If a stream other than the one p was allocated on uses p, the allocator is told, by record_use()
/// or by free(p, stream):
///
///     launch(kernel, p, own);
///     launch(kernel, p, other);
///     allocator->free(p, other);  // p is available again when the work on both streams is done
///
/// ### (b) Order a first use on another stream
/// The stream that p was allocated on may still run work of the last owner of p's bytes. A first
/// use on another stream is therefore ordered after the allocation (C6):
///
///     const Address p = allocator->allocate(1_MiB, own).value();
///     device.event_record(event, own.handle);
///     device.stream_wait(other.handle, event);  // from now on work on `other` may use p
///
/// ### (c) Retire a stream before it is destroyed
///
///     allocator->retire_stream(other);
///     destroy(other);
///
/// From then on no call names the stream; what was allocated on it is freed as before. Its memory
/// goes to other streams when its work is complete, with every setting of Config::reuse.
///
/// If this is forgotten, the stream's memory is still never handed out early. What no earlier event
/// covers is then available to other streams only after a synchronisation of the whole device. The
/// allocator learns of the end when the stream's handle is invalid or names another stream: before
/// it calls a stream dead, it asks Device::identify whom the handle names. So a `Stream` kept from
/// before, whose handle is another stream's by now, does that stream no harm: an allocation on it
/// is refused with kInvalidHandle, and a block that is freed for it waits as for a lost stream.
///
/// ### (d) Announce a capture
/// It is announced before it begins, and its end after it has ended (C9):
///
///     allocator->begin_capture(own);
///     capture(own, [&] { launch(kernel, p, own); });
///     allocator->end_capture(own);
///
/// A captured graph has the addresses of its memory built in, so that memory must not go to anybody
/// else while the graph exists. What is allocated during the capture comes from a memory pool, which
/// the graph keeps until it is destroyed (C8); other memory that it uses is freed only after that:
///
///     allocator->begin_pool(device_id, pool, [&](const Stream& each) { return each == own; });
///     allocator->begin_capture(own);
///     capture(own, [&] { launch(kernel, allocator->allocate(1_MiB, own).value(), own); });
///     allocator->end_capture(own);
///     allocator->end_pool(device_id, pool);
///     launch_graph(own);           // as often as you like
///     destroy_graph();
///     allocator->release_pool(device_id, pool);  // launches may still be running
///
/// A stream is identified before a capture of it begins: CUDA refuses to identify it then, and the capture is
/// lost. Where other streams take part, their captures are announced likewise. What record_use() or free() says
/// of such a stream while its capture is announced, it says of work of the graph; what it says at another
/// time, of work that runs. So uses by work before a capture are announced before it begins, and those by
/// work after it anew. The former are over when the captures are: their kernels have not run, and launches
/// of the graph are ordered by who launches it (row DEV-7). What is freed in a capture is available again
/// inside it where the graph's own order has the uses behind what `own` captures next.
///
/// REQUIRES: two graphs that share a pool never run at the same time.
///
/// A capture that nobody announces, another library's, survives frees and uses: the allocator identifies no stream that captures, and
/// records no event on it or on the legacy stream beside it. A wait for a whole device (a trim, a shortage of memory) invalidates it
/// all the same, and so do polls and growth where its mode is global.
///
/// ### (e) Announce the body of a conditional
/// The body is captured on a stream of its own, `child`, once the conditional is in the graph and `own` comes
/// after it; it runs at each launch not at all, once, or several times:
///
///     allocator->begin_body(child, own);
///     capture_body(child, [&] { launch(kernel, allocator->allocate(1_MiB, child).value(), child); });
///     allocator->end_capture(child);
///
/// The body takes its memory from where `own` does: what is free there when it begins, and what it frees
/// itself. What was live then it may use without a word, and free, but the memory is free for nobody before
/// the body's end. Afterwards all that is free serves `own`, and its next body: the bodies of an "if" and its
/// "else" share it. What is allocated in the body and live at its end is from then on as if allocated on `own`.
/// Meanwhile an allocation on `own` from a memory pool is refused with kBusy.
///
/// REQUIRES: while a body is captured, no other stream joins it, nothing is captured on `own`, and no pool
/// returns to a checkpoint. To one graph `child` adds nothing but bodies inside the capture of `own`: the order
/// of its memory is that of a stream.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include <ashlar/base/export.h>
#include <ashlar/base/memory_pool.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/config.h>
#include <ashlar/cache/mapping.h>
#include <ashlar/cache/out_of_memory.h>
#include <ashlar/cache/physical_ranges.h>
#include <ashlar/cache/pool_checkpoint.h>
#include <ashlar/cache/snapshot.h>
#include <ashlar/cache/stats.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {

/// The largest request, 1 EiB. A larger one fails with kSizeOverflow, without a search or a device
/// call (row DEV-20).
inline constexpr Bytes kRequestBytesMax{std::uint64_t{1} << 60};

/// What the allocator knows about a live allocation.
struct AllocationInfo {
  Address address;     ///< what allocate() returned
  Bytes size;          ///< usable bytes, at least `requested`
  Bytes requested;     ///< what allocate() was asked for
  Stream stream;       ///< the stream it was allocated on
  Address segment;     ///< base of its segment, from which inter-process handles are made
  Bytes segment_size;  ///< of the whole segment
};

/// A stream-ordered caching allocator over one or more devices.
/// Its user keeps the rules of \ref callers_contract.
///
/// Every member may be called from any thread, except the three that add callbacks. Those can
/// throw std::bad_alloc; every other member is noexcept.
///
/// Errors that any call can return: kHostOutOfMemory if the host has no memory for the allocator's
/// own records (free(address) never does); kForked in the child process after a fork (C25);
/// kInvalidArgument for a device, or a stream of a device, that the allocator does not have, and for
/// a new stream without identity (id 0; Device::identify gives it);
/// kDeviceLost or kTornDown once the device has reported it (C26). A call that fails has no effect,
/// except that idle memory may have been given back to the device (C13).
class ASHLAR_API CachingAllocator {
 public:
  /// Makes an allocator over `devices`, which must outlive it. `devices[i]` has DeviceId i.
  /// kUnsupported if a device cannot have Config::backend. kInvalidArgument if `config` fails check_config(), there is no device, one is null or has
  /// another id, or the granule exceeds the alignment that a device promises. Makes no driver call.
  static Result<std::unique_ptr<CachingAllocator>> create(std::span<device::Device* const> devices,
                                                          const Config& config) noexcept;

  /// Waits for unfinished work and returns every idle segment to its device. Segments with live
  /// allocations are not returned. Makes no device call after fork or once the driver is unloaded
  /// (C25).
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Allocates at least `size` bytes on the device of `stream`, aligned to Config::granule, for
  /// work enqueued on `stream` from now on. Returns the null address for zero bytes.
  /// Errors: kOutOfMemory, with the reasons in `*account` if it is given; kHostOutOfMemory, at
  /// once, with `*account` unchanged and no memory given back to the device; kSizeOverflow over
  /// kRequestBytesMax; kInvalidHandle if `stream` is retired or found destroyed, or its handle
  /// names another stream; kReentrant inside a callback or an observer of this allocator (C24). Any
  /// other error of the driver is passed on.
  /// Cost: a hit takes one short lock, polls at most 16 events and makes no other device call
  /// (C17). A miss waits until Config::wait_ms after it began at the latest (C30), beside the
  /// driver's own calls. The first call of a stream may ask the device whom its handle names, and
  /// whether up to four dead streams are done.
  Result<Address> allocate(Bytes size, const Stream& stream,
                           OutOfMemory* account = nullptr) noexcept;

  /// Ends an allocation. Freeing null is a no-op. Errors, without effect: kUnknownPointer if
  /// `address` is not the start of a live allocation; kDoubleFree if it was freed before and its
  /// uses are not complete yet.
  /// Cost: at most two short locks, one after the other; a device call for each other stream that
  /// used the memory, and none otherwise. Never allocates host memory.
  Status free(Address address) noexcept;
  /// record_use(address, stream) and free(address) in one call. Errors as free(address); if
  /// `stream` is new to the allocator, also kHostOutOfMemory if the host has no memory for its
  /// heap, and kInvalidArgument if its id is 0. If it is found destroyed, the block is free again
  /// after a synchronisation of the device.
  Status free(Address address, const Stream& stream) noexcept;
  /// Records that work on `stream` uses the allocation at `address` too. After the free, its memory
  /// is available again only when that work is complete (C7). No effect for the stream that it was
  /// allocated on. Errors as free(address, stream), but kUnknownPointer for null; kHostOutOfMemory
  /// also if host bookkeeping memory for the use cannot be allocated.
  Status record_use(Address address, const Stream& stream) noexcept;

  // Memory that stays (C21, DEV-24): for whoever keeps what depends on the memory under an address, such as a
  // network card's registration of a range.
  /// The memory of the live allocation at `address` stays under its addresses until unpin(), also when the
  /// allocation is freed before: no page of it is unmapped, moved or trimmed, and its segment is not given
  /// back. After the free its bytes are used again as ever. One range may have several pins. At the
  /// allocator's end what is still pinned stays with the device, as a live allocation does.
  /// REQUIRES: no other thread frees the allocation meanwhile. Errors as free(address), but
  /// kUnknownPointer for null. Cost: one short lock, and a step for each page of a paged segment.
  Result<PinnedRange> pin(Address address) noexcept;
  /// Ends one pin of that range. kNotFound, without effect, if it has none. Never allocates host memory.
  /// Cost: as pin().
  Status unpin(const PinnedRange& range) noexcept;
  /// A number for the memory under the live allocation at `address`: another one if other memory has come
  /// under any of its addresses since, the same one otherwise. A pinned range's stays the same.
  /// REQUIRES, errors and cost: as pin().
  Result<std::uint64_t> backing_generation(Address address) const noexcept;

  /// Tells the allocator that `stream` is about to be destroyed. An event recorded now, also while
  /// other streams capture, shows when the memory of its heap is available to other streams and its
  /// uses are over. If the device refuses the event, a synchronisation of the device shows it.
  /// kBusy while a capture of `stream` is announced; kNotFound if the allocator has never seen the
  /// stream, or once its heap was reassigned to another one; kInvalidHandle if the stream was
  /// retired or found destroyed before.
  Status retire_stream(const Stream& stream) noexcept;
  /// Announces that a capture of `stream` is about to begin. While any capture is announced, on any
  /// device, the allocator polls no event and records none but the last one of a stream that is
  /// retired, takes no other stream's memory, and gives nothing back; it grows under the relaxed
  /// capture mode (C9), in which the driver's pool may be trimmed for it (`backend:cudaMallocAsync`). Waits that other threads are in end first, within some 10 ms. That
  /// holds for all devices because a capture restricts threads. kBusy if a capture of that stream
  /// is announced already; kInvalidHandle if `stream` is retired or found destroyed, or its handle
  /// names another one.
  Status begin_capture(const Stream& stream) noexcept;
  /// Announces that the capture of `stream`, or of the body that it captures, has ended. kNotFound if none was
  /// announced; kBusy while a body of it is announced; kReentrant in a memory pool's filter.
  Status end_capture(const Stream& stream) noexcept;
  /// Announces that `stream` is about to capture the body of a conditional (an "if", a "while") of the graph
  /// that `parent` captures; end_capture(stream) announces the end. \ref callers_contract (e) says what follows
  /// from it. kNotFound if no capture of `parent` is announced; kBusy if one of `stream` is, or if another body
  /// of `parent` is announced (the bodies of one conditional are captured one after the other, one inside a
  /// body names that body's stream as its parent); kInvalidArgument if the streams are of two devices;
  /// kInvalidHandle as begin_capture(). Cost: a walk over the blocks of all memory pools, here and at the end.
  Status begin_body(const Stream& stream, const Stream& parent) noexcept;

  // Memory pools (rows DEV-7, DEV-8): memory of their own for graphs and for users. A pool belongs to
  // one device and exists while its use count is above 0. Its memory is not given to allocations
  // outside it and not given back to the device (C8). An allocation from it is freed like any other,
  // at any time. Any thread may call these. kInvalidArgument for the id {0, 0}, which names no pool.
  /// Creates the pool, with one use and those options. kBusy if the device has one of that name;
  /// kReentrant in a filter; kHostOutOfMemory.
  Status create_pool(DeviceId device, MemoryPoolId pool, const MemoryPoolOptions& options) noexcept;
  /// Routes to the pool every later allocation on the device whose stream `filter` accepts
  /// (base/memory_pool.h). Creates the pool if it does not exist, and adds one use. If several filters
  /// accept a stream, the pool begun last serves it. kBusy if the pool is begun already, or while
  /// another thread ends, checkpoints or restores it; kInvalidArgument for a null filter; kReentrant in a
  /// filter; kHostOutOfMemory.
  /// Cost: while any pool of any device is begun, every allocation takes the lock of its device's
  /// pools and calls the filters.
  Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter filter) noexcept;
  /// Stops the routing that begin_pool() started; no thread is in the filter any more. The use remains.
  /// kNotFound if the pool is not begun; kReentrant in a filter.
  Status end_pool(DeviceId device, MemoryPoolId pool) noexcept;
  /// Adds one use; creates the pool if it does not exist. kBusy while another thread ends,
  /// checkpoints or restores it; kReentrant in a filter; kHostOutOfMemory.
  Status retain_pool(DeviceId device, MemoryPoolId pool) noexcept;
  /// Removes one use. With the last one the pool ends: its free memory is the device's again when all
  /// work enqueued so far, launches of graphs included, is done (if a capture was announced while the pool
  /// existed, all work of the device); its live allocations stay valid until
  /// they are freed. REQUIRES: with the last use, no graph that uses the pool is launched after this, and
  /// launches of such graphs on streams of other devices are known to be done: the allocator cannot wait
  /// for them.
  /// kNotFound if there is no such pool; kReentrant in a filter; kBusy while another thread ends,
  /// checkpoints or restores it. With the last use also kBusy if the pool is begun or an allocation from
  /// it is under way, and kHostOutOfMemory; then the pool stays, and nothing has changed.
  /// Cost: with the last use a walk over the pool's blocks, and the record of an event for each stream that
  /// has memory in the pool.
  Status release_pool(DeviceId device, MemoryPoolId pool) noexcept;

  /// The state of the pool now: which of its bytes are live allocations (row DEV-9). A block that was
  /// freed and still waits for its uses counts as free. kNotFound if there is no such pool; kUnsupported
  /// of one that overflows, which may have lent its memory; kReentrant in a filter; kHostOutOfMemory;
  /// kBusy if the pool is begun, an allocation from it is under way, another thread ends, checkpoints or
  /// restores it, other threads free its blocks all the time, or a live allocation lies in part of a dead
  /// stream's segment, which it got in place of an out-of-memory: free it first.
  /// Cost: a walk over the pool's blocks. Makes no device call.
  Result<PoolCheckpoint> checkpoint_pool(DeviceId device, MemoryPoolId pool) noexcept;
  /// Returns the pool to that state, whatever happened since (C11): its live allocations end, those of
  /// the checkpoint begin again at their addresses, and `*out` lists both. An address that is in both
  /// lists is a new allocation. One of a stream that is dead by now may be another stream's of the pool:
  /// info() says whose. Segments that the pool has taken since stay its own, free.
  /// The bytes keep what they contain. REQUIRES: work enqueued on another stream than an allocation's own
  /// is done with it, or was named by record_use(); meanwhile no other thread frees the pool's memory.
  /// Errors, and neither the pool nor the statistics have changed, and `*out` is empty or as before:
  /// kInvalidArgument for a null `out`, for a checkpoint of no pool, of a pool that was released, or of
  /// another allocator's;
  /// kNotFound if its pool was released and not made again; kNotReady if freed memory of the pool still
  /// waits for its uses; kBusy as checkpoint_pool(), and if a live allocation of the pool has uses on
  /// other streams that are not known finished: free it first, and while the body of a conditional is
  /// announced; kReentrant in a filter; kHostOutOfMemory.
  /// Cost: a walk over the pool's blocks, and a free or an allocation of each. Unless a capture is
  /// announced, asks about the events that freed memory of the pool waits for.
  Status restore_pool(const PoolCheckpoint& to, RestoredPool* out) noexcept;

  /// Returns every idle segment to the device. Waits for work that still uses one until
  /// Config::wait_ms after the call began, but for at least 2 ms, so that work that is done is
  /// recognised whatever wait is permitted (C28), and for at most 1 s. Where no event covers the
  /// work, it waits for the whole device, for no longer. The device's first error if it refuses to
  /// take a segment back; kNotReady if the time was too short; kBusy while a capture is announced,
  /// or once one is; kReentrant in a memory pool's filter.
  Status trim(DeviceId device) noexcept;
  /// Makes sure that the device has `free` bytes free for others, such as a library that allocates beside
  /// this allocator: gives idle segments back until it has, the smallest that is enough, else the largest
  /// first, and waits for work that uses them, for no longer than trim() does and than is needed.
  /// kOutOfMemory if that is not enough; the device's first error if it refuses to take a segment back;
  /// kNotReady if the time was too short; kBusy while a capture is announced, or once one is; kReentrant in a memory pool's filter; an
  /// error of the question how much is free. What was given back stays so.
  Status make_room(DeviceId device, Bytes free) noexcept;
  /// Caps the bytes reserved on the device (row DEV-12). If more is reserved already, gives idle segments
  /// back until it is not, and waits for work that uses them as trim() does, no longer than is needed.
  /// What is in use stays, and so does everything while a capture is announced; the allocator does not
  /// grow until the reserved bytes are below the limit. kReentrant in a memory pool's filter.
  Status set_memory_limit(DeviceId device, Bytes limit) noexcept;
  /// set_memory_limit() with that fraction of the device's total memory, 0 < fraction <= 1.
  /// kInvalidArgument for any other fraction; an error of the driver is passed on.
  Status set_memory_fraction(DeviceId device, double fraction) noexcept;

  /// Called when no pool of the device can serve a request, before the allocator grows. No lock is
  /// held. It may free and query; an allocation from this allocator in it fails with kReentrant
  /// (C24), one from another allocator is served. It must not throw: an exception ends the process.
  using FreeMemoryCallback = std::function<void(DeviceId)>;
  /// Called before an allocation returns kOutOfMemory, under the same rules.
  using OutOfMemoryObserver = std::function<void(const OutOfMemory&)>;
  /// Called before memory goes away from under addresses, and when memory has come there, before anybody
  /// is given it (mapping.h): once for a run of pages. No spin lock is held, but another one may be. It may
  /// free, query, pin and unpin; an allocation from this allocator, and any other call that may wait, fails
  /// with kReentrant. It must not throw, nor wait for a thread that calls the allocator. It is called at the
  /// allocator's end too, and may not call the allocator then.
  using MappingObserver = std::function<void(const MappingEvent&)>;
  /// Adds a callback for the life of the allocator. REQUIRES: no other thread uses the allocator.
  /// Throws std::bad_alloc. An empty function is not added.
  void add_free_memory_callback(FreeMemoryCallback callback);
  /// Adds an observer for the life of the allocator. REQUIRES: no other thread uses the allocator.
  /// Throws std::bad_alloc. An empty function is not added.
  void add_out_of_memory_observer(OutOfMemoryObserver observer);
  /// The same for an observer of mappings.
  void add_mapping_observer(MappingObserver observer);

  // Queries (rows DEV-16, 17, 19).
  /// What the allocator knows about the allocation at `address`. Errors as free(address), but
  /// kUnknownPointer for null.
  Result<AllocationInfo> info(Address address) const noexcept;
  /// The size of the largest block that `stream` could be given now without growth: while a capture
  /// is announced, of its own. What memory pools hold does not count. Cost: a walk over every stream's heap of the device.
  Result<Bytes> largest_free_block(const Stream& stream) const noexcept;
  /// The device's statistics. Cost: adds up every stream's counters, one short lock for each.
  Result<DeviceStats> stats(DeviceId device) const noexcept;
  /// The same, written to `*out` without a copy of over 1 KiB. A failed call leaves `*out` as it
  /// was. kInvalidArgument for a null `out`.
  Status stats(DeviceId device, DeviceStats* out) const noexcept;
  /// Sets every Stat::peak of the device to its current value.
  Status reset_peak_stats(DeviceId device) noexcept;
  /// Sets every Stat::increased, every Stat::decreased and every plain counter of DeviceStats to
  /// zero.
  Status reset_accumulated_stats(DeviceId device) noexcept;
  /// Replaces `*out` by a snapshot of the device, reusing its memory. It shows one moment if no
  /// other call runs; snapshot.h says what it shows otherwise. Holds no lock for longer than it
  /// takes to copy a hundred blocks. With kHostOutOfMemory, and with kBusy (other threads free
  /// blocks faster than they are copied, all the time), `*out` is empty. kInvalidArgument for a null `out`.
  Status snapshot(DeviceId device, Snapshot* out) const noexcept;
  /// The number of devices.
  std::size_t device_count() const noexcept;
  /// The settings that create() was given; `backing` is segments where no device has virtual memory, or nothing
  /// is cached, and `caches` is false with AllocatorBackend::kCudaMallocAsync.
  const Config& config() const noexcept;

  /// Walks every structure. Returns nullptr, or the text of the clause or invariant that is broken.
  /// For tests. REQUIRES: no other call runs.
  const char* validate() const noexcept;

 private:
  friend struct CachePeer;      // tests read the state of its parts
  friend struct HistoryAccess;  // the calls of history_calls.h
  friend ASHLAR_API Status process_events(CachingAllocator& allocator, DeviceId device) noexcept;
  friend ASHLAR_API Status physical_ranges(const CachingAllocator& allocator,
                                           const PinnedRange& range,
                                           std::vector<PhysicalRange>* out) noexcept;
  friend ASHLAR_API Status record_use_of_alive(CachingAllocator& allocator, Address address,
                                               const Stream& stream) noexcept;
  struct Impl;
  explicit CachingAllocator(std::unique_ptr<Impl> impl) noexcept;
  // On a cache line of its own, because every call reads it and a caller may write to memory beside
  // the allocator.
  alignas(64) std::unique_ptr<Impl> impl_;
};

/// Frees at once what a later allocation on the device would find freed: blocks whose uses by other streams are
/// complete, by asking about their events without a wait. For a thread that has time: allocations then find
/// nothing to ask. Errors: as every call of CachingAllocator; kBusy while a capture is announced, or once one is.
/// Cost: a device call for each use that is complete, and for a bounded number in each heap of those that are not.
ASHLAR_API Status process_events(CachingAllocator& allocator, DeviceId device) noexcept;

/// CachingAllocator::record_use(), for interfaces whose callers are told that the stream is dead: kInvalidHandle, without
/// effect, if the allocator knows that: the stream was retired or found destroyed, and its memory and uses are not all
/// forgotten, or its handle names another stream now. No driver answers for any other handle of a dead stream; its
/// use is noted then, as of a lost stream. After a refusal the caller sees to it that the stream's work is complete
/// before the block is freed. Cost: as record_use().
ASHLAR_API Status record_use_of_alive(CachingAllocator& allocator, Address address,
                                      const Stream& stream) noexcept;

}  // namespace ashlar::inline v0::cache
