// The reclaim lock's hand-over (reclaim_lock.h) between threads that hold it for long.
//
// Imitates: a sweep of many steps beside threads that come for the lock, one or all the time.
// Does not prove: how long a hand-over takes. A test waits for a state, with ten seconds at most.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <ashlar/cache/reclaim_lock.h>

namespace ashlar::cache {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

void pass(std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); }

/// Takes a free lock by try_lock() or by lock().
void take(ReclaimLock& lock, bool is_tried) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  if (is_tried) {
    ASSERT_TRUE(lock.try_lock());
  } else {
    lock.lock();
  }
}

TEST(ReclaimLockTest, NothingIsLetGoWhileNobodyWaits) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  ReclaimLock lock;
  lock.lock();
  pass(milliseconds(5));
  EXPECT_FALSE(lock.let_others_in());
  lock.unlock();
  ASSERT_TRUE(lock.try_lock());
  pass(milliseconds(5));
  EXPECT_FALSE(lock.let_others_in());
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  lock.unlock();
  lock.wait_for_holder();
  std::thread([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    ASSERT_TRUE(lock.try_lock());
    lock.unlock();
  }).join();
}

TEST(ReclaimLockTest, OneThatWaitsHasItBeforeTheHolderHasItAgain)
ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  for (const bool is_tried : {false, true}) {
    ReclaimLock lock;
    std::atomic<unsigned> had{0};
    std::atomic<bool> comes{false};
    ASSERT_NO_FATAL_FAILURE(take(lock, is_tried));
    std::thread waits([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
      comes = true;
      const ReclaimGuard guard(lock);
      ++had;
    });
    while (!comes) std::this_thread::yield();
    pass(milliseconds(30));  // it is in lock() now
    EXPECT_EQ(had, 0u);
    EXPECT_TRUE(lock.let_others_in());
    EXPECT_EQ(had, 1u) << "C30";
    EXPECT_FALSE(lock.let_others_in()) << "nobody waits any more";
    std::thread([&] { EXPECT_FALSE(lock.try_lock()) << "the holder has it again"; }).join();
    lock.unlock();
    waits.join();
  }
}

TEST(ReclaimLockTest, AHandOverComesAfterTwoMillisecondsAndAgainAfterTwoMore)
ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  ReclaimLock lock;
  std::atomic<bool> is_over{false};
  std::atomic<unsigned> turns{0};
  const auto begin = Clock::now();
  lock.lock();
  std::thread comes_and_goes([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    while (!is_over) {
      const ReclaimGuard guard(lock);
      ++turns;
    }
  });
  unsigned let_in = 0;
  while (let_in < 5 && Clock::now() - begin < std::chrono::seconds(10)) {
    const unsigned before = turns;
    const bool let_go = lock.let_others_in();
    let_in += let_go;
    EXPECT_EQ(turns > before, let_go);
  }
  // Each hold is of two milliseconds at least.
  EXPECT_GE(Clock::now() - begin, milliseconds(2 * 5));
  EXPECT_EQ(let_in, 5u);
  is_over = true;
  lock.unlock();
  comes_and_goes.join();
}

TEST(ReclaimLockTest, AHolderIsNotTurnedOutInItsFirstTwoMilliseconds)
ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  for (int round = 0; round < 40; ++round) {
    const bool is_tried = round % 2 == 0;
    ReclaimLock lock;
    std::atomic<bool> may_come{false};
    std::atomic<bool> comes{false};
    std::thread waits([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
      while (!may_come) std::this_thread::yield();
      comes = true;
      const ReclaimGuard guard(lock);
    });
    // The time of an earlier hold does not count.
    lock.lock();
    lock.unlock();
    pass(milliseconds(3));
    const auto begin = Clock::now();
    ASSERT_NO_FATAL_FAILURE(take(lock, is_tried));
    may_come = true;
    while (!comes) std::this_thread::yield();
    pass(std::chrono::microseconds(200));
    const bool let_go = lock.let_others_in();
    // Where this thread itself was held up for longer, nothing is said.
    if (Clock::now() - begin < milliseconds(2)) {
      EXPECT_FALSE(let_go);
    }
    lock.unlock();
    waits.join();
  }
}

TEST(ReclaimLockTest, TheHolderQueuesAgainThoughThereIsAlwaysOneThatWaits)
ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  ReclaimLock lock;
  std::atomic<unsigned> waiting{0};
  std::atomic<bool> is_back{false};
  const auto end = Clock::now() + std::chrono::seconds(10);
  lock.lock();
  std::vector<std::thread> relay;
  for (int i = 0; i < 3; ++i) {
    relay.emplace_back([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
      while (!is_back && Clock::now() < end) {
        ++waiting;
        const ReclaimGuard guard(lock);
        --waiting;
        // Holds it until another one has come, who is in lock() a moment later.
        do pass(milliseconds(1));
        while (waiting == 0 && !is_back && Clock::now() < end);
      }
    });
  }
  while (waiting < 3) std::this_thread::yield();
  pass(milliseconds(20));
  EXPECT_TRUE(lock.let_others_in());
  EXPECT_LT(Clock::now(), end) << "it waited until nobody waits";
  is_back = true;
  lock.unlock();
  for (std::thread& thread : relay) thread.join();
}

}  // namespace
}  // namespace ashlar::cache
