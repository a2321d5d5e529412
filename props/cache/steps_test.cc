// Steps that repeat on a device with hardly more pages than they need, against the model: remembered
// places, pages that come back to them, and every reason for which they do not.
//
// Imitates: training steps at the memory limit, interrupted by other requests, failing calls,
// captures, limits. Does not prove: that a step settles (pages_test.cc).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include <ashlar/cache/place_events.h>

#include "props/sequences/cache_sequences.h"
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

/// Judges `count` worlds from `first` on, every 16th with large places.
void judge_worlds(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    StepShape shape = step_shape_from(seed);
    shape.has_large_places = seed % 16 == 0;
    const std::string failure = judge_sequence(stepping_sequence(shape, seed));
    ASSERT_EQ(failure, "") << "seed " << seed;
  }
}

TEST(CacheSteps, OfEveryShapeHaveNoDivergence) { judge_worlds(0, 1024); }

#if ASHLAR_ASSERTIONS
// A generator that stops reaching loans leaves them unjudged, in the soak as here.
TEST(CacheSteps, ReachLoansAndEachReasonForWhichOneFails) {
  using cache::PlaceEvent;
  cache::place_events = {};
  judge_worlds(5000, 1500);
  const auto count = [](PlaceEvent event) {
    return cache::place_events[static_cast<unsigned>(event)];
  };
  EXPECT_GT(count(PlaceEvent::kLogMade), 1000u);
  EXPECT_GT(count(PlaceEvent::kPlaceTaken), 5000u);
  EXPECT_GT(count(PlaceEvent::kLoan), 500u);
  EXPECT_GT(count(PlaceEvent::kPageCame), 2000u);
  for (const PlaceEvent seldom :
       {PlaceEvent::kPlaceNotFree, PlaceEvent::kReserved, PlaceEvent::kNotExpected,
        PlaceEvent::kNotUnmapped, PlaceEvent::kOccupied, PlaceEvent::kTooManyPages,
        PlaceEvent::kNothingMapped, PlaceEvent::kHomeless, PlaceEvent::kHomeInPlace,
        PlaceEvent::kOtherHeap, PlaceEvent::kHomeNotFree})
    EXPECT_GE(count(seldom), 3u) << static_cast<unsigned>(seldom);
  for (unsigned e = 0; e < cache::kPlaceEvents; ++e)
    RecordProperty("event_" + std::to_string(e), std::to_string(cache::place_events[e]));
}
#endif

}  // namespace
}  // namespace ashlar::props
