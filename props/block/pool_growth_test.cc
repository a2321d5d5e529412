// C31 of the block pool: no operation takes more than kLockStepsMax steps while 10^6 blocks and
// 10^5 segments come and go, and none takes many more than the mean.
//
// Imitates: a heap's lock around each operation; a pool that grows far beyond its first tables, its
// segments spread so that the address window changes again and again, while half of its blocks are
// free. Counts steps, not time. Does not prove that every loop is counted.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/base/spin_lock.h>
#include <ashlar/block/block_pool.h>

#include "props/block/by_address.h"
#include "props/block/pool_peer.h"
#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

#if ASHLAR_ASSERTIONS

/// Runs operations under a lock, and keeps the most steps of one and the sum of all.
class Counted {
 public:
  template <class F>
  auto operator()(F&& operation) {
    const Guard guard(lock_);
    const auto result = operation();
    most_ = std::max(most_, lock_steps);
    sum_ += lock_steps;
    count_ += 1;
    return result;
  }
  std::uint64_t most() const { return most_; }
  double mean() const { return static_cast<double>(sum_) / static_cast<double>(count_); }

 private:
  SpinLock lock_;
  std::uint64_t most_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

/// Most operations search two trees and a chain; a tenth of the bound is a table that moved.
constexpr double kMeanStepsMax = 40;

/// A pool whose blocks come and go, counted.
class GrowingPool {
 public:
  void add_segment(Address base) {
    const SegmentIndex segment =
        counted_([&] { return add_by_address(pool_, base, 16_MiB, 0, 0); });
    ASSERT_NE(segment, kNoSegment);
  }
  void take() {
    const Bytes size = 512_B * (1 + dice_.below(8));
    const auto best_fit = [&] { return pool_.best_fit(size, Bytes::max()); };
    BlockIndex fit = counted_(best_fit);
    if (fit == kNoBlock) {
      add_segment(Address{(std::uint64_t{1} << 40) + segments_++ * (32_MiB).count()});
      fit = counted_(best_fit);
    }
    live_.push_back(counted_([&] { return pool_.take(fit, size, true, size, 0); }));
    ASSERT_NE(live_.back(), kNoBlock);
  }
  void release() {
    std::swap(live_[dice_.below(live_.size())], live_.back());
    counted_([&] { return pool_.release(live_.back(), 0); });
    live_.pop_back();
  }
  std::size_t live() const { return live_.size(); }
  bool flips() { return dice_.below(2) == 0; }
  bool is_settled() { return PoolPeer::is_settled(PoolPeer::index(pool_)); }
  void expect_sound() const {
    EXPECT_STREQ(pool_.validate(), nullptr);
    EXPECT_LE(counted_.most(), kLockStepsMax);
    EXPECT_LE(counted_.mean(), kMeanStepsMax);
  }

 private:
  BlockPool pool_{512_B};
  Counted counted_;
  spec::Random dice_{1};
  std::vector<BlockIndex> live_;
  std::uint64_t segments_ = 0;
};

TEST(PoolGrowth, NoOperationExceedsTheBoundWhileAMillionBlocksComeAndGo) {
  GrowingPool pool;
  while (pool.live() < 1000000) {
    pool.take();
    if (pool.flips() && pool.flips()) pool.release();
  }
  pool.expect_sound();
  while (pool.live() > 500000) pool.release();
  // Segments outside the window while 10^5 blocks are free, each before the last has settled.
  unsigned unsettled = 0;
  for (unsigned bit = 44; bit < 48; ++bit) {
    pool.add_segment(Address{std::uint64_t{1} << bit});
    for (unsigned i = 0; i < 50000; ++i) {
      pool.flips() ? pool.take() : pool.release();
      unsettled += !pool.is_settled();
    }
    pool.expect_sound();
  }
  EXPECT_GT(unsettled, 10000u) << "the test needs windows that change while blocks are free";
  while (pool.live() > 0) pool.release();
  pool.expect_sound();
}

TEST(PoolGrowth, NoOperationExceedsTheBoundWithAHundredThousandSegments) {
  BlockPool pool{512_B};
  Counted counted;
  std::vector<SegmentIndex> segments;
  constexpr std::uint64_t kSegments = 100000;
  for (std::uint64_t i = 0; i < kSegments; ++i) {
    const Address base{(std::uint64_t{1} << 46) - i * (2_MiB).count()};
    segments.push_back(counted([&] { return add_by_address(pool, base, 2_MiB, 0, 0); }));
  }
  EXPECT_STREQ(pool.validate(), nullptr);
  for (const SegmentIndex segment : segments) {
    const BlockIndex block = pool.view(segment).first;
    counted([&] {
      pool.lift(block);
      return 0;
    });
    counted([&] { return pool.release(block, 0); });
    EXPECT_EQ(pool.segment(block), segment);
    counted([&] {
      pool.lift(block);
      pool.remove_segment(segment);
      return 0;
    });
  }
  EXPECT_STREQ(pool.validate(), nullptr);
  EXPECT_LE(counted.most(), kLockStepsMax);
  EXPECT_LE(counted.mean(), kMeanStepsMax);
}

#else

TEST(PoolGrowth, CountsStepsOnlyInBuildsWithAssertions) { GTEST_SKIP(); }

#endif

}  // namespace
}  // namespace ashlar::block
