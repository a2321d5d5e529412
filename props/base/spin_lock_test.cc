// Who holds a SpinLock, and that the count behind C18 follows it. That it excludes other threads is
// shown by the threaded suites.
#include <gtest/gtest.h>

#include <ashlar/base/spin_lock.h>

namespace ashlar {
namespace {

bool is_held(SpinLock& lock) {
  if (!lock.try_lock()) return true;
  lock.unlock();
  return false;
}

TEST(Guard, HoldsTheLockForItsScope) {
  SpinLock lock;
  {
    const Guard guard(lock);
    EXPECT_TRUE(is_held(lock));
  }
  EXPECT_FALSE(is_held(lock));
}

TEST(Guard, MayBeLetGoAndTakenAgainInside) {
  SpinLock lock;
  {
    const Guard guard(lock);
    lock.unlock();
    EXPECT_FALSE(is_held(lock));
    lock.lock();
    EXPECT_TRUE(is_held(lock));
  }
  EXPECT_FALSE(is_held(lock));
}

TEST(SpinLock, ATryThatFailsTakesNothing) {
  SpinLock lock;
  lock.lock();
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock()) << "the first try let go of it";
  lock.unlock();
  EXPECT_FALSE(is_held(lock));
}

TEST(SpinLock, ATryThatSucceedsTakesTheLock) {
  SpinLock lock;
  const bool is_taken = lock.try_lock();
  EXPECT_TRUE(is_taken);
  EXPECT_TRUE(is_held(lock));
  if (is_taken) lock.unlock();
  EXPECT_FALSE(is_held(lock));
}

#if ASHLAR_ASSERTIONS
TEST(SpinLock, CountsTheLocksThatThisThreadHolds) {
  SpinLock first;
  SpinLock second;
  {
    const Guard guard(first);
    const Guard other(second);
    EXPECT_TRUE(is_held(second));  // a try that fails counts nothing
    EXPECT_EQ(spin_locks_held, 2);
  }
  EXPECT_EQ(spin_locks_held, 0);
  const bool is_taken = first.try_lock();
  EXPECT_EQ(spin_locks_held, 1) << "a try that succeeds counts as a lock";
  if (is_taken) first.unlock();
  EXPECT_EQ(spin_locks_held, 0);
}

TEST(SpinLock, CountsTheStepsSinceTheFirstLockWasTaken) {
  SpinLock first;
  SpinLock second;
  const Guard guard(first);
  count_steps(3);
  {
    const Guard other(second);
    count_steps(4);
  }
  EXPECT_EQ(lock_steps, 7u);
  first.unlock();
  first.lock();
  EXPECT_EQ(lock_steps, 0u);
}

TEST(SpinLock, ALongSectionIsExcused) {
  SpinLock lock;
  const Guard guard(lock);
  count_steps(2);
  {
    const LongSectionScope excused;
    count_steps(kLockStepsMax + 1);
  }
  EXPECT_EQ(lock_steps, 2u);
}

#if GTEST_HAS_DEATH_TEST
TEST(C31DeathTest, FiresOnMoreStepsThanALockAllows) {
  const auto hold_for = [](std::uint64_t steps) {
    SpinLock lock;
    const Guard guard(lock);
    count_steps(steps);
  };
  hold_for(kLockStepsMax);
  EXPECT_DEATH(hold_for(kLockStepsMax + 1), "C31");
}
#endif
#endif

}  // namespace
}  // namespace ashlar
