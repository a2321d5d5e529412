// Steps that repeat on a device with hardly more pages than they need, against the model: remembered
// places, pages that come back to them, and every reason for which they do not.
//
// Imitates: training steps at the memory limit, interrupted by other requests, failing calls,
// captures, limits. Does not prove: that a step settles (pages_test.cc).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "props/sequences/cache_sequences.h"
#include "props/sequences/place_reach.h"
#include "props/sequences/step_sequences.h"

namespace ashlar::props {
namespace {

RC_GTEST_PROP(CacheSteps, HaveNoDivergence, ()) {
  StepShape shape = step_shape_from(*rc::gen::inRange<std::uint64_t>(0, 512));
  shape.has_large_places = false;
  const std::string failure =
      judge_sequence(stepping_sequence(shape, *rc::gen::arbitrary<std::uint64_t>()));
  if (!failure.empty()) RC_FAIL(failure);
}

/// The divergence of the world with that seed. Every 16th has large places.
std::string judge_world(std::uint64_t seed) {
  StepShape shape = step_shape_from(seed);
  shape.has_large_places = seed % 16 == 0;
  return judge_sequence(stepping_sequence(shape, seed));
}

TEST(CacheSteps, OfEveryShapeHaveNoDivergence) {
  for (std::uint64_t seed = 0; seed < 1024; ++seed)
    ASSERT_EQ(judge_world(seed), "") << "seed " << seed;
}

#if ASHLAR_ASSERTIONS
// A generator that stops reaching loans leaves them unjudged, in the soak as here.
TEST(CacheSteps, ReachLoansAndEachReasonForWhichOneFails) {
  using cache::PlaceEvent;
  PlaceReach reach;
  for (std::uint64_t seed = 5000; seed < 6500; ++seed) {
    ASSERT_EQ(judge_world(seed), "") << "seed " << seed;
    reach.note_world();
  }
  SCOPED_TRACE(reach.table());
  EXPECT_GT(reach.times(PlaceEvent::kLogMade), 1000u);
  EXPECT_GT(reach.times(PlaceEvent::kPlaceTaken), 5000u);
  EXPECT_GT(reach.times(PlaceEvent::kLoan), 500u);
  EXPECT_GT(reach.times(PlaceEvent::kPageCame), 2000u);
  for (const PlaceEvent seldom :
       {PlaceEvent::kPlaceNotFree, PlaceEvent::kReserved, PlaceEvent::kNotExpected,
        PlaceEvent::kNotUnmapped, PlaceEvent::kOccupied, PlaceEvent::kTooManyPages,
        PlaceEvent::kNothingMapped, PlaceEvent::kHomeless, PlaceEvent::kHomeInPlace,
        PlaceEvent::kOtherHeap, PlaceEvent::kHomeNotFree})
    EXPECT_GE(reach.times(seldom), 3u) << static_cast<unsigned>(seldom);
}
#endif

}  // namespace
}  // namespace ashlar::props
