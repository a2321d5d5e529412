// A miss that takes another stream's memory (StreamReuse, MissLadder::steal): whose it may take, how
// often, in what order it asks, and with how many device calls.
//
// Imitates: lenders that are idle, busy, retired, or lost; many of them. Does not prove: C6 by
// itself (the model's walks do), nor what threads see.
#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

class StealTest : public ::testing::Test {
 protected:
  void make(const char* conf, std::size_t devices = 1) {
    parts_ = std::make_unique<ScriptedParts>(devices, conf);
    own_ = parts_->stream();
    parts_->heap(own_);
  }
  /// A stream with so many idle segments of 20 MiB, whose work is done, and known to be.
  Stream idle_lender(unsigned segments) {
    const Stream lender = parts_->stream();
    std::vector<Address> blocks;
    for (unsigned i = 0; i < segments; ++i) blocks.push_back(parts_->allocate(20_MiB, lender));
    for (const Address block : blocks) parts_->free(block);
    CachePeer::clock(parts_->heap(lender)).complete(1);
    return lender;
  }
  /// Streams with one idle segment each, behind work that ends when the flag is raised.
  std::vector<Stream> busy_lenders(unsigned n, spec::HostFlag flag) {
    std::vector<Stream> lenders;
    std::vector<Address> blocks;
    for (unsigned i = 0; i < n; ++i) {
      lenders.push_back(parts_->stream());
      blocks.push_back(parts_->allocate(20_MiB, lenders.back()));
    }
    for (const Stream& lender : lenders)
      EXPECT_TRUE(parts_->gpu().host_function(lender, flag).is_ok());
    for (const Address block : blocks) parts_->free(block);
    return lenders;
  }
  StreamReuse make_reuse() {
    DeviceCache& cache = parts_->cache();
    return StreamReuse(cache.driver(), parts_->shared().config, cache.uses(),
                       cache.reclaimer().epochs(), cache.supply());
  }
  Request request(Bytes size) { return Request{size, size, Bytes::max(), PoolId::kLarge}; }
  Address try_steal(const Stream& to, Reach reach, Bytes size = 20_MiB) {
    return parts_->cache().reclaimer().try_steal(parts_->heap(to), request(size), reach);
  }
  std::uint64_t grown() { return parts_->calls(CallKind::kSegmentAlloc); }
  /// By own_, since it last asked the driver for memory.
  std::uint64_t steals_of(PoolId pool) {
    return CachePeer::words(CachePeer::misses(parts_->heap(own_)).steals[index_of(pool)])[0];
  }
  std::uint64_t steals() { return parts_->cache().reclaimer().steals(); }

  std::unique_ptr<ScriptedParts> parts_;
  Stream own_;
};

