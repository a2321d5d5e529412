// The uses' tracker (UseTracker), call by call: what one step asks of the device, and what it makes
// of each answer.
//
// Imitates: streams that are stuck, done, retired, or whose handle the driver uses again; drivers
// that refuse an event, or go while they are asked. Does not prove: the order of threads.
#include <deque>

#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

class UseTrackerTest : public ::testing::Test {
 protected:
  /// So many blocks of the heap's stream, each of which waits for a stream of its own.
  std::vector<Stream> make_queues(unsigned n, spec::HostFlag flag) {
    std::vector<Address> blocks;
    for (unsigned i = 0; i < n; ++i) blocks.push_back(parts_.allocate(4_KiB, own_));
    std::vector<Stream> users;
    for (unsigned i = 0; i < n; ++i) {
      users.push_back(parts_.busy_stream(flag));
      parts_.free(blocks[i], users.back());
    }
    return users;
  }
  struct Poll {
    bool goes_on = false;
    std::uint64_t asked = 0;
    UseTracker::PollState state;
  };
  Poll poll_part(unsigned budget,
                 UseTracker::PollState state = {}) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    const std::uint64_t before = parts_.calls(CallKind::kEventQuery);
    Poll poll{false, 0, state};
    const Guard guard(heap_.lock);
    poll.goes_on = parts_.uses().poll_part(heap_, budget, poll.state);
    poll.asked = parts_.calls(CallKind::kEventQuery) - before;
    return poll;
  }
  std::uint64_t queues() { return CachePeer::uses(heap_).queues().count(); }
  void finish(spec::HostFlag flag) {
    parts_.gpu().raise(flag);
    EXPECT_TRUE(parts_.gpu().drain_all().is_ok());
  }

  ScriptedParts parts_{2};
  Stream own_ = parts_.stream();
  StreamHeap& heap_ = parts_.heap(own_);
};

TEST_F(UseTrackerTest, APollAsksAsManyEventsAsItsBudgetSaysAndEndsAfterAFruitlessRound) {
  const spec::HostFlag flag = parts_.gpu().new_flag();
  make_queues(40, flag);
  for (const unsigned budget : {0u, 1u, 2u, 15u, 16u, 17u, 33u, 39u}) {
    const Poll poll = poll_part(budget);
    EXPECT_EQ(poll.asked, budget);
    EXPECT_TRUE(poll.goes_on) << budget;
    EXPECT_EQ(poll.state.fruitless, budget);
    EXPECT_EQ(queues(), 40u);
  }
  // The third group of 16 is the one that ends a round of 40.
  const Poll round = poll_part(1000);
  EXPECT_EQ(round.asked, 48u);
  EXPECT_FALSE(round.goes_on);
  EXPECT_EQ(round.state.fruitless, 48u);
  UseTracker::PollState state;
  state.fruitless = 39;
  const Poll last = poll_part(1, state);
  EXPECT_EQ(last.asked, 1u);
  EXPECT_FALSE(last.goes_on) << "40 in a row";
  parts_.expect_valid();
  finish(flag);
  for (std::uint64_t left = 40; left > 0; --left) {
    EXPECT_EQ(poll_part(1).asked, 1u);
    EXPECT_EQ(queues(), left - 1);
    EXPECT_EQ(CachePeer::pooled_events(parts_.uses().events()), 41 - left);
  }
  EXPECT_FALSE(poll_part(1).goes_on) << "nothing is left";
  parts_.expect_valid();
}

TEST_F(UseTrackerTest, APollEndsWhenItHasFinishedWhatItWasToFinish) {
  const spec::HostFlag flag = parts_.gpu().new_flag();
  make_queues(96, flag);
  finish(flag);
  UseTracker::PollState state;
  state.finishes_max = 17;
  const Poll poll = poll_part(64, state);
  EXPECT_EQ(poll.asked, 32u) << "16 are too few, 32 enough";
  EXPECT_FALSE(poll.goes_on);
  state.finishes_max = 16;
  EXPECT_EQ(poll_part(64, state).asked, 16u);
  state.finishes_max = 33;
  const Poll rest = poll_part(32, state);
  EXPECT_EQ(rest.asked, 32u);
  EXPECT_TRUE(rest.goes_on);
  EXPECT_EQ(rest.state.finishes_max, 1u);
  EXPECT_EQ(queues(), 16u);
  parts_.expect_valid();
}

TEST_F(UseTrackerTest, APollThatFindsTheDeviceGoneEndsThereAndFinishesNothing) {
  const spec::HostFlag flag = parts_.gpu().new_flag();
  make_queues(40, flag);
  finish(flag);
  unsigned asked = 0;
  parts_.device().on_query = [&asked](EventHandle) {
    return ++asked == 3 ? Status{Code::kDeviceLost, "planted"} : Status::ok();
  };
  const Poll poll = poll_part(16);
  EXPECT_EQ(asked, 3u);
  EXPECT_FALSE(poll.goes_on);
  EXPECT_EQ(queues(), 40u);
  EXPECT_EQ(CachePeer::pooled_events(parts_.uses().events()), 0u);
}

TEST_F(UseTrackerTest, NoPollAsksWhileACaptureIsAnnounced) {
  const spec::HostFlag flag = parts_.gpu().new_flag();
  make_queues(3, flag);
  parts_.shared().captures = 1;
  EXPECT_EQ(poll_part(16).asked, 0u);
  EXPECT_FALSE(poll_part(16).goes_on);
  parts_.shared().captures = 0;
  EXPECT_EQ(poll_part(3).asked, 3u);
  finish(flag);
}

