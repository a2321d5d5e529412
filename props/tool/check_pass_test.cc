// The check pass judges every event, or reports how many it did not.
//
// Imitates: a trace that frees an allocation twice. The reader refuses such a trace, so it is made by
// hand here; its last ops have no block, and could be taken for checked. Does not prove: that the
// lockstep driver finds divergences (its own suites).
#include <gtest/gtest.h>

#include "src/tool/trace.h"
#include "src/tool/trace_run.h"

namespace ashlar::tool {
namespace {

/// Two blocks, one of them freed.
Trace small_trace() {
  TraceBuilder builder("small");
  const auto a = builder.allocate(1000_B);
  builder.allocate(2000_B);
  EXPECT_TRUE(builder.free(*a));
  return builder.trace();
}

TEST(CheckPass, ATraceWhoseEveryEventIsJudgedDoesNotDiverge) {
  const CheckOutcome outcome = check_pass(small_trace(), TraceRunOptions{}, Bytes::max());
  EXPECT_EQ(outcome.divergences, 0u) << outcome.first_divergence;
  EXPECT_EQ(outcome.skipped_steps, 0u);
}

TEST(CheckPass, AnEventThatIsNotJudgedIsADivergence) {
  Trace trace = small_trace();
  trace.events.push_back(trace.events.back());  // a second free: the allocator is not called
  const CheckOutcome outcome = check_pass(trace, TraceRunOptions{}, Bytes::max());
  EXPECT_EQ(outcome.divergences, 1u);
  EXPECT_EQ(outcome.skipped_steps, 2u);
  EXPECT_NE(outcome.first_divergence.find("2 ops of the trace were skipped and not judged"),
            std::string::npos)
      << outcome.first_divergence;
}

TEST(CheckPass, OpsOnAnAllocationOfZeroBytesAreRightlySkipped) {
  TraceBuilder builder("nothing");
  const auto nothing = builder.allocate(0_B);
  EXPECT_TRUE(builder.free(*nothing));
  const CheckOutcome outcome = check_pass(builder.trace(), TraceRunOptions{}, Bytes::max());
  EXPECT_EQ(outcome.divergences, 0u) << outcome.first_divergence;
  EXPECT_EQ(outcome.skipped_steps, 3u);
}

}  // namespace
}  // namespace ashlar::tool
