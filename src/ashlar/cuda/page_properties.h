// What pages of a GPU's memory are made as.
//
// Thread safety: a pure function.
#pragma once

#include <ashlar/cuda/driver_abi.h>
#include <ashlar/cuda/primary_context.h>

namespace ashlar::inline v0::cuda {

/// Pages of that GPU, which network cards can reach where it has that. `handle_types`: how they may leave the process.
inline MemoryProperties page_properties(const PrimaryContext& gpu, bool has_direct_rdma,
                                        int handle_types = 0) noexcept {
  MemoryProperties properties;
  properties.handle_types = handle_types;
  properties.location.id = gpu.device();
  properties.has_direct_rdma = has_direct_rdma ? 1 : 0;
  return properties;
}

}  // namespace ashlar::inline v0::cuda
