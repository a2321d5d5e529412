// A memory pool's live allocations against those that its user knows of (row DEV-19).
//
// Purpose: whoever returns a pool to a checkpoint, or replays graphs that share one, holds a list of what has to be
// live in it. A difference is a leak, or memory that is believed to be owned and is not.
// Thread safety: pure functions of plain values.
#pragma once

#include <span>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/cache/snapshot.h>

namespace ashlar::inline v0::cache {

/// How the live allocations of a memory pool differ from a list.
struct LiveDifference {
  std::vector<Address> unexpected;  ///< live, and not in the list; in order of addresses
  std::vector<Address> missing;  ///< in the list, and not live in the pool; in order of addresses
  /// Are they the same?
  bool is_empty() const noexcept { return unexpected.empty() && missing.empty(); }
};

/// Compares the addresses with the pool's live allocations in a snapshot of its device. An address that is in the
/// list twice is missing once. Throws std::bad_alloc. Cost: O(blocks + addresses x log addresses).
ASHLAR_API LiveDifference compare_live(const Snapshot& snapshot, MemoryPoolId pool,
                                       std::span<const Address> expected);

}  // namespace ashlar::inline v0::cache
