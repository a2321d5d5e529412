// Traces as files of other kinds. What a kind does not have is left out: a log of RMM has no marks, an
// alloc-trace and a log of RMM have no call stacks.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "src/tool/known_file.h"
#include "src/tool/trace.h"

namespace ashlar::tool {

/// What a trace can be written as.
enum class TraceTarget : std::uint8_t {
  kTrace,         ///< an alloc-trace
  kPickle,        ///< a memory snapshot of PyTorch, as a pickle
  kSnapshotJson,  ///< the same as JSON
  kRmmLog,        ///< a log of RMM: CSV
  kPerfetto,      ///< Chrome's trace event JSON
};

/// The kind that --to names (trace, pickle, json, rmm, perfetto). Nothing for another name.
std::optional<TraceTarget> target_named(const std::string& name);
/// The kind that a path's ending says, with or without .gz: .trace, .pickle, .pkl, .perfetto.json, .json,
/// .csv. Nothing for another ending.
std::optional<TraceTarget> target_by_ending(const std::string& path);

/// As which kind an existing file is known that such a file may replace.
KnownFile known_file_of(TraceTarget target);

/// The file's bytes. Kinds with addresses get made ones (trace_history.h); snapshots and Perfetto get the
/// newest `events_max` events. Nothing on failure: `*error` is why. Cost: O(n log n).
std::optional<std::string> export_trace(const Trace& trace, TraceTarget target,
                                        std::size_t events_max, std::string* error);

}  // namespace ashlar::tool
