// What a reclaim and a trim wait for, in what order, for how long, and how often (BoundedWait and
// its callers), by a clock that only the waits move.
//
// Imitates: streams that never finish, or finish when they are waited for; drivers that refuse a
// wait or an answer; two devices whose recordings have the same numbers.
// Does not prove: anything about threads; shrink_turns_test.cc and the crossing tests do.
#include <algorithm>

#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

using device::CallKind;
constexpr std::uint64_t kMs = 1'000'000;
constexpr Status kRefused{Code::kDriverError, "planted"};
constexpr Status kNotDone{Code::kNotReady, "planted"};

class WaitAccountsTest : public ::testing::Test {
 protected:
  void make(const std::string& conf, std::size_t devices = 1) {
    parts_ = std::make_unique<ScriptedParts>(devices, conf);
    flag_ = parts_->gpu().new_flag();
    own_ = parts_->stream();
    for (std::size_t i = 0; i < devices; ++i) parts_->device(i).clock_ns = 7 * kMs;
  }
  void TearDown() override { finish_all(); }
  void finish_all() {
    if (parts_ == nullptr) return;
    parts_->gpu().raise(flag_);
    static_cast<void>(parts_->gpu().drain_all());
  }
  /// A block of own_'s that waits for a stream which is stuck until finish_all().
  EventHandle make_stuck(Bytes size, std::int32_t device = 0) {
    const Stream user = parts_->busy_stream(flag_, device);
    const Address block = parts_->allocate(size, own_);
    EXPECT_FALSE(block.is_null());
    parts_->free(block, user);
    EXPECT_TRUE(CachePeer::uses(parts_->heap(own_)).has_queues());
    return event_of(user);
  }
  /// The event of the queue that the stream has in own_'s heap.
  EventHandle event_of(const Stream& user) {
    const UseNode* queue = CachePeer::first_queue(CachePeer::uses(parts_->heap(own_)));
    while (queue->user != &parts_->heap(user)) queue = queue->queue.next;
    return queue->slot.event;
  }
  /// Waits of the device end without an answer when their time is over; waited_ has their lengths.
  void let_waits_pass() {
    parts_->device().on_wait = [this](EventHandle, std::uint32_t ms) { return pass(ms); };
    parts_->device().on_synchronize = [this](std::uint32_t ms) { return pass(ms); };
  }
  Status pass(std::uint32_t ms) {
    waited_.push_back(ms);
    *parts_->device().clock_ns += ms * kMs;
    return kNotDone;
  }
  std::uint64_t waited_ms() const {
    std::uint64_t sum = 0;
    for (const std::uint32_t ms : waited_) sum += ms;
    return sum;
  }
  Status trim() { return parts_->cache().reclaimer().trim(); }
  Result<Address> allocate(Bytes size, OutOfMemory* account = nullptr) {
    return parts_->cache().allocate(size, own_, account);
  }
  std::uint64_t waits() { return parts_->cache().reclaimer().waits(); }

  std::unique_ptr<ScriptedParts> parts_;
  spec::HostFlag flag_ = 0;
  Stream own_;
  std::vector<std::uint32_t> waited_;
};

/// What a trim beside stuck work waits in all, by its rule: what is permitted, within 2 and 1000 ms,
/// in slices of a 16th of that, and of 10 ms at most; each of its first four sweeps leaves 2 ms.
std::uint64_t trim_waits_ms(std::uint64_t permitted) {
  permitted = std::clamp<std::uint64_t>(permitted, 2, 1000);
  std::uint64_t now = 0;
  std::uint64_t end = permitted;
  for (int sweep = 1;; ++sweep) {
    if (sweep <= 4) end = std::max(end, now + 2);
    if (now == end) return now;
    now += std::min({end - now, std::max<std::uint64_t>(1, permitted / 16), std::uint64_t{10}});
  }
}

TEST_F(WaitAccountsTest, ATrimBesideStuckWorkEndsWhenItsTimeIsOver) {
  for (const std::uint32_t permitted : {0u, 1u, 2u, 3u, 5u, 40u, 999u, 1000u, 1001u, 5000u}) {
    make("wait_ms:" + std::to_string(permitted));
    make_stuck(20_MiB);
    waited_.clear();
    let_waits_pass();
    EXPECT_EQ(trim().code(), Code::kNotReady);
    EXPECT_EQ(waited_ms(), trim_waits_ms(permitted)) << permitted;
    EXPECT_EQ(waits(), waited_.size());
    EXPECT_EQ(parts_->shared().event_waiters, 0u);
    parts_->device().clear();
    finish_all();
    EXPECT_TRUE(trim().is_ok());
  }
}

