// What names a memory pool, and what chooses the allocations that come from it.
//
// Purpose: graphs and users name memory of their own (CachingAllocator::begin_pool). Two numbers, as
// PyTorch has them: a graph's pools are numbered in `second`, a user's in `first`.
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

/// Whether an allocation on that stream goes to a memory pool. Called by the allocating thread for every
/// allocation while the pool's route stands, with a lock held. Of the allocator's calls it may make those
/// that free and query; allocations, calls about pools, retire_stream and begin_capture are kReentrant
/// to it (C24). It must not throw.
using StreamFilter = std::function<bool(const Stream&)>;

}  // namespace ashlar::inline v0
