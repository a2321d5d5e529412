// Fuzz target: planning problems as CSV. Every byte string is a sound problem, or gives one line
// `name:line: reason`. A problem survives a round trip through its own print. Its conflicts, and
// the checker's answer about its offsets, are the same as a comparison of every pair of buffers
// finds.
//
// Imitates: damaged, cut-off and hand-edited files.
// Does not prove: anything about plans that solvers make.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <ashlar/plan/problem_csv.h>

#include "props/plan/pairwise_check.h"
#include "spec/plan/check.h"

namespace {

using namespace ashlar;
using plan::Problem;
using Rule = spec::PlanViolation::Rule;

constexpr std::size_t kPairsOf = 32;  // problems with more buffers are not compared in pairs

void require(bool condition) {
  if (!condition) std::abort();
}

void check_refusal(const std::string& error) {
  require(error.rfind("in.csv:", 0) == 0 && error.find(": ", 8) != std::string::npos &&
          error.size() < 200);
  for (const char c : error) require(c >= ' ' && c <= '~');
}

void check_round_trip(const plan::ProblemCsv& csv) {
  const Result<std::string> text = plan::format_problem_csv(csv.problem, csv.offsets);
  require(text.is_ok());
  const Result<plan::ProblemCsv> again = plan::parse_problem_csv(text.value(), "out.csv", nullptr);
  require(again.is_ok() && again.value().problem == csv.problem &&
          again.value().offsets == csv.offsets);
  require(plan::hash_of(again.value().problem) == plan::hash_of(csv.problem));
}

void check_pairs(const plan::ProblemCsv& csv) {
  const Problem& problem = csv.problem;
  for (std::uint32_t a = 0; a < problem.buffers.size(); ++a) {
    for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
      require(plan::conflict(problem, a, b) == first_meeting(problem, a, b).has_value());
    }
  }
  if (csv.offsets.empty()) return;
  const std::optional<spec::PlanViolation> violation = spec::check_plan(problem, csv.offsets);
  if (violation && violation->rule != Rule::kOverlap) return;
  const std::optional<plan::Time> expected = first_overlap_by_pairs(problem, csv.offsets);
  require(violation ? expected == violation->at : !expected.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string error;
  const Result<plan::ProblemCsv> result = plan::parse_problem_csv(
      std::string_view(reinterpret_cast<const char*>(data), size), "in.csv", &error);
  if (!result.is_ok()) {
    require(result.code() == Code::kMalformed);
    check_refusal(error);
    return 0;
  }
  require(error.empty() && plan::check_problem(result.value().problem).status.is_ok());
  check_round_trip(result.value());
  if (result.value().problem.buffers.size() <= kPairsOf) check_pairs(result.value());
  return 0;
}
