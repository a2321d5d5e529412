// Runs an audit's world in a process of its own, with a library that is loaded there.
//
// Purpose: an audited allocator keeps state, and may crash or hang. Each world gets a new process, so it begins as new, and what
// ends the process is a finding.
// Thread safety: one thread. The process that calls may have others.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "spec/audit/audit_findings.h"
#include "spec/ops/op.h"

namespace ashlar::tool {

inline constexpr char kRecordUseName[] = "audit_record_stream";
inline constexpr char kEmptyCacheName[] = "audit_empty_cache";

/// A library and the names of its functions (spec/audit/audited_library.h).
struct AuditedNames {
  std::string library;
  std::string allocate = "audit_alloc";
  std::string free = "audit_free";
  std::optional<std::string> record_use;   ///< none: kRecordUseName, where the library has it
  std::optional<std::string> empty_cache;  ///< none: kEmptyCacheName, likewise
};

struct AuditLimits {
  std::uint64_t cpu_seconds = 20;           ///< of a world; three times as many by the clock
  const std::atomic<bool>* stop = nullptr;  ///< ends the world when it is true
};

struct AuditedRun {
  spec::AuditFindings findings;
  std::string unloadable;   ///< why the library cannot be used; empty: it can
  double seconds = 0;       ///< of the processor, until the last op began
  bool is_stopped = false;  ///< before its end: the findings are of no account
};

/// Broken by a world over its limit of time.
inline constexpr char kHangClause[] = "C30";

/// A crash breaks spec::kCrashClause.
AuditedRun run_audited(const AuditedNames& names, const spec::OpFile& file,
                       const AuditLimits& limits = {});

}  // namespace ashlar::tool
