// A node as a GPU's kernels see it, and how it is divided.
//
// Thread safety: plain values; pure functions.
//
// A node is divided into units: elements, each computed by one thread, or rows and sums, each computed by
// the lanes of a warp together (Lanes below). On the host there is one lane.
#pragma once

#include <cstdint>

#include "src/cuda_backend/device_operand.h"

namespace ashlar::cuda_backend {

/// A node with its sources and numbers. `operation` is the number of graph::Operation.
struct DeviceCall {
  static constexpr int kSourcesMax = 5;
  DeviceOperand out;
  DeviceOperand in[kSourcesMax];
  float reals[4] = {};
  std::int32_t integers[8] = {};
  std::uint8_t operation = 0;
  /// Set to 1 if an index in a source is out of range.
  int* fault = nullptr;
};

/// The lanes that compute a unit together, on the host: one. A GPU's have the same members.
struct OneLane {
  ASHLAR_ON_DEVICE std::uint64_t first() const { return 0; }
  ASHLAR_ON_DEVICE std::uint64_t step() const { return 1; }
  /// The sum over the lanes, on each of them.
  ASHLAR_ON_DEVICE double sum(double own) const { return own; }
  /// The largest over the lanes, on each of them.
  ASHLAR_ON_DEVICE float largest(float own) const { return own; }
};

}  // namespace ashlar::cuda_backend
