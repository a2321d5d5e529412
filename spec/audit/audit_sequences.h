// Random worlds for an audit, of a sort each: what one sort shows is not hidden behind what another one does.
//
// Thread safety: pure functions. The same seed gives the same ops everywhere.
#pragma once

#include <cstdint>
#include <span>

#include "spec/ops/op.h"

namespace ashlar::spec {

/// What worlds of a sort have beyond allocations, frees, work and progress on three streams.
struct AuditSort {
  const char* name;
  const char* meaning;  ///< in a line
  bool has_deaths = false;
  bool has_threads = false;
  bool has_failures = false;
  bool has_captures = false;
  bool has_misuse = false;
  bool is_small = false;  ///< a device of 64 MiB
  std::uint32_t devices = 1;
};

/// All sorts, in the order in which an audit takes them.
std::span<const AuditSort> audit_sorts();

OpFile audit_sequence(const AuditSort& sort, std::uint64_t seed, std::uint32_t ops);

}  // namespace ashlar::spec
