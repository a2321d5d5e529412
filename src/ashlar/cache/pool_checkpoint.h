// A memory pool's state at one moment, and what a return to it changed (row DEV-9, C11).
//
// Purpose: replays of a graph change no allocator's state, so a pool does not know what is live after
// graphs were replayed. Whoever captures a tree of graphs keeps the pool's state after each capture, and
// returns the pool to it before the next one. Source: PyTorch's Note [Checkpointing PrivatePoolState].
// Thread safety: plain values; several threads may read one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <ashlar/base/memory_pool.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// A live allocation of a memory pool. The pool's other bytes are free, which determines all blocks.
struct CheckpointBlock {
  std::uint64_t segment;  ///< SnapshotSegment::ordinal
  Bytes offset;           ///< in the segment
  Bytes size;             ///< of the whole block
  Bytes requested;        ///< what the caller asked for
};

/// The state of a memory pool: CachingAllocator::checkpoint_pool() makes it, restore_pool() returns to
/// it, as often as wanted. It holds no memory of the device.
class PoolCheckpoint {
 public:
  /// Of no pool: restore_pool() refuses it.
  PoolCheckpoint() = default;
  /// Another checkpoint of the same state.
  PoolCheckpoint(const PoolCheckpoint&) = default;
  /// Likewise.
  PoolCheckpoint& operator=(const PoolCheckpoint&) = default;
  /// Leaves a checkpoint of no pool: without the allocations, it would end everything in its pool.
  PoolCheckpoint(PoolCheckpoint&& from) noexcept { *this = std::move(from); }
  /// Likewise.
  PoolCheckpoint& operator=(PoolCheckpoint&& from) noexcept {
    if (this == &from) return *this;
    device_ = from.device_;
    pool_ = std::exchange(from.pool_, MemoryPoolId{});
    pool_serial_ = std::exchange(from.pool_serial_, 0);
    blocks_ = std::exchange(from.blocks_, {});
    return *this;
  }
  ~PoolCheckpoint() = default;

  /// The device of the pool.
  DeviceId device() const noexcept { return device_; }
  /// The pool; {0, 0} for a checkpoint of none.
  MemoryPoolId pool() const noexcept { return pool_; }
  /// The number of live allocations.
  std::size_t allocation_count() const noexcept { return blocks_.size(); }

 private:
  friend class MemoryPools;
  DeviceId device_;
  MemoryPoolId pool_;
  std::uint64_t pool_serial_ = 0;  ///< MemoryPools::Pool::serial
  std::vector<CheckpointBlock> blocks_;
};

/// What restore_pool() did.
struct RestoredPool {
  /// every allocation of the pool that was live before: it has ended, and must not be freed
  std::vector<Address> freed;
  /// every allocation of the pool that is live now: its caller frees it like any other
  std::vector<Address> created;
};

}  // namespace ashlar::inline v0::cache
