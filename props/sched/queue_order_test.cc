// Order between queues: which events are recorded and waited for, call by call.
//
// Imitates: two and three backends, with and without events, some of which share memories or read them.
// Does not prove: that these waits are enough; the late backends of schedule_oracle_test do.
#include <ashlar/sched/queue_order.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "props/sched/recording_backend.h"

namespace ashlar {
namespace {

using props::CallLog;
using props::RecordingBackend;
using props::RecordingTraits;
using sched::QueueOrder;
using Calls = std::vector<std::string>;

/// Backends a, b and c. Event 0 of each is for now, events 1 and on are for the ends of runs.
struct Three {
  CallLog log;
  std::shared_ptr<cpu::HostBuffers> memory_a = std::make_shared<cpu::HostBuffers>();
  RecordingBackend a, b, c;
  std::vector<sched::Backend*> all{&a, &b, &c};

  explicit Three(RecordingTraits of_a = {}, RecordingTraits of_b = {}, RecordingTraits of_c = {})
      : a(log, "a", memory_a, std::move(of_a)),
        b(log, "b", std::move(of_b)),
        c(log, "c", std::move(of_c)) {}

  /// The calls that `act` makes.
  template <class Act>
  Calls calls_of(const Act& act) {
    log.calls.clear();
    EXPECT_TRUE(act().is_ok());
    return log.take();
  }
};

RecordingTraits without_events() {
  RecordingTraits traits;
  traits.has_events = false;
  return traits;
}

TEST(QueueOrderTest, MakesAnEventForNowAndOneForEachPlace) {
  for (std::uint32_t places = 1; places <= 3; ++places) {
    Three three({}, without_events());
    const QueueOrder order(three.all, places);
    EXPECT_EQ(three.log.count("a.make_event"), 1 + places);
    EXPECT_EQ(three.log.count("b.make_event"), 0u);
    EXPECT_EQ(three.log.count("c.make_event"), 1 + places);
    EXPECT_EQ(three.log.calls.size(), 2 * (1 + places));
  }
}

TEST(QueueOrderTest, OneQueueWaitsForWhatAnotherHasBeenTold) {
  Three three;
  QueueOrder order(three.all, 1);
  EXPECT_EQ(three.calls_of([&] { return order.after(0, 1); }), (Calls{"b.record b0", "a.wait b0"}));
  EXPECT_EQ(three.calls_of([&] { return order.after(2, 2); }), Calls{});
}

TEST(QueueOrderTest, TheHostWaitsWhereAQueueCannot) {
  RecordingTraits deaf;
  deaf.waits_for_others = false;
  Three three(deaf, without_events());
  QueueOrder order(three.all, 1);
  EXPECT_EQ(three.calls_of([&] { return order.after(0, 1); }), Calls{"b.synchronize"});
  EXPECT_EQ(three.calls_of([&] { return order.after(0, 2); }),
            (Calls{"c.record c0", "c.synchronize c0"}));
  EXPECT_EQ(three.calls_of([&] { return order.after(1, 0); }), (Calls{"a.record a0", "b.wait a0"}));
}

// b reads a's memory, and a does not read b's: either may still use what the other is about to write.
TEST(QueueOrderTest, SharersAreThoseWhoReadAMemoryAndThoseWhoseMemoryIsRead) {
  CallLog log;
  RecordingBackend a(log, "a");
  RecordingTraits reads_a;
  reads_a.reads = {a.memory()};
  RecordingBackend b(log, "b", reads_a), c(log, "c");
  const std::vector<sched::Backend*> all{&a, &b, &c};
  QueueOrder order(all, 1);
  log.calls.clear();
  EXPECT_TRUE(order.after_sharers(0).is_ok());
  EXPECT_EQ(log.take(), (Calls{"b.record b0", "a.wait b0"}));
  EXPECT_TRUE(order.after_sharers(1).is_ok());
  EXPECT_EQ(log.take(), (Calls{"a.record a0", "b.wait a0"}));
  EXPECT_TRUE(order.after_sharers(2).is_ok());
  EXPECT_EQ(log.take(), Calls{});
}

TEST(QueueOrderTest, SharersOfOneMemoryWaitForEachOther) {
  CallLog log;
  const auto memory = std::make_shared<cpu::HostBuffers>();
  RecordingBackend a(log, "a", memory), b(log, "b"), c(log, "c", memory);
  const std::vector<sched::Backend*> all{&a, &b, &c};
  QueueOrder order(all, 1);
  log.calls.clear();
  EXPECT_TRUE(order.after_sharers(2).is_ok());
  EXPECT_EQ(log.take(), (Calls{"a.record a0", "c.wait a0"}));
  EXPECT_TRUE(order.after_sharers(0).is_ok());
  EXPECT_EQ(log.take(), (Calls{"c.record c0", "a.wait c0"}));
}

// The place in a's memory: b and c read that memory, d does not.
TEST(QueueOrderTest, APlaceIsFreeAfterTheLastRunThatUsedIt) {
  CallLog log;
  RecordingBackend a(log, "a");
  RecordingTraits reads_a;
  reads_a.reads = {a.memory()};
  RecordingTraits reads_a_without_events = reads_a;
  reads_a_without_events.has_events = false;
  RecordingBackend b(log, "b", reads_a), c(log, "c", reads_a_without_events), d(log, "d");
  const std::vector<sched::Backend*> all{&a, &b, &c, &d};
  QueueOrder order(all, 2);
  log.calls.clear();
  for (const std::uint32_t place : {0u, 1u}) {
    EXPECT_TRUE(order.after_run(3, 0, place).is_ok());
    EXPECT_EQ(log.take(), Calls{});  // no run has used it
  }
  EXPECT_TRUE(order.end_run(1).is_ok());
  EXPECT_EQ(log.take(), (Calls{"a.record a2", "b.record b2", "d.record d2"}));
  EXPECT_TRUE(order.after_run(3, 0, 0).is_ok());
  EXPECT_EQ(log.take(), Calls{});
  EXPECT_TRUE(order.after_run(3, 0, 1).is_ok());
  EXPECT_EQ(log.take(), (Calls{"d.wait a2", "d.wait b2", "c.synchronize"}));
  // b itself is one of the readers, and need not wait for its own queue.
  EXPECT_TRUE(order.after_run(1, 0, 1).is_ok());
  EXPECT_EQ(log.take(), (Calls{"b.wait a2", "c.synchronize"}));
}

TEST(QueueOrderTest, ReturnsTheFirstErrorOfABackend) {
  Three three;
  QueueOrder order(three.all, 1);
  three.log.refuse("b.record", Code::kDeviceLost);
  EXPECT_EQ(order.after(0, 1).code(), Code::kDeviceLost);
  EXPECT_EQ(order.end_run(0).code(), Code::kDeviceLost);
  three.log.calls.clear();
  EXPECT_TRUE(order.after_run(0, 1, 0).is_ok());
  EXPECT_EQ(three.log.take(), Calls{});  // the end that could not be marked is none
  three.log.refuse_nothing();
  three.log.refuse("a.wait", Code::kDriverError);
  EXPECT_EQ(order.after(0, 1).code(), Code::kDriverError);
  EXPECT_TRUE(order.end_run(0).is_ok());
  EXPECT_EQ(order.after_run(0, 1, 0).code(), Code::kDriverError);
}

}  // namespace
}  // namespace ashlar
