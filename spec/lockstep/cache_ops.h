// What each op of a cache sequence does: one table, one row for each op.
//
// Thread safety: a constant table.
#pragma once

#include <cstdint>
#include <string>

#include "spec/gpu/sim_gpu.h"
#include "spec/lockstep/cache_world.h"
#include "spec/ops/op.h"

namespace ashlar::spec {

/// What the first ops say of the machine and the subject, before either is made.
struct WorldPlan {
  std::string conf;  ///< the subject's configuration string
  SimGpuOptions machine;
  bool observes_mappings = false;  ///< an observer of mappings is added before the first call
};

/// A row has one function or neither; an op without a function is skipped.
struct OpHandler {
  /// Of conf, device, seed and observe: runs before the machine is made. False: skipped.
  bool (*set_up)(WorldPlan& plan, const Op& op) = nullptr;
  /// Of all others: runs in the world, or skips.
  void (*run)(CacheWorld& world, const Op& op) = nullptr;
};

/// Cost: O(1).
const OpHandler& cache_op(std::uint8_t slot);

}  // namespace ashlar::spec
