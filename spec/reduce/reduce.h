// Reducer: shrinks a failing op sequence to a minimal one that fails the same clause.
//
// Purpose: a counterexample of hundreds of ops from a fuzzer or a trace becomes a case a person can
// read. First ddmin (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002)
// over the ops, then single ops, then sizes and counts, until nothing changes. Any op may be
// dropped: an op whose names are unbound is skipped when it runs.
// Thread safety: pure functions of their arguments. Deterministic. Bound: at most `runs_max` runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "spec/ops/op.h"

namespace ashlar::spec {

/// Runs the ops. Returns the clause that broke, "" when none did. Must be deterministic.
using FailingClause = std::function<std::string(const OpFile&)>;

struct Reduction {
  OpFile file;         ///< the smallest one found; the input if it does not fail
  std::string clause;  ///< "" if the input does not fail
  std::uint64_t runs = 0;
  /// no single op can be dropped; false when runs_max was reached first
  bool is_minimal = false;
};

inline constexpr std::uint64_t kReduceRunsMax = 20'000;

Reduction reduce_ops(const OpFile& file, const FailingClause& run,
                     std::uint64_t runs_max = kReduceRunsMax);

}  // namespace ashlar::spec
