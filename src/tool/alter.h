// Makes traces from other traces: closed ones, and altered ones.
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

}  // namespace ashlar::tool
