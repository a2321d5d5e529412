// Who gets the reclaim lock during a sweep, and when (Epochs::sweep): a thread that waits for it has
// it after a few heaps, events, or uses without an event; a capture that it announces ends the sweep
// (C9, C30). The allocator's end, too, holds a heap's lock for a few uses at a time (C31).
//
// Imitates: a driver that takes its time over one answer, while a thread comes to the lock.
// Does not prove: fairness among more threads.
#include <chrono>
#include <thread>

#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

using namespace std::chrono_literals;

class SweepTurnsTest : public ::testing::Test {
 protected:
  void make() {
    parts_ = std::make_unique<ScriptedParts>(1, "wait_ms:never,reuse:own");
    flag_ = parts_->gpu().new_flag();
    own_ = parts_->stream();
    parts_->heap(own_);
  }
  void TearDown() override { finish(); }
  void finish() {
    parts_->device().clear();
    parts_->shared().captures = 0;
    parts_->gpu().raise(flag_);
    static_cast<void>(parts_->gpu().drain_all());
  }
  ReclaimLock& lock() { return parts_->cache().reclaimer().lock(); }
  /// What a hook does: at the answer number `comes_at_` another thread comes to the lock.
  void answer() {
    if (++answers_ != comes_at_) return;
    waits_ = std::thread([this] {
      const ReclaimGuard reclaim(lock());
      answers_at_turn_ = answers_;
      if (announces_) parts_->shared().captures = 1;
    });
    while (CachePeer::waiting(lock()) == 0) std::this_thread::yield();
    std::this_thread::sleep_for(3ms);  // the shortest hold is 2 ms
  }
  /// A sweep during which that happens, the thread announcing a capture or not.
  void sweep(unsigned comes_at, bool announces) {
    answers_ = answers_at_turn_ = 0;
    comes_at_ = comes_at;
    announces_ = announces;
    {
      const ReclaimGuard reclaim(lock());
      parts_->cache().reclaimer().epochs().sweep(parts_->cache().heaps(), lock());
    }
    ASSERT_TRUE(waits_.joinable()) << "no answer number " << comes_at;
    waits_.join();
  }
  /// Expects the turn at most `step` answers after the thread came; without a capture the sweep goes
  /// on to `all` answers, with one it ends.
  void expect_turns(unsigned comes_at, unsigned step, unsigned all) {
    EXPECT_GE(answers_at_turn_, comes_at);
    EXPECT_LT(answers_at_turn_, comes_at + step) << "C30";
    EXPECT_EQ(answers_, announces_ ? answers_at_turn_ : all);
  }

  std::unique_ptr<ScriptedParts> parts_;
  spec::HostFlag flag_ = 0;
  Stream own_;
  std::thread waits_;
  unsigned answers_ = 0;
  unsigned comes_at_ = 0;
  unsigned answers_at_turn_ = 0;
  bool announces_ = false;
};

TEST_F(SweepTurnsTest, AWaitingThreadHasTheLockAfterSixteenHeaps) {
  constexpr unsigned kHeaps = 40;
  for (const bool announces : {false, true}) {
    // In the first round over the heaps, and in the second, which asks for uses as well.
    for (const unsigned comes_at : {1u, 20u, kHeaps + 1, kHeaps + 20}) {
      make();
      std::vector<Address> blocks;
      for (unsigned i = 0; i < kHeaps; ++i)
        blocks.push_back(parts_->allocate(512_B, parts_->busy_stream(flag_)));
      for (const Address block : blocks) parts_->free(block);
      parts_->device().on_query = [this](EventHandle) {
        answer();
        return Status::ok();
      };
      sweep(comes_at, announces);
      expect_turns(comes_at, 16, 2 * kHeaps);
      finish();
    }
  }
}

TEST_F(SweepTurnsTest, AWaitingThreadHasTheLockAfterSixteenEvents) {
  constexpr unsigned kUsers = 100;
  for (const bool announces : {false, true}) {
    for (const unsigned comes_at : {1u, 20u, 90u}) {
      make();
      std::vector<Address> blocks;
      for (unsigned i = 0; i < kUsers; ++i) blocks.push_back(parts_->allocate(512_B, own_));
      for (const Address block : blocks) parts_->free(block, parts_->busy_stream(flag_));
      parts_->device().on_query = [this](EventHandle) {
        answer();
        return Status::ok();
      };
      sweep(comes_at, announces);
      expect_turns(comes_at, 16, 112);  // the first multiple of 16 that is no less than the users
      finish();
    }
  }
}

TEST_F(SweepTurnsTest, AWaitingThreadHasTheLockAfterAPartOfTheUsesWithoutAnEvent) {
  constexpr unsigned kUses = 1000;
  for (const bool announces : {false, true}) {
    for (const unsigned comes_at : {1u, 3u}) {
      make();
      parts_->gpu().act_as_thread(1);
      const Stream elsewhere = parts_->gpu().default_stream(DeviceId{0}, spec::kPerThreadStream);
      parts_->gpu().act_as_thread(2);
      ASSERT_TRUE(parts_->gpu().host_function(elsewhere, flag_).is_ok());
      std::vector<Address> blocks;
      for (unsigned i = 0; i < kUses; ++i) blocks.push_back(parts_->allocate(512_B, own_));
      for (const Address block : blocks) parts_->free(block, elsewhere);
      // Whom the handle names is asked once for each part of the uses.
      parts_->device().on_identify = [this](StreamHandle of) {
        answer();
        return parts_->gpu().device(0).identify(of);
      };
      sweep(comes_at, announces);
      expect_turns(comes_at, 1, (kUses + 255) / 256);
      finish();
    }
  }
}

TEST_F(SweepTurnsTest, AnEndWithTwentyThousandUsesHoldsALockForAFewAtATime) {
  // Builds with assertions count the steps under each lock (C31).
  make();
  const Stream users[] = {parts_->busy_stream(flag_), parts_->stream()};
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 20'000; ++i) blocks.push_back(parts_->allocate(512_B, own_));
  for (std::size_t i = 0; i < blocks.size(); ++i) parts_->free(blocks[i], users[i % 2]);
  parts_->gpu().raise(flag_);
  DeviceCache& cache = parts_->cache();
  cache.settle(cache.has_unfinished());
  cache.give_everything_back();
  EXPECT_FALSE(cache.has_unfinished());
  EXPECT_EQ(cache.use_count(), 0u);
}

}  // namespace
}  // namespace ashlar::cache
