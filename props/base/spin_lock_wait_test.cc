// How a thread waits for a SpinLock: it gives its processor to others, and lets them in between two
// slices of its own work.
//
// Imitates: more threads than processors. Times are compared as the least of many, which a busy
// machine can only make longer. Does not prove how many spins are best (bench).
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include <ashlar/base/spin_lock.h>

namespace {
std::atomic<unsigned> yields{0};
}  // namespace

/// Counted: std::this_thread::yield() makes this call.
extern "C" int sched_yield() noexcept {
  yields.fetch_add(1);
  return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace ashlar {
namespace {

using std::chrono::steady_clock;

TEST(SpinLockWait, AThreadThatWaitsForLongYieldsItsProcessorAgainAndAgain) {
  // More than a wait of pauses alone, or of 64 yields before them, would make; on a busy machine each
  // takes a turn of every other thread.
  constexpr unsigned kYields = 200;
  SpinLock lock;
  lock.lock();
  yields = 0;
  std::atomic<bool> has_waited{false};
  std::thread other([&] {
    lock.lock();
    has_waited = true;
    lock.unlock();
  });
  const auto end = steady_clock::now() + std::chrono::seconds(30);
  while (yields < kYields && steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(yields, kYields);
  EXPECT_FALSE(has_waited);
  lock.unlock();
  other.join();
  EXPECT_TRUE(has_waited);
}

#if defined(__x86_64__)
template <class F>
std::chrono::nanoseconds time_of(F&& f) {
  const auto begin = steady_clock::now();
  f();
  return steady_clock::now() - begin;
}

TEST(SpinLockWait, LettingOthersInTakesTheTimeThatAWaitingThreadNeeds) {
  SpinLock lock;
  const Guard guard(lock);
  // In turn, so that a processor that changes its pace meets both.
  std::chrono::nanoseconds give_way = std::chrono::hours(1), let_in = give_way;
  for (int i = 0; i < 2000; ++i) {
    give_way = std::min(give_way, time_of([] { SpinLock::give_way(); }));
    let_in =
        std::min(let_in, time_of([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS { lock.let_others_in(); }));
  }
  // The lock's line moves from one processor to another in some tens of nanoseconds at least.
  EXPECT_GE(give_way, std::chrono::nanoseconds(100));
  // Half of it: the two minima may still come from different paces. Without give_way() it is a
  // small part of that.
  EXPECT_GE(let_in, give_way / 2);
}
#endif

}  // namespace
}  // namespace ashlar
