// Threads: two and four at once on shared and separate streams, over real memory and over a slow
// device.
//
// Imitates: data loaders and training threads that allocate, hand memory to other streams, free
// from other threads, trim and read statistics at the same time. Under ThreadSanitizer it looks for
// races; everywhere it checks that no two owners ever share a byte (each owner writes its name into
// its memory and reads it back) and that the books balance at the end. The historical bugs it
// covers: H38 (statistics outside the lock), H41 (records updated after the upstream free), H42 (trim
// while another thread allocates after running out), H44 (reorganisation races allocation), H5 (the
// per-thread default stream).
// Does not prove: that every interleaving was seen.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/host_device.h>

#include "props/cache/thread_stress.h"
#include "props/sanitizers.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

constexpr int kRounds = props::kIsSanitized ? 1500 : 6000;

constexpr DeviceId kDevice{0};

using props::Held;
using props::is_signed;
using props::LingeringDevice;
using props::sign;

std::string imbalance(Bytes capacity, std::vector<unsigned> stream_of_thread,
                      cache::Backing backing = cache::Backing::kSegments) {
  props::Stress stress({capacity, std::move(stream_of_thread), 1, kRounds, backing});
  stress.run();
  return stress.find_imbalance();
}

TEST(CacheThreadsTest, TwoThreadsOnTwoStreamsShareNothing) {
  EXPECT_EQ(imbalance(Bytes::max(), {0, 1}), "");
}

TEST(CacheThreadsTest, TwoThreadsOnOneStreamShareItsHeap) {
  EXPECT_EQ(imbalance(Bytes::max(), {0, 0}), "");
}

TEST(CacheThreadsTest, TwoThreadsOnOneStreamMapPagesIntoOneHeap) {
  EXPECT_EQ(imbalance(Bytes::max(), {0, 0}, cache::Backing::kPages), "");
}

TEST(CacheThreadsTest, FourThreadsAtTheLimitMoveEachOthersPages) {
  EXPECT_EQ(imbalance(48_MiB, {0, 1, 2, 2}, cache::Backing::kPages), "");
}

TEST(CacheThreadsTest, FourThreadsAtTheLimitReclaimFromEachOther) {
  EXPECT_EQ(imbalance(96_MiB, {0, 1, 2, 2}), "");
}

/// Each growth takes pages that another stream has, at places where some of its own are still mapped, while
/// a third thread gives pages to the driver.
TEST(CacheThreadsTest, PagesComeBackToTheirPlacesWhileOthersAreGivenBack) {
  constexpr std::uint64_t kPage = 2u << 20;
  device::HostDevice host(kDevice, 8_MiB);
  device::Device* devices[] = {&host};
  cache::Config config;
  config.backing = cache::Backing::kPages;
  const auto allocator = cache::CachingAllocator::create(devices, config).value();
  const Stream streams[] = {host.create_stream().value(), host.create_stream().value()};
  std::atomic<bool> is_over{false};
  std::atomic<int> surprises{0};
  std::atomic<int> served{0};
  const auto work = [&](unsigned thread) {
    for (unsigned round = 0; !is_over.load(); ++round) {
      const auto got = allocator->allocate(Bytes{kPage * (1 + round % 3)}, streams[thread]);
      if (got.is_ok()) {
        ++served;
        if (!allocator->free(got.value()).is_ok()) ++surprises;
      } else if (got.code() != Code::kOutOfMemory) {
        ++surprises;
      }
    }
  };
  std::thread first(work, 0u);
  std::thread second(work, 1u);
  for (int trims = 0; trims < 100; ++trims) {
    const int before = served.load();
    while (served.load() < before + 4) std::this_thread::yield();
    const Status trimmed = allocator->trim(kDevice);
    if (!trimmed.is_ok() && trimmed.code() != Code::kNotReady) ++surprises;
  }
  is_over = true;
  first.join();
  second.join();
  EXPECT_EQ(surprises.load(), 0);
  EXPECT_EQ(allocator->validate(), nullptr);
}

/// Some threads make and end streams while others allocate and, by mistake, name streams that are
/// ending or have ended.
class Succession {
 public:
  Succession() {
    device::Device* devices[] = {&device_};
    allocator_ = cache::CachingAllocator::create(devices, cache::Config{}).value();
    for (int i = 0; i < 2; ++i) settled_.push_back(host_.create_stream().value());
    newest_ = settled_[0];
  }

