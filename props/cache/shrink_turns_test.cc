// Who else gets a turn: a shrink of the use nodes lets waiting threads have the reclaim lock between
// two events, and a capture's announcement waits for the polls that began before it, no others (C9,
// C30).
//
// Imitates: a driver that takes its time for an event; threads that wait for the lock meanwhile, or
// announce a capture. Does not prove: fairness among more threads.
#include <atomic>
#include <chrono>
#include <thread>

#include <ashlar/cache/node_shrink.h>

#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

using device::CallKind;
using namespace std::chrono_literals;

class TurnsTest : public ::testing::Test {
 protected:
  /// So many spare nodes of the heap, each with an event in its slot.
  void make_events(unsigned n) {
    std::vector<Address> blocks;
    for (unsigned i = 0; i < n; ++i) blocks.push_back(parts_.allocate(512_B, own_));
    const Stream user = parts_.stream();
    for (const Address block : blocks) parts_.free(block, user);
    std::vector<EventSlot> pooled(512);
    for (EventSlot& slot : pooled) ASSERT_TRUE(parts_.uses().events().fill(slot).is_ok());
    for (EventSlot& slot : pooled) parts_.uses().events().give(slot);
    ASSERT_TRUE(parts_.gpu().drain_all().is_ok());
    const Guard guard(heap_.lock);
    ASSERT_TRUE(parts_.uses().poll(heap_, n).is_ok());
  }
  UseNodes& nodes() { return CachePeer::uses(heap_).nodes(); }
  std::uint64_t destroyed() { return parts_.calls(CallKind::kEventDestroy); }
  void shrink() {
    ReclaimLock& lock = parts_.cache().reclaimer().lock();
    const ReclaimGuard reclaim(lock);
    shrink_nodes(heap_, parts_.shared(), lock);
  }

  ScriptedParts parts_;
  Stream own_ = parts_.stream();
  StreamHeap& heap_ = parts_.heap(own_);
};

TEST_F(TurnsTest, AShrinkGivesBackWhatIsBeyondTheLiveBlocksAndASlab) {
  make_events(320);
  EXPECT_EQ(nodes().spare_count(), 320u);
  std::vector<Address> live;
  for (int i = 0; i < 40; ++i) live.push_back(parts_.allocate(512_B, own_));
  shrink();
  EXPECT_EQ(destroyed(), 248u) << "320 less 40, and a slab of 32";
  EXPECT_GE(nodes().spare_count(), 72u);
  EXPECT_LE(nodes().spare_count(), 72u + 9 * 31) << "parts of slabs stay";
  EXPECT_EQ(nodes().spare_count() % 32, 0u);
  EXPECT_EQ(nodes().taken_count(), 0u);
  parts_.expect_valid();
  shrink();
  EXPECT_LE(destroyed(), 320u - 72);
  {
    const Guard guard(heap_.lock);
    EXPECT_TRUE(nodes().begin_shrink()) << "the last one has ended";
  }
  const std::uint64_t before = destroyed();
  const std::uint64_t spare = nodes().spare_count();
  for (const Address block : live) parts_.free(block);
  shrink();
  EXPECT_EQ(destroyed(), before) << "another one is under way";
  EXPECT_EQ(nodes().spare_count(), spare);
  {
    const Guard guard(heap_.lock);
    nodes().end_shrink();
  }
  shrink();
  EXPECT_EQ(nodes().taken_count(), 0u);
  EXPECT_LE(nodes().spare_count(), spare);
  parts_.expect_valid();
}

TEST_F(TurnsTest, AThreadThatWaitsForTheLockHasItBeforeTheNextEvent) {
  for (const bool captures : {false, true}) {
    make_events(320);
    std::atomic<bool> is_waiting{false};
    std::uint64_t at_turn = 0;
    std::thread waits;
    std::uint64_t events = 0;
    parts_.device().on_destroy = [&](EventHandle) {
      if (++events != 5) return Status::ok();
      waits = std::thread([&] {
        is_waiting = true;
        const ReclaimGuard reclaim(parts_.cache().reclaimer().lock());
        at_turn = events;
        if (captures) parts_.shared().captures = 1;
      });
      while (!is_waiting) std::this_thread::yield();
      std::this_thread::sleep_for(20ms);  // it has come to the lock, and the hold is long enough
      return Status::ok();
    };
    shrink();
    waits.join();
    EXPECT_EQ(at_turn, 5u);
    if (captures) {
      EXPECT_EQ(events, 5u) << "a capture ends the shrink";
    } else {
      EXPECT_GT(events, 200u) << "the shrink goes on";
    }
    parts_.shared().captures = 0;
    EXPECT_EQ(nodes().taken_count(), 0u);
    parts_.device().on_destroy = {};
    shrink();
    parts_.expect_valid();
  }
}

TEST_F(TurnsTest, AnAnnouncementWaitsForThePollsThatAreUnderWay) {
  for (int round = 0; round < 3; ++round) {
    make_events(1);
    parts_.free(parts_.allocate(512_B, own_), parts_.stream());
    std::atomic<bool> is_asked{false};
    std::atomic<bool> may_answer{false};
    parts_.device().on_query = [&](EventHandle) {
      is_asked = true;
      while (!may_answer) std::this_thread::yield();
      return Status::ok();
    };
    std::thread polls([&] {
      const Guard guard(heap_.lock);
      EXPECT_TRUE(parts_.uses().poll(heap_, 1).is_ok());
    });
    while (!is_asked) std::this_thread::yield();
    std::atomic<bool> is_quiet{false};
    std::thread announces([&] {
      parts_.cache().quiesce();
      is_quiet = true;
    });
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(is_quiet) << "the poll is still asking";
    may_answer = true;
    announces.join();
    polls.join();
    parts_.device().on_query = {};
    parts_.cache().quiesce();  // nothing is under way
  }
}

}  // namespace
}  // namespace ashlar::cache
