// `ashlar check` and `ashlar reduce`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"
#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/files.h"
#include "src/tool/known_file.h"
#include "src/tool/ops_file.h"
#include "src/tool/ops_runner.h"
#include "src/tool/output_file.h"
#include "src/tool/progress.h"

namespace ashlar::tool {
namespace {

std::string place(const std::string& path, const OpsOutcome& outcome) {
  return outcome.line == 0 ? fmt::format("{}: at the end", path)
                           : fmt::format("{}:{}", path, outcome.line);
}

}  // namespace

int run_check(const OpsCommand& command) {
  int code = kExitDone;
  std::uint64_t done = 0;
  Progress progress("checking", command.files.size());
  for (const std::string& path : command.files) {
    progress.at(done++);
    progress.note(path);
    std::optional<spec::OpFile> file;
    {
      const auto quiet = progress.hidden();
      file = read_ops(path);
    }
    if (!file) {  // the others are still run
      code = kExitUnreadable;
      continue;
    }
    const OpsOutcome outcome = run_ops(*file, command.rounds);
    const auto quiet = progress.hidden();
    if (outcome.passed() && outcome.ops > 0) {
      fmt::print("{}: ok, {} ops, {} skipped, {} answers judged\n", path, outcome.ops,
                 outcome.skipped, outcome.checks);
      continue;
    }
    code = std::max(code, kExitFailed);
    if (outcome.passed()) {
      // A misspelt name skips every op that uses it: such a file tests nothing, and must not pass.
      fmt::print("{}: nothing ran, {} skipped\n", path, outcome.skipped);
    } else {
      fmt::print("{}: {}: {}\n{}", place(path, outcome), outcome.clause, outcome.text,
                 outcome.maps);
    }
  }
  return code;
}

int run_reduce(const ReduceCommand& command) {
  OutputFile output;
  const std::string to = command.output.empty() ? "-" : command.output;
  if (const int code = open_outputs({{"-o", to, KnownFile::kOps, &output}}); code != kExitDone)
    return code;
  const auto file = read_ops(command.file);
  if (!file) return kExitUnreadable;
  std::uint64_t runs = 0;
  std::optional<Progress> progress;
  progress.emplace("reducing " + command.file);
  const auto run = [&](const spec::OpFile& candidate) {
    const OpsOutcome outcome = run_ops(candidate, command.rounds);
    progress->note(fmt::format("{} runs, the last of {} ops", ++runs, candidate.ops.size()));
    return story_of(outcome);
  };
  const spec::Reduction reduction = spec::reduce_ops(*file, run);
  progress.reset();
  if (reduction.clause.empty()) {
    return fail(kExitFailed, command.file + ": passes every check; there is nothing to reduce");
  }
  // What is judged is what is written: the text, read again.
  const std::string text = spec::print_ops(reduction.file);
  spec::OpFile reduced;
  spec::TextError bad;
  const bool is_read = spec::parse_ops(text, &reduced, &bad);
  const OpsOutcome outcome = is_read ? run_ops(reduced, command.rounds) : OpsOutcome{};
  if (story_of(outcome).clause != reduction.clause) {
    return fail(kExitFailed, fmt::format("{}: the reduced file does not fail as this one does, and "
                                         "was not written",
                                         command.file));
  }
  std::string error;
  if (!output.write(text + fmt::format("# {}: {}\n", outcome.clause, outcome.text), &error))
    return fail(kExitUnreadable, error);
  fmt::print(stderr, "{}: {} of {} ops are left after {} runs{}; {}: {}\n{}", command.file,
             reduction.file.ops.size(), file->ops.size(), reduction.runs,
             reduction.is_minimal ? "" : ", and fewer might do", outcome.clause, outcome.text,
             outcome.maps);
  return kExitDone;
}

}  // namespace ashlar::tool
