// The fault loop: every driver call of a sequence fails in turn, alone and together with another
// (failing_calls.h). ci/deep runs many more, and windows of real traces.
#include <gtest/gtest.h>

#include <cstdio>

#include "props/sequences/cache_sequences.h"
#include "props/sequences/failing_calls.h"

namespace ashlar::props {
namespace {

TEST(FaultLoop, NoFailureOfTheDriverLeaksOrBreaksTheBooks) {
  FaultTally tally;
  for (std::uint64_t seed = 0; seed < 24 && !HasFailure(); ++seed) {
    SequenceShape shape = shape_from(seed & ~std::uint64_t{2});  // no other failures
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
  EXPECT_GT(tally.faults(), 2'000u);
  EXPECT_GT(tally.pairs, 200u);
  EXPECT_GT(tally.at_end, 200u);
}

}  // namespace
}  // namespace ashlar::props
