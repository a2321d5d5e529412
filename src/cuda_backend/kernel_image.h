// The GPU's kernels as nvcc compiled them for this build.
//
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <span>

namespace ashlar::cuda_backend {

/// What the driver loads as a module (a fat binary); empty where the build had no nvcc.
std::span<const std::byte> kernel_image() noexcept;

}  // namespace ashlar::cuda_backend
