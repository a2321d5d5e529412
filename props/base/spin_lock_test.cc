// Which Guard holds a SpinLock as guards are moved. Does not prove mutual exclusion; the threaded
// suites test that.
#include <ashlar/base/spin_lock.h>

#include <utility>

#include <gtest/gtest.h>

namespace ashlar {
namespace {

bool is_held(SpinLock& lock) {
  if (!lock.try_lock()) return true;
  lock.unlock();
  return false;
}

TEST(Guard, AMovedGuardIsReleasedByItsNewOwnerAlone) {
  SpinLock lock;
  {
    Guard first(lock);
    {
      const Guard second(std::move(first));
      EXPECT_TRUE(is_held(lock));
    }
    EXPECT_FALSE(is_held(lock));
    // Another holder takes the lock; the end of the first guard must not release it.
    ASSERT_TRUE(lock.try_lock());
  }
  EXPECT_TRUE(is_held(lock));
}

TEST(Guard, AGuardCanBeMovedAwayAndBack) {
  SpinLock lock;
  {
    Guard guard(lock);
    Guard moved(std::move(guard));
    moved.unlock();
    EXPECT_FALSE(is_held(lock));
    moved.relock();
    guard = std::move(moved);
    EXPECT_TRUE(is_held(lock));
  }
  EXPECT_FALSE(is_held(lock));
}

TEST(Guard, MovingAnUnlockedGuardHoldsNothing) {
  SpinLock lock;
  Guard first(lock);
  first.unlock();
  {
    const Guard second(std::move(first));
    EXPECT_FALSE(is_held(lock));
    ASSERT_TRUE(lock.try_lock());
  }
  EXPECT_TRUE(is_held(lock));
  lock.unlock();
}

}  // namespace
}  // namespace ashlar
