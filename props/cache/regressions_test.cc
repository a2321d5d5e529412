// Every stored sequence of props/regressions that drives the caching allocator, in lockstep with the model and its own
// expectations, plainly and on an adversarial machine. Each file opens with the historical bug it reproduces. A file that
// cannot be read is a failure, and so is a folder without any. Does not prove: anything about threads (threads_test.cc).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "props/adapters/cache_subject.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

TEST(CacheRegressions, EveryStoredSequenceAgreesWithTheModelAndItsExpectations) {
  unsigned caches = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASHLAR_REGRESSIONS)) {
    if (entry.path().extension() != ".ops") continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    spec::OpFile file;
    spec::TextError error;
    ASSERT_TRUE(spec::parse_ops(text.str(), &file, &error)) << entry.path() << ":" << error.line << ": " << error.reason;
    if (file.subject != spec::Subject::kCache) continue;
    caches += 1;
    for (const bool adversarial : {false, true}) {
      spec::CacheLockstep::Options options;
      options.factory = caching_allocator_factory();
      options.machine.adversarial = adversarial;
      const spec::LockstepResult result = spec::CacheLockstep::run(file, options);
      EXPECT_EQ(result.divergence.text, "") << entry.path() << ", op " << result.op_index << ": " << result.op_text << "\n"
                                            << result.maps;
      EXPECT_EQ(result.skipped, 0u) << entry.path() << ": an op of a stored sequence did nothing";
    }
  }
  EXPECT_GE(caches, 18u);
}

}  // namespace
}  // namespace ashlar::props
