// What an audit found, as text, as JSON and as `.ops` files.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "spec/audit/audit_findings.h"
#include "spec/ops/op.h"

namespace ashlar::tool {

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
  std::vector<std::string> not_drawn;  ///< sorts of worlds, since one of them hung
  bool is_interrupted =
      false;               ///< by a signal, or because the library could not be loaded any more
  std::string unloadable;  ///< why it could not; empty: it could
  bool all_read = true;    ///< the files
  std::vector<std::string> unjudged;  ///< files without an allocation that ran
};

/// On standard output.
void print_audit(const std::string& library, const AuditResult& result);
nlohmann::ordered_json audit_json(const std::string& library, const AuditResult& result);
/// Removes the cases that an earlier audit wrote into the folder, of clauses that hold now. Empty, or why one could not be removed.
std::string drop_audit_cases(const std::string& folder, const AuditResult& result);
/// Into a folder, the smallest case of each clause that broke, as `audit-CLAUSE.ops`. Empty, or why a case could not be written.
std::string write_audit_cases(const std::string& folder, const AuditResult& result);

}  // namespace ashlar::tool
