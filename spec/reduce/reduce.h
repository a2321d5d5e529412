// Reducer: shrinks a failing op sequence to a minimal one that fails the same clause.
//
// Purpose: a counterexample of hundreds of ops from a fuzzer or a trace becomes a case a person can
// read. First ddmin (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002)
// over the ops, then single ops, then sizes and counts, until nothing changes. Any op may be
// dropped: an op whose names are unbound is skipped when it runs.
// Sizes: a case in which one size does not fit another (an allocation its device, a limit) says
// something else once one of the two is smaller. So where a file has capacities, all its sizes are
// halved together or not at all, and where its configuration has sizes, none is changed.
// Thread safety: pure functions of their arguments. Deterministic. Bound: at most `runs_max` runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "spec/ops/op.h"

namespace ashlar::spec {

/// How a run failed.
struct FailureStory {
  // NOLINTNEXTLINE(google-explicit-constructor): for a run that is known by its clause alone.
  FailureStory(std::string broken = {}, std::string seen = {})
      : clause(std::move(broken)), shape(std::move(seen)) {}
  std::string clause;  ///< that broke, and how, as far as every reduction keeps it; "": none did
  std::string shape;   ///< what is kept while sizes and counts change: say, the map without numbers
};

/// Runs the ops. Must be deterministic.
using FailingClause = std::function<FailureStory(const OpFile&)>;

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
