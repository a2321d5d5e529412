// Reads planning problems and plans: from CSV files, traces and plan files.
//
// Thread safety: pure functions of the file system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ashlar/plan/plan.h>
#include <ashlar/plan/problem_csv.h>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// The buffer's id, or its number if the problem has no ids.
std::string id_of(const plan::Problem& problem, std::size_t buffer);

/// Reads a problem from CSV, plain or gzip. On failure `*error` is one line, `file:line: reason`.
std::optional<plan::ProblemCsv> read_problem(const std::string& path, std::string* error);

/// A trace's allocations as a problem, each aligned to `alignment` bytes. Times are the numbers of events: an allocation lives from its
/// own event to its free's, or to the end. Each stream has a space of its own, because memory is not
/// reused across streams without a wait. Allocations of zero bytes are left out.
plan::Problem problem_of(const Trace& trace, Bytes alignment);

/// Reads a plan of the problem: from a plan file, or from the offset column of a CSV with the same
/// ids, which may be no valid plan, and states no peaks. On failure, also if a buffer has no offset
/// there, `*error` is one line.
std::optional<plan::Plan> read_plan(const std::string& path, const plan::Problem& problem,
                                    std::string* error);

/// The same, the offsets alone.
std::optional<std::vector<Bytes>> read_offsets(const std::string& path,
                                               const plan::Problem& problem, std::string* error);

}  // namespace ashlar::tool
