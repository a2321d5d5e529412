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
  lock.unlock();
  const bool is_taken = lock.try_lock();
  EXPECT_TRUE(is_taken);
  if (is_taken) lock.unlock();
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
}
#endif

}  // namespace
}  // namespace ashlar
