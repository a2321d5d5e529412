// The canary kernel as nvcc compiled it for this build.
//
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <span>

namespace ashlar::props {

/// What the driver loads as a module (a fat binary); empty where the build had no nvcc.
std::span<const std::byte> canary_image() noexcept;

}  // namespace ashlar::props
