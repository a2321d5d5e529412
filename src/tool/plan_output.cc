#include "src/tool/plan_output.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include <ashlar/plan/plan_file.h>
#include <ashlar/plan/problem_csv.h>

#include "src/tool/files.h"
#include "src/tool/json_output.h"
#include "src/tool/plan_input.h"
#include "src/tool/plan_proof.h"
#include "src/tool/sizes.h"

namespace ashlar::tool {
namespace {

using Json = nlohmann::ordered_json;
using plan::Fits;

double gap_of(const plan::SpaceAnswer& space) {
  if (space.lower_bound == Bytes{}) return 0;
  return static_cast<double>(space.peak.count()) / static_cast<double>(space.lower_bound.count()) -
         1;
}

/// The buffers of the space that cannot fit together.
std::vector<std::uint32_t> cannot_fit(const plan::Problem& problem, const plan::Plan& plan,
                                      std::size_t space) {
  std::vector<std::uint32_t> buffers;
  for (const std::uint32_t b : plan.cannot_fit) {
    if (problem.buffers[b].space == space) buffers.push_back(b);
  }
  return buffers;
}

Json space_json(const plan::Problem& problem, const PlanAnswer& answer, std::size_t s) {
  const plan::SpaceAnswer& space = answer.plan.spaces[s];
  const Fits fits = space.fits(problem.spaces[s].capacity);
  const std::optional<Bytes> alignment = one_alignment(problem, s);
  const std::string proof = proof_text(problem, answer.plan, s);
  Json json{{"space", problem.spaces[s].name},
            {"capacity_bytes", problem.spaces[s].capacity == plan::kNowhere
                                   ? Json()
                                   : Json(problem.spaces[s].capacity.count())},
            {"lower_bound_bytes", space.lower_bound.count()},
            {"peak_bytes", space.peak.count()},
            {"gap", gap_of(space)},
            {"proved_optimal", space.is_proved_optimal()},
            {"alignment_bytes", alignment ? Json(alignment->count()) : Json()},
            {"proof", proof.empty() ? Json() : Json(proof)},
            {"feasible", fits == Fits::kUnknown ? Json() : Json(fits == Fits::kYes)}};
  for (const std::uint32_t b : cannot_fit(problem, answer.plan, s))
    json["cannot_fit"].push_back(id_of(problem, b));
  return json;
}

/// The peak of this process's memory so far, in bytes.
std::uint64_t host_bytes_peak() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

const char* text_of(Fits fits) {
  return fits == Fits::kYes ? "fits" : fits == Fits::kNo ? "cannot fit" : "not known to fit";
}

void print_space(const plan::Problem& problem, const PlanAnswer& answer, std::size_t s) {
  constexpr std::size_t kNamedMax = 20;
  const plan::SpaceAnswer& space = answer.plan.spaces[s];
  const Bytes capacity = problem.spaces[s].capacity;
  const std::string proof = proof_text(problem, answer.plan, s);
  fmt::print("{}{}peak {} ({} bytes), lower bound {}, gap {:.3f} %{}", problem.spaces[s].name,
             problem.spaces[s].name.empty() ? "" : ": ", size_text(space.peak), space.peak.count(),
             space.lower_bound.count(), 100 * gap_of(space), proof.empty() ? "" : ", " + proof);
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

}  // namespace

std::string plan_json(const std::string& name, const plan::Problem& problem,
                      const PlanAnswer& answer) {
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
  json["stopped_early"] = answer.is_stopped_early;
  json["host_bytes_peak"] = host_bytes_peak();
  return json_text(json);
}

void print_plan(const plan::Problem& problem, const PlanAnswer& answer) {
  fmt::print("{} buffers, {:.3f} s{}\n", problem.buffers.size(), answer.seconds,
             answer.is_stopped_early ? ", stopped early by a signal" : "");
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) print_space(problem, answer, s);
}

KnownFile plan_kind(std::string_view path) {
  return path.ends_with(".csv") || path.ends_with(".csv.gz") ? KnownFile::kProblem
                                                             : KnownFile::kPlan;
}

std::optional<std::string> plan_bytes(std::string_view path, const plan::Problem& problem,
                                      const plan::Plan& answer, std::string* error) {
  const Result<std::string> text = plan_kind(path) == KnownFile::kPlan
                                       ? plan::format_plan(answer, problem)
                                       : plan::format_problem_csv(problem, answer.offsets);
  if (!text.is_ok()) {
    *error = text.status().why();
    return std::nullopt;
  }
  return path.ends_with(".csv.gz") ? gzip(text.value()) : text.value();
}

}  // namespace ashlar::tool
