// expect_steps: that a call takes an exact number of steps under a lock (base/step_count.h).
//
// Thread safety: the counter is the thread's own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include <ashlar/base/step_count.h>

namespace ashlar {

/// Calls f(). Builds without assertions count no steps, and expect none.
template <class F>
void expect_steps([[maybe_unused]] std::uint64_t expected, F&& f) {
#if ASHLAR_ASSERTIONS
  lock_steps = 0;
#endif
  f();
#if ASHLAR_ASSERTIONS
  EXPECT_EQ(lock_steps, expected);
#endif
}

}  // namespace ashlar
