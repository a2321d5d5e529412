// What `ashlar plan` prints and writes: the table, JSON, and the plan's file.
//
// Thread safety: one thread.
#pragma once

#include <string>

#include <ashlar/plan/plan.h>
#include <ashlar/plan/problem.h>

namespace ashlar::tool {

/// A plan, how long planning took, and what the checker of spec/ found wrong with it.
struct PlanAnswer {
  plan::Plan plan;
  double seconds = 0;
  std::string violation;  ///< empty: the plan is valid
};

/// Prints a line for the problem and one or two for each space.
void print_plan(const plan::Problem& problem, const PlanAnswer& answer);

/// The answer as one JSON object, ended by a newline. The figures of a problem of one space are at
/// the top of the object, those of several spaces in an array. `name` is the problem's file.
std::string plan_json(const std::string& name, const plan::Problem& problem,
                      const PlanAnswer& answer);

/// Writes the plan to a file: as CSV with an offset column if the path ends in .csv or .csv.gz, else
/// as a plan file. On failure `*error` is one line.
bool write_plan(const std::string& path, const plan::Problem& problem, const plan::Plan& answer,
                std::string* error);

}  // namespace ashlar::tool
