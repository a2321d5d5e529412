// CUB's CachingDeviceAllocator, from the installed CUDA toolkit, over a CUDA runtime of our own
// that costs nothing (cuda_runtime.cc): the peer.
//
// Bins are powers of two, 2^9 .. 2^26 bytes, without a limit on what is cached; larger requests go
// to the device each time.
// Thread safety: any thread (one mutex inside CUB).
#pragma once

#include <cub/util_allocator.cuh>

#include "bench/adapters/adapter.h"

namespace ashlar::bench {

struct CubAdapter {
  static constexpr const char* kName = "cub";
  using Handle = void*;

  Handle allocate(std::uint64_t bytes, unsigned stream) {
    void* p = nullptr;
    if (allocator.DeviceAllocate(&p, bytes, streams[stream]) != cudaSuccess)
      give_up(kName, "DeviceAllocate failed");
    return p;
  }
  void free(Handle handle) {
    if (allocator.DeviceFree(handle) != cudaSuccess) give_up(kName, "DeviceFree failed");
  }

  CubAdapter() {
    for (std::uintptr_t i = 0; i < kStreamsMax; ++i)
      streams[i] = reinterpret_cast<cudaStream_t>(i + 1);
  }
  cub::CachingDeviceAllocator allocator{2, 9, 26, cub::CachingDeviceAllocator::INVALID_SIZE, true};
  cudaStream_t streams[kStreamsMax];
};

}  // namespace ashlar::bench
