#include "src/tool/audit_report.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "spec/ops/text.h"
#include "src/tool/audited_process.h"
#include "src/tool/files.h"
#include "src/tool/known_file.h"
#include "src/tool/output_file.h"

namespace ashlar::tool {
namespace {

/// What a world can break beside the clauses that are judged in it.
constexpr std::array<const char*, 2> kOtherIds = {kHangClause, spec::kCrashClause};

std::vector<std::string> all_ids() {
  std::vector<std::string> ids(kOtherIds.begin(), kOtherIds.end());
  for (std::size_t c = 0; c < spec::kAuditClauses; ++c)
    ids.emplace_back(spec::clause_id(static_cast<spec::AuditClause>(c)));
  return ids;
}

std::string case_path(const std::string& folder, const std::string& id) {
  return fmt::format("{}/audit-{}.ops", folder, id);
}

std::string verdict_of(const AuditResult& result, const char* id) {
  const auto broken = result.broken.find(id);
  if (broken == result.broken.end()) return "holds";
  std::string text = "broken";
  for (const auto& [sort, worlds] : broken->second.worlds)
    text += fmt::format("{} {} in {}", text == "broken" ? ":" : ",", sort, worlds);
  return text;
}

}  // namespace

void print_audit(const std::string& library, const AuditResult& result) {
  const spec::AuditCounts& sum = result.sum;
  if (result.is_interrupted) fmt::print("interrupted after {} operations\n", sum.ops);
  fmt::print(
      "{}: {} worlds, {} operations, {} more that did not apply; {} allocations, {} refused\n",
      library, result.worlds, sum.ops, sum.skipped, sum.allocations, sum.refusals);
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
  for (const char* id : kOtherIds) {
    if (result.broken.count(id) > 0) fmt::print("{}: {}\n", id, verdict_of(result, id));
  }
  if (!result.not_drawn.empty())
    fmt::print("not drawn again, after a call that does not return: {}\n",
               fmt::join(result.not_drawn, ", "));
  for (const std::string& path : result.unjudged)
    fmt::print("{}: nothing was judged, because no allocation ran\n", path);
  for (const auto& [id, broken] : result.broken) {
    fmt::print("\n{}: {}\nin {}; the smallest case:\n{}", id, broken.text, broken.where,
               spec::print_ops(broken.smallest));
  }
}

nlohmann::ordered_json audit_json(const std::string& library, const AuditResult& result) {
  const spec::AuditCounts& sum = result.sum;
  nlohmann::ordered_json json = {{"library", library},
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
  json["not_drawn"] = result.not_drawn;
  json["unjudged"] = result.unjudged;
  json["stopped_early"] = result.is_interrupted;
  return json;
}

std::string drop_audit_cases(const std::string& folder, const AuditResult& result) {
  for (const std::string& id : all_ids()) {
    const std::string path = case_path(folder, id);
    std::error_code failed;
    if (result.broken.count(id) > 0 || !std::filesystem::is_regular_file(path, failed)) continue;
    std::string error;
    const std::optional<std::string> text = read_file(path, &error);
    if (!text || known_file(*text) != KnownFile::kOps) continue;
    std::filesystem::remove(path, failed);
    if (failed) return path + ": " + failed.message();
  }
  return {};
}

std::string write_audit_cases(const std::string& folder, const AuditResult& result) {
  std::string error;
  for (const auto& [id, broken] : result.broken) {
    const std::string text =
        fmt::format("{}# {}: {}\n", spec::print_ops(broken.smallest), id, broken.text);
    OutputFile file;
    if (!file.open(case_path(folder, id), KnownFile::kOps, &error) || !file.write(text, &error))
      return error;
  }
  return {};
}

}  // namespace ashlar::tool
