// A request after rounding: what a pool is searched for.
//
// Thread safety: plain values.
#pragma once

#include <ashlar/base/pool_id.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

struct Request {
  Bytes requested;  ///< as the caller asked
  Bytes size;       ///< rounded
  Bytes fit_end;    ///< blocks of this size or more may not serve it (row DEV-3)
  PoolId pool = PoolId::kLarge;
  bool may_split = true;  ///< a larger block (MemoryPoolOptions::no_split)
  /// Is the place where the heap's log expects it (place_log.h) to be tried before others?
  bool tries_place = true;
};

}  // namespace ashlar::inline v0::cache
