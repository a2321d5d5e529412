// Mutex and Condition: who holds the mutex before, during and after a wait.
//
// Imitates: a thread that waits for another one's news, and one that waits in vain. Does not prove
// that a woken thread wakes in time.
#include <ashlar/base/mutex.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace ashlar {
namespace {

using std::chrono::steady_clock;

/// Asked from another thread, as a mutex must be.
bool is_held(Mutex& mutex) {
  bool is_taken = false;
  std::thread other([&] {
    if (!mutex.try_lock()) return;
    is_taken = true;
    mutex.unlock();
  });
  other.join();
  return !is_taken;
}

TEST(Mutex, IsHeldForTheScopeOfItsGuard) {
  Mutex mutex;
  {
    const MutexGuard guard(mutex);
    EXPECT_TRUE(is_held(mutex));
  }
  EXPECT_FALSE(is_held(mutex));
}

TEST(Condition, IsBackWithItsMutexHeldWhenTheTimeIsOver) {
  Mutex mutex;
  Condition condition;
  {
    const MutexGuard guard(mutex);
    const auto end = steady_clock::now() + std::chrono::milliseconds(2);
    while (condition.wait_until(mutex, end)) {
    }
    EXPECT_GE(steady_clock::now(), end);
    EXPECT_TRUE(is_held(mutex));
  }
  EXPECT_FALSE(is_held(mutex));
}

TEST(Condition, IsBackWithItsMutexHeldWhenItIsWoken) {
  Mutex mutex;
  Condition condition;
  bool is_news = false;
  std::thread other;
  {
    const MutexGuard guard(mutex);
    other = std::thread([&] {
      const MutexGuard inner(mutex);  // the wait lets it in
      is_news = true;
      condition.notify_all();
    });
    while (!is_news) condition.wait(mutex);
    EXPECT_TRUE(is_held(mutex));
    is_news = false;
  }
  other.join();
  EXPECT_FALSE(is_held(mutex));
}

TEST(Condition, SaysThatItWasWokenInTime) {
  Mutex mutex;
  Condition condition;
  bool is_news = false;
  std::thread other;
  {
    const MutexGuard guard(mutex);
    other = std::thread([&] {
      const MutexGuard inner(mutex);
      is_news = true;
      condition.notify_all();
    });
    const auto end = steady_clock::now() + std::chrono::minutes(10);
    while (!is_news) ASSERT_TRUE(condition.wait_until(mutex, end));
    EXPECT_TRUE(is_held(mutex));
  }
  other.join();
  EXPECT_FALSE(is_held(mutex));
}

}  // namespace
}  // namespace ashlar
