// What new streams and reclaims ask of streams that may be dead (Reclaimer::look_for_forgotten,
// notice_destroyed): whom, how many at a time, and how often (C17, C27, C29).
//
// Imitates: streams that were retired behind work that does not end; alive ones between them.
// Does not prove: that their memory comes back; churn_test.cc does.
#include <algorithm>
#include <map>

#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

class DeadAsksTest : public ::testing::Test {
 protected:
  ~DeadAsksTest() override {
    parts_.device().clear();
    parts_.gpu().raise(flag_);
    static_cast<void>(parts_.gpu().drain_all());
  }
  /// A retired stream behind work that ends with the test. Returns its last event.
  EventHandle make_dead() {
    const Stream dead = parts_.busy_stream(flag_);
    StreamHeap& heap = parts_.heap(dead);
    EXPECT_TRUE(parts_.cache().reclaimer().retire(dead).is_ok());
    return heap.last_event.slot.event;
  }
  /// The events asked while a new stream's heap is made.
  std::vector<EventHandle> asked_by_new_stream() {
    std::vector<EventHandle> asked;
    const Stream fresh = parts_.stream();
    parts_.device().on_query = [&](EventHandle event) {
      asked.push_back(event);
      return Status::ok();
    };
    parts_.heap(fresh);
    parts_.device().on_query = {};
    return asked;
  }

  ScriptedParts parts_{1, "wait_ms:160,reuse:own"};
  spec::HostFlag flag_ = parts_.gpu().new_flag();
};

TEST_F(DeadAsksTest, ANewStreamAsksFourDeadStreamsAndTheNextOneGoesOn) {
  std::vector<EventHandle> dead;
  std::vector<Stream> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(parts_.busy_stream(flag_));
  for (const Stream& stream : streams) parts_.heap(stream);
  for (const Stream& stream : streams) {
    ASSERT_TRUE(parts_.cache().reclaimer().retire(stream).is_ok());
    dead.push_back(parts_.heap(stream).last_event.slot.event);
  }
  std::vector<EventHandle> asked;
  for (int i = 0; i < 3; ++i) {
    const std::vector<EventHandle> now = asked_by_new_stream();
    EXPECT_LE(now.size(), 4u);
    asked.insert(asked.end(), now.begin(), now.end());
  }
  for (const EventHandle event : dead) {
    EXPECT_NE(std::find(asked.begin(), asked.end(), event), asked.end()) << "C29";
  }
}

TEST_F(DeadAsksTest, DuringACaptureNoneIsAsked) {
  make_dead();
  parts_.shared().captures = 1;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(asked_by_new_stream().empty()) << "C9";
  parts_.shared().captures = 0;
  std::size_t asked = 0;
  for (int i = 0; i < 5; ++i) asked += asked_by_new_stream().size();
  EXPECT_GE(asked, 1u);
}

TEST(NewStreamTest, LooksAtSixteenHeaps) {
  // The dead stream's heap is the last; each new stream's goes behind it.
  for (const unsigned alive : {31u, 32u}) {
    ScriptedParts parts;
    std::vector<Stream> streams;
    const spec::HostFlag flag = parts.gpu().new_flag();
    for (unsigned i = 0; i < alive; ++i) streams.push_back(parts.stream());
    streams.push_back(parts.busy_stream(flag));
    DeviceCache& cache = parts.cache();
    for (const Stream& stream : streams) ASSERT_NE(cache.heaps().get_or_make(stream), nullptr);
    ASSERT_TRUE(cache.reclaimer().retire(streams.back()).is_ok());
    unsigned asked = 0;
    parts.device().on_query = [&](EventHandle) {
      ++asked;
      return Status::ok();
    };
    std::vector<unsigned> after;
    for (int i = 0; i < 3; ++i) {
      parts.heap(parts.stream());
      after.push_back(asked);
    }
    EXPECT_EQ(after,
              (alive == 31 ? std::vector<unsigned>{0, 1, 1} : std::vector<unsigned>{0, 0, 1}));
    parts.device().clear();
    parts.gpu().raise(flag);
    ASSERT_TRUE(parts.gpu().drain_all().is_ok());
  }
}

