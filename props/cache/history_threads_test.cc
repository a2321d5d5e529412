// Snapshots with histories while other threads allocate, free, use, trim and hit the limit.
//
// Imitates: a monitor that takes a snapshot of a training process now and then. The monitor follows every
// event from one snapshot to the next, as a viewer does, and what the events make of the first must be the
// second. Other snapshots are undone, as a viewer does, while histories end and begin, ranges of addresses come,
// and segments pass from stream to stream. Device calls linger where memory comes and goes (thread_stress.h), so that copies fall into the
// middle of growths, adoptions and releases.
// Does not prove: that every interleaving was seen.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <ashlar/cache/history_calls.h>
#include <ashlar/exchange/rewind.h>

#include "props/cache/thread_stress.h"
#include "spec/model/history_book.h"

namespace ashlar::cache {
namespace {

using props::kStressDevice;

constexpr unsigned kThreads = 3;
constexpr std::size_t kHeldMax = 24;

/// Allocates and frees at random on a stream of its own until it is told to stop.
class Worker {
 public:
  Worker(CachingAllocator& allocator, const std::vector<Stream>& streams, unsigned number)
      : allocator_(allocator), streams_(streams), own_(streams[number]), random_(number) {}

  void run(const std::atomic<bool>& is_over) {
    while (!is_over.load()) step();
    while (!held_.empty()) free_one();
  }

 private:
  void step() {
    const unsigned draw = static_cast<unsigned>(random_() % 64);
    if (draw == 0) static_cast<void>(allocator_.trim(kStressDevice));
    if (draw < 32 && held_.size() < kHeldMax) return allocate();
    if (draw < 40 && !held_.empty())
      static_cast<void>(allocator_.record_use(held_.back(), streams_[random_() % streams_.size()]));
    if (!held_.empty()) free_one();
  }
  void allocate() {
    const Bytes size{random_() % 8 == 0 ? random_() % (12u << 20) : random_() % (64u << 10)};
    const Result<Address> got = allocator_.allocate(size, own_);
    if (got.is_ok() && !got.value().is_null()) held_.push_back(got.value());
    else if (!held_.empty()) free_one();
  }
  void free_one() {
    std::swap(held_[random_() % held_.size()], held_.back());
    EXPECT_TRUE(allocator_.free(held_.back()).is_ok());
    held_.pop_back();
  }

  CachingAllocator& allocator_;
  const std::vector<Stream>& streams_;
  const Stream own_;
  std::mt19937 random_;
  std::vector<Address> held_;
};

/// An allocator over this computer's memory, and streams.
struct Rig {
  /// `lingers`: device calls do.
  Rig(Bytes capacity, unsigned stream_count, const Config& config, bool lingers = false)
      : host(kStressDevice, capacity), lingering(host) {
    device::Device* devices[] = {lingers ? static_cast<device::Device*>(&lingering) : &host};
    allocator = CachingAllocator::create(devices, config).value();
    for (unsigned i = 0; i < stream_count; ++i) streams.push_back(host.create_stream().value());
  }

