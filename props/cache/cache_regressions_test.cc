// Runs every stored sequence of props/regressions that drives the caching allocator: in lockstep
// with the model, with the expectations that the file states, on a plain and on an adversarial
// machine. Each file opens with the historical bug that it reproduces. An unreadable file is a
// failure, and so is an empty folder. Does not prove: anything about threads
// (cache_threads_test.cc).
#include <gtest/gtest.h>

#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/stored_sequences.h"
#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::props {
namespace {

TEST(CacheRegressions, EveryStoredSequenceAgreesWithTheModelAndItsExpectations) {
  const auto run = [](const spec::OpFile& file, const std::filesystem::path& path) {
    for (const bool adversarial : {false, true}) {
      spec::CacheLockstep::Options options;
      options.factory = caching_allocator_factory();
      options.machine.adversarial = adversarial;
      const spec::LockstepResult result = spec::CacheLockstep::run(file, options);
      EXPECT_EQ(result.divergence.text, "")
          << path << ", op " << result.op_index << ": " << result.op_text << "\n"
          << result.maps;
      EXPECT_EQ(result.skipped, 0u) << path << ": an op of a stored sequence did nothing";
    }
  };
  EXPECT_GE(for_each_stored(ASHLAR_REGRESSIONS, spec::Subject::kCache, run), 18u);
}

/// A walk that sees several calls at once raises no false alarm about them.
TEST(CacheRegressions, EveryStoredSequenceAgreesWhereFewCallsAreWalked) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  const auto run = [&](const spec::OpFile& file, const std::filesystem::path& path) {
    for (const std::uint32_t every : {3u, 57u}) {
      options.walk_every = every;
      options.stats_every = 1 + every / 16;
      EXPECT_EQ(spec::CacheLockstep::run(file, options).divergence.text, "")
          << path << ", walked every " << every << " calls";
    }
  };
  EXPECT_GE(for_each_stored(ASHLAR_REGRESSIONS, spec::Subject::kCache, run), 18u);
}

}  // namespace
}  // namespace ashlar::props
