// How a node's kernel is launched: which one, with how many threads.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/cuda_backend/device_units.h"

namespace ashlar::cuda_backend {

/// The names of the kernels in the image: a thread for each unit, and a warp for each.
inline constexpr const char* kByThreadName = "ashlar_by_thread";
inline constexpr const char* kByWarpName = "ashlar_by_warp";

inline constexpr unsigned kThreadsPerBlock = 256;
inline constexpr unsigned kWarpThreads = 32;
/// A thread or warp takes several units where there are more. Enough to fill any GPU.
inline constexpr std::uint64_t kBlocksMax = 65535;

/// The arguments of both kernels, and their grid.
struct KernelLaunch {
  DeviceCall call;
  std::uint64_t units = 0;
  bool is_by_warp = false;
  unsigned blocks = 0;
};

inline KernelLaunch launch_of(const DeviceCall& call) {
  KernelLaunch launch{call, units_of(call), is_by_lanes(call.operation)};
  const std::uint64_t per_block =
      launch.is_by_warp ? kThreadsPerBlock / kWarpThreads : kThreadsPerBlock;
  launch.blocks =
      static_cast<unsigned>(std::min((launch.units + per_block - 1) / per_block, kBlocksMax));
  return launch;
}

}  // namespace ashlar::cuda_backend
