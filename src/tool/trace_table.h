// The tables of `ashlar replay` on stdout.
//
// Thread safety: one thread. No line is wider than 100 columns while every number fits its column; a
// trace's name is cut to fit. What has no column is in the JSON (json_output.h).
#pragma once

#include <vector>

#include "src/tool/trace_run.h"

namespace ashlar::tool {

/// Prints a row for each result; behind that what planned and settled runs have to say, and with --policy
/// a row for each policy of each trace.
void print_results(const std::vector<TraceRunResult>& results);

}  // namespace ashlar::tool
