// libashlar_torch_cpu_checked.so: the library whose every call is judged. At its end the process says how many were.
#include <cstdio>
#include <cstdlib>

#include "props/torch_cpu/checked_parts.h"
#include "src/torch_cpu/process_session.h"

namespace ashlar {

torch_cpu::StepParts torch_cpu::process_parts() noexcept {
  static const int registered = std::atexit([] {
    std::fprintf(stderr, "%llu calls judged\n",
                 static_cast<unsigned long long>(props::judged_calls()));
  });
  static_cast<void>(registered);
  return props::checked_parts();
}

}  // namespace ashlar
