#include "spec/audit/audit_findings.h"

namespace ashlar::spec {

const char* clause_id(AuditClause clause) noexcept {
  constexpr std::array<const char*, kAuditClauses> kIds = {"C1",  "C2",  "C6",  "C9", "C12",
                                                           "C13", "C14", "C16", "D"};
  return kIds[static_cast<std::size_t>(clause)];
}

const char* clause_meaning(AuditClause clause) noexcept {
  constexpr std::array<const char*, kAuditClauses> kMeanings = {
      "usable: aligned, and memory of the device as long as it is live",
      "disjoint: no two live allocations share a byte",
      "order: bytes pass to a new owner only after every earlier use",
      "capture: no call that a capture forbids",
      "complete: an allocation fails only when memory is short",
      "atomic: after a call of the driver that failed, the next allocation works",
      "conserved: when everything is freed, nothing is held",
      "misuse: a second free of a block changes nothing",
      "driver calls: live handles, of the right device, each thing returned once"};
  return kMeanings[static_cast<std::size_t>(clause)];
}

}  // namespace ashlar::spec
