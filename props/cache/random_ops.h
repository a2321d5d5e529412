// Random sequences for the caching allocator: weighted so that caches fill, split, merge, wait and run short.
//
// Thread safety: pure functions. The same seed gives the same sequence everywhere.
#pragma once

#include <cstdint>

#include "spec/ops/op.h"

namespace ashlar::props {

/// What a sequence may contain beyond allocations, frees, uses, kernels and progress.
struct SequenceShape {
  std::uint32_t ops = 200;
  std::uint32_t live_max = 64;
  std::uint32_t streams = 3;
  std::uint32_t devices = 1;
  bool has_capacity = false;  ///< a small device, so that memory runs out
  bool has_failures = false;
  bool has_captures = false;
  bool has_misuse = false;
  bool has_dead_streams = false;
  bool has_callbacks = false;
  bool has_conf = false;
};

spec::OpFile random_sequence(const SequenceShape& shape, std::uint64_t seed);

}  // namespace ashlar::props
