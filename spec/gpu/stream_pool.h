// A pool of stream-ordered memory: Device::stream_alloc of a simulated device, the runtime's cudaMallocAsync and the driver's
// cuMemAllocFromPoolAsync.
//
// Source: "CUDA Runtime API", version 13.0, chapter 6.12 ("Stream Ordered Memory Allocator"), cudaMallocAsync, cudaFreeAsync;
// "CUDA C++ Programming Guide", version 13.0, "Stream Ordered Memory Allocator".
//
// Invariants:
//   (1) Memory that was freed on a stream serves that stream's later allocations at once, and, where that is permitted, those of
//       other streams once the event recorded at its free is complete. (The guide's "opportunistic" reuse; reuse that follows the
//       events that streams wait for, and waits that the pool itself adds, are not modelled.)
//   (2) trim() gives memory whose free is complete back to its device; so does an allocation where the device has no other memory.
//   (3) Memory is reused for requests of exactly its size, so that the pool has no byte more than what is allocated and what is
//       freed. A driver's pool may have more, for it rounds sizes and divides what it has.
//   (4) A stream is known by its identity, not by its handle, which may come back.
//   (5) What the pool has freed and not given back is in the device's ledger, as a driver's is.
// The pool's own calls of the device are made in the relaxed capture mode, and may fail as any others.
// Thread safety: any thread.
#pragma once

#include <map>
#include <vector>

#include <ashlar/base/mutex.h>
#include <ashlar/device/device.h>

namespace ashlar::spec {

class StreamPool {
 public:
  struct Block {
    Address at;
    Bytes size;
    device::Device* device = nullptr;  ///< null: no block
  };

  /// What an allocation may do.
  struct Limits {
    Bytes size_max = Bytes::max();  ///< of the pool
    bool reuses_complete = true;    ///< what other streams freed (1)
  };
  struct Use {
    Bytes used;      ///< allocated
    Bytes reserved;  ///< that, and what was freed and not given back
    Bytes used_peak;
    Bytes reserved_peak;
  };

  /// kOutOfMemory where the device or the pool's size is exhausted.
  Result<Address> allocate(device::Device& on, Bytes size, const Stream& stream, Limits limits)
      ASHLAR_EXCLUDES(lock_);
  Result<Address> allocate(device::Device& on, Bytes size, const Stream& stream) {
    return allocate(on, size, stream, Limits{});
  }
  /// Frees memory of the pool behind the stream's work. kInvalidArgument: it is none.
  Status free_behind(device::Device& on, Address base, const Stream& stream) ASHLAR_EXCLUDES(lock_);
  /// Frees memory of the pool at once. kInvalidArgument: it is none.
  Status free_now(Address base) ASHLAR_EXCLUDES(lock_);
  /// Gives back freed memory whose free is complete, the oldest first, while the pool has more than `keep` bytes.
  void trim(Bytes keep) ASHLAR_EXCLUDES(lock_);
  /// Allocated memory, which is the pool's no more, for its device to free; none if it is not the pool's.
  Block take(Address base) ASHLAR_EXCLUDES(lock_);
  /// What take() returned, which the device did not free.
  void put_back(const Block& block) ASHLAR_EXCLUDES(lock_);
  Use use() const ASHLAR_EXCLUDES(lock_);
  /// The peaks begin anew.
  void reset_used_peak() ASHLAR_EXCLUDES(lock_);
  void reset_reserved_peak() ASHLAR_EXCLUDES(lock_);

 private:
  struct FreedBlock {
    Block block;
    StreamId stream;
    device::Device* event_device = nullptr;
    EventHandle freed;  ///< recorded at the free
  };

  /// Freed memory of that size that the stream may have; no block if there is none.
  Block take_freed(const device::Device& on, Bytes size, StreamId stream, bool reuses_complete)
      ASHLAR_EXCLUDES(lock_);
  void hold(const Block& block) ASHLAR_REQUIRES(lock_);
  /// The oldest freed memory whose free is complete, if the pool has more than `keep` bytes.
  FreedBlock take_complete(Bytes keep) ASHLAR_EXCLUDES(lock_);

  /// A device may call the pool while it frees, so none is asked to free or allocate under it.
  mutable Mutex lock_;
  std::map<Address, Block> held_ ASHLAR_GUARDED_BY(lock_);
  std::vector<FreedBlock> freed_ ASHLAR_GUARDED_BY(lock_);
  Use use_ ASHLAR_GUARDED_BY(lock_);
};

/// The stream, unless it captures, since graphs here have no nodes of memory (kUnsupported); asking for a capturing
/// stream's identity would end the capture.
Result<Stream> stream_outside_captures(device::Device& on, StreamHandle stream);

}  // namespace ashlar::spec
