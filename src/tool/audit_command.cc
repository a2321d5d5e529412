// `ashlar audit`: judges somebody else's allocator, clause by clause.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/audit_sequences.h"
#include "spec/reduce/reduce.h"
#include "src/tool/audit_report.h"
#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/json_output.h"
#include "src/tool/ops_file.h"
#include "src/tool/output_file.h"
#include "src/tool/progress.h"

namespace ashlar::tool {
namespace {

constexpr std::uint32_t kOpsPerWorld = 1000;
/// Each takes a process: some milliseconds.
constexpr std::uint64_t kReduceRunsMax = 3000;

void add(const spec::AuditCounts& found, AuditResult* result) {
  spec::AuditCounts& sum = result->sum;
  ++result->worlds;
  sum.ops += found.ops;
  sum.skipped += found.skipped;
  sum.allocations += found.allocations;
  sum.refusals += found.refusals;
  for (std::size_t c = 0; c < spec::kAuditClauses; ++c) sum.judged[c] += found.judged[c];
  sum.live_bytes_peak = std::max(sum.live_bytes_peak, found.live_bytes_peak);
  sum.reserved_bytes_peak = std::max(sum.reserved_bytes_peak, found.reserved_bytes_peak);
  sum.reserved_bytes_end = std::max(sum.reserved_bytes_end, found.reserved_bytes_end);
  if (found.live_bytes_peak == 0) return;
  const double ratio =
      static_cast<double>(found.reserved_bytes_peak) / static_cast<double>(found.live_bytes_peak);
  result->reserved_to_live = std::max(result->reserved_to_live, ratio);
}

/// What a reduction keeps: the clause, and how the finding begins, as "early-reuse".
std::string story_of(const spec::AuditFindings& found) {
  return found.clause + " " + found.text.substr(0, found.text.find_first_of(":0123456789"));
}

spec::OpFile smallest_of(const AuditedNames& names, const spec::OpFile& file) {
  const auto run = [&](const spec::OpFile& ops) {
    const spec::AuditFindings found = run_audited(names, ops).findings;
    return found.is_good() ? spec::FailureStory{} : spec::FailureStory{story_of(found)};
  };
  return spec::reduce_ops(file, run, kReduceRunsMax).file;
}

/// Counts what it found, and keeps the first world that breaks a clause.
spec::AuditFindings run_world(const AuditedNames& names, const spec::OpFile& file,
                              const std::string& sort, const std::string& where,
                              AuditResult* result) {
  const spec::AuditFindings found = run_audited(names, file).findings;
  add(found, result);
  if (found.is_good()) return found;
  BrokenClause& broken = result->broken[found.clause];
  const bool is_first = broken.worlds.empty();
  ++broken.worlds[sort];
  if (!is_first) return found;
  broken.where = where;
  spec::OpFile until = file;
  until.ops.resize(std::min<std::size_t>(until.ops.size(), found.op_index + 1));
  until.lines.clear();
  broken.smallest = smallest_of(names, until);
  broken.text = run_audited(names, broken.smallest).findings.text;
  return found;
}

void run_random_worlds(const AuditCommand& command, AuditResult* result) {
  const auto sorts = spec::audit_sorts();
  Progress progress("auditing", command.ops);
  for (std::uint64_t seed = command.seed; result->sum.ops < command.ops; ++seed) {
    for (const spec::AuditSort& sort : sorts) {
      progress.note(sort.name);
      run_world(command.names, spec::audit_sequence(sort, seed, kOpsPerWorld), sort.name,
                fmt::format("{} ({}), seed {}", sort.name, sort.meaning, seed), result);
      progress.at(result->sum.ops);
    }
  }
}

/// None after a line on stderr.
std::optional<spec::OpFile> read_allocator_ops(const std::string& path) {
  std::optional<spec::OpFile> file = read_ops(path);
  if (!file || file->subject == spec::Subject::kCache) return file;
  fail(kExitUnreadable, path + ": is not of an allocator; an audit takes `ashlar-ops 1 cache`");
  return std::nullopt;
}

/// False after a line on stderr.
bool run_files(const AuditCommand& command, AuditResult* result) {
  bool all_read = true;
  for (const std::string& path : command.files) {
    const std::optional<spec::OpFile> file = read_allocator_ops(path);
    all_read = all_read && file;
    if (!file) continue;
    const spec::AuditFindings found = run_world(command.names, *file, path, path, result);
    if (found.is_good() && found.allocations == 0) result->unjudged.push_back(path);
  }
  return all_read;
}

}  // namespace

int run_audit(const AuditCommand& command) {
  OutputFile json;
  if (const int code = open_outputs({{"--json", command.json, KnownFile::kJson, &json}});
      code != kExitDone)
    return code;
  std::error_code failed;
  if (!command.cases.empty()) std::filesystem::create_directories(command.cases, failed);
  if (failed) return fail(kExitUnreadable, command.cases + ": " + failed.message());
  const AuditedRun probe = run_audited(command.names, {});
  if (!probe.unloadable.empty()) return fail(kExitUnreadable, probe.unloadable);

  AuditResult result;
  bool all_read = true;
  if (command.files.empty()) run_random_worlds(command, &result);
  else all_read = run_files(command, &result);
  if (!all_read && result.worlds == 0) return kExitUnreadable;
  if (!json.is_stdout()) print_audit(command.names.library, result);
  std::string error;
  if (!json.write(json_text(audit_json(command.names.library, result)), &error))
    return fail(kExitUnreadable, error);
  if (!command.cases.empty()) error = write_audit_cases(command.cases, result);
  if (!error.empty()) return fail(kExitUnreadable, error);
  if (!all_read) return kExitUnreadable;
  return result.broken.empty() && result.unjudged.empty() ? kExitDone : kExitFailed;
}

}  // namespace ashlar::tool