TEST_F(WaitAccountsTest, ATrimWaitsForWorkThatEndsForASecondAtMost) {
  // The device takes a millisecond for each event; the permitted wait is none.
  for (const unsigned streams : {40u, 3000u}) {
    make("wait_ms:0");
    std::vector<Address> blocks;
    for (unsigned i = 0; i < streams; ++i) blocks.push_back(parts_->allocate(512_B, own_));
    for (const Address block : blocks) parts_->free(block, parts_->stream());
    std::vector<EventHandle> done;
    parts_->device().on_query = [&](EventHandle event) {
      return std::binary_search(done.begin(), done.end(), event) ? Status::ok() : kNotDone;
    };
    parts_->device().on_wait = [&](EventHandle event, std::uint32_t) {
      *parts_->device().clock_ns += kMs;
      done.insert(std::upper_bound(done.begin(), done.end(), event), event);
      static_cast<void>(parts_->gpu().drain_all());
      return Status::ok();
    };
    const std::uint64_t began = *parts_->device().clock_ns;
    EXPECT_EQ(trim().is_ok(), streams == 40) << "C28";
    EXPECT_LE(*parts_->device().clock_ns - began, 1010 * kMs);
    parts_->device().clear();
  }
}

TEST_F(WaitAccountsTest, ATrimWithoutAnEndEndsAfterASecondAllTheSame) {
  make("wait_ms:forever");
  make_stuck(20_MiB);
  let_waits_pass();
  EXPECT_EQ(trim().code(), Code::kNotReady);
  EXPECT_EQ(waited_ms(), 1000u);
  parts_->device().clear();
}

TEST_F(WaitAccountsTest, AReclaimWaitsForTheTimePermittedInSlices) {
  for (const std::uint32_t permitted : {0u, 1u, 2u, 15u, 16u, 33u, 160u, 400u}) {
    make("wait_ms:" + std::to_string(permitted));
    make_stuck(200_MiB);
    waited_.clear();
    let_waits_pass();
    OutOfMemory account;
    EXPECT_EQ(allocate(100_MiB, &account).code(), Code::kOutOfMemory);
    EXPECT_TRUE(account.wait_ran_out);
    EXPECT_EQ(waited_ms(), permitted);
    const std::uint32_t slice = std::clamp(permitted / 16, 1u, 10u);
    EXPECT_EQ(waits(), (permitted + slice - 1) / slice);
    EXPECT_EQ(parts_->shared().event_waiters, 0u);
    parts_->device().clear();
  }
}

TEST_F(WaitAccountsTest, AWaitThatIsRefusedIsRepeatedSixteenTimes) {
  for (const char* conf : {"wait_ms:160", "wait_ms:4294967294", "wait_ms:forever"}) {
    make(conf);
    make_stuck(200_MiB);
    parts_->device().on_wait = [](EventHandle, std::uint32_t) { return kRefused; };
    OutOfMemory account;
    EXPECT_EQ(allocate(100_MiB, &account).code(), Code::kOutOfMemory);
    EXPECT_TRUE(account.wait_ran_out);
    EXPECT_EQ(waits(), 16u) << conf;
    parts_->device().clear();
  }
}

TEST_F(WaitAccountsTest, AnEventThatAWaitFoundDoneAndAQueryDeniesIsWaitedForSixteenTimesAtMost) {
  make("wait_ms:forever");
  const EventHandle denied = make_stuck(200_MiB);
  finish_all();
  parts_->device().on_query = [denied](EventHandle event) {
    return event == denied ? kRefused : Status::ok();
  };
  std::uint64_t waited = 0;
  parts_->device().on_wait = [&](EventHandle event, std::uint32_t) {
    waited += event == denied;
    return Status::ok();
  };
  EXPECT_EQ(allocate(100_MiB).code(), Code::kOutOfMemory);
  EXPECT_EQ(waited, 16u);
  parts_->device().clear();
}

TEST_F(WaitAccountsTest, EventsOfTwoDevicesWithTheSameNumberAreTwoEvents) {
  make("wait_ms:1", 2);
  // Both devices' next recording has the same number.
  parts_->heap(own_);
  const std::uint64_t number = 1000;
  for (std::size_t i = 0; i < 2; ++i) {
    while (parts_->uses(i).next_sequence() + 1 < number) continue;
  }
  const EventHandle first = make_stuck(60_MiB, 0);
  const EventHandle second = make_stuck(150_MiB, 1);
  const UseNode* queue = CachePeer::first_queue(CachePeer::uses(parts_->heap(own_)));
  ASSERT_EQ(queue->sequence, queue->queue.next->sequence);
  // Each wait takes no time, and the stream's work is done then.
  std::vector<EventHandle> waited;
  const auto serve = [&](EventHandle event, std::uint32_t) {
    waited.push_back(event);
    parts_->gpu().raise(flag_);
    return Status::ok();
  };
  parts_->device(0).on_wait = parts_->device(1).on_wait = serve;
  parts_->device(1).on_query = [&](EventHandle event) {
    // Not known before it is waited for.
    const bool is_waited_for = std::find(waited.begin(), waited.end(), event) != waited.end();
    return event == second && !is_waited_for ? kNotDone : Status::ok();
  };
  EXPECT_TRUE(allocate(150_MiB).is_ok()) << "C12: nothing has used the time up";
  ASSERT_GE(waited.size(), 2u);
  EXPECT_EQ(waited[0], first);
  EXPECT_EQ(waited[1], second);
}

