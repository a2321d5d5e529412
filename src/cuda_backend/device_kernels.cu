// The kernels: a thread for each unit, or a warp.
//
// Thread safety: launches on one stream run in order.
#include <cstdint>

#include "src/cuda_backend/device_kernels.h"
#include "src/cuda_backend/device_units.h"

namespace ashlar::cuda_backend {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarp = 32;
constexpr std::uint64_t kBlocksMax = 65535;

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

__global__ void by_thread(DeviceCall call, std::uint64_t units) {
  const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t unit = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < units;
       unit += all)
    compute_by_thread(call, unit);
}

__global__ void by_warp(DeviceCall call, std::uint64_t units) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x / kWarp;
  const WarpLanes lanes{static_cast<unsigned>(thread % kWarp)};
  for (std::uint64_t unit = thread / kWarp; unit < units; unit += all)
    compute_by_lanes(call, unit, lanes);
}

}  // namespace

cudaError_t launch(const DeviceCall& call, cudaStream_t stream) {
  const std::uint64_t units = units_of(call);
  if (units == 0) return cudaSuccess;
  const bool is_by_warp = is_by_lanes(call.operation);
  const std::uint64_t threads = is_by_warp ? units * kWarp : units;
  const std::uint64_t wanted = (threads + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kBlocksMax ? wanted : kBlocksMax);
  if (is_by_warp) {
    by_warp<<<blocks, kThreads, 0, stream>>>(call, units);
  } else {
    by_thread<<<blocks, kThreads, 0, stream>>>(call, units);
  }
  return cudaGetLastError();
}

}  // namespace ashlar::cuda_backend
