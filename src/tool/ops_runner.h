// Runs an .ops file against the subject that its first line names.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "spec/ops/op.h"
#include "spec/reduce/reduce.h"

namespace ashlar::tool {

struct OpsOutcome {
  std::uint64_t ops = 0;      ///< executed
  std::uint64_t skipped = 0;  ///< ops whose names were not bound
  std::uint64_t checks = 0;   ///< answers judged
  std::string clause;         ///< the first clause that broke; empty: none did
  std::string text;           ///< how, in one line
  std::uint32_t line = 0;     ///< where in the file; 0: at its end
  /// the operation whose outcome was not the expected one; empty if that is not what broke
  std::string judged;
  /// the model's and the implementation's map at that moment, side by side
  std::string maps;
  bool passed() const { return clause.empty(); }
};

/// Runs the file in lockstep with the model, and checks everything after every op. `rounds`: a file
/// for the caching allocator runs so often in one world, and what piles up is judged too (C29,
/// C20); 0: once, and it is not.
OpsOutcome run_ops(const spec::OpFile& file, std::uint32_t rounds = 0);

/// What a reduced file must keep: the clause and its text without their numbers, the kind of
/// operation that was expected to end otherwise, and, while sizes change, the maps without theirs.
spec::FailureStory story_of(const OpsOutcome& outcome);

}  // namespace ashlar::tool
