// The `ashlar` command: check and reduce `.ops` files, replay traces.
//
// Exit codes: 0 done; 1 a check failed (a divergence, an out-of-memory); 2 usage; 3 an input that cannot be read, or an
// output that cannot be written. Results go to stdout, everything else to stderr. Every input is read before any work.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

#include <ashlar/base/version.h>

#include "src/tool/commands.h"

namespace {

constexpr int kExitUsage = 2;

void add_replay(CLI::App& app, ashlar::tool::ReplayCommand& command) {
  CLI::App* const sub = app.add_subcommand("replay", "Replay allocation traces through the caching allocator.");
  sub->add_option("TRACE", command.traces, "alloc-trace files, plain or gzip")->required();
  sub->add_option("--device", command.device, "what stands behind the allocator: sim or host")
      ->check(CLI::IsMember({"sim", "host"}))
      ->capture_default_str();
  sub->add_option("--capacity", command.capacity,
                  "the device's memory, e.g. 80GiB (K, M, G, T are powers of 1024), or auto: the smallest that will do");
  sub->add_option("--conf", command.conf, "configuration string (default: the environment's ASHLAR_ALLOC_CONF)");
  sub->add_flag("--check", command.check, "run the executable model in lockstep and check every clause");
  sub->add_option("--lag", command.lag, "streams finish their work so many events late")->capture_default_str();
  sub->add_option("--json", command.json, "write the results as a JSON array to this file; - for stdout");
  sub->add_option("--report", command.report, "write one self-contained HTML page to this file");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"A caching memory allocator for GPU and tensor software, checked against an executable model."};
  app.name("ashlar");
  app.set_version_flag("--version", std::string("ashlar ") + ASHLAR_VERSION);
  app.require_subcommand(1);

  ashlar::tool::ReplayCommand replay;
  add_replay(app, replay);

  ashlar::tool::OpsCommand check;
  CLI::App* const check_sub = app.add_subcommand("check", "Run .ops files in lockstep with the model.");
  check_sub->add_option("FILE", check.files, ".ops files")->required();

  ashlar::tool::ReduceCommand reduce;
  CLI::App* const reduce_sub = app.add_subcommand("reduce", "Shrink a failing .ops file to a minimal one.");
  reduce_sub->add_option("FILE", reduce.file, "a .ops file that fails")->required();
  reduce_sub->add_option("-o,--output", reduce.output, "where the minimal file goes (default: stdout)");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (check_sub->parsed()) return run_check(check);
  if (reduce_sub->parsed()) return run_reduce(reduce);
  return run_replay(replay);
}
