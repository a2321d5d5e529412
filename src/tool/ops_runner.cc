#include "src/tool/ops_runner.h"

#include "props/adapters/cache_subject.h"
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

}  // namespace

OpsOutcome run_ops(const spec::OpFile& file) { return run_cache(file); }

}  // namespace ashlar::tool
