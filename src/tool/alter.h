// Traces that are another's, but for something.
//
// Thread safety: pure functions; the same trace for the same arguments on every machine.
#pragma once

#include <cstdint>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// The trace, and then a free of all that it leaves live, in order of allocation.
Trace closed(const Trace& trace);

struct AlteredTrace {
  Trace trace;
  std::uint64_t altered = 0;  ///< events of the original
};

/// Each event is altered with the chance `fraction`: an allocation gets another size or another
/// stream, is left out with its free, or has one put in before it, which is freed somewhat later; a
/// free comes earlier, later, or at the very end. In the end all is freed.
AlteredTrace alter(const Trace& trace, double fraction, std::uint64_t seed);

}  // namespace ashlar::tool
