#include "src/tool/ops_runner.h"

#include "props/adapters/cache_subject.h"
#include "spec/gpu/rule_runner.h"
#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::tool {
namespace {

std::uint32_t line_of(const spec::OpFile& file, std::uint64_t index) {
  return index < file.lines.size() ? file.lines[index] : 0;
}

OpsOutcome run_cache(const spec::OpFile& file) {
  spec::CacheLockstep::Options options;
  options.factory = props::caching_allocator_factory();
  const spec::LockstepResult result = spec::CacheLockstep::run(file, options);
  OpsOutcome outcome;
  outcome.ops = result.ops;
  outcome.skipped = result.skipped;
  outcome.checks = result.checks;
  outcome.clause = result.divergence.clause;
  outcome.text = result.divergence.text;
  outcome.line = line_of(file, result.op_index);
  outcome.maps = result.maps;
  return outcome;
}

// A rule case: the simulated GPU against what CUDA's documentation says.
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

}  // namespace

OpsOutcome run_ops(const spec::OpFile& file) {
  return file.subject == spec::Subject::kGpu ? run_gpu(file) : run_cache(file);
}

}  // namespace ashlar::tool
