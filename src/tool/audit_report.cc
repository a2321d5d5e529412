#include "src/tool/audit_report.h"

#include <fmt/format.h>

#include "spec/ops/text.h"
#include "src/tool/output_file.h"

namespace ashlar::tool {
namespace {

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
  for (const char* id : {"C30", "crash"}) {
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

std::string write_audit_cases(const std::string& folder, const AuditResult& result) {
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

}  // namespace ashlar::tool
