// What names a memory pool, and what chooses the allocations that come from it.
//
// Purpose: graphs and users name memory of their own (CachingAllocator::begin_pool). Two numbers, as
// PyTorch has them: it numbers the pools of graphs in `first` and those of users in `second`.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <functional>

#include <ashlar/base/types.h>

namespace ashlar::inline v0 {

/// Which memory pool of a device. {0, 0} is the device's own: all memory that belongs to no pool.
struct MemoryPoolId {
  std::uint64_t first = 0;   ///< chosen by the caller
  std::uint64_t second = 0;  ///< likewise
  /// Is it the device's own?
  constexpr bool is_default() const noexcept { return first == 0 && second == 0; }
  friend constexpr bool operator==(const MemoryPoolId&, const MemoryPoolId&) = default;
};

namespace device {
class Device;
}

/// What makes a memory pool differ from the device's own memory.
struct MemoryPoolOptions {
  /// no block is split: an allocation has a whole segment, or a block that was freed whole
  bool no_split = false;
  /// in place of an out-of-memory of an allocation outside of memory pools, the pool lends it a free block: one of
  /// the same stream's heap at once, one of another stream's heap when its work is done. Such a pool has no
  /// checkpoints (kUnsupported). REQUIRES: no captured graph uses the pool
  bool overflow = false;
  /// where the pool's segments come from and go back to, by segment_alloc() and segment_free(), both of
  /// which may be called by any thread; nullptr: the device itself. It must outlive the allocator. Its
  /// memory is memory of the pool's device, so where it has none left, idle memory of that device goes back
  /// before the pool's allocation fails
  device::Device* growth = nullptr;
};

/// Whether an allocation on that stream goes to a memory pool. Called by the allocating thread for every
/// allocation while the pool's route stands, with a lock held. Of the allocator's calls it may make those
/// that free and query; allocations, calls about pools, retire_stream, begin_capture, and what gives memory
/// back (trim, make_room, memory limits) are kReentrant to it (C24). It must not throw.
using StreamFilter = std::function<bool(const Stream&)>;

}  // namespace ashlar::inline v0
