#include "src/tool/ops_runner.h"

#include <algorithm>
#include <string_view>

#include "props/adapters/block_pool_subject.h"
#include "props/adapters/caching_allocator_subject.h"
#include "spec/gpu/rule_runner.h"
#include "spec/lockstep/cache_rounds.h"
#include "spec/lockstep/pool_lockstep.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::tool {
namespace {

std::uint32_t line_of(const spec::OpFile& file, std::uint64_t index) {
  return index < file.lines.size() ? file.lines[index] : 0;
}

/// The name of the last operation before `index` that is no expectation.
std::string judged_op(const spec::OpFile& file, std::uint64_t index) {
  while (index > 0) {
    const std::string name = spec::op_info(file.ops[--index].slot).name;
    if (!name.starts_with("expect")) return name;
  }
  return "nothing";
}

OpsOutcome run_cache(const spec::OpFile& file, std::uint32_t rounds) {
  spec::CacheLockstep::Options options;
  options.factory = props::caching_allocator_factory();
  const spec::LockstepResult result = rounds == 0 ? spec::CacheLockstep::run(file, options)
                                                  : spec::run_rounds(file, rounds, options);
  OpsOutcome outcome;
  outcome.ops = result.ops;
  outcome.skipped = result.skipped;
  outcome.checks = result.checks;
  outcome.clause = result.divergence.clause;
  outcome.text = result.divergence.text;
  // In a later round the op is the same one of the file; what the rounds show has no line.
  const bool has_line = rounds == 0 || result.op_index < std::uint64_t{rounds} * file.ops.size();
  if (has_line && !file.ops.empty())
    outcome.line = line_of(file, rounds == 0 ? result.op_index : result.op_index % file.ops.size());
  outcome.maps = result.maps;
  if (outcome.clause == "expect" && !file.ops.empty())
    outcome.judged = judged_op(file, result.op_index % file.ops.size());
  return outcome;
}

// Runs the block pool. The driver's report has a line that says where, a line that says why, and both
// maps.
OpsOutcome run_pool(const spec::OpFile& file) {
  constexpr Bytes kGranule{512};
  props::BlockPoolSubject subject(kGranule);
  spec::PoolLockstep lockstep(subject, kGranule, 1);
  OpsOutcome outcome;
  std::size_t index = 0;
  while (index < file.ops.size() && lockstep.step(file.ops[index])) ++index;
  if (!lockstep.diverged()) lockstep.finish();
  outcome.ops = outcome.checks = lockstep.steps();
  if (!lockstep.diverged()) return outcome;
  const std::string& report = lockstep.report();
  const std::size_t where_end = std::min(report.find('\n'), report.size() - 1);
  const std::size_t why_end = std::min(report.find('\n', where_end + 1), report.size() - 1);
  outcome.clause = "pool";
  outcome.text = report.substr(where_end + 1, why_end - where_end - 1) + " (" +
                 report.substr(0, where_end) + ")";
  outcome.maps = report.substr(why_end + 1);
  outcome.line = line_of(file, index);
  return outcome;
}

// Runs a rule case: compares the simulated GPU with CUDA's documentation.
OpsOutcome run_gpu(const spec::OpFile& file) {
  const spec::RuleReport report = spec::run_rule(file, spec::make_simulated_machine);
  OpsOutcome outcome;
  outcome.ops = outcome.checks = file.ops.size();
  if (report.verdict == spec::RuleVerdict::kAgrees) return outcome;
  outcome.clause = report.verdict == spec::RuleVerdict::kDiffers ? "rule" : "not run";
  outcome.text = report.why;
  outcome.line = report.line;
  return outcome;
}

/// The length of a number at the front of the text, its unit included; 0: there is none.
std::size_t number_length(std::string_view text) {
  const auto is_digit = [&](std::size_t at, const char* digits) {
    return at < text.size() && std::string_view(digits).find(text[at]) != std::string_view::npos;
  };
  std::size_t end = 0;
  if (text.starts_with("0x")) {
    for (end = 2; is_digit(end, "0123456789abcdef");) ++end;
    return end;
  }
  while (is_digit(end, end == 0 ? "0123456789" : "0123456789.")) ++end;
  if (end == 0) return 0;
  for (const std::string_view unit : {" B", " KiB", " MiB", " GiB", " TiB", "KiB", "MiB", "GiB"}) {
    if (text.substr(end).starts_with(unit)) return end + unit.size();
  }
  return end;
}

/// The text with `#` for every number, and one space for many: they align columns of numbers.
std::string without_numbers(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = number_length(text);
    const char next = length > 0 ? '#' : text.front();
    if (next != ' ' || !out.ends_with(' ')) out += next;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace

spec::FailureStory story_of(const OpsOutcome& outcome) {
  if (outcome.passed()) return {};
  return {outcome.clause + ": " + outcome.judged + ": " + without_numbers(outcome.text),
          without_numbers(outcome.maps)};
}

OpsOutcome run_ops(const spec::OpFile& file, std::uint32_t rounds) {
  switch (file.subject) {
    case spec::Subject::kPool: return run_pool(file);
    case spec::Subject::kGpu: return run_gpu(file);
    case spec::Subject::kCache: break;
  }
  return run_cache(file, rounds);
}

}  // namespace ashlar::tool
