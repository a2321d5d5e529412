// The contract's clauses about a block pool, as checkers of a map. They know no policy: any correct
// pool passes.
//
// Each returns an empty string, or what broke, beginning with the clause. Thread safety: pure
// functions.
// Cost: linear, except check_index, which sorts.
#pragma once

#include <string>
#include <vector>

#include "spec/model/pool_subject.h"

namespace ashlar::spec {

/// C1: the block at `address` is live, holds the request, is a multiple of the granule, and lies
/// inside one segment.
std::string check_usable(const PoolMap& map, Address address, Bytes requested, Bytes granule);
/// C2: no two blocks share a byte.
std::string check_disjoint(const PoolMap& map);
/// C3: the blocks of each segment tile it.
std::string check_tiling(const PoolMap& map);
/// C4: no two free blocks of a segment touch, and no two unmapped ones.
std::string check_coalesced(const PoolMap& map);
/// C5: `order` is exactly the blocks in that state, by size, then the segment's ordinal, then address.
std::string check_index(const PoolMap& map, PoolState state, const std::vector<Address>& order);
/// C14, C15: every counter equals a recount.
std::string check_conserved(const PoolMap& map, const PoolBooks& books);

/// What the counters of that map must be.
PoolBooks recount(const PoolMap& map);

}  // namespace ashlar::spec
