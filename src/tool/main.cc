// The `ashlar` command: checks and reduces `.ops` files, runs traces, plans memory, for graphs too.
//
// Exit codes: kExitCodesText. Results go to stdout, everything else to stderr. Every output is opened
// before any work; inputs are read one by one, and one that cannot be read does not stop the others.
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "src/tool/command_line.h"
#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/signals.h"
#include "src/tool/usage_error.h"

namespace {

using namespace ashlar::tool;

int run_command(const CLI::App& app, const Commands& commands) {
  if (app.got_subcommand("check")) return run_check(commands.check);
  if (app.got_subcommand("reduce")) return run_reduce(commands.reduce);
  if (app.got_subcommand("plan")) return run_plan(commands.plan);
  if (app.got_subcommand("convert")) return run_convert(commands.convert);
  if (app.got_subcommand("graph")) return run_graph(commands.graph);
  if (app.got_subcommand("schedule")) return run_schedule(commands.schedule);
  if (app.got_subcommand("audit")) return run_audit(commands.audit);
  return run_traces(commands.replay);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): std::bad_alloc before a command runs, which ends it.
int main(int argc, char** argv) {
  handle_signals();
  Commands commands;
  CLI::App app;
  build_command_line(app, commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return fail(kExitUsage, usage_error(app, {argv + 1, argv + argc}, error));
  }
  try {
    const int code = run_command(app, commands);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return fail(kExitUnreadable, std::string("standard output: ") + std::strerror(errno));
  } catch (const std::bad_alloc&) {
    return fail(kExitNoMemory, "ashlar: this computer's memory is used up");
  }
}
