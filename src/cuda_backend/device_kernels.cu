// The kernels: a thread for each unit, or a warp. kernel_launch.h says with how many threads they are launched.
//
// Thread safety: launches on one stream run in order.
#include <cstdint>

#include "src/cuda_backend/device_units.h"

namespace ashlar::cuda_backend {
namespace {

constexpr unsigned kWarp = 32;

/// The lanes of a warp. All 32 of them take part.
struct WarpLanes {
  unsigned lane;

  __device__ std::uint64_t first() const { return lane; }
  __device__ std::uint64_t step() const { return kWarp; }
  __device__ double sum(double own) const {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
      own += __shfl_xor_sync(0xffffffffu, own, distance);
    return own;
  }
  __device__ float largest(float own) const {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, own, distance);
      if (other > own) own = other;
    }
    return own;
  }
};

}  // namespace

extern "C" __global__ void ashlar_by_thread(DeviceCall call, std::uint64_t units) {
  const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t unit = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < units;
       unit += all)
    compute_by_thread(call, unit);
}

extern "C" __global__ void ashlar_by_warp(DeviceCall call, std::uint64_t units) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x / kWarp;
  const WarpLanes lanes{static_cast<unsigned>(thread % kWarp)};
  for (std::uint64_t unit = thread / kWarp; unit < units; unit += all)
    compute_by_lanes(call, unit, lanes);
}

}  // namespace ashlar::cuda_backend
