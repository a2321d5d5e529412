// Where planning problems and plans come from: CSV files, traces, plan files.
//
// Thread safety: pure functions of the file system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ashlar/plan/problem_csv.h>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// What a buffer is called.
std::string id_of(const plan::Problem& problem, std::size_t buffer);

/// A problem from CSV, plain or gzip. On failure `*error` is one line, `file:line: reason`.
std::optional<plan::ProblemCsv> read_problem(const std::string& path, std::string* error);

/// A trace's allocations as a problem. Time is the event's number: an allocation lives from its own
/// to its free's, or to the end. Each stream's are kept apart in a space of its own: memory is not
/// reused over streams without a wait. Allocations of no bytes are left out.
plan::Problem problem_of(const Trace& trace);

/// A plan's offsets for the problem: from a plan file, or from the offset column of a CSV with the
/// same ids. nullopt as above, also where a buffer has no offset there.
std::optional<std::vector<Bytes>> read_offsets(const std::string& path,
                                               const plan::Problem& problem, std::string* error);

}  // namespace ashlar::tool
