// HistoryLog alone: what begins and ends, what is overwritten while it is read, and the times of several threads.
//
// Imitates: the allocator's threads that note, and monitors that read. Does not prove: that changes are noted where they are
// made (history_threads_test.cc).
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/cache/history_log.h>

#include "props/sanitizers.h"

namespace ashlar::cache {
namespace {

HistoryEvent event(HistoryAction action, std::uint64_t address = 0) {
  HistoryEvent made;
  made.action = action;
  made.address = Address{address};
  made.size = made.block_size = 512_B;
  return made;
}

History all_of(const HistoryLog& log) {
  History history;
  log.read(0, ~std::uint64_t{0}, &history);
  return history;
}

TEST(HistoryLog, WhatWasNotedBeforeTheRestartIsForgottenWithItsTexts) {
  HistoryLog log;
  ASSERT_TRUE(log.begin({.events_max = 4}).is_ok());
  EXPECT_FALSE(log.place().is_whole);
  ASSERT_TRUE(log.annotate("early").is_ok());
  log.note(event(HistoryAction::kAllocate));
  log.restart();
  EXPECT_TRUE(log.place().is_whole);
  EXPECT_EQ(log.place().next, 0u);
  ASSERT_TRUE(log.annotate("late").is_ok());
  const History history = all_of(log);
  ASSERT_EQ(history.events.size(), 1u);
  EXPECT_EQ(history.texts, std::vector<std::string>{"late"});
  const std::uint64_t run = log.place().run;
  log.end();
  EXPECT_NE(log.place().run, run);
  EXPECT_FALSE(log.place().is_whole);
}

/// Numbers its calls.
class NumberingRecorder final : public ContextRecorder {
 public:
  ContextId gather() noexcept override { return ContextId{++calls}; }
  std::uint64_t calls = 0;
};

TEST(HistoryLog, AfterTheEndNobodyIsAsked) {
  HistoryLog log;
  NumberingRecorder recorder;
  ASSERT_TRUE(
      log.begin({.events_max = 4, .recorder = &recorder, .has_free_contexts = true}).is_ok());
  log.end();
  EXPECT_EQ(log.recorder(false), nullptr);
  EXPECT_EQ(log.recorder(true), nullptr);
}

TEST(HistoryLog, AContextIsKeptUntilTheFreeIsCompleted) {
  HistoryLog log;
  NumberingRecorder recorder;
  ASSERT_TRUE(log.begin({.events_max = 4, .recorder = &recorder}).is_ok());
  log.restart();
  HistoryEvent allocated = event(HistoryAction::kAllocate, 3);
  allocated.context = ContextId{9};
  log.note(allocated);
  EXPECT_EQ(log.context_of(allocated.address), ContextId{9});
  log.note(event(HistoryAction::kFreeRequested, 3));
  EXPECT_EQ(log.context_of(allocated.address), ContextId{9});
  log.note(event(HistoryAction::kFreeCompleted, 3));
  EXPECT_EQ(log.context_of(allocated.address), ContextId{});
}

TEST(HistoryLog, TheTextOfTheOldestEventIsKept) {
  HistoryLog log;
  ASSERT_TRUE(log.begin({.events_max = 3}).is_ok());
  log.restart();
  for (const char* text : {"0", "1", "2", "3", "4"}) ASSERT_TRUE(log.annotate(text).is_ok());
  EXPECT_EQ(all_of(log).texts, (std::vector<std::string>{"2", "3", "4"}));
}

TEST(HistoryLog, WhatIsReadWhileItIsOverwrittenIsInOrder) {
  HistoryLog log;
  ASSERT_TRUE(log.begin({.events_max = 4096}).is_ok());
  log.restart();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!is_over.load()) log.note(event(HistoryAction::kAllocate));
    });
  History history;
  // So many, since the reader is seldom overtaken between two holds of the lock.
  const std::uint64_t notes = props::kIsSanitized ? 500'000 : 20'000'000;
  while (log.place().next < notes && !::testing::Test::HasFailure()) {
    log.read(0, ~std::uint64_t{0}, &history);
    for (std::size_t i = 0; i + 1 < history.events.size(); ++i) {
      EXPECT_EQ(history.events[i].sequence + 1, history.events[i + 1].sequence);
      EXPECT_LE(history.events[i].time_us, history.events[i + 1].time_us);
    }
    if (!history.events.empty()) {
      EXPECT_EQ(history.events.front().sequence, history.lost);
    }
    std::this_thread::yield();
  }
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
}

TEST(HistoryLog, TimesOfSeveralThreadsDoNotDecrease) {
  HistoryLog log;
  ASSERT_TRUE(log.begin({.events_max = 1u << 20}).is_ok());
  log.restart();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 250'000; ++i) log.note(event(HistoryAction::kSnapshot));
    });
  for (std::thread& thread : threads) thread.join();
  const History history = all_of(log);
  ASSERT_EQ(history.events.size(), 1'000'000u);
  for (std::size_t i = 0; i + 1 < history.events.size(); ++i)
    ASSERT_LE(history.events[i].time_us, history.events[i + 1].time_us) << i;
}

}  // namespace
}  // namespace ashlar::cache
