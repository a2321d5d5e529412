#include "src/torch_cpu/process_session.h"

namespace ashlar::torch_cpu {

StepParts process_parts() noexcept { return {}; }

}  // namespace ashlar::torch_cpu
