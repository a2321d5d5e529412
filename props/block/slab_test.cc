// Slabs beside a plain list of numbers: which records are taken, what they hold, when a slab grows,
// and the steps that it reports.
//
// Imitates: records that come and go while a slab grows, with a lazy column and without values in
// it. Does not prove what a host without memory makes of it (block_pool_memory_test).
#include <ashlar/block/slab.h>

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "props/block/part_peer.h"
#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

struct Item {
  std::uint64_t value = 7;
  std::uint32_t prev = kNone;
  std::uint32_t next = kNone;
};
struct Plain {
  static constexpr bool kIsLazy = false;
  std::uint64_t value;
};
struct Lazy {
  static constexpr bool kIsLazy = true;
  std::uint64_t values[8];  // a cache line, so that a copy of one is a step
};
using TestSlab = Slab<Item, Lazy, Plain>;

/// The documented capacities: 1, for the null sentinel alone, 16, then twice as many each time.
std::uint32_t capacity_after(std::uint32_t capacity) { return capacity == 1 ? 16 : 2 * capacity; }

std::uint64_t lines(std::uint64_t count, std::size_t size) { return count * size / 64; }

TEST(Slab, GrowsByDoublingReadiesAFewRecordsAndKeepsWhatTheyHold) {
  for (const bool is_lazy_written : {false, true}) {
    TestSlab slab;
    std::uint32_t capacity = 1, touched = 1;
    // No array is longer than a table that moves by copying.
    while (capacity < 256 || touched < capacity) {
      SCOPED_TRACE(touched);
      ASSERT_EQ(slab.capacity(), capacity);
      ASSERT_EQ(slab.touched(), touched);
      EXPECT_EQ(slab.capacity_next(), capacity_after(capacity));
      EXPECT_FALSE(slab.has_unused());
      EXPECT_EQ(slab.must_grow(), touched == capacity);
      EXPECT_FALSE(slab.is_nearly_full()) << "it is small";
      [[maybe_unused]] std::uint64_t steps = 0;  // counted only with assertions
      if (touched == capacity) {
        const std::uint64_t kept = capacity == 1 ? 0 : touched;
        steps += lines(kept, sizeof(Item)) + lines(kept, sizeof(Plain)) + lines(kept, 1);
        if (is_lazy_written) steps += lines(kept, sizeof(Lazy));
        capacity = capacity_after(capacity);
      }
      const std::uint32_t readied = std::min(capacity - touched, 64u);
      steps += readied;
#if ASHLAR_ASSERTIONS
      lock_steps = 0;
#endif
      ASSERT_TRUE(slab.reserve_one());
#if ASHLAR_ASSERTIONS
      EXPECT_EQ(lock_steps, steps);
#endif
      EXPECT_TRUE(slab.accounts_for(touched - 1));
      for (std::uint32_t i = touched; i < touched + readied; ++i) {
        ASSERT_TRUE(slab.has_unused());
        ASSERT_FALSE(slab.must_grow());
        EXPECT_EQ(slab.state(i), kUnused);
        ASSERT_EQ(slab.take(kInUse), i) << "in rising order";
        EXPECT_EQ(slab.state(i), kInUse);
        EXPECT_EQ(slab[i].value, 7u) << "a record begins as its type says";
        slab[i].value = 3 * i;
        slab.column<Plain>(i).value = 5 * i;
        if (is_lazy_written) slab.write_lazy<Lazy>(i).values[7] = 9 * i;
      }
      touched += readied;
      for (std::uint32_t i = 1; i < touched; ++i) {
        ASSERT_EQ(slab[i].value, 3 * i);
        ASSERT_EQ(slab.column<Plain>(i).value, 5 * i);
        if (is_lazy_written) {
          ASSERT_EQ(slab.column<Lazy>(i).values[7], 9 * i);
        }
        ASSERT_EQ(slab.state(i), kInUse);
      }
      ASSERT_EQ(slab.state(kNone), kUnused);
      EXPECT_TRUE(slab.accounts_for(touched - 1));
      EXPECT_FALSE(slab.accounts_for(touched));
      EXPECT_FALSE(slab.accounts_for(touched - 2));
    }
  }
}

