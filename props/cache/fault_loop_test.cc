// The fault loop: every driver call of a sequence fails in turn, alone and together with another
// (failing_calls.h). ci/deep runs many more, and windows of real traces.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "props/sequences/cache_sequences.h"
#include "props/sequences/failing_calls.h"
#include "props/sequences/stored_sequences.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::props {
namespace {

/// A number of the environment, or what holds without it.
std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(FaultLoop, NoFailureOfTheDriverLeaksOrBreaksTheBooks) {
  FaultTally tally;
  // Fewer with sanitizers, where each world takes ten times as long (props/cache/CMakeLists.txt).
  const std::uint64_t seeds = setting("ASHLAR_FAULTS_SEEDS", 8);
  for (std::uint64_t seed = 0; seed < seeds && !HasFailure(); ++seed) {
    SequenceShape shape = any_shape(seed);
    shape.has_failures = false;  // no other failures
    shape.ops = 60;
    shape.has_capacity = seed % 2 == 0;
    shape.has_conf = seed % 3 == 0;
    EXPECT_EQ(fail_each_call(random_sequence(shape, seed), {.partners = 1, .seed = seed}, &tally),
              "");
  }
  std::printf("%llu faults, %llu of them in %llu pairs, %llu at the end; %llu not reached\n",
              static_cast<unsigned long long>(tally.faults()),
              static_cast<unsigned long long>(2 * tally.pairs),
              static_cast<unsigned long long>(tally.pairs),
              static_cast<unsigned long long>(tally.at_end),
              static_cast<unsigned long long>(tally.unreached));
  EXPECT_GT(tally.faults(), 1000 * seeds);
  EXPECT_GT(tally.pairs, 200u);
  EXPECT_GT(tally.at_end, 200u);
}

/// Stored sequences that make more driver calls are left to ci/deep: the time grows with the square
/// of the calls, and all of them take minutes.
std::uint64_t calls_max() { return setting("ASHLAR_FAULTS_CALLS_MAX", 48); }

TEST(FaultLoop, NoFailureOfTheDriverInAStoredSequenceBreaksTheBooks) {
  FaultTally tally;
  unsigned files = 0;
  const auto run = [&](spec::OpFile file, const std::filesystem::path& path) {
    if (driver_calls(file) > calls_max()) return;
    ++files;
    // What a sequence expects holds without failures.
    std::erase_if(file.ops, [](const spec::Op& op) {
      return op.slot == spec::slot::kExpect || op.slot == spec::slot::kExpectSame ||
             op.slot == spec::slot::kExpectLive || op.slot == spec::slot::kExpectReserved;
    });
    EXPECT_EQ(fail_each_call(file, {}, &tally), "") << path;
  };
  for_each_stored(ASHLAR_REGRESSIONS, spec::Subject::kCache, run);
  std::printf("%llu faults in %u stored sequences\n",
              static_cast<unsigned long long>(tally.faults()), files);
  EXPECT_GT(tally.faults(), 1'000u);
}

}  // namespace
}  // namespace ashlar::props