TEST_F(UseTrackerTest, WhatTheHandleNamesNowDecidesWhetherAStreamIsLost) {
  struct Case {
    Result<Stream> answer;
    bool is_permitted;
    bool is_lost;
  };
  const auto failed = [](Code code) { return Result<Stream>(Status{code, "planted"}); };
  for (const bool is_bound : {false, true}) {
    Stream user = parts_.stream();
    user.thread_bound = is_bound;
    Stream other = user;
    other.id = StreamId{user.id.value() + 1000};
    const Case cases[] = {{user, true, false},
                          {failed(Code::kDriverError), false, false},
                          {failed(Code::kNotReady), false, false},
                          {failed(Code::kInvalidHandle), false, true},
                          {failed(Code::kWrongDevice), false, true},
                          {other, false, true}};
    std::deque<StreamHeap> heaps;
    for (const Case& each : cases) {
      StreamHeap& heap = heaps.emplace_back(parts_.cache(), HeapOwner::of(user), 512_B);
      parts_.device().on_identify = [&each](StreamHandle) { return each.answer; };
      const std::uint64_t before = parts_.uses().next_sequence();
      EXPECT_EQ(parts_.uses().may_record(heap), each.is_permitted);
      const bool is_lost = each.is_lost && !is_bound;
      EXPECT_EQ(heap.life.state(), is_lost ? StreamLife::State::kLost : StreamLife::State::kAlive);
      EXPECT_EQ(heap.life.lost_at(), is_lost ? before + 1 : 0);
    }
    parts_.device().on_identify = {};
  }
}

TEST_F(UseTrackerTest, ARecordingIsRefusedToTheDeadAndInACaptureAndLeavesTheSlotAsItWas) {
  EventSlot slot;
  EventPool& events = parts_.uses().events();
  const auto record = [&](bool in_capture) {
    return parts_.uses().record_on(heap_, slot, in_capture).code();
  };
  parts_.shared().captures = 1;
  const std::uint64_t named = parts_.calls(CallKind::kIdentify);
  EXPECT_EQ(record(false), Code::kNotReady);
  EXPECT_EQ(parts_.calls(CallKind::kIdentify), named);
  EXPECT_EQ(slot.pool, nullptr);
  EXPECT_EQ(record(true), Code::kOk);
  EXPECT_EQ(slot.pool, &events);
  parts_.shared().captures = 0;
  EXPECT_EQ(record(false), Code::kOk);
  EXPECT_EQ(parts_.calls(CallKind::kEventCreate), 1u) << "the slot's own event again";
  parts_.device().on_record = [](StreamHandle) { return Status{Code::kDriverError, "planted"}; };
  EXPECT_EQ(record(false), Code::kDriverError);
  EXPECT_EQ(slot.pool, nullptr);
  EXPECT_EQ(CachePeer::pooled_events(events), 1u);
  EXPECT_TRUE(heap_.life.is_alive());
  parts_.device().on_create = [] { return Status{Code::kDriverError, "planted"}; };
  parts_.device().on_record = [](StreamHandle) { return Status{Code::kInvalidHandle, "planted"}; };
  EXPECT_EQ(record(false), Code::kInvalidHandle);
  EXPECT_EQ(heap_.life.state(), StreamLife::State::kLost);
  EXPECT_FALSE(heap_.life.is_recording());
  const std::uint64_t records = parts_.calls(CallKind::kEventRecord);
  EXPECT_EQ(record(true), Code::kNotReady);
  EXPECT_EQ(parts_.calls(CallKind::kEventRecord), records);
}

TEST_F(UseTrackerTest, TheLastEventIsAskedOnceAndOnlyAStreamThatIsDeadHasOne) {
  UseTracker& uses = parts_.uses();
  const auto completed = [](StreamHeap& heap) { return CachePeer::clock(heap).completed(); };
  EXPECT_FALSE(uses.ask_last_event(heap_)) << "alive";
  UseTracker::finish(heap_);
  EXPECT_TRUE(heap_.life.is_alive());
  EXPECT_EQ(completed(heap_), 0u);

  const spec::HostFlag flag = parts_.gpu().new_flag();
  StreamHeap& retired = parts_.heap(parts_.busy_stream(flag));
  ASSERT_TRUE(uses.record_on(retired, retired.last_event.slot).is_ok());
  ASSERT_TRUE(retired.life.retire());
  EXPECT_FALSE(uses.ask_last_event(retired));
  EXPECT_EQ(completed(retired), 0u);
  finish(flag);
  const std::uint64_t asked = parts_.calls(CallKind::kEventQuery);
  EXPECT_TRUE(uses.ask_last_event(retired));
  EXPECT_TRUE(retired.life.is_finished());
  EXPECT_EQ(completed(retired), kEverything);
  EXPECT_TRUE(uses.ask_last_event(retired)) << "known by now";
  EXPECT_EQ(parts_.calls(CallKind::kEventQuery), asked + 1);

  StreamHeap& lost = parts_.heap(parts_.stream());
  uses.lose(lost);
  EXPECT_FALSE(uses.ask_last_event(lost));
  ASSERT_TRUE(uses.synchronizer().run(1000).is_ok());
  EXPECT_TRUE(uses.ask_last_event(lost));
  EXPECT_TRUE(lost.life.is_finished());
  EXPECT_EQ(parts_.calls(CallKind::kEventQuery), asked + 1) << "a lost stream has no last event";
}

}  // namespace
}  // namespace ashlar::cache
