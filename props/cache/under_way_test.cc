// Calls that began before a moment are told from those that began after it (under_way.h).
//
// Imitates: an announcement of a capture beside threads that go on calling.
// Does not prove: what a memory model weaker than this machine's permits.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cache/under_way.h>

namespace ashlar::cache {
namespace {

TEST(UnderWayTest, LaterCallsHideNoEarlierOneAndAreNotWaitedFor) {
  UnderWay<unsigned> calls;
  EXPECT_FALSE(calls.any());
  const unsigned earlier = calls.begin();
  calls.begin_phase();
  EXPECT_TRUE(calls.has_earlier());
  const unsigned later = calls.begin();
  calls.end(earlier);
  EXPECT_FALSE(calls.has_earlier());
  EXPECT_TRUE(calls.any());
  // A later call of that phase is an earlier one of the next.
  calls.begin_phase();
  EXPECT_TRUE(calls.has_earlier());
  calls.end(later);
  EXPECT_FALSE(calls.has_earlier());
  EXPECT_FALSE(calls.any());
}

/// A counter that calls out just before it is first raised.
struct CountThatCallsOut {
  unsigned value = 0;
  inline static std::function<void()> before_first;

  CountThatCallsOut() = default;
  explicit CountThatCallsOut(unsigned from) : value(from) {}
  operator unsigned() const { return value; }
  CountThatCallsOut& operator=(unsigned to) {
    value = to;
    return *this;
  }
  void operator++() {
    if (const auto call = std::exchange(before_first, nullptr)) call();
    ++value;
  }
  void operator--() { --value; }
};

TEST(UnderWayTest, ACallThatBeginsWhileAPhaseDoesIsAnEarlierOneOfTheNext) {
  UnderWay<CountThatCallsOut> calls;
  CountThatCallsOut::before_first = [&calls] {
    calls.begin_phase();
    EXPECT_FALSE(calls.has_earlier());
  };
  const unsigned phase = calls.begin();
  calls.begin_phase();
  EXPECT_TRUE(calls.has_earlier()) << "under way(1)";
  calls.end(phase);
  EXPECT_FALSE(calls.any());
}

TEST(UnderWayTest, NoCallThatDidNotSeeTheAnnouncementIsMissed) {
  UnderWay<std::atomic<unsigned>> calls;
  std::atomic<bool> is_announced{false};
  std::atomic<unsigned> unaware{0};  // calls at work that have not seen an announcement
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) {
        const unsigned phase = calls.begin();
        if (!is_announced) {
          ++unaware;
          // What an announcement that was missed would come upon.
          for (int spin = 0; spin < 20; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
          --unaware;
        }
        calls.end(phase);
      }
    });
  }
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    is_announced = true;
    calls.begin_phase();
    while (calls.has_earlier()) std::this_thread::yield();
    EXPECT_EQ(unaware, 0u) << "C9, at announcement " << i;
    is_announced = false;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ashlar::cache
