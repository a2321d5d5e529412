// The results of trace runs as JSON.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/tool/trace_run.h"

namespace ashlar::tool {

/// An array, one object a trace, ended by a newline. Sizes in bytes, times in the unit their name
/// ends in; a capacity without limit is null.
std::string json_text(const std::vector<TraceRunResult>& results, const TraceRunOptions& options);

}  // namespace ashlar::tool
