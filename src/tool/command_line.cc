// The command line: every command with its options, as one CLI::App.
#include "src/tool/command_line.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>

#include <ashlar/base/version.h>
#include <ashlar/cache/config.h>

#include "src/tool/configuration_page.h"

namespace ashlar::tool {
namespace {

/// Whole numbers from 0 to 2^64 - 1: CLI11 takes `-1` for the largest, and what is larger too.
std::string whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = failure == std::errc{} && end == text.data() + text.size();
  return is_whole ? "" : "'" + text + "' is not a whole number from 0 to 2^64 - 1";
}

/// Of a whole number.
std::string not_zero(const std::string& text) {
  return text.find_first_not_of('0') == std::string::npos ? "0 is too few" : "";
}

template <class Number>
CLI::Option* add_number(CLI::App* sub, const char* name, Number& number, const std::string& text) {
  return sub->add_option(name, number, text)->check(whole_number);
}

void add_trace_device(CLI::App* sub, std::optional<std::uint32_t>& device) {
  add_number(sub, "--trace-device", device,
             "the device to read of a snapshot (default: the only one with events)");
}

void add_plan_limits(CLI::App* sub, PlanLimits* limits, const std::string& by_default) {
  sub->add_option("--time-limit", limits->time_limit,
                  "seconds to search for a better plan (default: " + by_default + ")");
  add_number(sub, "--work", limits->work,
             "steps to search for a better plan, in each space: the same answer on every machine");
}

void add_trace_run(CLI::App& app, TraceRunCommand& command) {
  CLI::App* const sub =
      app.add_subcommand("replay", "Run allocation traces through the caching allocator.");
  sub->add_option("TRACE", command.traces,
                  "alloc-traces, memory snapshots of PyTorch (pickle or JSON), logs of RMM (CSV): "
                  "known by their content, plain or gzip")
      ->required();
  add_trace_device(sub, command.trace_device);
  sub->add_option("--device", command.device,
                  "the device: sim, a simulated GPU, or host, this computer's memory")
      ->check(CLI::IsMember({"sim", "host"}))
      ->capture_default_str();
  sub->add_option(
      "--capacity", command.capacity,
      "the device's memory, e.g. 80GiB, 1.5GiB or 10GB; auto: the smallest on which the "
      "trace runs; settled: the smallest on which repeated steps settle. K, M, G, T and KiB to TiB "
      "are powers of 1024, KB to TB of 1000");
  sub->add_option(
      "--conf", command.conf,
      "configuration string, key:value,... (default: the environment variable "
      "ASHLAR_ALLOC_CONF); pytorch-env takes PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF, and "
      "PYTORCH_NO_CUDA_MEMORY_CACHING; keys below");
  sub->footer("Configuration keys (docs/configuration.md):\n" + configuration_keys_text());
  sub->add_flag("--check", command.check,
                "run the executable model in lockstep and check every clause");
  add_number(sub, "--lag", command.lag, "streams finish their work this many events late")
      ->capture_default_str();
  sub->add_option("--policy", command.policy,
                  "compare allocation policies side by side: a list of ashlar, pytorch, "
                  "pytorch-expandable and planned, e.g. ashlar,pytorch, or all");
  sub->add_flag("--planned", command.planned,
                "record the trace, plan it, and serve it from one segment for each stream; what it "
                "leaves live is freed at its end");
  sub->add_option(
      "--plan", command.plan,
      "with --planned: serve the trace by this plan, which `plan --from-trace` made of it");
  add_plan_limits(sub, &command.limits,
                  "unlimited; the default of --work is " + std::to_string(kReplayWorkDefault));
  sub->add_option(
         "--perturb", command.perturb,
         "multiply sizes above 512 bytes by random factors from 0.9 to 1.1 before anything "
         "else: one factor for each of the sizes, or for each of the allocations")
      ->check(CLI::IsMember({"sizes", "allocations"}));
  sub->add_option("--alter", command.alter,
                  "with --planned: alter this part of the run's events after planning, e.g. 0.01")
      ->check(CLI::Range(0.0, 1.0));
  add_number(sub, "--seed", command.seed,
             "with --alter or --perturb: the random seed (default: 1)");
  sub->add_option("--json", command.json,
                  "write the results as a JSON array to this file; - for stdout");
  sub->add_option("--report", command.report, "write one self-contained HTML page to this file");
}

void add_convert(CLI::App& app, ConvertCommand& command) {
  CLI::App* const sub = app.add_subcommand("convert", "Write a trace as another kind of file.");
  sub->add_option("A", command.input,
                  "a trace; a memory snapshot of PyTorch, pickle or JSON; a log of RMM: known by "
                  "its content, plain or gzip")
      ->required();
  sub->add_option("B", command.output,
                  "the file to write; its ending says the kind: .trace, .pickle, .pkl, .json (a "
                  "snapshot), .csv (RMM), .perfetto.json, each also with .gz; - for stdout")
      ->required();
  sub->add_option("--to", command.to, "the kind to write, whatever the ending")
      ->check(CLI::IsMember({"trace", "pickle", "json", "rmm", "perfetto"}));
  add_trace_device(sub, command.trace_device);
  add_number(sub, "--limit-events", command.limit_events,
             "write at most so many events to a snapshot or for Perfetto, the newest");
}

void add_plan(CLI::App& app, PlanCommand& command) {
  CLI::App* const sub =
      app.add_subcommand("plan", "Plan memory for buffers whose lifetimes are known.");
  sub->add_option("PROBLEM", command.problem,
                  "a problem: CSV with id,lower,upper,size[,...], plain or gzip");
  sub->add_option("--from-trace", command.from_trace,
                  "plan the allocations of this trace, of any kind that replay takes");
  add_trace_device(sub, command.trace_device);
  sub->add_option("--alignment", command.alignment,
                  "with --from-trace: the alignment of every allocation, a power of two (default: "
                  "the allocator's granule, " +
                      std::to_string(cache::Config{}.granule.count()) + ")");
  sub->add_option(
         "--capacity", command.capacities,
         "stop when every space fits in this size, e.g. 1048576 or 16GiB; NAME=SIZE for one "
         "space")
      ->allow_extra_args(false);
  add_plan_limits(sub, &command.limits, "10; unlimited with --work");
  sub->add_option("--threads", command.threads, "how many threads search: the same answer, sooner")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  sub->add_option("--warm-start", command.warm_start,
                  "start from this plan: a plan file, or CSV with an offset column");
  sub->add_option("--verify", command.verify, "check this plan of the problem, and plan nothing");
  sub->add_option("-o,--output", command.output,
                  "write the plan: CSV with an offset column if it ends in .csv or .csv.gz");
  sub->add_option("--json", command.json, "write the result as JSON to this file; - for stdout");
  sub->add_option("--report", command.report,
                  "write a picture of the packing as one self-contained HTML page");
}

void add_graph(CLI::App& app, GraphCommand& command) {
  CLI::App* const sub = app.add_subcommand("graph", "Plan the memory of a model's graph.");
  sub->add_option("GRAPH", command.graphs, "graph files: JSON lines, plain or gzip")->required();
  sub->add_option(
      "--json", command.json,
      "write the result as JSON to this file, an array for several graphs; - for stdout");
  sub->add_option("--report", command.report,
                  "write a picture of the first graph's packing as one self-contained HTML page");
}

void add_schedule(CLI::App& app, ScheduleCommand& command) {
  CLI::App* const sub =
      app.add_subcommand("schedule", "Place a model's graph on several backends.");
  sub->add_option("GRAPH", command.graphs, "graph files: JSON lines, plain or gzip")->required();
  sub->add_option("--placement", command.placement,
                  "half: the layers are shared out in order; alternate: in turn; auto: weights as "
                  "half has them, nodes so that the fewest bytes are copied")
      ->check(CLI::IsMember({"half", "alternate", "auto"}))
      ->capture_default_str();
  sub->add_option("--backends", command.backends, "how many backends; the last one is the host")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  sub->add_flag("--verbose", command.is_verbose,
                "name every split with its copies, and every tensor's backend and why");
  sub->add_option(
      "--json", command.json,
      "write the result as JSON to this file, an array for several graphs; - for stdout");
}

void add_rounds(CLI::App& sub, std::uint32_t* rounds) {
  sub.add_option("--rounds", *rounds,
                 "run the file so often in one world, and judge what piles up (at least 30)")
      ->check(CLI::Range(30u, 1'000'000u));
}

void add_ops(CLI::App& app, Commands& commands) {
  CLI::App* const check = app.add_subcommand("check", "Run .ops files in lockstep with the model.");
  check->add_option("FILE", commands.check.files, ".ops files")->required();
  add_rounds(*check, &commands.check.rounds);

  CLI::App* const reduce =
      app.add_subcommand("reduce", "Shrink a failing .ops file to a minimal one.");
  reduce->add_option("FILE", commands.reduce.file, "a .ops file that fails")->required();
  reduce->add_option("-o,--output", commands.reduce.output,
                     "where the minimal file goes (default: stdout)");
  add_rounds(*reduce, &commands.reduce.rounds);
}

void add_audit(CLI::App& app, AuditCommand& command) {
  CLI::App* const sub = app.add_subcommand(
      "audit", "Judge an allocator in a shared library by the clauses, over a simulated GPU.");
  sub->add_option("FILE", command.files, ".ops files to run in place of random worlds");
  sub->add_option("--library", command.names.library,
                  "the library; it calls CUDA's runtime or driver, whose functions are this "
                  "command's own")
      ->required();
  sub->add_option("--alloc", command.names.allocate,
                  "its function void*(size_t bytes, int device, cudaStream_t stream), as PyTorch's "
                  "CUDAPluggableAllocator has it")
      ->capture_default_str();
  sub->add_option("--free", command.names.free,
                  "its function void(void* block, size_t bytes, int device, cudaStream_t stream)")
      ->capture_default_str();
  sub->add_option("--record-stream", command.names.record_use,
                  "its function void(void* block, cudaStream_t stream), if it has one")
      ->default_str(kRecordUseName);
  sub->add_option("--empty-cache", command.names.empty_cache, "its function void(), if it has one")
      ->default_str(kEmptyCacheName);
  add_number(sub, "--ops", command.ops, "how many operations to run")
      ->check(not_zero)
      ->capture_default_str();
  add_number(sub, "--seed", command.seed, "the random seed")->capture_default_str();
  sub->add_option("--cases", command.cases,
                  "a folder for the smallest .ops file that breaks each clause");
  sub->add_option("--json", command.json, "write the results as JSON to this file; - for stdout");
}

}  // namespace

void build_command_line(CLI::App& app, Commands& commands) {
  app.description(
      "A caching memory allocator for GPU and tensor software, checked against an executable "
      "model.");
  app.name("ashlar");
  app.set_version_flag("--version", std::string("ashlar ") + ASHLAR_VERSION);
  app.add_flag_callback(
         "--configuration-page",
         [] {
           const std::string page = configuration_page();
           std::fwrite(page.data(), 1, page.size(), stdout);
           throw CLI::Success();
         },
         "print docs/configuration.md")
      ->group("");
  app.require_subcommand(1);
  add_trace_run(app, commands.replay);
  add_ops(app, commands);
  add_convert(app, commands.convert);
  add_plan(app, commands.plan);
  add_graph(app, commands.graph);
  add_schedule(app, commands.schedule);
  add_audit(app, commands.audit);
  for (CLI::App* command : app.get_subcommands({})) {
    const std::string before = command->get_footer();
    command->footer(before.empty() ? kExitCodesText : before + "\n" + kExitCodesText);
  }
  app.footer(kExitCodesText);  // behind the commands, which would take it over
}

}  // namespace ashlar::tool