  void run() {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([this, t] { come_and_go(t); });
      threads.emplace_back([this, t] { stay(t); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(surprises_.load(), 0u)
        << "an answer that is neither ok nor the typed error of the mistake";
    EXPECT_EQ(overlaps_.load(), 0u) << "C2: two owners shared bytes";
    EXPECT_EQ(allocator_->validate(), nullptr);
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    EXPECT_EQ(allocator_->stats(kDevice).value().allocations[0].current, 0u);
    EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, 0u);
  }

 private:
  static constexpr int kLives = kRounds / 4;

  void come_and_go(unsigned thread) {
    for (int life = 0; life < kLives; ++life) {
      const Stream stream = host_.create_stream().value();
      set_newest(stream);  // already now, so that some name it while it dies
      const Held held =
          take(stream, (std::uint64_t{thread + 1} << 32) | static_cast<unsigned>(life));
      const Stream& other = settled_[static_cast<unsigned>(life) % 2];
      release(held, life % 3 == 0 ? &other : nullptr);
      expect(allocator_->retire_stream(stream).is_ok());
      expect(host_.destroy_stream(stream.handle).is_ok());
    }
  }

  void stay(unsigned thread) {
    for (int round = 0; round < 2 * kLives; ++round) {
      const Stream& own = settled_[thread];
      // Another thread's stream, which may be ending or have ended. Handle and identity are always
      // of one stream: no device gives out another pair, and the allocator would take it for the
      // stream with that identity.
      const Stream newest = this->newest();
      const Held held = take(own, (std::uint64_t{thread + 3} << 32) | static_cast<unsigned>(round));
      if (round % 4 == 0) static_cast<void>(allocator_->record_use(held.address, newest));
      release(held, round % 4 == 1 ? &newest : nullptr);
      if (round % 16 == 2) {
        // Others go on using blocks: on a busy machine the trim's second may pass meanwhile.
        const Status trimmed = allocator_->trim(kDevice);
        expect(trimmed.is_ok() || trimmed.code() == Code::kNotReady);
      }
      if (round % 16 == 3) static_cast<void>(allocator_->stats(kDevice));
      if (round % 16 != 4) continue;
      const Result<Address> mistaken = allocator_->allocate(1_KiB, newest);
      expect(mistaken.is_ok() || mistaken.code() == Code::kInvalidHandle);
      if (mistaken.is_ok()) expect(allocator_->free(mistaken.value()).is_ok());
    }
  }

  Held take(const Stream& stream, std::uint64_t name) {
    const Result<Address> got = allocator_->allocate(64_KiB, stream);
    expect(got.is_ok());
    const Held held{got.value(), 64_KiB, name};
    sign(held);
    return held;
  }
  void release(const Held& held, const Stream* other) {
    if (!is_signed(held)) ++overlaps_;
    expect(
        (other == nullptr ? allocator_->free(held.address) : allocator_->free(held.address, *other))
            .is_ok());
  }
  void expect(bool holds) { surprises_ += holds ? 0 : 1; }
  void set_newest(const Stream& stream) {
    const std::lock_guard lock(newest_lock_);
    newest_ = stream;
  }
  Stream newest() {
    const std::lock_guard lock(newest_lock_);
    return newest_;
  }

  device::HostDevice host_{kDevice};
  LingeringDevice device_{host_};
  std::unique_ptr<cache::CachingAllocator> allocator_;
  std::vector<Stream> settled_;
  std::mutex newest_lock_;
  Stream newest_;
  std::atomic<std::uint64_t> overlaps_{0};
  std::atomic<std::uint64_t> surprises_{0};
};

TEST(CacheThreadsTest, StreamsComeAndGoWhileOthersAllocateAndNameTheDying) {
  Succession streams;
  streams.run();
}

/// Returns what is wrong with the snapshot's shape, or nullptr.
const char* fault_of(const cache::Snapshot& snapshot) {
  Address below;
  for (const cache::SnapshotSegment& segment : snapshot.segments) {
    if (segment.base < below) return "two segments overlap, or are not sorted";
    Address at = segment.base;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const cache::SnapshotBlock& block = snapshot.blocks[segment.block_first + i];
      if (block.address != at) return "C3: two blocks of a segment overlap or leave a gap";
      at = block.address + block.size;
    }
    below = segment.base + segment.size;
    if (at != below) return "C3: a segment does not end with its last block";
  }
  return nullptr;
}

