// `ashlar audit`: judges somebody else's allocator, clause by clause.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
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
#include "src/tool/signals.h"

namespace ashlar::tool {
namespace {

constexpr std::uint32_t kOpsPerWorld = 1000;
/// Of the processor, for so many operations; files may be longer.
constexpr std::uint64_t kWorldSecondsMax = 10;
/// Each takes a process: some milliseconds.
constexpr std::uint64_t kReduceRunsMax = 3000;
/// Of a reduction in which a run hangs, which takes its whole limit.
constexpr std::chrono::seconds kHangingReduceMax{30};

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

/// A limit for worlds like those that took so long: a second more, give or take a half.
std::uint64_t seconds_beyond(double seconds) { return static_cast<std::uint64_t>(seconds + 1.5); }

class Audit {
 public:
  explicit Audit(const AuditCommand& command) : command_(command) {}

  AuditResult run() {
    if (command_.files.empty()) run_random_worlds();
    else run_files();
    result_.is_interrupted = has_to_end();
    return std::move(result_);
  }

 private:
  void run_random_worlds();
  void run_files();
  AuditedRun run_world(const spec::OpFile& file, const std::string& sort, const std::string& where);
  void reduce(const spec::OpFile& file, const AuditedRun& first, BrokenClause* broken);
  bool has_to_end() const { return stop_.flag() || !result_.unloadable.empty(); }
  bool is_over() const { return has_to_end() || result_.sum.ops >= command_.ops; }

  const AuditCommand& command_;
  const StopOnSignal stop_;
  AuditLimits limits_{.stop = &stop_.flag()};
  AuditResult result_;
};

/// Keeps the smallest case with the same story, and its text.
void Audit::reduce(const spec::OpFile& file, const AuditedRun& first, BrokenClause* broken) {
  const std::string wanted = story_of(first.findings);
  const AuditLimits limits{seconds_beyond(first.seconds), &stop_.flag()};
  const auto start = std::chrono::steady_clock::now();
  bool has_hung = false;
  const auto run = [&](const spec::OpFile& ops) -> spec::FailureStory {
    const bool is_late = std::chrono::steady_clock::now() - start > kHangingReduceMax;
    if (stop_.flag() || (has_hung && is_late)) return {};
    const AuditedRun got = run_audited(command_.names, ops, limits);
    has_hung = has_hung || got.findings.clause == kHangClause;
    if (got.is_stopped || story_of(got.findings) != wanted) return {};
    broken->text = got.findings.text;
    return wanted;
  };
  broken->text = first.findings.text;
  broken->smallest = spec::reduce_ops(file, run, kReduceRunsMax).file;
}

/// Counts what it found, and keeps the first world that breaks a clause.
AuditedRun Audit::run_world(const spec::OpFile& file, const std::string& sort,
                            const std::string& where) {
  const AuditedRun run = run_audited(command_.names, file, limits_);
  if (run.is_stopped) return run;
  result_.unloadable = run.unloadable;
  if (!run.unloadable.empty()) return run;
  const spec::AuditFindings& found = run.findings;
  add(found, &result_);
  if (found.is_good()) return run;
  BrokenClause& broken = result_.broken[found.clause];
  const bool is_first = broken.worlds.empty();
  ++broken.worlds[sort];
  if (!is_first) return run;
  broken.where = where;
  spec::OpFile until = file;
  until.ops.resize(std::min<std::size_t>(until.ops.size(), found.op_index + 1));
  until.lines.clear();
  reduce(until, run, &broken);
  return run;
}

// A world that hangs takes its whole limit: there is one of each sort, and all but the first have a short one.
void Audit::run_random_worlds() {
  const auto all = spec::audit_sorts();
  std::vector<spec::AuditSort> sorts(all.begin(), all.end());
  Progress progress("auditing", command_.ops);
  double slowest = 0;
  limits_.cpu_seconds = kWorldSecondsMax;
  for (std::uint64_t seed = command_.seed; !sorts.empty() && !is_over(); ++seed) {
    for (auto sort = sorts.begin(); sort != sorts.end() && !has_to_end();) {
      progress.note(sort->name);
      const AuditedRun run =
          run_world(spec::audit_sequence(*sort, seed, kOpsPerWorld), sort->name,
                    fmt::format("{} ({}), seed {}", sort->name, sort->meaning, seed));
      progress.at(result_.sum.ops);
      slowest = std::max(slowest, run.seconds);
      const bool is_hanging = run.findings.clause == kHangClause && !run.is_stopped;
      if (is_hanging) result_.not_drawn.push_back(sort->name);
      if (!result_.not_drawn.empty()) limits_.cpu_seconds = seconds_beyond(slowest);
      sort = is_hanging ? sorts.erase(sort) : sort + 1;
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

void Audit::run_files() {
  for (const std::string& path : command_.files) {
    if (has_to_end()) return;
    const std::optional<spec::OpFile> file = read_allocator_ops(path);
    result_.all_read = result_.all_read && file;
    if (!file) continue;
    const AuditedRun run = run_world(*file, path, path);
    const bool has_ended = !run.is_stopped && run.unloadable.empty();
    if (has_ended && run.findings.is_good() && run.findings.allocations == 0)
      result_.unjudged.push_back(path);
  }
}

int code_of(const AuditResult& result) {
  if (!result.all_read) return kExitUnreadable;
  const bool is_good = result.broken.empty() && result.unjudged.empty() && result.worlds > 0;
  return is_good ? kExitDone : kExitFailed;
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

  const AuditResult result = Audit(command).run();
  if (!result.all_read && result.worlds == 0) return kExitUnreadable;
  if (!json.is_stdout()) print_audit(command.names.library, result);
  std::string error;
  if (!json.write(json_text(audit_json(command.names.library, result)), &error))
    return fail(kExitUnreadable, error);
  if (!command.cases.empty()) error = write_audit_cases(command.cases, result);
  // A file that was audited may be in that folder, and an interrupted audit knows too little.
  const bool is_whole = command.files.empty() && !result.is_interrupted;
  if (!command.cases.empty() && error.empty() && is_whole)
    error = drop_audit_cases(command.cases, result);
  if (!error.empty()) return fail(kExitUnreadable, error);
  if (!result.unloadable.empty()) return fail(kExitUnreadable, result.unloadable);
  return code_of(result);
}

}  // namespace ashlar::tool
