// Progress of the caching allocator over the simulated GPU: what is done comes back, waits end,
// nothing grows with what has been (C20, C27, C29, C30).
//
// Imitates: streams that are stuck for good; streams that come and go; uses that no event tells of;
// two streams that take each other's memory in turn; a thread that waits for memory while another
// one, which would finish the work, calls the allocator first.
// Does not prove: anything about real time. The figures are counts of device calls, stream records
// and bytes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/forwarding_device.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar {
namespace {

TEST_F(LivenessTest, StuckStreamsCostAHitHardlyAnything) {
  make(Bytes{0});
  constexpr unsigned kStuck = 500;
  for (unsigned i = 0; i < kStuck; ++i)
    ASSERT_TRUE(allocator_->free(allocate(512_B, own_), stuck_stream()).is_ok());
  static_cast<void>(allocator_->free(allocate(4_KiB, own_)));
  const std::uint64_t before = device_->calls;
  constexpr unsigned kHits = 10'000;
  for (unsigned i = 0; i < kHits; ++i) static_cast<void>(allocator_->free(allocate(4_KiB, own_)));
  // Nine polls while the delay doubles, then one for every 256 hits; each asks 16 events.
  EXPECT_LE(device_->calls - before, 16 * (9 + kHits / 256 + 1));
}

TEST_F(LivenessTest, WhatFinishesBehindStuckStreamsIsSeenByAMiss) {
  make(42_MiB, "wait_ms:0");
  for (unsigned i = 0; i < 40; ++i)
    ASSERT_TRUE(allocator_->free(allocate(512_B, own_), stuck_stream()).is_ok());
  const Stream other = stream();
  const Address large = allocate(40_MiB, own_);
  ASSERT_TRUE(gpu_->launch(other, spec::Touch{large, 40_MiB}).is_ok());
  ASSERT_TRUE(allocator_->free(large, other).is_ok());
  for (unsigned i = 0; i < 2000; ++i) static_cast<void>(allocator_->free(allocate(4_KiB, own_)));
  gpu_->step(other, 10);
  EXPECT_EQ(allocate(40_MiB, own_), large);
}

TEST_F(LivenessTest, RecordsOfStreamsAreBoundedByThoseThatAreAliveOrUnfinished) {
  struct World {
    const char* conf;
    unsigned stuck;
  };
  // With reuse:ordered a stream that takes a stuck stream's memory waits for it, and is stuck too.
  for (const World& world : {World{"", 16}, World{"reuse:own", 16}, World{"wait_ms:0", 16},
                             World{"", 0}, World{"reuse:own", 0}, World{"reuse:ordered", 0}}) {
    make(Bytes{0}, world.conf);
    for (unsigned i = 0; i < world.stuck; ++i) {
      const Stream stuck = stuck_stream();
      ASSERT_TRUE(allocator_->free(allocate(4_KiB, stuck)).is_ok());
      end(stuck);
    }
    cache::DeviceStats half_way;
    constexpr unsigned kStreams = 2000;
    for (unsigned i = 0; i < kStreams; ++i) {
      come_and_go(i % 4);
      if (i == kStreams / 2) half_way = stats();
    }
    EXPECT_LE(stats().streams, 8 * world.stuck + 16) << world.conf;
    EXPECT_LE(stats().streams, half_way.streams + 8) << world.conf;
    EXPECT_LE(reserved(), half_way.reserved_bytes[0].current + (8_MiB).count()) << world.conf;
  }
}

TEST_F(LivenessTest, UsesWithoutAnEventDoNotPileUp) {
  make(Bytes{0});
  const Stream elsewhere = stream_of_other_thread(*gpu_);
  // Only thread 1 could record an event on its default stream.
  for (unsigned i = 0; i < 4000; ++i)
    ASSERT_TRUE(allocator_->free(allocate(256_KiB, own_), elsewhere).is_ok());
  EXPECT_LE(reserved(), (20_MiB).count());
}

TEST_F(LivenessTest, MemoryOfPassingStreamsWithoutAnEventDoesNotPileUp) {
  for (const bool is_recorded_late : {false, true}) {
    make(Bytes{0});
    const Stream elsewhere = stream_of_other_thread(*gpu_);
    for (unsigned i = 0; i < 1000; ++i) {
      const Stream passing = stream();
      const Address block = allocate(256_KiB, passing);
      // Only thread 1 could record an event on its default stream; on the own one it fails once.
      device_->refuses_records = is_recorded_late;
      ASSERT_TRUE(allocator_->free(block, is_recorded_late ? own_ : elsewhere).is_ok());
      device_->refuses_records = false;
      end(passing);
      static_cast<void>(gpu_->drain_all());
    }
    EXPECT_LE(reserved(), (40_MiB).count()) << "C29, recorded late: " << is_recorded_late;
    EXPECT_LE(stats().streams, 64u);
  }
}

TEST_F(LivenessTest, ABlockWithThousandsOfUsersComesBack) {
  make(Bytes{0});
  const Address block = allocate(4_MiB, own_);
  // C31 is checked in builds with assertions, whenever a lock is let go.
  for (unsigned i = 0; i < 3000; ++i) ASSERT_TRUE(allocator_->record_use(block, stream()).is_ok());
  ASSERT_TRUE(allocator_->free(block).is_ok());
  static_cast<void>(gpu_->drain_all());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(LivenessTest, TwoStreamsThatStealInTurnSettle) {
  make(Bytes{0});
  const Stream other = stream();
  const Address live = allocate(2_MiB, own_);  // the rest of its segment is idle
  std::uint64_t calls = 0;
  std::uint64_t steals = 0;
  for (unsigned round = 0; round < 100; ++round) {
    if (round == 50) {
      calls = device_->calls;
      steals = stats().steals;
    }
    ASSERT_TRUE(allocator_->free(allocate(12_MiB, other)).is_ok());
    ASSERT_TRUE(allocator_->free(allocate(1536_KiB, own_)).is_ok());
    static_cast<void>(gpu_->drain_all());
  }
  EXPECT_EQ(device_->calls, calls) << "C20: device calls in a round that repeats";
  EXPECT_EQ(stats().steals, steals);
  EXPECT_TRUE(allocator_->free(live).is_ok());
}

TEST_F(LivenessTest, WhatFinishesAfterALongTimeIsSeenByTheNextHits) {
  make(Bytes{0});
  const auto flag = gpu_->new_flag();
  const Stream slow = stream();
  ASSERT_TRUE(gpu_->host_function(slow, flag).is_ok());
  ASSERT_TRUE(allocator_->free(allocate(512_B, own_), slow).is_ok());
  const auto hit = [this] { static_cast<void>(allocator_->free(allocate(4_KiB, own_))); };
  for (unsigned i = 0; i < 20'000; ++i) hit();
  EXPECT_EQ(stats().active[0].current, 1u);
  gpu_->raise(flag);
  static_cast<void>(gpu_->drain_all());
  // The longest delay between two polls, and the hit that polls.
  for (unsigned i = 0; i < 256 + 1; ++i) hit();
  EXPECT_EQ(stats().active[0].current, 0u);
}

TEST_F(LivenessTest, BlocksOfDeadStreamsComeBackThoughNobodyMisses) {
  make(Bytes{0}, "reuse:own");
  constexpr unsigned kDead = 80;  // each is asked again at every 64th search at least
  const Stream elsewhere = stream_of_other_thread(*gpu_);
  const auto flag = gpu_->new_flag();
  const Stream slow = stream();
  ASSERT_TRUE(gpu_->host_function(slow, flag).is_ok());
  for (unsigned i = 0; i < kDead; ++i) {
    const Stream passing = stream();
    // The use has an event that is pending, or none, because only thread 1 could record it.
    const Stream& user = i % 2 == 0 ? slow : elsewhere;
    ASSERT_TRUE(allocator_->free(allocate(4_KiB, passing), user).is_ok());
    end(passing);
  }
  EXPECT_GE(stats().streams, kDead);
  gpu_->raise(flag);
  static_cast<void>(gpu_->drain_all());
  gpu_->act_as_thread(1);
  // From here on streams are only named: no call allocates, so none misses.
  const Address held = allocate(4_KiB, own_);
  for (unsigned i = 0; i < 30 * kDead; ++i) {
    const Stream named = stream();
    ASSERT_TRUE(allocator_->record_use(held, named).is_ok());
    end(named);
    static_cast<void>(gpu_->drain_all());
  }
  EXPECT_EQ(stats().active[0].current, 1u) << "C27: pending blocks whose uses are complete";
  EXPECT_TRUE(allocator_->free(held).is_ok());
}

TEST_F(LivenessTest, GrowthLetsAStreamStealAgain) {
  make(Bytes{0});
  const Stream other = stream();
  std::vector<Address> idle;
  for (unsigned i = 0; i < 4; ++i) idle.push_back(allocate(40_MiB, own_));
  for (const Address block : idle) ASSERT_TRUE(allocator_->free(block).is_ok());
  // A growth, until an event shows that the work is complete; two steals, a growth, two steals.
  for (unsigned i = 0; i < 6; ++i) {
    ASSERT_FALSE(allocate(40_MiB, other).is_null());
    static_cast<void>(gpu_->drain_all());
  }
  EXPECT_EQ(stats().steals, 4u);
  EXPECT_EQ(reserved(), 6 * (40_MiB).count());
}

TEST_F(LivenessTest, WhatACallbackFreesServesTheMiss) {
  make(Bytes{0});
  Address held = allocate(40_MiB, own_);
  unsigned called = 0;
  allocator_->add_free_memory_callback([&](DeviceId) {
    ++called;
    if (!held.is_null()) static_cast<void>(allocator_->free(std::exchange(held, Address{})));
  });
  const Address block = held;
  EXPECT_EQ(allocate(40_MiB, own_), block);
  EXPECT_EQ(called, 1u);
}

TEST_F(LivenessTest, ATrimWaitsForEarlierWorkOnly) {
  make(Bytes{0});
  const Stream side = stream();
  const auto use_and_free = [&] {
    const Address block = allocate(4_MiB, own_);
    EXPECT_TRUE(gpu_->launch(side, spec::Touch{block, 4_MiB}).is_ok());
    EXPECT_TRUE(allocator_->free(block, side).is_ok());
  };
  use_and_free();
  // As another thread that goes on does, between any two rounds of the trim.
  device_->on_wait = use_and_free;
  const std::uint64_t before = stats().waits;
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  // Four times at most it looks at what is there now: an event on `side` and one or two on `own_`.
  EXPECT_LE(stats().waits - before, 4u * 3);
  EXPECT_GE(stats().waits - before, 1u);
}

// The work of three blocks ends one after the other: the wait for the first is enough.
TEST_F(LivenessTest, ALoweredLimitWaitsForNoMoreThanIsNeeded) {
  make(Bytes{0});
  std::vector<Stream> sides;
  for (unsigned i = 0; i < 3; ++i) {
    sides.push_back(stream());
    const Address block = allocate(20_MiB, own_);
    EXPECT_TRUE(gpu_->launch(sides[i], spec::Touch{block, 20_MiB}).is_ok());
    EXPECT_TRUE(allocator_->free(block, sides[i]).is_ok());
    allocate(20_MiB, own_);  // or the next one would take the block once its work is done
  }
  const std::uint64_t before = reserved();
  const std::uint64_t waits = stats().waits;
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, Bytes{before} - 1_B).is_ok());
  EXPECT_EQ(reserved(), before - (20_MiB).count());
  EXPECT_GE(stats().waits - waits, 1u);
  EXPECT_NE(gpu_->pending(kDevice), 0u) << "the work of the other blocks is not waited for";
}

/// One thread waits for memory for ever; `call` is made meanwhile, before the work is finished.
template <class Call>
void expect_returns(WatchedDevice& device, cache::CachingAllocator& allocator, const Stream& own,
                    Call call) {
  device.is_stuck = true;
  std::thread waits([&] { static_cast<void>(allocator.allocate(50_MiB, own)); });
  while (device.waiting == 0) std::this_thread::yield();
  call();  // the suite's time limit ends a test that hangs
  device.is_stuck = false;
  waits.join();
}

TEST_F(LivenessTest, NobodyQueuesBehindAThreadThatWaitsForMemory) {
  for (int what = 0; what < 3; ++what) {
    make(64_MiB, "wait_ms:forever");
    const Stream side = stream();
    const Stream third = stream();
    ASSERT_TRUE(allocator_->free(allocate(1_KiB, third)).is_ok());
    const Address block = allocate(40_MiB, own_);
    ASSERT_TRUE(gpu_->launch(side, spec::Touch{block, 40_MiB}).is_ok());
    ASSERT_TRUE(allocator_->free(block, side).is_ok());
    expect_returns(*device_, *allocator_, own_, [&] {
      if (what == 0) {
        EXPECT_TRUE(allocator_->retire_stream(third).is_ok());
      }
      if (what == 1) {
        EXPECT_TRUE(allocator_->begin_capture(third).is_ok());
        EXPECT_TRUE(allocator_->end_capture(third).is_ok());
      }
      if (what == 2) {
        EXPECT_EQ(allocator_->trim(kDevice).code(), Code::kNotReady);
      }
      static_cast<void>(gpu_->drain_all());
    });
  }
}

TEST_F(LivenessTest, AWaitEndsAtItsDeadlineHoweverManyThreadsWait) {
  make(64_MiB, "wait_ms:100");
  const Stream side = stuck_stream();
  ASSERT_TRUE(allocator_->free(allocate(40_MiB, own_), side).is_ok());
  device_->is_stuck = true;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] { static_cast<void>(allocator_->allocate(50_MiB, own_)); });
  for (std::thread& thread : threads) thread.join();
  const auto took = std::chrono::steady_clock::now() - begin;
  // Six waits one after the other would take 600 ms.
  EXPECT_LT(took, std::chrono::milliseconds(300));
}

}  // namespace
}  // namespace ashlar
