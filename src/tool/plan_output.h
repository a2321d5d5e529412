// What `ashlar plan` prints and writes: the table, JSON, and the plan's file.
//
// Thread safety: one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ashlar/plan/plan.h>
#include <ashlar/plan/problem.h>

#include "src/tool/known_file.h"

namespace ashlar::tool {

/// A plan, how long planning took, and what the checker of spec/ found wrong with it.
struct PlanAnswer {
  plan::Plan plan;
  double seconds = 0;
  bool is_stopped_early = false;  ///< by a signal
  std::string violation;          ///< empty: the plan is valid
};

/// Prints a line for the problem and one or two for each space.
void print_plan(const plan::Problem& problem, const PlanAnswer& answer);

/// The answer as one JSON object, ended by a newline. The figures of a problem of one space are at
/// the top of the object, those of several spaces in an array. `name` is the problem's file.
std::string plan_json(const std::string& name, const plan::Problem& problem,
                      const PlanAnswer& answer);

/// What kind of file a plan is at that path: CSV with an offset column if it ends in .csv, packed if
/// it ends in .csv.gz, else a plan file.
KnownFile plan_kind(std::string_view path);

/// The plan as a file of that kind. Nothing on failure: `*error` is one line.
std::optional<std::string> plan_bytes(std::string_view path, const plan::Problem& problem,
                                      const plan::Plan& answer, std::string* error);

}  // namespace ashlar::tool