  device::HostDevice host;
  props::LingeringDevice lingering;
  std::unique_ptr<CachingAllocator> allocator;
  std::vector<Stream> streams;
};

class HistoryThreadsTest : public ::testing::TestWithParam<Backing> {};

TEST_P(HistoryThreadsTest, WhatTheEventsMakeOfASnapshotIsTheNextOne) {
  Config config;
  config.backing = GetParam();
  config.wait_ms = 5;
  Rig rig(48_MiB, kThreads, config, true);
  CachingAllocator& allocator = *rig.allocator;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { Worker(allocator, rig.streams, i).run(is_over); });
  }
  HistoryOptions options;
  options.events_max = 1u << 20;
  ASSERT_TRUE(start_history(allocator, kStressDevice, options).is_ok());
  spec::HistoryBook book;
  HistorySnapshot taken;
  ASSERT_TRUE(history_snapshot(allocator, kStressDevice, &taken).is_ok());
  book.begin(taken.snapshot, taken.history.events.back().sequence + 1);
  std::uint64_t followed = 0;
  // At least so many rounds, and until the threads have got somewhere.
  for (int i = 0; i < 300 || followed < 5000; ++i) {
    ASSERT_LT(i, 100'000) << "the threads hardly run";
    std::this_thread::yield();
    ASSERT_TRUE(history_snapshot(allocator, kStressDevice, &taken).is_ok());
    for (const HistoryEvent& event : taken.history.events) {
      if (event.sequence < book.next()) continue;
      ASSERT_EQ(book.follow(event), "") << "round " << i;
      ++followed;
    }
    ASSERT_EQ(book.difference(taken.snapshot), "") << "round " << i;
    if (i % 50 ==
        49) {  // from the beginning again, so that starts are seen among running threads too
      ASSERT_TRUE(stop_history(allocator, kStressDevice).is_ok());
      ASSERT_TRUE(start_history(allocator, kStressDevice, options).is_ok());
      ASSERT_TRUE(history_snapshot(allocator, kStressDevice, &taken).is_ok());
      book.begin(taken.snapshot, taken.history.events.back().sequence + 1);
    }
  }
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
}

/// Takes so many snapshots while threads run, and undoes each one's events in it, as a viewer does. `passes`: no
/// segment goes back to the device, so each that is freed passes to another stream (history.h (4)).
void expect_snapshots_agree(CachingAllocator& allocator, std::atomic<bool>& is_over,
                            std::vector<std::thread>& threads, int rounds, bool passes = false) {
  std::uint64_t seen = 0;
  // At least so many rounds, and until a history was on in one.
  for (int i = 0; (i < rounds || seen == 0) && !::testing::Test::HasFailure(); ++i) {
    EXPECT_LT(i, 10'000'000) << "the threads hardly run";
    std::this_thread::yield();
    HistorySnapshot taken;
    const Status status = history_snapshot(allocator, kStressDevice, &taken);
    EXPECT_TRUE(status.is_ok() || status.code() == Code::kBusy) << status.why();
    const std::vector<HistoryEvent>& events = taken.history.events;
    seen += events.size();
    for (std::size_t k = 0; k + 1 < events.size(); ++k) {
      EXPECT_EQ(events[k].sequence + 1, events[k + 1].sequence);
      if (passes && events[k].action == HistoryAction::kSegmentFree) {
        EXPECT_EQ(events[k + 1].action, HistoryAction::kSegmentAllocate) << "round " << i;
      }
    }
    exchange::Rewind state;
    const Status undone = exchange::rewind_all(taken, &state);
    EXPECT_TRUE(undone.is_ok()) << "round " << i << ": " << undone.why();
  }
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(HistoryThreadsTest, ASnapshotAgreesThoughTheHistoryEndsAndBeginsMeanwhile) {
  Config config;
  config.backing = GetParam();
  config.wait_ms = 5;
  Rig rig(48_MiB, kThreads, config);
  CachingAllocator& allocator = *rig.allocator;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads - 1; ++i)
    threads.emplace_back([&, i] { Worker(allocator, rig.streams, i).run(is_over); });
  threads.emplace_back([&] {
    HistoryOptions options;
    for (unsigned n = 0; !is_over.load(); ++n) {
      options.events_max = n % 2 == 0 ? 1u << 20 : 1u << 12;
      EXPECT_TRUE(start_history(allocator, kStressDevice, options).is_ok());
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      EXPECT_TRUE(stop_history(allocator, kStressDevice).is_ok());
    }
  });
  expect_snapshots_agree(allocator, is_over, threads, 1000);
}

TEST_P(HistoryThreadsTest, ASnapshotAgreesThoughRangesOfAddressesComeMeanwhile) {
  Config config;
  config.backing = GetParam();
  Rig rig(2_GiB, 4, config);
  CachingAllocator& allocator = *rig.allocator;
  HistoryOptions options;
  options.events_max = 1u << 15;
  ASSERT_TRUE(start_history(allocator, kStressDevice, options).is_ok());
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Address> live;
      while (!is_over.load()) {
        if (live.size() < 12 && random() % 3 != 0) {
          const Bytes size{1 + random() % (random() % 4 == 0 ? 40u << 20 : 1u << 20)};
          const auto got = allocator.allocate(size, rig.streams[random() % rig.streams.size()]);
          if (got.is_ok()) live.push_back(got.value());
        } else if (!live.empty()) {
          EXPECT_TRUE(allocator.free(live.back()).is_ok());
          live.pop_back();
        }
        if (random() % 50 == 0) static_cast<void>(allocator.trim(kStressDevice));
      }
      for (const Address each : live) EXPECT_TRUE(allocator.free(each).is_ok());
    });
  }
  expect_snapshots_agree(allocator, is_over, threads, 400);
}

