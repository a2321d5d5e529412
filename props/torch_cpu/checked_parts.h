// The parts of a StepSession that is judged while it runs.
//
// Purpose: a training of PyTorch's, or a test's random steps, in lockstep with the model of the replay (spec/replay), with
// every allocation compared with all live ones. The first divergence ends the process, with its clause.
// Thread safety: any thread; one lock.
#pragma once

#include <cstdint>

#include "src/torch_cpu/step_parts.h"

namespace ashlar::props {

/// Where $ASHLAR_TORCH_CPU_OPS names a file, the calls to the allocator are written there too, for `ashlar check`.
torch_cpu::StepParts checked_parts() noexcept;

/// How many calls the checkers have judged.
std::uint64_t judged_calls() noexcept;

}  // namespace ashlar::props