TEST(CacheThreadsTest, ASnapshotOfLongSegmentsHoldsTogetherWhileTheirBlocksComeAndGo) {
  // C31: a segment of thousands of blocks is copied in slices. Between them the other thread splits
  // and merges the blocks at which the copy goes on, and frees most of a segment at once.
  device::HostDevice host(kDevice);
  device::Device* devices[] = {&host};
  auto allocator = cache::CachingAllocator::create(devices, cache::Config{}).value();
  const Stream stream = host.create_stream().value();
  std::vector<Address> kept;
  std::vector<Address> others;
  for (int i = 0; i < 4000; ++i)
    (i % 100 == 0 ? kept : others).push_back(allocator->allocate(512_B, stream).value());
  std::sort(kept.begin(), kept.end());
  std::atomic<bool> is_over{false};
  std::atomic<int> changes{0};
  const auto change = [&](Address& block, Bytes size) {
    if (!block.is_null() && !allocator->free(block).is_ok()) ADD_FAILURE();
    block = size == 0_B ? Address{} : allocator->allocate(size, stream).value();
    changes.fetch_add(1, std::memory_order_relaxed);
  };
  std::thread churn([&] {
    std::mt19937 random(1);
    for (std::size_t i = 0; !is_over.load(); ++i) {
      const std::size_t round = i / others.size() % 4;  // two of any sizes, frees, and all again
      if (round < 2)
        change(others[random() % others.size()], Bytes{random() % 2 == 0 ? 0 : random() % 1024});
      else change(others[i % others.size()], round == 2 ? 0_B : 512_B);
    }
  });
  cache::Snapshot snapshot;
  // Builds that validate the pool at every step change few blocks a second.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (changes.load() < 500 * kRounds && std::chrono::steady_clock::now() < end) {
    EXPECT_TRUE(allocator->snapshot(kDevice, &snapshot).is_ok());
    EXPECT_STREQ(fault_of(snapshot), nullptr);
    std::size_t shown = 0;
    for (const cache::SnapshotBlock& block : snapshot.blocks) {
      if (block.state == BlockState::kLive &&
          std::binary_search(kept.begin(), kept.end(), block.address))
        ++shown;
    }
    EXPECT_EQ(shown, kept.size()) << "a block that is live all the time is not shown";
  }
  is_over.store(true);
  churn.join();
}

TEST(CacheThreadsTest, AThreadsDefaultStreamIsItsOwnThoughTheHandleIsShared) {
  // H5: memory that thread 1's default stream still uses is not given to the next thread, although
  // both pass the same handle.
  spec::SimGpu gpu;
  device::Device* devices[] = {&gpu.device()};
  cache::Config config;
  config.wait_ms = 0;
  auto allocator = cache::CachingAllocator::create(devices, config).value();
  gpu.act_as_thread(1);
  const Stream first = gpu.default_stream(kDevice, spec::kPerThreadStream);
  gpu.act_as_thread(2);
  const Stream second = gpu.default_stream(kDevice, spec::kPerThreadStream);
  ASSERT_EQ(first.handle, second.handle);
  ASSERT_NE(first.id, second.id);
  gpu.act_as_thread(1);
  const Address block = allocator->allocate(30_MiB, first).value();
  ASSERT_TRUE(
      gpu.launch(first, spec::Touch{block, 30_MiB, spec::Access::kWrite, spec::kNoTag}).is_ok());
  ASSERT_TRUE(allocator->free(block).is_ok());
  gpu.act_as_thread(2);
  const Address other = allocator->allocate(30_MiB, second).value();
  EXPECT_NE(other, block);
  ASSERT_TRUE(gpu.drain_all().is_ok());
  gpu.act_as_thread(1);
  EXPECT_EQ(allocator->allocate(30_MiB, first).value(), block);
}

TEST(CacheTeardownTest, ADeviceWaitsForTheOtherWhoseStreamStillUsesItsMemory) {
  // D4 at the end of an allocator: no block of device 1 is in use, but a kernel of device 1 uses a
  // block of device 0.
  spec::SimGpuOptions options;
  options.capacities = {64_MiB, 64_MiB};
  spec::SimGpu gpu(options);
  device::Device* devices[] = {&gpu.device(0), &gpu.device(1)};
  auto allocator = cache::CachingAllocator::create(devices, cache::Config{}).value();
  const Stream own = gpu.create_stream(DeviceId{0}).value();
  const Stream other = gpu.create_stream(DeviceId{1}).value();
  const Address block = allocator->allocate(4_MiB, own).value();
  ASSERT_TRUE(gpu.host_function(other).is_ok());
  ASSERT_TRUE(allocator->free(block, other).is_ok());
  ASSERT_GT(gpu.pending(other), 0u);
  allocator.reset();
  EXPECT_EQ(gpu.pending(other), 0u)
      << "the segment went back before the other device's stream was done";
}

}  // namespace
}  // namespace ashlar
