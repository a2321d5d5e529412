// The report of trace runs: one self-contained HTML page.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/tool/trace_run.h"

namespace ashlar::tool {

/// A trace run's part of the report, as JSON text: its figures, the timeline down-sampled to the
/// minimum and the maximum of each bucket, the address map, the marks. Made right after the run, so
/// that a timeline of millions of events need not be kept.
std::string report_entry(const TraceRunResult& result, const TraceRunOptions& options,
                         const Trace& trace);

/// The page with those entries. It loads nothing from elsewhere.
std::string report_page(const std::vector<std::string>& entries, const TraceRunOptions& options);

}  // namespace ashlar::tool
