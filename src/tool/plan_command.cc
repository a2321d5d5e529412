// `ashlar plan`: reads a problem and plans it, or verifies a plan of it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/base/checked.h>
#include <ashlar/cache/config.h>
#include <ashlar/plan/planner.h>
#include <ashlar/replay/recording.h>

#include "spec/plan/check.h"
#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/output_file.h"
#include "src/tool/plan_input.h"
#include "src/tool/plan_output.h"
#include "src/tool/plan_report.h"
#include "src/tool/progress.h"
#include "src/tool/signals.h"
#include "src/tool/sizes.h"
#include "src/tool/trace_file.h"

namespace ashlar::tool {
namespace {

using plan::Fits;

PlanAnswer solve(const plan::Problem& problem, const PlanCommand& command,
                 const std::vector<Bytes>& warm_start) {
  plan::PlanOptions options = options_of(command.limits, {kPlanSecondsDefault, std::nullopt});
  options.threads = command.threads;
  if (!warm_start.empty()) options.warm_start = &warm_start;
  std::optional<Progress> progress;
  if (options.time_limit) {
    progress.emplace("planning", *options.time_limit);
  } else {
    progress.emplace("planning");
  }
  options.progress = [&progress](std::uint32_t, Bytes peak, Bytes lower_bound) {
    const std::uint64_t least = std::max<std::uint64_t>(lower_bound.count(), 1);
    progress->note(
        fmt::format("peak {}, {:.2f} % above the lower bound", size_text(peak),
                    100 * (static_cast<double>(peak.count()) / static_cast<double>(least) - 1)));
  };
  const StopOnSignal stop;
  options.stop = &stop.flag();
  PlanAnswer answer;
  const auto start = std::chrono::steady_clock::now();
  answer.plan = plan::make_plan(problem, options);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  answer.is_stopped_early = stop.flag();
  if (const auto found = spec::check_answer(problem, answer.plan)) answer.violation = found->text;
  return answer;
}

/// Applies --capacity: SIZE sets every space, NAME=SIZE one; later ones override earlier ones. A name
/// may contain an equals sign. On failure, false, and `*error` is one line.
bool set_capacities(const std::vector<std::string>& capacities, plan::Problem* problem,
                    std::string* error) {
  for (const std::string& one : capacities) {
    const std::size_t equals = one.rfind('=');
    const auto size = parse_size(equals == std::string::npos ? one : one.substr(equals + 1));
    if (!size || *size >= plan::kPlanBytesMax) {
      *error = fmt::format("--capacity: '{}' is neither a size nor NAME=SIZE; sizes: {}", one,
                           kSizeForms);
      return false;
    }
    bool is_any = false;
    for (plan::Space& space : problem->spaces) {
      if (equals != std::string::npos && space.name != one.substr(0, equals)) continue;
      space.capacity = *size;
      is_any = true;
    }
    if (is_any) continue;
    *error = fmt::format("--capacity: there is no space '{}'", one.substr(0, equals));
    return false;
  }
  return true;
}

int verify(const PlanCommand& command, const plan::Problem& problem) {
  std::string error;
  const auto offsets = read_offsets(command.verify, problem, &error);
  if (!offsets) return fail(kExitUnreadable, error);
  const auto found = spec::check_plan(problem, *offsets, spec::Capacities::kHeld);
  if (found) return fail(kExitFailed, fmt::format("{}: {}", command.verify, found->text));
  fmt::print("{}: a valid plan of {} buffers\n", command.verify, problem.buffers.size());
  return kExitDone;
}

/// Checks the options that depend on each other. False: `*error` is one line.
bool check_options(const PlanCommand& command, std::string* error) {
  if (command.problem.empty() == command.from_trace.empty()) {
    *error = "plan: give either a PROBLEM or --from-trace";
    return false;
  }
  if (!command.alignment.empty() && command.from_trace.empty()) {
    *error = "--alignment: needs --from-trace; a problem states the alignments of its buffers";
    return false;
  }
  const bool has_output =
      !command.output.empty() || !command.json.empty() || !command.report.empty();
  if (!command.verify.empty() && (has_output || !command.warm_start.empty())) {
    *error = "--verify: plans nothing, so -o, --json, --report and --warm-start are not with it";
    return false;
  }
  return check_limits(command.limits, error);
}

/// The alignment of a trace's allocations. Nothing if what was given is none: `*error` is one line.
std::optional<Bytes> alignment_of(const PlanCommand& command, std::string* error) {
  if (command.alignment.empty()) return cache::Config{}.granule;
  const auto size = parse_size(command.alignment);
  if (size && is_power_of_two(size->count()) && *size <= replay::kReplayAlignmentMax) return size;
  *error = fmt::format("--alignment: '{}' is not a power of two up to {}", command.alignment,
                       size_text(replay::kReplayAlignmentMax));
  return std::nullopt;
}

/// Reads the problem. Nothing on failure: `*error` is one line.
std::optional<plan::Problem> read_input(const PlanCommand& command, Bytes alignment,
                                        std::string* error) {
  if (!command.from_trace.empty()) {
    TraceSource source;
    const auto trace = read_trace(command.from_trace, {command.trace_device}, &source, error);
    if (!trace) return std::nullopt;
    if (const std::string from = source_text(source); !from.empty())
      fmt::print(stderr, "{}: {}\n", command.from_trace, from);
    return problem_of(*trace, alignment);
  }
  auto csv = read_problem(command.problem, error);
  if (!csv) return std::nullopt;
  return std::move(csv->problem);
}

/// What the options say is written.
struct PlanOutputs {
  OutputFile plan;
  OutputFile json;
  OutputFile report;

