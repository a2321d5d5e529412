#include "src/tool/plan_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <ashlar/plan/plan_file.h>

#include "src/tool/files.h"
#include "src/tool/known_file.h"

namespace ashlar::tool {
namespace {

std::optional<std::string> read_plain(const std::string& path, std::string* error) {
  auto bytes = read_file(path, error);
  return bytes ? unpacked(std::move(*bytes), path, error) : std::nullopt;
}

bool is_csv(std::string_view path) { return path.ends_with(".csv") || path.ends_with(".csv.gz"); }

}  // namespace

std::string id_of(const plan::Problem& problem, std::size_t buffer) {
  return problem.ids.empty() ? std::to_string(buffer) : problem.ids[buffer];
}

std::optional<plan::ProblemCsv> read_problem(const std::string& path, std::string* error) {
  const auto text = read_plain(path, error);
  if (!text) return std::nullopt;
  Result<plan::ProblemCsv> parsed = plan::parse_problem_csv(*text, path, error);
  if (!parsed.is_ok()) {
    *error = refusal_of(path, *text, KnownFile::kProblem, *error);
    return std::nullopt;
  }
  return std::move(parsed).value();
}

plan::Problem problem_of(const Trace& trace, Bytes alignment) {
  plan::Problem problem;
  problem.spaces.clear();
  for (const std::uint64_t stream : trace.streams)
    problem.spaces.push_back({fmt::format("stream{}", stream), plan::kNowhere});
  if (problem.spaces.empty()) problem.spaces.resize(1);
  constexpr std::uint32_t kLeftOut = 0xffffffffu;
  std::vector<std::uint32_t> buffer_of;  // by slot
  const auto end = static_cast<plan::Time>(trace.events.size());
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == TraceEvent::Kind::kAllocate) {
      const bool is_empty = event.size == Bytes{};
      buffer_of.push_back(is_empty ? kLeftOut : static_cast<std::uint32_t>(problem.buffers.size()));
      if (is_empty) continue;
      plan::Buffer buffer;
      buffer.life = {static_cast<plan::Time>(i), end};
      buffer.size = event.size;
      buffer.alignment = alignment;
      buffer.space = event.stream;
      problem.buffers.push_back(buffer);
    } else if (event.kind == TraceEvent::Kind::kFree && buffer_of[event.slot] != kLeftOut) {
      problem.buffers[buffer_of[event.slot]].life.upper = static_cast<plan::Time>(i);
    }
  }
  return problem;
}

std::optional<plan::Plan> read_plan(const std::string& path, const plan::Problem& problem,
                                    std::string* error) {
  if (!is_csv(path)) {
    const auto bytes = read_file(path, error);
    if (!bytes) return std::nullopt;
    Result<plan::Plan> parsed = plan::parse_plan(*bytes, path, problem, error);
    if (!parsed.is_ok()) {
      *error = refusal_of(path, *bytes, KnownFile::kPlan, *error);
      return std::nullopt;
    }
    return std::move(parsed).value();
  }
  const auto other = read_problem(path, error);
  if (!other) return std::nullopt;
  if (other->offsets.empty()) {
    *error = path + ":1: has no offset column";
    return std::nullopt;
  }
  std::unordered_map<std::string, Bytes> offset_of;
  for (std::size_t b = 0; b < other->offsets.size(); ++b)
    offset_of.emplace(id_of(other->problem, b), other->offsets[b]);
  plan::Plan plan;
  plan.spaces.resize(problem.spaces.size());
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const auto found = offset_of.find(id_of(problem, b));
    if (found == offset_of.end() || found->second == plan::kNowhere) {
      *error = fmt::format("{}: has no offset for buffer {}", path, id_of(problem, b));
      return std::nullopt;
    }
    plan.offsets.push_back(found->second);
  }
  return plan;
}

std::optional<std::vector<Bytes>> read_offsets(const std::string& path,
                                               const plan::Problem& problem, std::string* error) {
  auto plan = read_plan(path, problem, error);
  if (!plan) return std::nullopt;
  return std::move(plan->offsets);
}

}  // namespace ashlar::tool
