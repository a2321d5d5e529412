// Every adapter that this build has, for the cases to walk over.
#pragma once

#include "bench/adapters/ashlar_adapter.h"
#include "bench/adapters/floor.h"
#include "bench/adapters/pinned_adapter.h"
#ifdef ASHLAR_BENCH_CUB
#include "bench/adapters/cub.h"
#endif

namespace ashlar::bench {

template <class Adapter>
struct AdapterTag {
  using type = Adapter;
};

/// Calls visit(AdapterTag<A>{}) for each allocator that threads may share.
template <class Visit>
void for_each_shared_adapter(Visit&& visit) {
  visit(AdapterTag<AshlarAdapter>{});
  visit(AdapterTag<PinnedAdapter>{});
#ifdef ASHLAR_BENCH_CUB
  visit(AdapterTag<CubAdapter>{});
#endif
  visit(AdapterTag<FloorAdapter>{});
  visit(AdapterTag<MallocAdapter>{});
  visit(AdapterTag<EmptyAdapter>{});
}

/// The same, and the block pool without a lock.
template <class Visit>
void for_each_adapter(Visit&& visit) {
  for_each_shared_adapter(visit);
  visit(AdapterTag<PoolAdapter>{});
}

}  // namespace ashlar::bench
