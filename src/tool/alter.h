// Makes traces from other traces: closed ones, altered ones, and ones of other sizes.
//
// Thread safety: pure functions; the same trace for the same arguments on every machine.
#pragma once

#include <cstdint>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// The trace, followed by frees of what it leaves live, in order of allocation.
Trace closed(const Trace& trace);

struct AlteredTrace {
  Trace trace;
  std::uint64_t altered = 0;  ///< how many events of the original were altered
};

/// Alters each event with the probability `fraction`, by random numbers from `seed`. An allocation
/// gets another size or another stream, is left out with its free, or gets another allocation put in
/// before it, which is freed somewhat later. A free comes earlier, later, or at the end. The result is
/// closed: everything is freed.
AlteredTrace alter(const Trace& trace, double fraction, std::uint64_t seed);

/// What has a random factor of its own.
enum class Perturb : std::uint8_t { kSizes, kAllocations };

/// Allocations up to this size keep it: scalars and counters, which take a granule whatever they are.
inline constexpr Bytes kPerturbedAbove{512};

/// The trace with other sizes: each size above kPerturbedAbove is multiplied by a factor from 0.9 to 1.1,
/// by random numbers from `seed`. With kSizes equal sizes stay equal, as if the model had other
/// dimensions; with kAllocations they do not. Events, marks and streams stay. A trace whose live bytes
/// exceed 2^62 is returned as it is.
Trace perturbed(const Trace& trace, Perturb what, std::uint64_t seed);

}  // namespace ashlar::tool
