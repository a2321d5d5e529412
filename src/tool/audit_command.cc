// `ashlar audit`: judges somebody else's allocator, clause by clause.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/audit_sequences.h"
#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"
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

/// A clause that broke: how often, and the first world that broke it.
struct BrokenClause {
  std::map<std::string, std::uint64_t> worlds;  ///< how many of each sort, or the file
  std::string where;                            ///< the first one
  std::string text;
  spec::OpFile smallest;
};

struct AuditResult {
  std::uint64_t worlds = 0;
  spec::AuditCounts sum;        ///< counts of all worlds; the largest of peaks
  double reserved_to_live = 0;  ///< the largest of any world, of the peaks
  std::map<std::string, BrokenClause> broken;
};

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

void run_world(const AuditedNames& names, const spec::OpFile& file, const std::string& sort,
               const std::string& where, AuditResult* result) {
  const spec::AuditFindings found = run_audited(names, file).findings;
  add(found, result);
  if (found.is_good()) return;
  BrokenClause& broken = result->broken[found.clause];
  const bool is_first = broken.worlds.empty();
  ++broken.worlds[sort];
  if (!is_first) return;
  broken.where = where;
  spec::OpFile until = file;
  until.ops.resize(std::min<std::size_t>(until.ops.size(), found.op_index + 1));
  until.lines.clear();
  broken.smallest = smallest_of(names, until);
  broken.text = run_audited(names, broken.smallest).findings.text;
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

/// False after a line on stderr.
bool run_files(const AuditCommand& command, AuditResult* result) {
  bool all_read = true;
  for (const std::string& path : command.files) {
    const std::optional<spec::OpFile> file = read_ops(path);
    if (file) run_world(command.names, *file, path, path, result);
    else all_read = false;
  }
  return all_read;
}

std::string verdict_of(const AuditResult& result, const char* id) {
  const auto broken = result.broken.find(id);
  if (broken == result.broken.end()) return "holds";
  std::string text = "broken";
  for (const auto& [sort, worlds] : broken->second.worlds)
    text += fmt::format("{} {} in {}", text == "broken" ? ":" : ",", sort, worlds);
  return text;
}

void print_result(const AuditedNames& names, const AuditResult& result) {
  const spec::AuditCounts& sum = result.sum;
  fmt::print(
      "{}: {} worlds, {} operations, {} more that did not apply; {} allocations, {} refused\n",
      names.library, result.worlds, sum.ops, sum.skipped, sum.allocations, sum.refusals);
  fmt::print(
      "reserved at its peak to live at its peak: {:.2f} at most; held at the end: {} bytes at "
      "most\n\n",
      result.reserved_to_live, sum.reserved_bytes_end);
  for (std::size_t c = 0; c < spec::kAuditClauses; ++c) {
    const auto clause = static_cast<spec::AuditClause>(c);
    const char* const id = spec::clause_id(clause);
    const bool is_judged = sum.judged[c] > 0;
    fmt::print("{:4} {}\n{:>12} times judged; {}\n", id, spec::clause_meaning(clause),
               sum.judged[c], is_judged ? verdict_of(result, id) : "no verdict");
  }
  for (const char* id : {"C30", "crash"}) {
    if (result.broken.count(id) > 0) fmt::print("{}: {}\n", id, verdict_of(result, id));
  }
  for (const auto& [id, broken] : result.broken) {
    fmt::print("\n{}: {}\nin {}; the smallest case:\n{}", id, broken.text, broken.where,
               spec::print_ops(broken.smallest));
  }
}

nlohmann::ordered_json json_of(const AuditedNames& names, const AuditResult& result) {
  const spec::AuditCounts& sum = result.sum;
  nlohmann::ordered_json json = {{"library", names.library},
                                 {"worlds", result.worlds},
                                 {"ops", sum.ops},
                                 {"skipped", sum.skipped},
                                 {"allocations", sum.allocations},
                                 {"refusals", sum.refusals},
                                 {"live_bytes_peak", sum.live_bytes_peak},
                                 {"reserved_bytes_peak", sum.reserved_bytes_peak},
                                 {"reserved_bytes_end", sum.reserved_bytes_end},
                                 {"reserved_to_live", result.reserved_to_live}};
  for (std::size_t c = 0; c < spec::kAuditClauses; ++c)
    json["judged"][spec::clause_id(static_cast<spec::AuditClause>(c))] = sum.judged[c];
  json["broken"] = nlohmann::ordered_json::array();
  for (const auto& [id, broken] : result.broken) {
    json["broken"].push_back({{"clause", id},
                              {"worlds", broken.worlds},
                              {"where", broken.where},
                              {"text", broken.text},
                              {"ops", spec::print_ops(broken.smallest)}});
  }
  return json;
}

/// Empty, or why a case could not be written.
std::string write_cases(const std::string& folder, const AuditResult& result) {
  std::string error;
  for (const auto& [id, broken] : result.broken) {
    const std::string text =
        fmt::format("{}# {}: {}\n", spec::print_ops(broken.smallest), id, broken.text);
    OutputFile file;
    if (!file.open(fmt::format("{}/audit-{}.ops", folder, id), KnownFile::kOps, &error) ||
        !file.write(text, &error))
      return error;
  }
  return {};
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
  if (!json.is_stdout()) print_result(command.names, result);
  std::string error;
  if (!json.write(json_text(json_of(command.names, result)), &error))
    return fail(kExitUnreadable, error);
  if (!command.cases.empty()) error = write_cases(command.cases, result);
  if (!error.empty()) return fail(kExitUnreadable, error);
  if (!all_read) return kExitUnreadable;
  return result.broken.empty() ? kExitDone : kExitFailed;
}

}  // namespace ashlar::tool