  int open(const PlanCommand& command) {
    return open_outputs({{"-o", command.output, plan_kind(command.output), &plan},
                         {"--json", command.json, KnownFile::kJson, &json},
                         {"--report", command.report, KnownFile::kPage, &report}});
  }

  /// Prints the answer where no output takes standard output, and writes each. False: `*error` is
  /// one line.
  bool write(const PlanCommand& command, const std::string& name, const plan::Problem& problem,
             const PlanAnswer& answer, std::string* error) {
    if (plan.is_open()) {
      const auto bytes = plan_bytes(command.output, problem, answer.plan, error);
      if (!bytes || !plan.write(*bytes, error)) return false;
    }
    if (!plan.is_stdout() && !json.is_stdout() && !report.is_stdout()) print_plan(problem, answer);
    if (json.is_open() && !json.write(plan_json(name, problem, answer), error)) return false;
    return !report.is_open() ||
           report.write(plan_page(problem, answer.plan, name, answer.seconds), error);
  }
};

}  // namespace

int run_plan(const PlanCommand& command) {
  std::string error;
  if (!check_options(command, &error)) return fail(kExitUsage, error);
  const auto alignment = alignment_of(command, &error);
  if (!alignment) return fail(kExitUsage, error);
  PlanOutputs outputs;
  if (const int code = outputs.open(command); code != kExitDone) return code;
  auto problem = read_input(command, *alignment, &error);
  if (!problem) return fail(kExitUnreadable, error);
  if (!set_capacities(command.capacities, &*problem, &error)) return fail(kExitUsage, error);
  if (!command.verify.empty()) return verify(command, *problem);

  std::vector<Bytes> warm_start;
  if (!command.warm_start.empty()) {
    auto offsets = read_offsets(command.warm_start, *problem, &error);
    if (!offsets) return fail(kExitUnreadable, error);
    warm_start = std::move(*offsets);
  }
  const std::string& name = command.from_trace.empty() ? command.problem : command.from_trace;
  const PlanAnswer answer = solve(*problem, command, warm_start);
  if (!answer.violation.empty()) {
    return fail(kExitFailed, fmt::format("{}: our own plan is not valid and was not written: {}",
                                         name, answer.violation));
  }
  if (!outputs.write(command, name, *problem, answer, &error)) return fail(kExitUnreadable, error);
  for (std::size_t s = 0; s < problem->spaces.size(); ++s) {
    if (answer.plan.spaces[s].fits(problem->spaces[s].capacity) != Fits::kYes) return kExitFailed;
  }
  return kExitDone;
}

}  // namespace ashlar::tool