TEST_F(StealTest, AfterTwoStealsFromTheLivingAStreamAsksTheDriverForMemory) {
  make("wait_ms:never");
  idle_lender(8);
  const std::uint64_t before = grown();
  std::vector<std::uint64_t> growths;
  for (int i = 0; i < 7; ++i) {
    ASSERT_FALSE(parts_->allocate(20_MiB, own_).is_null());
    growths.push_back(grown() - before);
  }
  EXPECT_EQ(growths, (std::vector<std::uint64_t>{0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(steals(), 5u);
  EXPECT_EQ(steals_of(PoolId::kLarge), 1u);
  EXPECT_EQ(steals_of(PoolId::kSmall), 0u);
  parts_->expect_valid();
}

TEST(StealTurns, AStreamThatGrowsForADemandItHadBeforeStealsLessEachTime) {
  StealTurns turns;
  std::vector<unsigned> steals;
  const auto grow_for = [&](Bytes demand) {
    unsigned taken = 0;
    for (; turns.may_steal(); ++taken) turns.on_steal();
    steals.push_back(taken);
    turns.on_growth(demand);
  };
  for (const Bytes demand : {10_MiB, 30_MiB, 30_MiB, 20_MiB, 30_MiB}) grow_for(demand);
  EXPECT_EQ(steals, (std::vector<unsigned>{2, 2, 2, 1, 0}));
  EXPECT_FALSE(turns.may_steal());
  turns.on_growth(30_MiB + 1_B);
  EXPECT_TRUE(turns.may_steal()) << "its demand rises: another phase of the program";
  grow_for(40_MiB);
  EXPECT_EQ(steals.back(), 2u);
}

TEST(StealTurns, AGrowthWithoutStealsBeforeItIsNoneThatRepeats) {
  StealTurns turns;
  for (int i = 0; i < 3; ++i) turns.on_growth(10_MiB);
  turns.on_steal();
  EXPECT_TRUE(turns.may_steal());
}

TEST_F(StealTest, FromTheDeadAStreamTakesWithoutLimit) {
  make("wait_ms:never");
  const Stream lender = idle_lender(8);
  ASSERT_TRUE(parts_->heap(lender).life.retire());
  UseTracker::finish(parts_->heap(lender));
  const std::uint64_t before = grown();
  for (int i = 0; i < 8; ++i) ASSERT_FALSE(parts_->allocate(20_MiB, own_).is_null());
  EXPECT_EQ(grown(), before);
  EXPECT_EQ(steals(), 8u);
  EXPECT_EQ(steals_of(PoolId::kLarge), 8u);
  parts_->cache().reclaimer().reset_counts();
  EXPECT_EQ(steals(), 0u);
  parts_->expect_valid();
}

TEST_F(StealTest, WhoseMemoryIsInReachDependsOnTheSettingAndOnWhoIsAlive) {
  for (const char* conf : {"reuse:completed", "reuse:own", "reuse:ordered"}) {
    for (const Reach reach : {Reach::kAll, Reach::kDead}) {
      for (const bool is_dead : {false, true}) {
        make(conf);
        const Stream lender = idle_lender(1);
        if (is_dead) {
          ASSERT_TRUE(parts_->heap(lender).life.retire());
          UseTracker::finish(parts_->heap(lender));
        }
        const bool is_own = std::string(conf) == "reuse:own";
        const bool is_in_reach = is_dead || (reach == Reach::kAll && !is_own);
        EXPECT_EQ(!try_steal(own_, reach).is_null(), is_in_reach) << conf;
        EXPECT_EQ(steals(), is_in_reach ? 1u : 0u);
        parts_->expect_valid();
      }
    }
  }
}

TEST_F(StealTest, AStreamStealsNothingFromItselfAndNothingWhileACaptureOrAHolderOfTheLockIsThere) {
  make("wait_ms:never");
  const Stream lender = idle_lender(1);
  EXPECT_TRUE(try_steal(lender, Reach::kAll).is_null());
  parts_->shared().captures = 1;
  EXPECT_TRUE(try_steal(own_, Reach::kAll).is_null());
  parts_->shared().captures = 0;
  EXPECT_TRUE(try_steal(own_, Reach::kAll, 21_MiB).is_null()) << "too large";
  EXPECT_EQ(steals(), 0u);
  EXPECT_FALSE(try_steal(own_, Reach::kAll).is_null());
}

TEST_F(StealTest, OfHeapsThatCouldNotBeMarkedOneAsksWhetherTheDeviceIsDone) {
  make("wait_ms:never");
  const spec::HostFlag flag = parts_->gpu().new_flag();
  const std::vector<Stream> lenders = busy_lenders(5, flag);
  parts_->device().on_record = [](StreamHandle) { return Status{Code::kDriverError, "planted"}; };
  DeviceCache& cache = parts_->cache();
  const ReclaimGuard reclaim(cache.reclaimer().lock());
  StreamReuse reuse = make_reuse();
  const std::uint64_t before = parts_->calls(CallKind::kSynchronize);
  EXPECT_TRUE(
      reuse.steal(cache.heaps(), parts_->heap(own_), request(20_MiB), Reach::kAll, 100).is_null());
  EXPECT_EQ(parts_->calls(CallKind::kSynchronize), before + 1);
  parts_->gpu().raise(flag);
}

TEST_F(StealTest, BehindAWaitAStreamTakesOnlyWhatIsInReachAndOnlyIfItCanWait) {
  make("reuse:ordered");
  const spec::HostFlag flag = parts_->gpu().new_flag();
  const std::vector<Stream> lenders = busy_lenders(2, flag);
  const auto waits = [this] { return parts_->calls(CallKind::kStreamWait); };
  EXPECT_TRUE(try_steal(own_, Reach::kDead).is_null());
  EXPECT_EQ(waits(), 0u);
  EXPECT_TRUE(try_steal(own_, Reach::kAll, 21_MiB).is_null()) << "too large";
  EXPECT_EQ(waits(), 0u);
  const StreamHandle handle = own_.handle;
  parts_->device().on_identify = [this, handle](StreamHandle of) {
    if (of == handle) return Result<Stream>(Status{Code::kNotReady, "planted"});
    return parts_->gpu().device(0).identify(of);
  };
  EXPECT_TRUE(try_steal(own_, Reach::kAll).is_null());
  EXPECT_EQ(waits(), 0u) << "the handle does not name the stream";
  parts_->device().on_identify = {};
  EXPECT_FALSE(try_steal(own_, Reach::kAll).is_null());
  EXPECT_EQ(waits(), 1u);
  // The lenders themselves take the other's memory, not their own, which needs no wait.
  EXPECT_FALSE(try_steal(lenders[0], Reach::kAll).is_null());
  EXPECT_EQ(waits(), 2u);
  EXPECT_TRUE(try_steal(lenders[1], Reach::kAll).is_null());
  EXPECT_EQ(waits(), 2u);
  EXPECT_EQ(steals(), 2u);
  parts_->gpu().raise(flag);
  ASSERT_TRUE(parts_->gpu().drain_all().is_ok());
}

TEST_F(StealTest, OnlyWithMemoryOfItsOwnIsAStreamAskedWhetherTheOthersThatMayServeItExist) {
  for (const char* conf : {"reuse:own", "reuse:completed", "reuse:ordered"}) {
    make(conf);
    const spec::HostFlag flag = parts_->gpu().new_flag();
    const std::vector<Stream> lenders = busy_lenders(4, flag);
    parts_->free(parts_->allocate(20_MiB, own_));  // it has a fit too
    ASSERT_TRUE(parts_->heap(lenders[2]).life.retire());
    std::vector<StreamHandle> named;
    parts_->device().on_identify = [&](StreamHandle of) {
      named.push_back(of);
      return parts_->gpu().device(0).identify(of);
    };
    DeviceCache& cache = parts_->cache();
    const ReclaimGuard reclaim(cache.reclaimer().lock());
    make_reuse().notice_destroyed(cache.heaps(), parts_->heap(own_), request(20_MiB));
    const std::vector<StreamHandle> expected = {lenders[0].handle, lenders[1].handle,
                                                lenders[3].handle};
    EXPECT_EQ(named, std::string(conf) == "reuse:own" ? expected : std::vector<StreamHandle>{});
    named.clear();
    make_reuse().notice_destroyed(cache.heaps(), parts_->heap(own_), request(21_MiB));
    EXPECT_TRUE(named.empty()) << "too large for all of them";
    parts_->gpu().raise(flag);
    UseTracker::finish(parts_->heap(lenders[2]));
  }
}

TEST_F(StealTest, AStealAsksSoManyHeapsAsItMayAndOthersTheNextTime) {
  make("wait_ms:never");
  const spec::HostFlag flag = parts_->gpu().new_flag();
  const std::vector<Stream> lenders = busy_lenders(5, flag);
  DeviceCache& cache = parts_->cache();
  const ReclaimGuard reclaim(cache.reclaimer().lock());
  StreamReuse reuse = make_reuse();
  std::vector<bool> marks(5);
  const auto asked = [&] {
    std::vector<int> heaps;
    for (std::size_t i = 0; i < 5; ++i) {
      const bool is_marked = !CachePeer::marks(parts_->heap(lenders[i])).is_empty();
      if (is_marked && !marks[i]) heaps.push_back(static_cast<int>(i));
      marks[i] = is_marked;
    }
    return heaps;
  };
  const auto steal = [&](unsigned refreshes) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    EXPECT_TRUE(
        reuse.steal(cache.heaps(), parts_->heap(own_), request(20_MiB), Reach::kAll, refreshes)
            .is_null());
    return asked();
  };
  EXPECT_EQ(steal(0), std::vector<int>{});
  EXPECT_EQ(steal(1), std::vector<int>{0});
  EXPECT_EQ(steal(2), (std::vector<int>{1, 2}));
  EXPECT_EQ(steal(3), (std::vector<int>{3, 4})) << "and the first again";
  const std::uint64_t queries = parts_->calls(CallKind::kEventQuery);
  steal(0);
  EXPECT_EQ(parts_->calls(CallKind::kEventQuery), queries);
  steal(100);
  EXPECT_EQ(parts_->calls(CallKind::kEventQuery), queries + 5) << "each once, in one round";
  EXPECT_EQ(reuse.steals(), 0u);
  parts_->gpu().raise(flag);
  ASSERT_TRUE(parts_->gpu().drain_all().is_ok());
  EXPECT_TRUE(
      reuse.steal(cache.heaps(), parts_->heap(own_), request(20_MiB), Reach::kAll, 0).is_null())
      << "nobody has asked";
  EXPECT_FALSE(
      reuse.steal(cache.heaps(), parts_->heap(own_), request(20_MiB), Reach::kAll, 1).is_null());
  EXPECT_EQ(reuse.steals(), 1u);
}

}  // namespace
}  // namespace ashlar::cache
