// Which work a call waits for (waited_work.h), against the plainest model of it.
//
// Imitates: a reclaim, which waits for any work, and a trim, which waits for earlier work, with
// recordings and synchronisations between any two of their steps.
// Does not prove: that BoundedWait asks at the right moments.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include <ashlar/cache/waited_work.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::cache {
namespace {

/// Two devices with their synchronisers, without an allocator.
class WaitedWorkTest : public ::testing::Test {
 protected:
  static spec::SimGpu two_devices() {
    spec::SimGpuOptions options;
    options.capacities = {64_MiB, 64_MiB};
    return spec::SimGpu(options);
  }
  spec::SimGpu gpu_ = two_devices();
  Driver* first_ = nullptr;
  Driver own_driver_{gpu_.device(0), first_};
  Driver other_driver_{gpu_.device(1), first_};
  std::atomic<unsigned> captures_{0};
  Synchronizer own_{own_driver_, captures_};
  Synchronizer other_{other_driver_, captures_};
};

TEST_F(WaitedWorkTest, ACallThatWaitsForAnyWorkHasNoBorder) {
  WaitedWork work(WaitedWork::Which::kAny, own_);
  ASSERT_TRUE(own_.run(0).is_ok());
  for (int round = 0; round < 200; ++round) {
    work.begin();
    ASSERT_FALSE(work.move_border());
    const std::uint64_t sequence = own_.next_sequence();
    ASSERT_TRUE(work.concerns(own_, 0));
    ASSERT_TRUE(work.concerns(own_, sequence));
    ASSERT_TRUE(work.concerns(own_, sequence + 1000));
    ASSERT_TRUE(work.concerns(other_, sequence + 1000));
    ASSERT_FALSE(work.is_covered(own_));
    ASSERT_FALSE(work.is_covered(other_));
    ASSERT_TRUE(work.may_wait_for_others());
    ASSERT_TRUE(work.may_look_again());
  }
}

TEST_F(WaitedWorkTest, TheBorderMovesFourTimesAndStaysThere) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    WaitedWork work(WaitedWork::Which::kEarlier, own_);
    std::uint64_t border = 0, now = own_.next_sequence() + 1, synced = 0;
    unsigned moves = 0;
    for (int step = 0; step < 100; ++step) {
      switch (random() % 5) {
        case 0:
          work.begin();  // only the first counts
          if (moves == 0) border = now++, ++moves;
          break;
        case 1:
          ASSERT_EQ(work.move_border(), moves < 4);
          if (moves < 4) border = now++, ++moves;
          break;
        case 2:
          ASSERT_TRUE(own_.run(0).is_ok());
          synced = now++;
          break;
        case 3: ASSERT_TRUE(other_.run(0).is_ok()); break;
        default: ASSERT_EQ(own_.next_sequence(), now++);
      }
      for (std::uint64_t at = border < 2 ? 0 : border - 2; at < border + 3; ++at) {
        ASSERT_EQ(work.concerns(own_, at), at < border) << "border " << border;
        ASSERT_TRUE(work.concerns(other_, at)) << "another device's numbers have no border";
      }
      if (synced != 0) {
        ASSERT_EQ(work.is_covered(own_), border <= synced);
      }
      ASSERT_FALSE(work.is_covered(other_));
    }
  }
}

TEST_F(WaitedWorkTest, ItWaitsSixtyFourRoundsForOtherThreadsAndLooksAgainOnce) {
  WaitedWork work(WaitedWork::Which::kEarlier, own_);
  for (int round = 0; round < 300; ++round) {
    ASSERT_EQ(work.may_wait_for_others(), round < 64) << round;
    ASSERT_EQ(work.may_look_again(), round == 0) << round;
  }
}

}  // namespace
}  // namespace ashlar::cache
