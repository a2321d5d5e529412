// Epochs, their marks, deadlines and observers' scopes, each against the plainest model of it.
//
// Imitates: releases and polls in any order; waits of any length, refused or served, by a clock that
// the test sets. Does not prove: that the callers record and ask at the right moments.
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <ashlar/cache/deadline.h>
#include <ashlar/cache/epoch_clock.h>
#include <ashlar/cache/epoch_marks.h>
#include <ashlar/cache/observer_scope.h>

#include "props/cache/parts_fixture.h"

namespace ashlar::cache {
namespace {

TEST(EpochClockTest, ItKnowsOfEveryStampWhetherItsWorkIsComplete) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    EpochClock clock;
    std::uint64_t now = 1, newest = 0, completed = 0;
    for (int step = 0; step < 300; ++step) {
      switch (random() % 4) {
        case 0:
          EXPECT_EQ(clock.stamp_release(), now);
          newest = now;
          break;
        case 1:
          EXPECT_EQ(clock.advance(), now);
          ++now;
          break;
        case 2: {
          const std::uint64_t covers = random() % now;
          clock.complete(covers);
          if (covers > completed) completed = covers;
          break;
        }
        case 3:
          if (random() % 8 != 0) break;
          clock.pass_on();
          completed = now;
          ++now;
      }
      ASSERT_EQ(clock.now(), now);
      ASSERT_EQ(clock.newest_release(), newest);
      ASSERT_EQ(clock.completed(), completed);
      ASSERT_EQ(clock.is_all_complete(), newest <= completed);
      for (std::uint64_t stamp = 0; stamp <= now; ++stamp)
        ASSERT_EQ(clock.is_complete(stamp), stamp <= completed);
      ASSERT_FALSE(clock.is_complete(kEverything));
    }
    clock.complete(kEverything);
    EXPECT_TRUE(clock.is_complete(clock.now()));
  }
}

/// Counts events.
class EventsDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::uint64_t made = 0;
  std::uint64_t live = 0;
  Result<EventHandle> event_create() noexcept override {
    ++made;
    ++live;
    return EventHandle{made};
  }
  Status event_destroy(EventHandle) noexcept override {
    --live;
    return Status::ok();
  }
};

/// Damages each mark in turn, and mends it.
void expect_damage_is_reported(const EpochMarks& marks) {
  for (unsigned i = 0; i < marks.count(); ++i) {
    auto& mark = const_cast<EpochMark&>(marks[i]);
    EventPool* const pool = std::exchange(mark.slot.pool, nullptr);
    ASSERT_STREQ(marks.validate(), "marks(1): a mark without an event");
    mark.slot.pool = pool;
    if (i == 0) continue;
    for (const std::uint64_t less : {0u, 1u}) {
      const std::uint64_t covers = std::exchange(mark.covers, marks[i - 1].covers - less);
      ASSERT_STREQ(marks.validate(), "marks(1): a later mark covers no more");
      mark.covers = covers;
    }
  }
}

spec::SimGpu one_device() {
  spec::SimGpuOptions options;
  options.capacities = {64_MiB};
  return spec::SimGpu(options);
}

struct MarkModel {
  std::uint64_t covers, sequence, event;
};

void expect_same(const EpochMarks& marks, const std::deque<MarkModel>& model) {
  ASSERT_EQ(marks.count(), model.size());
  ASSERT_EQ(marks.is_empty(), model.empty());
  for (unsigned i = 0; i < model.size(); ++i) {
    ASSERT_EQ(marks[i].covers, model[i].covers);
    ASSERT_EQ(marks[i].sequence, model[i].sequence);
    ASSERT_EQ(marks[i].slot.event.value(), model[i].event);
  }
  if (!model.empty()) {
    ASSERT_EQ(marks.oldest().covers, model.front().covers);
    ASSERT_EQ(marks.newest().covers, model.back().covers);
  }
}

TEST(EpochMarksTest, TheyAreARowOfFourThatMakesNoMoreEventsThanItHolds) {
  spec::SimGpu gpu = one_device();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EventsDevice device(gpu.device(0));
    Driver* first = nullptr;
    Driver driver(device, first);
    const std::atomic<unsigned> waiters{0};
    EventPool events(driver, waiters);
    EpochMarks marks;
    std::deque<MarkModel> model;
    std::uint64_t covers = 0, most = 0;
    std::mt19937_64 random(seed);
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t what = random() % 10;
      if (what < 6) {
        ASSERT_TRUE(events.fill(marks.next_slot()).is_ok());
        const std::uint64_t event = marks.next_slot().event.value();
        most = std::max<std::uint64_t>(most, model.size() + 1);
        covers += 1 + random() % 3;
        const std::uint64_t sequence = random();
        marks.push(events, covers, sequence);
        if (model.size() == 4) model.pop_back();
        model.push_back({covers, sequence, event});
      } else if (what < 9 && !model.empty()) {
        const auto n = static_cast<unsigned>(1 + random() % model.size());
        ASSERT_EQ(marks.drop_oldest(events, n), model[n - 1].covers);
        model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(n));
      } else if (what == 9) {
        marks.set_unmarked({covers, static_cast<std::uint64_t>(step) + 1});
        EXPECT_EQ(marks.unmarked().covers, covers);
        marks.clear(events);
        EXPECT_EQ(marks.unmarked().covers, 0u);
        EXPECT_EQ(marks.unmarked().sequence, 0u);
        model.clear();
      }
      if (random() % 2 == 0) {  // another slot takes what is pooled
        EventSlot other;
        ASSERT_TRUE(events.fill(other).is_ok());
        most = std::max<std::uint64_t>(most, model.size() + 1);
        events.give(other);
      }
      ASSERT_STREQ(marks.validate(), nullptr);
      expect_same(marks, model);
      expect_damage_is_reported(marks);
      ASSERT_EQ(device.made, most) << "an event that no mark holds any more serves the next one";
    }
    marks.destroy_events();
    EXPECT_EQ(marks.count(), 0u);
    events.clear();
    EXPECT_EQ(device.live, 0u) << "C14";
  }
}

