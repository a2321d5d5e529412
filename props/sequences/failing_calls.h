// Failing calls: every driver call that a sequence makes fails in turn, alone or together with
// another, to the end of the world.
//
// Imitated: a device out of memory, out of events, or with a failing driver at the worst moment
// (H29, H34, H35). The model judges every step. There are three ends: healed, everything is freed
// and trimmed, and nothing is held; the allocator ends at once, with its work unfinished; everything
// is freed and trimmed and the allocator ends, with the failures still in force.
// Thread safety: none. The same seed gives the same failures everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "spec/ops/op.h"

namespace ashlar::props {

/// What fails.
struct FaultChoice {
  /// How many different answers each call fails with, of spec::kFailureCodes.
  unsigned codes = 1;
  /// With how many other calls, drawn at random, each call fails together.
  unsigned partners = 0;
  std::uint64_t seed = 0;
};

/// Worlds in which what was planned to fail did fail.
struct FaultTally {
  std::uint64_t single = 0;  ///< one call, or every call of its kind from then on
  std::uint64_t pairs = 0;   ///< two calls
  std::uint64_t at_end = 0;  ///< of `single`: a call of the last trim, or of the destructor
  /// worlds in which the first failure kept the second call of a pair from being made
  std::uint64_t unreached = 0;
  std::uint64_t faults() const { return single + 2 * pairs; }
};

/// Runs the file once for each failure, and adds to the tally. Empty, or the text of the first
/// divergence, reduced.
std::string fail_each_call(const spec::OpFile& file, const FaultChoice& choice, FaultTally* tally);

/// How many driver calls the file's ops make without failures.
std::uint64_t driver_calls(const spec::OpFile& file);

}  // namespace ashlar::props