TEST(Slab, GivesBackLastInFirstOut) {
  TestSlab slab;
  std::vector<std::uint32_t> given, taken;
  spec::Random dice(1);
  for (unsigned step = 0; step < 3000; ++step) {
    if (taken.empty() || dice.below(5) < 3) {
      ASSERT_TRUE(slab.reserve_one());
      const std::uint32_t index = slab.take(kInUse);
      if (!given.empty()) {
        ASSERT_EQ(index, given.back());
        given.pop_back();
      }
      ASSERT_EQ(std::count(taken.begin(), taken.end(), index), 0);
      taken.push_back(index);
    } else {
      std::swap(taken[dice.below(taken.size())], taken.back());
      slab.give_back(taken.back());
      EXPECT_EQ(slab.state(taken.back()), kUnused);
      given.push_back(taken.back());
      taken.pop_back();
    }
    ASSERT_TRUE(slab.accounts_for(taken.size()));
  }
}

TEST(Slab, IsNearlyFullWithLessThanAQuarterLeftAndGrowsOneArrayAtATime) {
  TestSlab slab;
  unsigned ahead = 0;
  while (slab.capacity() < 8192) {
    [[maybe_unused]] const bool is_growing = slab.must_grow();
#if ASHLAR_ASSERTIONS
    lock_steps = 0;
#endif
    ASSERT_TRUE(slab.reserve_one());
#if ASHLAR_ASSERTIONS
    if (is_growing && slab.capacity() > 1024) {
      EXPECT_LE(lock_steps, 64u) << "all arrays have grown ahead";
    }
#endif
    slab.take(kInUse);
    if (slab.has_unused()) continue;
    const bool is_nearly_full =
        slab.capacity() >= 1024 && 4 * (slab.capacity() - slab.touched()) < slab.capacity();
    ASSERT_EQ(slab.is_nearly_full(), is_nearly_full) << slab.touched();
    if (!is_nearly_full || ahead == 5 * slab.capacity()) continue;
    // Four arrays: the items, the two columns, the states. Some may have the room already, because
    // a long table has room in steps of its own.
    unsigned grown = 0;
    while (slab.grow_ahead()) {
      grown += 1;
      ASSERT_LE(grown, 4u);
    }
    if (slab.touched() + 64 < slab.capacity() && ahead != slab.capacity()) {
      EXPECT_GE(grown, 3u);
      ahead = slab.capacity();
    } else {
      EXPECT_EQ(grown, 0u);
    }
  }
}

TEST(Slab, WithAsManyRecordsAsThereAreNumbersIsFull) {
  TestSlab slab;
  const std::uint32_t touched = PartPeer::slab_touched(slab);
  const std::uint32_t capacity = PartPeer::slab_capacity(slab);
  PartPeer::slab_touched(slab) = PartPeer::slab_capacity(slab) = kRecordsMax;
  EXPECT_EQ(slab.capacity_next(), kRecordsMax);
  EXPECT_TRUE(slab.must_grow());
  EXPECT_FALSE(slab.reserve_one());
  PartPeer::slab_capacity(slab) = kRecordsMax / 2 + 1;
  EXPECT_EQ(slab.capacity_next(), kRecordsMax);
  PartPeer::slab_touched(slab) = touched;
  PartPeer::slab_capacity(slab) = capacity;
}

#if ASHLAR_ASSERTIONS && GTEST_HAS_DEATH_TEST
TEST(SlabDeathTest, ARecordOutsideOfTheSlabIsNotReadOrWritten) {
  TestSlab slab;
  const TestSlab& constant = slab;
  ASSERT_TRUE(slab.reserve_one());
  const std::uint32_t outside = slab.touched();
  EXPECT_DEATH(static_cast<void>(slab[outside]), "slab\\(1\\)");
  EXPECT_DEATH(static_cast<void>(constant[outside]), "slab\\(1\\)");
  EXPECT_DEATH(static_cast<void>(slab.state(outside)), "slab\\(1\\)");
  EXPECT_DEATH(static_cast<void>(constant.state(outside)), "slab\\(1\\)");
  EXPECT_DEATH(static_cast<void>(slab.column<Plain>(outside)), "slab\\(1\\)");
  EXPECT_DEATH(static_cast<void>(constant.column<Plain>(outside)), "slab\\(1\\)");
  EXPECT_DEATH(static_cast<void>(slab.write_lazy<Lazy>(outside)), "slab\\(1\\)");
  EXPECT_DEATH(static_cast<void>(slab.column<Plain>(kNone)), "slab\\(3\\)");
  EXPECT_DEATH(static_cast<void>(constant.column<Plain>(kNone)), "slab\\(3\\)");
  EXPECT_DEATH(slab.give_back(outside), "slab\\(1\\)");
  while (slab.has_unused()) slab.take(kInUse);
  EXPECT_DEATH(static_cast<void>(slab.take(kInUse)), "without a reserved record");
}
#endif

}  // namespace
}  // namespace ashlar::block
