// The caching allocator: stream-ordered device memory, on any number of devices, from any number of
// threads.
//
// Purpose: rows DEV-1..6, 12..16, 19, 20 and 22's configuration. Memory that is freed on a stream
// is given out again on that stream at once, without a driver call; on another stream once its last
// use is complete.
//
// Thread safety: every member may be called from any thread. A call on one stream's memory takes
// that stream's lock alone; no device call, callback or event poll runs under such a lock (C18).
//
// The caller's side of the contract:
//   (a) free(p) comes, on the host, after every enqueue that uses p; streams other than the one it
//       was allocated on are announced with record_use, or p is freed with free(p, stream).
//   (b) a first use on another stream is ordered after the allocation on its own (C6).
//   (c) a stream is announced dead with retire_stream before it is destroyed. (Missed, memory is
//       still never handed out early: it comes back only after a device synchronisation.)
//   (d) a capture is announced with begin_capture before it begins and end_capture after it ends
//       (C9).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/config.h>
#include <ashlar/cache/out_of_memory.h>
#include <ashlar/cache/snapshot.h>
#include <ashlar/cache/stats.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {

/// A request over this is refused without asking anybody (row DEV-20): 1 EiB.
inline constexpr Bytes kRequestBytesMax{std::uint64_t{1} << 60};

/// What the allocator knows about a live allocation.
struct AllocationInfo {
  Address address;
  Bytes size;  ///< usable bytes, at least requested
  Bytes requested;
  Stream stream;    ///< the one it was allocated on
  Address segment;  ///< the segment's base: what inter-process handles are made of
  Bytes segment_size;
};

class ASHLAR_API CachingAllocator {
 public:
  /// An allocator over `devices`, which must outlive it; device i has DeviceId i. kInvalidArgument
  /// for a bad configuration or an id out of place. Makes no device call.
  static Result<std::unique_ptr<CachingAllocator>> create(std::span<device::Device* const> devices,
                                                          const Config& config);

  /// Gives every idle segment back; what is still live is the caller's leak and stays with the
  /// device. Never throws; makes no device call once the driver is gone (C25).
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// At least `size` bytes on `stream`'s device, aligned to the granule, for use by work enqueued
  /// on `stream` from now on. Zero bytes give the null address. Errors: kOutOfMemory (and
  /// `*account`, if given, says everything), kSizeOverflow, kInvalidArgument, kReentrant, kForked,
  /// kDeviceLost, kTornDown.
  /// Cost: a hit takes one short lock, polls at most 16 events and makes no other device call
  /// (C17).
  Result<Address> allocate(Bytes size, const Stream& stream,
                           OutOfMemory* account = nullptr) noexcept;

  /// Ends an allocation. Null is nothing. Errors: kUnknownPointer, kDoubleFree, kForked,
  /// kDeviceLost, kTornDown; nothing changes then. Never allocates, never throws; makes device
  /// calls only when other streams used the memory.
  Status free(Address address) noexcept;
  /// record_use(address, stream), then free(address).
  Status free(Address address, const Stream& stream) noexcept;
  /// The memory at `address` is used by work on `stream` too: it comes back only when that is
  /// complete. The allocation's own stream is ignored. Errors as free, and kOutOfMemory when the
  /// host has none for the note.
  Status record_use(Address address, const Stream& stream) noexcept;

  /// `stream` is about to be destroyed: its heap is orphaned behind an event recorded now.
  /// kNotFound if never seen; kInvalidHandle if dead already, until nothing is left of it and its
  /// heap serves another stream: then it is forgotten.
  Status retire_stream(const Stream& stream) noexcept;
  /// A capture begins or ends on `stream`. While any is underway, on whatever device (what it
  /// forbids it forbids to threads): no event is recorded or polled, nothing is stolen, waited for
  /// or given back; growth runs under the relaxed mode. kBusy / kNotFound when out of turn;
  /// kInvalidHandle where a dead stream is to begin one.
  Status begin_capture(const Stream& stream) noexcept;
  Status end_capture(const Stream& stream) noexcept;

  /// Gives back every idle segment of the device, waiting for work that still uses one. kBusy while
  /// capturing.
  Status trim(DeviceId device) noexcept;
  /// Caps what is reserved on the device (row DEV-12). Lower than what is reserved now: no growth
  /// until it has shrunk.
  Status set_memory_limit(DeviceId device, Bytes limit) noexcept;
  /// set_memory_limit(fraction of the device's total). REQUIRES: 0 < fraction <= 1.
  Status set_memory_fraction(DeviceId device, double fraction) noexcept;

  /// Called, with no lock held, when the pools are short: it may free and query, not allocate
  /// (C24).
  using FreeMemoryCallback = std::function<void(DeviceId)>;
  /// Called, with no lock held, before kOutOfMemory is returned: likewise.
  using OutOfMemoryObserver = std::function<void(const OutOfMemory&)>;
  /// Observers are added before other threads use the allocator, and stay. They do not throw.
  void add_free_memory_callback(FreeMemoryCallback callback);
  void add_out_of_memory_observer(OutOfMemoryObserver observer);

  // Queries (rows DEV-16, 17, 19).
  Result<AllocationInfo> info(Address address) const noexcept;
  /// The largest block `stream` could be given without growing.
  Result<Bytes> largest_free_block(const Stream& stream) const noexcept;
  Result<DeviceStats> stats(DeviceId device) const noexcept;
  /// The same into the caller's memory (over 1 KiB), untouched on failure.
  Status stats(DeviceId device, DeviceStats* out) const noexcept;
  Status reset_peak_stats(DeviceId device) noexcept;
  Status reset_accumulated_stats(DeviceId device) noexcept;
  /// Replaces `*out`, reusing its memory. Consistent when no other call runs; else each heap by
  /// itself.
  Status snapshot(DeviceId device, Snapshot* out) const;
  std::size_t device_count() const noexcept;
  const Config& config() const noexcept;

  /// Walks every structure: nullptr, or the clause that broke. For tests; consistent when no other
  /// call runs.
  const char* validate() const noexcept;

 private:
  struct Impl;
  explicit CachingAllocator(std::unique_ptr<Impl> impl) noexcept;
  // A cache line of its own: every call reads it, and a caller may write to what lies beside it.
  alignas(64) std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::inline v0::cache
