// The command line of `ashlar`, apart from main(), so that its pages (manual, completions) can be
// generated from the same description that parses it.
//
// Thread safety: one thread.
#pragma once

#include <CLI/App.hpp>

#include "src/tool/commands.h"

namespace ashlar::tool {

/// The options of every command, as parsed.
struct Commands {
  TraceRunCommand replay;
  OpsCommand check;
  ReduceCommand reduce;
  ConvertCommand convert;
  PlanCommand plan;
  GraphCommand graph;
  ScheduleCommand schedule;
  AuditCommand audit;
};

/// Adds every command and option to `app`, which must be new. Parsing fills `commands`, which must
/// outlive `app`.
void build_command_line(CLI::App& app, Commands& commands);

}  // namespace ashlar::tool
