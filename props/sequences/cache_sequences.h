// Random sequences for the caching allocator: weighted so that caches fill, split, merge, wait and
// run short.
//
// Thread safety: pure functions. The same seed gives the same sequence everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "spec/ops/op.h"

namespace ashlar::props {

/// What a sequence may contain beyond allocations, frees, uses, kernels and progress. With failures
/// or ends it sometimes ends at once (end-now).
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
  bool has_ends = false;     ///< sometimes a device is lost, or the driver unloaded
  bool has_threads = false;  ///< two threads act in turn, and their default streams are used
  bool has_pools = false;    ///< memory pools, and graphs that are launched
  /// large segments, of which collections give idle ones back
  bool has_collections = false;
  bool has_pins = false;  ///< memory is pinned, and sent over the network
};
/// A shape from the bits of a number: 0 to 8191 give every combination of the above.
SequenceShape shape_from(std::uint64_t bits);
/// One of these combinations, drawn from the seed.
SequenceShape any_shape(std::uint64_t seed);

spec::OpFile random_sequence(const SequenceShape& shape, std::uint64_t seed);

/// How many ops byte_sequence() adds to those of the bytes: a device and three streams.
inline constexpr std::size_t kOpsAdded = 4;

/// The sequence that the byte form says, with streams s1, s2 (on d0) and s3 (on the last device
/// named) made before the first op that needs a world. Every device has 64 GiB at most.
void byte_sequence(std::span<const std::uint8_t> bytes, std::size_t ops_max, spec::OpFile* file);

/// Runs a sequence on the real allocator. Empty, or a text for a failure: the divergence, the
/// reduced sequence and the maps.
std::string judge_sequence(const spec::OpFile& file);

}  // namespace ashlar::props
