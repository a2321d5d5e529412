// The tables of `ashlar replay` on stdout.
//
// Thread safety: one thread. No line of a table is wider than 100 columns: a trace's name is cut to fit,
// and a large count is in thousands. Exact counts, and what has no column, are in the JSON (json_output.h).
#pragma once

#include <vector>

#include "src/tool/trace_run.h"

namespace ashlar::tool {

/// Prints a row for each result; behind that what planned and settled runs have to say, and with --policy
/// a row for each policy of each trace.
void print_results(const std::vector<TraceRunResult>& results);

}  // namespace ashlar::tool
