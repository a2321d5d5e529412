// Where `ashlar replay` has its configuration from: --conf, or an environment variable of Ashlar's or PyTorch's.
#pragma once

#include <string>

#include "src/tool/trace_run.h"

namespace ashlar::tool {

/// Fills config and conf_text of `*options` by the option --conf, which may be empty. kExitDone, or the exit code after a line on
/// stderr.
int read_trace_conf(const std::string& conf, TraceRunOptions* options);

}  // namespace ashlar::tool