TEST_F(WaitAccountsTest, TheOldestRecordingIsWaitedForFirstWhateverItIsOf) {
  enum class Of { kUse, kMark, kLastEvent };
  std::vector<Of> order = {Of::kUse, Of::kMark, Of::kLastEvent};
  do {
    make("wait_ms:1000");
    const Stream user = parts_->busy_stream(flag_);
    const Stream idle = parts_->busy_stream(flag_);
    const Stream retired = parts_->busy_stream(flag_);
    const Address used = parts_->allocate(40_MiB, own_);
    const Address freed[] = {parts_->allocate(40_MiB, idle), parts_->allocate(40_MiB, retired)};
    for (const Address block : freed) parts_->free(block);
    Reclaimer& reclaimer = parts_->cache().reclaimer();
    std::vector<EventHandle> expected;
    for (const Of each : order) {
      if (each == Of::kUse) {
        parts_->free(used, user);
        expected.push_back(event_of(user));
      }
      if (each == Of::kMark) {
        const ReclaimGuard reclaim(reclaimer.lock());
        reclaimer.epochs().mark(parts_->heap(idle));
        expected.push_back(CachePeer::marks(parts_->heap(idle)).oldest().slot.event);
      }
      if (each == Of::kLastEvent) {
        ASSERT_TRUE(reclaimer.retire(retired).is_ok());
        expected.push_back(parts_->heap(retired).last_event.slot.event);
      }
    }
    // Each is done once it was waited for, and not before.
    std::vector<EventHandle> waited;
    parts_->device().on_wait = [&](EventHandle event, std::uint32_t ms) {
      waited.push_back(event);
      return pass(ms);
    };
    parts_->device().on_query = [&](EventHandle event) {
      const bool is_one = std::find(expected.begin(), expected.end(), event) != expected.end();
      const bool was_waited = std::find(waited.begin(), waited.end(), event) != waited.end();
      if (is_one && was_waited) finish_all();
      return is_one && !was_waited ? kNotDone : Status::ok();
    };
    static_cast<void>(trim());
    ASSERT_GE(waited.size(), 3u);
    waited.resize(3);
    EXPECT_EQ(waited, expected);
    parts_->device().clear();
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(WaitAccountsTest, ATrimMovesItsBorderFourTimesAndThenLeavesLaterWork) {
  make("wait_ms:1000");
  const Stream user = parts_->stream();
  std::vector<Address> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(parts_->allocate(20_MiB, own_));
  const auto use_next = [&] {
    parts_->free(blocks.back(), user);
    blocks.pop_back();
  };
  use_next();
  unsigned waited = 0;
  // Whenever the trim waits, the work that it waits for is finished and the next one begins.
  parts_->device().on_wait = [&](EventHandle, std::uint32_t) {
    ++waited;
    EXPECT_EQ(parts_->shared().event_waiters, 1u) << "one call waits";
    static_cast<void>(parts_->gpu().drain_all());
    use_next();
    return Status::ok();
  };
  EXPECT_TRUE(trim().is_ok());
  EXPECT_LE(waited, 2 * 4u) << "an event of a use, and the mark of what came back by it";
  EXPECT_GE(waited, 2u);
  EXPECT_EQ(parts_->shared().event_waiters, 0u);
  parts_->device().clear();
  for (const Address block : blocks) parts_->free(block);
}

TEST_F(WaitAccountsTest, OneHeapWithoutAMarkIsEnoughToAskItsDeviceAndNoOther) {
  for (const unsigned unmarked : {0u, 1u, 2u}) {
    make("wait_ms:0", 2);
    std::vector<Stream> lenders;
    for (int i = 0; i < 3; ++i) lenders.push_back(parts_->stream());
    std::vector<Address> blocks;
    for (const Stream& lender : lenders) blocks.push_back(parts_->allocate(60_MiB, lender));
    for (const Address block : blocks) parts_->free(block);
    parts_->device().on_record = [&](StreamHandle of) {
      return of == lenders[unmarked].handle ? kRefused : Status::ok();
    };
    std::vector<std::uint32_t> limits;
    parts_->device().on_synchronize = [&](std::uint32_t ms) {
      limits.push_back(ms);
      return Status::ok();
    };
    const std::uint64_t other_before = parts_->calls(CallKind::kSynchronize, 1);
    static_cast<void>(allocate(250_MiB));
    EXPECT_EQ(limits, std::vector<std::uint32_t>{0}) << "once, and without a wait";
    EXPECT_EQ(parts_->calls(CallKind::kSynchronize, 1), other_before);
    EXPECT_EQ(waits(), 0u) << "a question is no wait";
    parts_->device().clear();
  }
}

}  // namespace
}  // namespace ashlar::cache