TEST(HistoryPassingTest, ASegmentIsOfOneStreamInEverySnapshotAndPassesInOneStep) {
  Config config;
  config.backing = Backing::kSegments;
  Rig rig(62_MiB, 4, config);  // two segments, for four streams
  CachingAllocator& allocator = *rig.allocator;
  HistoryOptions options;
  options.events_max = 20'000;
  ASSERT_TRUE(start_history(allocator, kStressDevice, options).is_ok());
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned n = 0; !is_over.load(); ++n) {
        const auto got = allocator.allocate(30_MiB, rig.streams[2 * t + n % 2]);
        if (got.is_ok()) {
          EXPECT_TRUE(allocator.free(got.value()).is_ok());
        }
      }
    });
  }
  expect_snapshots_agree(allocator, is_over, threads, 400, true);
}

/// Numbers its calls.
class SharedRecorder final : public ContextRecorder {
 public:
  ContextId gather() noexcept override { return ContextId{calls.fetch_add(1) + 1}; }
  std::atomic<std::uint64_t> calls{0};
};

// What a snapshot says of a block's context is what the history of the same call says.
TEST(HistoryContextsThreadsTest, ALiveBlockHasTheContextOfItsNewestAllocation) {
  Rig rig(48_MiB, 4, {});
  CachingAllocator& allocator = *rig.allocator;
  SharedRecorder recorder;
  ASSERT_TRUE(
      start_history(allocator, kStressDevice, {.events_max = 1u << 13, .recorder = &recorder})
          .is_ok());
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::vector<Address> held;
      for (unsigned n = 0; !is_over.load(); ++n) {
        const auto got = allocator.allocate(Bytes{512 * (1 + n % 7)}, rig.streams[t]);
        if (got.is_ok()) held.push_back(got.value());
        if (n % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
        if (held.size() < 40) continue;
        for (const Address each : held) EXPECT_TRUE(allocator.free(each).is_ok());
        held.clear();
      }
      for (const Address each : held) EXPECT_TRUE(allocator.free(each).is_ok());
    });
  std::uint64_t compared = 0;
  for (int round = 0; round < 100 || compared == 0; ++round) {
    ASSERT_LT(round, 10'000'000) << "the threads hardly run";
    HistorySnapshot taken;
    if (!history_snapshot(allocator, kStressDevice, &taken).is_ok()) continue;
    std::unordered_map<Address, ContextId> newest;
    for (const HistoryEvent& event : taken.history.events) {
      if (event.action == HistoryAction::kAllocate) newest[event.address] = event.context;
    }
    for (std::size_t i = 0; i < taken.snapshot.blocks.size(); ++i) {
      const SnapshotBlock& block = taken.snapshot.blocks[i];
      if (block.state != BlockState::kLive) continue;
      const ContextId context = taken.block_contexts[i];
      EXPECT_NE(context, ContextId{}) << "round " << round;
      if (newest.count(block.address) == 0) continue;  // its event is overwritten
      EXPECT_EQ(context, newest[block.address]) << "round " << round;
      ++compared;
    }
    if (::testing::Test::HasFailure()) break;
    std::this_thread::yield();
  }
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Backings, HistoryThreadsTest,
                         ::testing::Values(Backing::kSegments, Backing::kPages));

}  // namespace
}  // namespace ashlar::cache
