// Stubs of the CUDA runtime functions that CUB's allocator calls (cuda_runtime.cc). They cost
// nothing, as NullDevice does for Ashlar's allocator. This header sets the cost of growth.
//
// Addresses come from a counter, events are complete at once. The stubs have CUDA's names, so no
// program may link both them and the real runtime.
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace ashlar::bench {

/// From now on a cudaMalloc of `bytes` or more first spins for `microseconds`. UINT64_MAX bytes
/// turns that off.
void set_cuda_growth_cost(std::uint64_t bytes, std::uint32_t microseconds);

}  // namespace ashlar::bench
