// Fuzz target: plan files, read for one problem. Every byte string is a valid plan of the problem,
// or gives one line `name: reason`. A plan that is read prints the same file again. Each input is
// read as three files: as it is, with its checksum corrected, and as changes to a valid file, with
// its checksum corrected. Without the corrections the checksum would reject nearly every input
// before the reader's other checks.
//
// Imitates: damaged and forged files.
// Does not prove: that a plan is any good.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <ashlar/plan/fnv.h>
#include <ashlar/plan/plan_file.h>
#include <ashlar/plan/problem_csv.h>

#include "spec/plan/check.h"

namespace {

using namespace ashlar;

// A problem with every feature, with the offsets of a valid plan.
constexpr std::string_view kProblem =
    "id,lower,upper,size,alignment,gaps,hint,pinned,group,space,offset\n"
    "input,0,10,16,,,,,in place,fast,0\n"
    "output,5,20,24,8,,,,in place,fast,0\n"
    "weights,0,20,8,,4-6,,,,fast,24\n"
    "scratch,4,6,8,,,24,,,fast,24\n"
    "io,2,4,8,,,,32,,fast,32\n"
    "table,0,20,64,64,,,,,slow,0\n";
constexpr std::size_t kChecksumBytes = 8;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Sample {
  plan::Problem problem;
  std::string file;
};

Sample make_sample() {
  Result<plan::ProblemCsv> csv = plan::parse_problem_csv(kProblem, "sample", nullptr);
  require(csv.is_ok());
  plan::Plan plan;
  plan.offsets = csv.value().offsets;
  plan.spaces = {{40_B, 32_B}, {64_B, 64_B}};
  const Result<std::string> file = plan::format_plan(plan, csv.value().problem);
  require(file.is_ok());
  return {csv.value().problem, file.value()};
}

std::string with_checksum(std::string file) {
  if (file.size() < kChecksumBytes) return file;
  file.resize(file.size() - kChecksumBytes);
  plan::Fnv sum;
  sum.add(file);
  for (unsigned shift = 0; shift < 64; shift += 8)
    file.push_back(static_cast<char>((sum.value() >> shift) & 0xff));
  return file;
}

void check(const std::string& file, const plan::Problem& problem) {
  std::string error;
  const Result<plan::Plan> result = plan::parse_plan(file, "in.plan", problem, &error);
  if (!result.is_ok()) {
    require(result.code() == Code::kMalformed);
    require(error.rfind("in.plan: ", 0) == 0 && error.size() > 9 && error.size() < 200);
    for (const char c : error) require(c >= ' ' && c <= '~');
    return;
  }
  require(error.empty() && !spec::check_answer(problem, result.value()));
  const Result<std::string> again = plan::format_plan(result.value(), problem);
  require(again.is_ok() && again.value() == file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sample sample = make_sample();
  const std::string file(reinterpret_cast<const char*>(data), size);
  check(file, sample.problem);
  check(with_checksum(file), sample.problem);
  std::string changed = sample.file;
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    char& byte = changed[data[i] % changed.size()];
    byte = static_cast<char>(byte ^ data[i + 1]);
  }
  check(with_checksum(changed), sample.problem);
  return 0;
}
