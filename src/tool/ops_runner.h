// Running an .ops file against what its first line names, whatever that is.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "spec/ops/op.h"

namespace ashlar::tool {

struct OpsOutcome {
  std::uint64_t ops = 0;      ///< executed
  std::uint64_t skipped = 0;  ///< their names were not bound
  std::uint64_t checks = 0;   ///< answers judged
  std::string clause;         ///< the first that broke; empty: none did
  std::string text;           ///< how, in one line
  std::uint32_t line = 0;     ///< where in the file; 0 at the end of it
  /// the model's and the implementation's map at that moment, side by side
  std::string maps;
  bool passed() const { return clause.empty(); }
};

/// Runs the file in lockstep with the model, everything checked after every op.
OpsOutcome run_ops(const spec::OpFile& file);

}  // namespace ashlar::tool