TEST_F(DeadAsksTest, AStuckDeadStreamIsAskedEverMoreRarely) {
  const EventHandle stuck = make_dead();
  std::ptrdiff_t asked = 0;
  for (int i = 0; i < 600; ++i) {
    const std::vector<EventHandle> now = asked_by_new_stream();
    asked += std::count(now.begin(), now.end(), stuck);
    const Stream passing = parts_.stream();
    parts_.heap(passing);
    ASSERT_TRUE(parts_.cache().reclaimer().retire(passing).is_ok());
    static_cast<void>(parts_.gpu().step(passing, 10));
  }
  EXPECT_GE(asked, 3);
  EXPECT_LE(asked, 60);
}

TEST_F(DeadAsksTest, AHeapThatPassesOnLeavesItsFormerStreamsDelayBehind) {
  // A stuck dead stream is asked until the next question is far off; then its work ends.
  const Stream first = parts_.busy_stream(flag_);
  StreamHeap& heap = parts_.heap(first);
  Reclaimer& reclaimer = parts_.cache().reclaimer();
  ASSERT_TRUE(reclaimer.retire(first).is_ok());
  for (int i = 0; i < 100; ++i) {
    const Stream passing = parts_.stream();
    parts_.heap(passing);
    ASSERT_TRUE(reclaimer.retire(passing).is_ok());
    static_cast<void>(parts_.gpu().step(passing, 10));
  }
  parts_.gpu().raise(flag_);
  ASSERT_TRUE(parts_.gpu().drain_all().is_ok());
  ASSERT_TRUE(reclaimer.trim().is_ok());
  // The heap serves the next stream that comes to it, and that one is retired behind stuck work.
  const spec::HostFlag stuck = parts_.gpu().new_flag();
  EventHandle last;
  for (int i = 0; i < 400 && last == EventHandle{}; ++i) {
    const Stream next = parts_.busy_stream(stuck);
    if (&parts_.heap(next) != &heap) continue;
    ASSERT_TRUE(reclaimer.retire(next).is_ok());
    last = heap.last_event.slot.event;
  }
  ASSERT_NE(last, EventHandle{}) << "no other stream was given the heap";
  bool is_asked = false;
  const std::size_t round = parts_.cache().heaps().count() / 16 + 1;
  for (std::size_t i = 0; i <= round; ++i) {
    const std::vector<EventHandle> asked = asked_by_new_stream();
    is_asked = is_asked || std::find(asked.begin(), asked.end(), last) != asked.end();
  }
  EXPECT_TRUE(is_asked) << "C29";
  parts_.gpu().raise(stuck);
}

TEST_F(DeadAsksTest, AReclaimAsksOnceWhetherTheStreamsWhoseMemoryMayServeItExist) {
  const Stream own = parts_.stream();
  const Stream lender = parts_.stream();
  const Stream user = parts_.busy_stream(flag_);
  // A block in use keeps the lender's segment, whose rest would do, from being given back.
  parts_.free(parts_.allocate(180_MiB, lender));
  ASSERT_FALSE(parts_.allocate(20_MiB, lender).is_null());
  CachePeer::clock(parts_.heap(lender)).complete(1);
  parts_.free(parts_.allocate(60_MiB, own), user);
  parts_.device().clock_ns = 0;
  parts_.device().on_wait = [this](EventHandle, std::uint32_t ms) {
    *parts_.device().clock_ns += ms * std::uint64_t{1'000'000};
    return Status{Code::kNotReady, "planted"};
  };
  std::map<std::uint64_t, unsigned> named;
  parts_.device().on_identify = [&](StreamHandle of) {
    ++named[of.value()];
    return parts_.gpu().device(0).identify(of);
  };
  EXPECT_EQ(parts_.cache().allocate(100_MiB, own, nullptr).code(), Code::kOutOfMemory);
  EXPECT_EQ(named[lender.handle.value()], 1u) << "once a call, not once a round of its wait";
}

}  // namespace
}  // namespace ashlar::cache
