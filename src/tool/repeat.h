// A trace whose last step is repeated: does a workload settle (C20)?
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// How often the step is repeated, and by which repetition it is to be settled.
inline constexpr unsigned kRepeats = 20;
inline constexpr unsigned kSettledBy = 10;
/// The text of the mark before each repetition, and behind the last one.
inline constexpr const char* kRepeatMark = "repeat";

/// The trace up to its last step, `m step N begin` to `m step N end`, and then that step kRepeats times.
/// What the step frees of earlier allocations it replaces by allocations of the same sizes, which the
/// next repetition frees. Nothing, and `*why` says what is in the way, if the trace has no such marks, or
/// the step frees more or other sizes than it leaves.
std::optional<Trace> repeat_last_step(const Trace& trace, std::string* why);

}  // namespace ashlar::tool
