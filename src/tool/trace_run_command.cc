// `ashlar replay`: options and traces in, table, JSON and report out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

#include <ashlar/replay/recording.h>

#include "spec/plan/check.h"
#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/json_output.h"
#include "src/tool/output_file.h"
#include "src/tool/plan_input.h"
#include "src/tool/report.h"
#include "src/tool/sizes.h"
#include "src/tool/trace_conf.h"
#include "src/tool/trace_file.h"
#include "src/tool/trace_run.h"
#include "src/tool/trace_table.h"

namespace ashlar::tool {
namespace {

// Checks the options that depend on --planned; kExitDone, or the exit code after a line on stderr.
int check_planned(const TraceRunCommand& command) {
  const bool has_limits = command.limits.time_limit || command.limits.work;
  if (std::isnan(command.alter)) return fail(kExitUsage, "--alter: between 0 and 1");
  if (command.seed && command.alter == 0 && command.perturb.empty())
    return fail(kExitUsage, "--seed: needs --alter or --perturb");
  if (!command.planned) {
    if (command.alter > 0) return fail(kExitUsage, "--alter: needs --planned");
    if (!command.plan.empty()) return fail(kExitUsage, "--plan: needs --planned");
    if (has_limits) return fail(kExitUsage, "--time-limit, --work: need --planned");
    return kExitDone;
  }
  if (command.capacity == "settled")
    return fail(kExitUsage, "--capacity: settled is not available with --planned");
  if (!command.plan.empty() && has_limits)
    return fail(kExitUsage, "--time-limit, --work: nothing is planned with --plan");
  if (!command.plan.empty() && command.traces.size() != 1)
    return fail(kExitUsage, "--plan: give the one trace that it is a plan of");
  std::string error;
  return check_limits(command.limits, &error) ? kExitDone : fail(kExitUsage, error);
}

// Reads the plan of a trace and checks it. Nothing if it is not one: `*error` is one line.
std::optional<plan::Plan> read_plan_of(const Trace& trace, const std::string& path,
                                       std::string* error) {
  const plan::Problem problem = problem_of(trace, replay::kReplayAlignment);
  auto plan = read_plan(path, problem, error);
  if (!plan) return std::nullopt;
  for (std::size_t b = 0; b < plan->offsets.size(); ++b) {
    const plan::Buffer& buffer = problem.buffers[b];
    if (plan->offsets[b] > plan::kPlanBytesMax) continue;  // the check below says so
    Bytes& peak = plan->spaces[buffer.space].peak;
    peak = std::max(peak, plan->offsets[b] + buffer.size);
  }
  const auto found = spec::check_answer(problem, *plan);
  if (!found) return plan;
  *error = fmt::format("{}: not a plan of {}: {}", path, trace.name, found->text);
  return std::nullopt;
}

// Fills in what --policy asks for; kExitDone, or the exit code after a line on stderr.
int read_policies(const TraceRunCommand& command, TraceRunOptions* options) {
  if (command.policy.empty()) return kExitDone;
  const auto policies = parse_policies(command.policy);
  if (!policies) {
    return fail(
        kExitUsage,
        fmt::format("--policy: '{}' is not a list of ashlar, pytorch, pytorch-expandable and "
                    "planned, each once, nor all",
                    command.policy));
  }
  if (command.planned) return fail(kExitUsage, "--policy: instead of --planned name planned");
  if (command.capacity == "settled")
    return fail(kExitUsage, "--capacity: settled is not available with --policy");
  if (options->backing == ReplayDevice::kHost)
    return fail(kExitUsage, "--policy: policies are compared on --device sim");
  options->policies = *policies;
  return kExitDone;
}

// Fills `*options`; kExitDone, or the exit code after a line on stderr.
int read_options(const TraceRunCommand& command, TraceRunOptions* options) {
  options->backing = command.device == "host" ? ReplayDevice::kHost : ReplayDevice::kSim;
  options->check = command.check;
  options->lag = command.lag;
  options->wants_picture = !command.report.empty();
  options->is_planned = command.planned;
  options->alter = command.alter;
  options->seed = command.seed.value_or(1);
  options->limits = command.limits;
  if (!command.perturb.empty())
    options->perturb = command.perturb == "sizes" ? Perturb::kSizes : Perturb::kAllocations;
  if (const int code = check_planned(command); code != kExitDone) return code;
  if (const int code = read_policies(command, options); code != kExitDone) return code;
  if (command.lag > 0 && options->backing == ReplayDevice::kHost) {
    return fail(kExitUsage, "--lag: streams of the host are never late; use --device sim");
  }
  if (command.capacity == "auto") {
    options->find_capacity = true;
  } else if (command.capacity == "settled") {
    options->find_settled = true;
  } else if (!command.capacity.empty()) {
    const auto size = parse_size(command.capacity);
    if (!size || *size == 0_B) {
      return fail(
          kExitUsage,
          fmt::format("--capacity: '{}' is neither a size above 0 nor auto nor settled; sizes: {}",
                      command.capacity, kSizeForms));
    }
    options->capacity = *size;
  }
  return read_trace_conf(command.conf, options);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text;
}

// The first problem of each trace that had one.
void print_troubles(const std::vector<TraceRunResult>& results) {
  for (const TraceRunResult& result : results) {
    if (!result.account.first_trouble.empty()) {
      fmt::print(stderr, "{}: {}\n", result.file, trimmed(result.account.first_trouble));
    }
    if (result.check && !result.check->first_divergence.empty()) {
      fmt::print(stderr, "{}: {}\n", result.file, trimmed(result.check->first_divergence));
    }
  }
}

// Reads a trace, and changes its sizes if asked to. Nothing on failure: `*error` is one line.
std::optional<Trace> read_input(const TraceRunCommand& command, const TraceRunOptions& options,
                                const std::string& path, std::string* error) {
  TraceSource source;
  auto trace = read_trace(path, {command.trace_device}, &source, error);
  if (!trace) return std::nullopt;
  if (const std::string from = source_text(source); !from.empty())
    fmt::print(stderr, "{}: {}\n", path, from);
  return options.perturb ? perturbed(*trace, *options.perturb, options.seed) : std::move(trace);
}

}  // namespace

int run_traces(const TraceRunCommand& command) {
  TraceRunOptions options;
  if (const int code = read_options(command, &options); code != kExitDone) return code;
  OutputFile json, report;
  if (const int code = open_outputs({{"--json", command.json, KnownFile::kJson, &json},
                                     {"--report", command.report, KnownFile::kPage, &report}});
      code != kExitDone)
    return code;

  std::vector<TraceRunResult> results;
  std::vector<std::string> entries;
  int code = kExitDone;
  std::string error;
  std::optional<plan::Plan> given_plan;
  for (const std::string& path : command.traces) {
    const auto trace = read_input(command, options, path, &error);
    if (trace && !command.plan.empty()) {
      given_plan = read_plan_of(*trace, command.plan, &error);
      options.given_plan = given_plan ? &*given_plan : nullptr;
    }
    if (!trace || (!command.plan.empty() && !given_plan)) {  // the others are still run
      code = std::max(code, fail(kExitUnreadable, error));
      continue;
    }
    results.push_back(run_trace(*trace, path, options));
    TraceRunResult& result = results.back();
    compare_policies(*trace, options, &result);
    if (!result.passed()) code = std::max(code, kExitFailed);
    if (options.wants_picture) entries.push_back(report_entry(result, options, *trace));
    result.account.timeline = {};
    result.account.map = {};
    result.account.records = {};
    result.plans.reset();
    for (PolicyOutcome& policy : result.policies) policy.timeline = {};
  }
  if (results.empty()) return code;
  if (!json.is_stdout() && !report.is_stdout()) {
    print_results(results);
  }
  if (!json.write(json.is_open() ? json_text(results, options) : "", &error) ||
      !report.write(report.is_open() ? report_page(entries, options) : "", &error))
    return fail(kExitUnreadable, error);
  print_troubles(results);
  return code;
}

}  // namespace ashlar::tool
