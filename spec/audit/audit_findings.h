// What an audit found, clause by clause.
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace ashlar::spec {

/// The clauses of the contract (spec/contract.md) that can be judged of an allocator of which only its calls are known.
enum class AuditClause : std::uint8_t {
  kUsable,      ///< C1
  kDisjoint,    ///< C2
  kOrder,       ///< C6, C7
  kCapture,     ///< C9
  kComplete,    ///< C12
  kAtomic,      ///< C13
  kConserved,   ///< C14
  kMisuse,      ///< C16
  kDriverCalls  ///< D4, D7: what it asks of the driver
};
inline constexpr std::size_t kAuditClauses = 9;

/// Broken, in the place of a clause, by a library that throws or ends its process.
inline constexpr char kCrashClause[] = "crash";

/// "C1", ...: static storage.
const char* clause_id(AuditClause clause) noexcept;
/// What it asks, in a line.
const char* clause_meaning(AuditClause clause) noexcept;

/// Plain numbers, so that they can be shared with another process.
struct AuditCounts {
  std::uint64_t ops = 0;  ///< that ran
  std::uint64_t skipped = 0;
  std::uint64_t allocations = 0;
  std::uint64_t refusals = 0;  ///< allocations that were answered with null
  std::array<std::uint64_t, kAuditClauses> judged{};
  std::uint64_t live_bytes_peak = 0;      ///< as requested
  std::uint64_t reserved_bytes_peak = 0;  ///< of the driver
  std::uint64_t reserved_bytes_end =
      0;  ///< after everything was freed, and the cache emptied where it can be
};

struct AuditFindings : AuditCounts {
  std::string clause;          ///< the first that broke; empty: none did
  std::string text;            ///< how
  std::uint64_t op_index = 0;  ///< at which op; the number of ops: at the end
  bool is_good() const { return clause.empty(); }
};

}  // namespace ashlar::spec
