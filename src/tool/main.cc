// The `ashlar` command: checks and reduces `.ops` files, runs traces, plans memory, for graphs too.
//
// Exit codes: 0 done; 1 a check failed (a divergence, an out-of-memory); 2 usage; 3 an input that
// cannot be read, or an output that cannot be written. Results go to stdout, everything else to
// stderr. Every input is read before any work.
#include <CLI/CLI.hpp>

#include "src/tool/command_line.h"
#include "src/tool/commands.h"

// NOLINTNEXTLINE(bugprone-exception-escape): std::bad_alloc, which ends the command.
int main(int argc, char** argv) {
  ashlar::tool::Commands commands;
  CLI::App app;
  ashlar::tool::build_command_line(app, commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ashlar::tool::kExitDone : ashlar::tool::kExitUsage;
  }
  if (app.got_subcommand("check")) return run_check(commands.check);
  if (app.got_subcommand("reduce")) return run_reduce(commands.reduce);
  if (app.got_subcommand("plan")) return run_plan(commands.plan);
  if (app.got_subcommand("convert")) return run_convert(commands.convert);
  if (app.got_subcommand("graph")) return run_graph(commands.graph);
  if (app.got_subcommand("schedule")) return run_schedule(commands.schedule);
  return run_traces(commands.replay);
}
