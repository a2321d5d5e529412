// A pool of stream-ordered memory, for the runtime's cudaMallocAsync and the driver's cuMemAllocFromPoolAsync.
//
// Source: "CUDA Runtime API", version 13.0, chapter 6.12 ("Stream Ordered Memory Allocator"), cudaMallocAsync, cudaFreeAsync;
// "CUDA C++ Programming Guide", version 13.0, "Stream Ordered Memory Allocator".
//
// Invariants:
//   (1) Memory that was freed on a stream serves that stream's later allocations at once, and those of other streams once the
//       event recorded at its free is complete. (The guide's "opportunistic" reuse; reuse that follows the events that streams wait
//       for, and waits that the pool itself adds, are not modelled.)
//   (2) trim() gives memory whose free is complete back to its device; so does an allocation where the device has no other memory.
//   (3) Memory is reused whole, for a request of at least half its size.
//   (4) A stream is known by its identity, not by its handle, which may come back.
//   (5) Nothing that is kept is about an earlier machine than the one that is attached.
// The pool's calls of the device are made in the relaxed capture mode.
// Thread safety: any thread.
#pragma once

#include <map>
#include <vector>

#include <ashlar/base/mutex.h>
#include <ashlar/device/device.h>

namespace ashlar::spec::cuda_face {

class StreamPool {
 public:
  Result<Address> allocate(device::Device& on, Bytes size, const Stream& stream)
      ASHLAR_EXCLUDES(lock_);
  /// Frees memory of the pool behind the stream's work. kInvalidArgument: it is none.
  Status free_behind(device::Device& on, Address base, const Stream& stream) ASHLAR_EXCLUDES(lock_);
  /// Frees memory of the pool at once. kInvalidArgument: it is none.
  Status free_now(Address base) ASHLAR_EXCLUDES(lock_);
  /// Gives back freed memory whose free is complete, the oldest first, while the pool has more than `keep` bytes.
  void trim(Bytes keep) ASHLAR_EXCLUDES(lock_);

 private:
  struct Block {
    Address at;
    Bytes size;
    int device = 0;
  };
  struct FreedBlock {
    Block block;
    StreamId stream;
    int event_device = 0;
    EventHandle freed;  ///< recorded at the free
  };

  void refresh() ASHLAR_REQUIRES(lock_);
  void trim_freed(Bytes keep) ASHLAR_REQUIRES(lock_);
  /// The smallest freed memory that the stream may have; an empty one if there is none.
  Block take_freed(int device, Bytes size, StreamId stream) ASHLAR_REQUIRES(lock_);

  Mutex lock_;
  std::uint64_t attachment_ ASHLAR_GUARDED_BY(lock_) = 0;
  std::map<Address, Block> held_ ASHLAR_GUARDED_BY(lock_);
  std::vector<FreedBlock> freed_ ASHLAR_GUARDED_BY(lock_);
};

/// The stream, unless it captures, since graphs here have no nodes of memory (kUnsupported); asking for a capturing
/// stream's identity would end the capture.
Result<Stream> stream_outside_captures(device::Device& on, StreamHandle stream);

}  // namespace ashlar::spec::cuda_face
