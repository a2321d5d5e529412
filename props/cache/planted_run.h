// Runs ops in lockstep over a subject with a planted bug, and says which clause broke.
//
// The real allocator has to pass the same ops; the plain walker and the incremental one have to give
// the same verdict; and the bug has to show at the settings of the fuzz target too.
// Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "props/cache/forwarding_subject.h"
#include "spec/ops/text.h"

namespace ashlar::props {

/// The ops in segments, unless they say which backing they are for: planted bugs are of blocks whose sizes and
/// segments the ops count.
inline std::string with_backing(std::string ops) {
  std::size_t conf = ops.find("conf ");
  if (conf == std::string::npos) return "conf " + in_segments("") + "\n" + ops;
  conf += 5;
  const std::size_t end = ops.find('\n', conf);
  return ops.replace(conf, end - conf, in_segments(ops.substr(conf, end - conf)));
}

inline spec::LockstepResult run(const spec::CacheLockstep::Options& options,
                                const std::string& ops) {
  spec::OpFile file;
  spec::TextError error;
  EXPECT_TRUE(spec::parse_ops("ashlar-ops 1 cache\n" + with_backing(ops), &file, &error))
      << error.reason;
  return spec::CacheLockstep::run(file, options);
}
inline std::string failing_clause(const spec::CacheLockstep::Options& options,
                                  const std::string& ops) {
  return run(options, ops).divergence.clause;
}

/// The clause that broke; the plain walker must give the same verdict at the same op.
inline std::string failing_clause_of_both(spec::CacheLockstep::Options options,
                                          const std::string& ops) {
  const spec::LockstepResult by_default = run(options, ops);
  options.walker = spec::make_plain_walker;
  const spec::LockstepResult plain = run(options, ops);
  EXPECT_EQ(by_default.divergence.clause, plain.divergence.clause) << ops;
  EXPECT_EQ(by_default.divergence.text, plain.divergence.text) << ops;
  EXPECT_EQ(by_default.op_index, plain.op_index) << ops;
  return by_default.divergence.clause;
}

/// The clause that broke with the bug, judged in full at every call. Without the bug the same ops
/// must pass; with it they must fail at the fuzz target's settings too.
template <class Broken>
std::string dense_clause(const std::string& ops, const char* real_conf = nullptr) {
  spec::CacheLockstep::Options real;
  real.factory = caching_allocator_factory();
  EXPECT_EQ(failing_clause(real, ops), "") << "the real allocator fails:\n" << ops;
  const std::string in_full = failing_clause_of_both(broken<Broken>(real_conf), ops);
  spec::CacheLockstep::Options fuzzed = broken<Broken>(real_conf);
  fuzzed.stats_every = 2;
  fuzzed.defers_last_walks = true;
  EXPECT_EQ(failing_clause_of_both(fuzzed, ops).empty(), in_full.empty())
      << "fuzzing misses " << in_full << ":\n"
      << ops;
  return in_full;
}

/// The same for a bug that must also show where the map is walked and statistics are read at every
/// eighth call only.
template <class Broken>
std::string clause(const std::string& ops, const char* real_conf = nullptr) {
  const std::string dense = dense_clause<Broken>(ops, real_conf);
  spec::CacheLockstep::Options sparse = broken<Broken>(real_conf);
  sparse.walk_every = sparse.stats_every = 8;
  EXPECT_EQ(failing_clause_of_both(sparse, ops).empty(), dense.empty())
      << "sparse walks miss " << dense << ":\n"
      << ops;
  return dense;
}

}  // namespace ashlar::props
