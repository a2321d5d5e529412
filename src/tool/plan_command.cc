// `ashlar plan`: a problem in; a plan, a table, JSON and a picture out. Or a plan verified.
#include <fmt/format.h>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include <ashlar/plan/plan_file.h>
#include <ashlar/plan/planner.h>

#include "spec/plan/check.h"
#include "src/tool/commands.h"
#include "src/tool/files.h"
#include "src/tool/plan_input.h"
#include "src/tool/plan_report.h"
#include "src/tool/sizes.h"

namespace ashlar::tool {
namespace {

using Json = nlohmann::ordered_json;
using plan::Fits;

int fail(int code, const std::string& line) {
  fmt::print(stderr, "{}\n", line);
  return code;
}

/// The answer, and what the checker of spec/ says to it.
struct Answer {
  plan::Plan plan;
  double seconds = 0;
  std::string violation;
};

double gap_of(const plan::SpaceAnswer& space) {
  if (space.lower_bound == Bytes{}) return 0;
  return static_cast<double>(space.peak.count()) / static_cast<double>(space.lower_bound.count()) -
         1;
}

/// Those buffers of the space that cannot fit together.
std::vector<std::uint32_t> cannot_fit(const plan::Problem& problem, const plan::Plan& plan,
                                      std::size_t space) {
  std::vector<std::uint32_t> buffers;
  for (const std::uint32_t b : plan.cannot_fit) {
    if (problem.buffers[b].space == space) buffers.push_back(b);
  }
  return buffers;
}

Json space_json(const plan::Problem& problem, const Answer& answer, std::size_t s) {
  const plan::SpaceAnswer& space = answer.plan.spaces[s];
  const Fits fits = space.fits(problem.spaces[s].capacity);
  Json json{{"space", problem.spaces[s].name},
            {"capacity_bytes", problem.spaces[s].capacity == plan::kNowhere
                                   ? Json()
                                   : Json(problem.spaces[s].capacity.count())},
            {"lower_bound_bytes", space.lower_bound.count()},
            {"peak_bytes", space.peak.count()},
            {"gap", gap_of(space)},
            {"proved_optimal", space.is_proved_optimal()},
            {"feasible", fits == Fits::kUnknown ? Json() : Json(fits == Fits::kYes)}};
  for (const std::uint32_t b : cannot_fit(problem, answer.plan, s))
    json["cannot_fit"].push_back(id_of(problem, b));
  return json;
}

/// The most memory this process has had.
std::uint64_t host_bytes_peak() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

/// One object; a problem of one space has its figures at the top.
std::string json_text(const std::string& name, const plan::Problem& problem, const Answer& answer) {
  Json json{{"problem", name}, {"buffers", problem.buffers.size()}};
  if (problem.spaces.size() == 1) {
    const Json space = space_json(problem, answer, 0);
    for (const auto& [key, value] : space.items()) {
      if (key != "space") json[key] = value;
    }
  } else {
    json["spaces"] = Json::array();
    for (std::size_t s = 0; s < problem.spaces.size(); ++s)
      json["spaces"].push_back(space_json(problem, answer, s));
  }
  json["seconds"] = answer.seconds;
  json["host_bytes_peak"] = host_bytes_peak();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

const char* text_of(Fits fits) {
  return fits == Fits::kYes  ? "fits"
         : fits == Fits::kNo ? "cannot fit"
                             : "does not fit; whether anything does is not known";
}

void print_space(const plan::Problem& problem, const Answer& answer, std::size_t s) {
  constexpr std::size_t kNamedMax = 20;
  const plan::SpaceAnswer& space = answer.plan.spaces[s];
  const Bytes capacity = problem.spaces[s].capacity;
  fmt::print("{}{}peak {} ({} bytes), lower bound {}, gap {:.3f} %{}", problem.spaces[s].name,
             problem.spaces[s].name.empty() ? "" : ": ", size_text(space.peak), space.peak.count(),
             space.lower_bound.count(), 100 * gap_of(space),
             space.is_proved_optimal() ? ", proved least" : "");
  if (capacity != plan::kNowhere)
    fmt::print("; {} in {}", text_of(space.fits(capacity)), size_text(capacity));
  fmt::print("\n");
  const std::vector<std::uint32_t> misfits = cannot_fit(problem, answer.plan, s);
  if (misfits.empty()) return;
  fmt::print("  {} that cannot fit{}:",
             misfits.size() == 1 ? "a buffer" : fmt::format("{} buffers", misfits.size()),
             misfits.size() == 1 ? "" : " together");
  for (std::size_t i = 0; i < std::min(kNamedMax, misfits.size()); ++i)
    fmt::print(" {}", id_of(problem, misfits[i]));
  fmt::print("{}\n", misfits.size() > kNamedMax ? " ..." : "");
}

void print_answer(const plan::Problem& problem, const Answer& answer) {
  fmt::print("{} buffers, {:.3f} s\n", problem.buffers.size(), answer.seconds);
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) print_space(problem, answer, s);
}

/// Shows the best so far on a terminal.
class BestSoFar {
 public:
  void show(Bytes peak, Bytes lower_bound) {
    if (!is_terminal_) return;
    is_shown_ = true;
    fmt::print(stderr, "\r\x1b[Kpeak {}, {:.2f} % above the lower bound", size_text(peak),
               100 * (static_cast<double>(peak.count()) /
                          static_cast<double>(std::max<std::uint64_t>(lower_bound.count(), 1)) -
                      1));
    std::fflush(stderr);
  }
  ~BestSoFar() {
    if (is_shown_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool is_shown_ = false;
};

Answer solve(const plan::Problem& problem, const PlanCommand& command,
             const std::vector<Bytes>& warm_start) {
  BestSoFar best;
  plan::PlanOptions options;
  options.progress = [&best](std::uint32_t, Bytes peak, Bytes lower_bound) {
    best.show(peak, lower_bound);
  };
  if (command.work) options.work = *command.work;
  if (!command.work || command.time_limit) {
    const double seconds = command.time_limit.value_or(kPlanSecondsUsual);
    options.time_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
  }
  options.threads = command.threads;
  if (!warm_start.empty()) options.warm_start = &warm_start;
  Answer answer;
  const auto start = std::chrono::steady_clock::now();
  answer.plan = plan::make_plan(problem, options);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (const auto found = spec::check_answer(problem, answer.plan)) answer.violation = found->text;
  return answer;
}

/// -o: CSV with an offset column, or the plan file.
bool write_plan(const std::string& path, const plan::Problem& problem, const plan::Plan& answer,
                std::string* error) {
  const std::string_view name = path;
  const bool is_packed = name.ends_with(".csv.gz");
  const Result<std::string> text = is_packed || name.ends_with(".csv")
                                       ? plan::format_problem_csv(problem, answer.offsets)
                                       : plan::format_plan(answer, problem);
  if (!text.is_ok()) {
    *error = fmt::format("{}: {}", path, text.status().why());
    return false;
  }
  return write_file(path, is_packed ? gzip(text.value()) : text.value(), error);
}

/// --capacity: SIZE for every space, NAME=SIZE for one; of those that speak of a space the last one
/// counts. The name may itself have an equals sign in it. False: `*error` says why.
bool set_capacities(const std::vector<std::string>& capacities, plan::Problem* problem,
                    std::string* error) {
  for (const std::string& one : capacities) {
    const std::size_t equals = one.rfind('=');
    const auto size = parse_size(equals == std::string::npos ? one : one.substr(equals + 1));
    if (!size || *size >= plan::kPlanBytesMax) {
      *error = fmt::format("--capacity: '{}' is not a size, nor NAME=SIZE", one);
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

}  // namespace

int run_plan(const PlanCommand& command) {
  std::string error;
  const bool is_traced = !command.from_trace.empty();
  if (command.problem.empty() != is_traced)
    return fail(kExitUsage, "plan: give a PROBLEM or --from-trace, one of them");
  if (command.time_limit && !(*command.time_limit >= 0 && *command.time_limit <= kPlanSecondsMax)) {
    return fail(kExitUsage,
                fmt::format("--time-limit: between 0 and {:.0f} seconds", kPlanSecondsMax));
  }
  const std::string name = is_traced ? command.from_trace : command.problem;
  plan::Problem problem;
  if (is_traced) {
    const auto trace = read_trace(command.from_trace, &error);
    if (!trace) return fail(kExitUnreadable, error);
    problem = problem_of(*trace);
  } else {
    auto csv = read_problem(command.problem, &error);
    if (!csv) return fail(kExitUnreadable, error);
    problem = std::move(csv->problem);
  }
  if (!set_capacities(command.capacities, &problem, &error)) return fail(kExitUsage, error);
  if (!command.verify.empty()) return verify(command, problem);

  std::vector<Bytes> warm_start;
  if (!command.warm_start.empty()) {
    auto offsets = read_offsets(command.warm_start, problem, &error);
    if (!offsets) return fail(kExitUnreadable, error);
    warm_start = std::move(*offsets);
  }
  const Answer answer = solve(problem, command, warm_start);
  if (!answer.violation.empty()) {
    return fail(kExitFailed, fmt::format("{}: our own plan is not valid, and not written: {}", name,
                                         answer.violation));
  }
  if (!command.output.empty() && !write_plan(command.output, problem, answer.plan, &error))
    return fail(kExitUnreadable, error);
  if (command.json != "-") print_answer(problem, answer);
  if (!command.json.empty()) {
    const std::string json = json_text(name, problem, answer);
    if (command.json == "-") {
      std::fwrite(json.data(), 1, json.size(), stdout);
    } else if (!write_file(command.json, json, &error)) {
      return fail(kExitUnreadable, error);
    }
  }
  if (!command.report.empty() &&
      !write_file(command.report, plan_page(problem, answer.plan, name, answer.seconds), &error)) {
    return fail(kExitUnreadable, error);
  }
  bool all_fit = true;
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
    all_fit = all_fit && answer.plan.spaces[s].fits(problem.spaces[s].capacity) == Fits::kYes;
  }
  return all_fit ? kExitDone : kExitFailed;
}

}  // namespace ashlar::tool
