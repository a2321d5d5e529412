// Who holds a SpinLock, as Guards are moved about. That it excludes is the threaded suites'.
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

TEST(Guard, HandedOnIsLetGoByTheTakerAndByNobodyElse) {
  SpinLock lock;
  {
    Guard first(lock);
    {
      const Guard second(std::move(first));
      EXPECT_TRUE(is_held(lock));
    }
    EXPECT_FALSE(is_held(lock));
    ASSERT_TRUE(lock.try_lock());  // somebody else's, whom the first guard's end must not disturb
  }
  EXPECT_TRUE(is_held(lock));
}

TEST(Guard, LentComesBack) {
  SpinLock lock;
  {
    Guard guard(lock);
    Guard lent(std::move(guard));
    lent.unlock();
    EXPECT_FALSE(is_held(lock));
    lent.relock();
    guard = std::move(lent);
    EXPECT_TRUE(is_held(lock));
  }
  EXPECT_FALSE(is_held(lock));
}

TEST(Guard, HandedOnUnlockedHoldsNothing) {
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