/// A clock that the test sets.
class ClockDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::uint64_t now = 0;
  std::uint64_t now_ns() const noexcept override { return now; }
};

class DeadlineTest : public ::testing::Test {
 protected:
  spec::SimGpu gpu_ = one_device();
  ClockDevice device_{gpu_.device(0)};
  Driver* first_ = nullptr;
  const Driver driver_{device_, first_};
};

TEST_F(DeadlineTest, WhatIsLeftIsWhatWasPermittedLessWhatPassedRoundedUp) {
  using Wide = __int128;
  for (const std::uint32_t permitted : {0u, 1u, 2u, 15u, 16u, 17u, 31u, 32u, 159u, 160u, 161u,
                                        1000u, 4294967294u, device::kWaitForever}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      std::mt19937_64 random(seed);
      device_.now = random() % 1'000'000'000'000;
      Deadline deadline(driver_, permitted);
      const bool is_endless = permitted == device::kWaitForever;
      Wide end = Wide{device_.now} + Wide{permitted} * 1'000'000;
      unsigned refusals = 0;
      bool is_over = permitted == 0;
      for (int step = 0; step < 60; ++step) {
        const Wide left_ns = end > device_.now ? end - device_.now : 0;
        const auto left =
            is_over ? 0u : static_cast<std::uint32_t>((left_ns + 999'999) / 1'000'000);
        ASSERT_EQ(deadline.is_endless(), is_endless);
        ASSERT_EQ(deadline.left_ms(), is_endless ? device::kWaitForever : left);
        const std::uint32_t a_16th = is_over ? 1 : std::max(1u, permitted / 16);
        ASSERT_EQ(deadline.slice_ms(), is_endless ? 10 : std::min({left, a_16th, 10u}));
        switch (random() % 4) {
          case 0: device_.now += 1 + random() % 3'000'000; break;
          case 1:  // to the moment itself, one before it, or one after
            if (!is_endless && left_ns > 1)
              device_.now += static_cast<std::uint64_t>(left_ns) - 1 + random() % 3;
            break;
          case 2: {
            const auto ms = static_cast<std::uint32_t>(random() % 5);
            deadline.leave_ms(ms);
            const Wide at_least = Wide{device_.now} + Wide{ms} * 1'000'000;
            if (at_least > end) end = at_least;
            break;
          }
          default: {
            if (is_endless || refusals >= seed * 2) break;
            const auto ms = static_cast<std::uint32_t>(1 + random() % 3);
            deadline.charge_ms(ms);
            end -= Wide{ms} * 1'000'000;
            if (++refusals == 16) is_over = true;
          }
        }
      }
    }
  }
}

TEST_F(DeadlineTest, AWaitWithoutAnEndEndsAfterSixteenRefusals) {
  Deadline deadline(driver_, device::kWaitForever);
  for (int i = 1; i <= 16; ++i) {
    EXPECT_TRUE(deadline.is_endless()) << i;
    deadline.charge_ms(10);
  }
  EXPECT_FALSE(deadline.is_endless());
  EXPECT_EQ(deadline.left_ms(), 0u);
  EXPECT_EQ(deadline.slice_ms(), 0u);
}

TEST(ObserverScopeTest, AThreadIsInsideTheAllocatorsWhoseObserversItRuns) {
  std::atomic<unsigned> a{0}, b{0};
  const auto expect = [&](unsigned in_a, unsigned in_b) {
    EXPECT_EQ(a.load(), in_a);
    EXPECT_EQ(b.load(), in_b);
    EXPECT_EQ(ObserverScope::is_inside(a), in_a > 0);
    EXPECT_EQ(ObserverScope::is_inside(b), in_b > 0);
    std::thread([&] {  // another thread is inside neither
      EXPECT_FALSE(ObserverScope::is_inside(a));
      EXPECT_FALSE(ObserverScope::is_inside(b));
      {
        const ObserverScope scope(b);
        EXPECT_EQ(b.load(), in_b + 1);
        EXPECT_TRUE(ObserverScope::is_inside(b));
      }
      EXPECT_FALSE(ObserverScope::is_inside(b));
    })
        .join();
    EXPECT_EQ(b.load(), in_b);
  };
  expect(0, 0);
  {
    const ObserverScope outer(a);
    expect(1, 0);
    {
      const ObserverScope inner(b);
      expect(1, 1);
    }
    expect(1, 0);
  }
  expect(0, 0);
}

}  // namespace
}  // namespace ashlar::cache
