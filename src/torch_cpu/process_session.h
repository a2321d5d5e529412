// The session of this process: the one that PyTorch's tensors are allocated from.
//
// Purpose: it is made at the first use and never destroyed, since tensors outlive static objects; and made anew in a
// process that a fork made, where the parent's cannot be used (C25).
// Thread safety: any thread.
#pragma once

#include "src/torch_cpu/step_session.h"

namespace ashlar::torch_cpu {

/// This process's session. Errors: as StepSession::create, each time it is asked for.
Result<StepSession*> process_session() noexcept;

/// What a build for tests puts around the session's parts; defined in default_parts.cc, or by such a build.
StepParts process_parts() noexcept;

}  // namespace ashlar::torch_cpu
