// Worlds in which a step repeats on a device that has hardly more pages than the step needs, so that pages
// serve several places: remembered places and loans of pages (place_log.h, place_loan.h).
//
// A request gets a remembered place only after as many requests repeated as Config::place_context says, 64
// by default. Most of these worlds set fewer, so that a world which fails is reduced to few ops and the
// byte form reaches what they reach; the code is the same at every number. Some keep the default.
// Thread safety: pure functions. The same seed gives the same sequence everywhere.
#pragma once

#include <cstdint>

#include "spec/ops/op.h"

namespace ashlar::props {

/// What interrupts the step in some of its rounds.
struct StepShape {
  std::uint32_t streams = 1;
  bool has_changes = false;   ///< a request more or less, another size, a trim
  bool has_failures = false;  ///< failing device calls
  bool has_limits = false;    ///< the memory limit falls and rises again
  bool has_captures = false;
  bool has_pools = false;         ///< memory pools, some of which stay
  bool has_dead_streams = false;  ///< a stream is retired, and one of its name comes
  bool has_large_places = false;  ///< places of more pages than come for one request
};
/// A shape from the bits of a number: 0 to 511 give every combination of the above, with 1 to 3
/// streams.
StepShape step_shape_from(std::uint64_t bits);

spec::OpFile stepping_sequence(const StepShape& shape, std::uint64_t seed);

}  // namespace ashlar::props
