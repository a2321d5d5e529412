// `ashlar check` and `ashlar reduce`.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"
#include "src/tool/commands.h"
#include "src/tool/files.h"
#include "src/tool/ops_runner.h"

namespace ashlar::tool {
namespace {

std::optional<spec::OpFile> read_ops(const std::string& path) {
  std::string error;
  const auto text = read_file(path, &error);
  spec::OpFile file;
  spec::TextError bad;
  if (text && spec::parse_ops(*text, &file, &bad)) return file;
  fmt::print(stderr, "{}\n", text ? fmt::format("{}:{}: {}", path, bad.line, bad.reason) : error);
  return std::nullopt;
}

std::string place(const std::string& path, const OpsOutcome& outcome) {
  return outcome.line == 0 ? fmt::format("{}: at the end", path)
                           : fmt::format("{}:{}", path, outcome.line);
}

}  // namespace

int run_check(const OpsCommand& command) {
  std::vector<spec::OpFile> files;
  for (const std::string& path : command.files) {
    auto file = read_ops(path);
    if (!file) return kExitUnreadable;
    files.push_back(std::move(*file));
  }
  bool passed = true;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const OpsOutcome outcome = run_ops(files[i], command.rounds);
    if (outcome.passed()) {
      fmt::print("{}: ok, {} ops, {} skipped, {} answers judged\n", command.files[i], outcome.ops,
                 outcome.skipped, outcome.checks);
      continue;
    }
    passed = false;
    fmt::print("{}: {}: {}\n{}", place(command.files[i], outcome), outcome.clause, outcome.text,
               outcome.maps);
  }
  return passed ? kExitDone : kExitFailed;
}

int run_reduce(const ReduceCommand& command) {
  const auto file = read_ops(command.file);
  if (!file) return kExitUnreadable;
  const spec::Reduction reduction = spec::reduce_ops(*file, [&](const spec::OpFile& candidate) {
    return run_ops(candidate, command.rounds).clause;
  });
  if (reduction.clause.empty()) {
    fmt::print(stderr, "{}: passes every check; there is nothing to reduce\n", command.file);
    return kExitFailed;
  }
  const OpsOutcome outcome = run_ops(reduction.file, command.rounds);
  const std::string text =
      spec::print_ops(reduction.file) + fmt::format("# {}: {}\n", outcome.clause, outcome.text);
  std::string error;
  if (command.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else if (!write_file(command.output, text, &error)) {
    fmt::print(stderr, "{}\n", error);
    return kExitUnreadable;
  }
  fmt::print(stderr, "{}: {} of {} ops are left after {} runs{}; {}: {}\n{}", command.file,
             reduction.file.ops.size(), file->ops.size(), reduction.runs,
             reduction.is_minimal ? "" : ", and fewer might do", outcome.clause, outcome.text,
             outcome.maps);
  return kExitDone;
}

}  // namespace ashlar::tool
