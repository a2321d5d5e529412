// The CUDA runtime's functions that CUB's allocator calls, costing nothing: what NullDevice is to
// ours.
//
// Addresses come from a counter, events are complete at once. The names are CUDA's, so this never
// goes into a program that links the real runtime.
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace ashlar::bench {

/// From now on a cudaMalloc of at least `bytes` spins for that long first. Without effect at
/// UINT64_MAX bytes.
void set_cuda_growth_cost(std::uint64_t bytes, std::uint32_t microseconds);

}  // namespace ashlar::bench
