// The allocator of page-locked memory on a GPU that copies from it: every copy reads what was there when it was enqueued.
//
// Imitates: a program that fills page-locked memory, copies it to the GPU and frees it at once, from several threads, in captures,
// and with streams that are held up. That the suite would see memory that is handed out too early is a test of its own.
// Does not prove: anything about devices that it is not run on.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <ashlar/pinned/pinned_allocator.h>

#include "props/on_gpu/gpu_session.h"

namespace ashlar {
namespace {

using pinned::PinBy;
using pinned::PinnedAllocator;
using props::FarMemory;
using props::Gate;
using props::GpuSession;

constexpr Bytes kSlot = 64_KiB;

/// What is written into block i: no two blocks' words are alike.
void fill(Address block, Bytes size, std::uint64_t i) {
  auto* const words = static_cast<std::uint64_t*>(block.pointer());
  for (std::uint64_t w = 0; w < size.count() / sizeof(std::uint64_t); ++w) words[w] = i << 32 | w;
}
bool is_filled(Address block, Bytes size, std::uint64_t i) {
  const auto* const words = static_cast<const std::uint64_t*>(block.pointer());
  for (std::uint64_t w = 0; w < size.count() / sizeof(std::uint64_t); ++w) {
    if (words[w] != (i << 32 | w)) return false;
  }
  return true;
}
Bytes size_of(std::uint64_t i) { return Bytes{4096 * (1 + i * 7 % 16)}; }

class PinnedGpuTest : public ::testing::TestWithParam<PinBy> {
 protected:
  void SetUp() override {
    gpu_.enter();
    pinned::PinnedConfig config;
    config.space.by = GetParam();
    config.space.touch_threads = 2;
    device::Device* const devices[] = {&gpu_.device()};
    allocator_ = PinnedAllocator::create(devices, config).value();
    stream_ = gpu_.create_stream();
  }
  void TearDown() override {
    if (allocator_ != nullptr) {
      EXPECT_TRUE(gpu_.device().synchronize().is_ok());
      static_cast<void>(allocator_->caching().retire_stream(stream_));
      EXPECT_TRUE(allocator_->caching().trim(allocator_->device()).is_ok());
      EXPECT_EQ(allocator_->caching().validate(), nullptr);
      allocator_.reset();
      gpu_.destroy_stream(stream_);
    }
    EXPECT_EQ(gpu_.take_faults(), "");
    gpu_.leave();
  }

  Address allocate(Bytes size) {
    const auto got = allocator_->allocate(size);
    EXPECT_TRUE(got.is_ok()) << got.status().why();
    return got.value();
  }
  /// Block i is filled, copied to its slot, and freed while the copy is to come; `announces`: and the copy was announced.
  void send(std::uint64_t i, const FarMemory& far, const Stream& on, bool announces = true) {
    const Address block = allocate(size_of(i));
    fill(block, size_of(i), i);
    gpu_.copy(far.base() + Bytes{i * kSlot.count()}, block, size_of(i), on);
    if (announces) {
      EXPECT_TRUE(allocator_->record_use(block, PinnedAllocator::context_of(block), on).is_ok());
    }
    EXPECT_TRUE(allocator_->free(block).is_ok());
  }
  /// How many of the slots `from` to `to` - 1 do not have what was sent there, after all work of the stream.
  unsigned wrong(const FarMemory& far, std::uint64_t from, std::uint64_t to, const Stream& on) {
    unsigned found = 0;
    const Address back = allocate(kSlot);
    for (std::uint64_t i = from; i < to; ++i) {
      gpu_.copy(back, far.base() + Bytes{i * kSlot.count()}, size_of(i), on);
      gpu_.synchronize(on);
      found += !is_filled(back, size_of(i), i);
    }
    EXPECT_TRUE(allocator_->free(back).is_ok());
    return found;
  }
  cache::DeviceStats stats() { return allocator_->caching().stats(allocator_->device()).value(); }

  GpuSession& gpu_ = GpuSession::get();
  std::unique_ptr<PinnedAllocator> allocator_;
  Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(, PinnedGpuTest, ::testing::Values(PinBy::kDriver, PinBy::kRegistration),
                         [](const ::testing::TestParamInfo<PinBy>& by) {
                           return by.param == PinBy::kDriver ? "ByDriver" : "ByRegistration";
                         });

TEST_P(PinnedGpuTest, ACopyReadsWhatWasThereWhenItWasEnqueued) {  // C6, C7
  constexpr std::uint64_t kBlocks = 128;
  const FarMemory far(Bytes{kBlocks * kSlot.count()});
  {
    const Gate gate(stream_);
    for (std::uint64_t i = 0; i < kBlocks; ++i) send(i, far, stream_);
  }
  EXPECT_EQ(wrong(far, 0, kBlocks, stream_), 0u);
}

TEST_P(PinnedGpuTest,
       MemoryThatIsHandedOutTooEarlyIsSeen) {  // what the suite would say of a broken allocator
  constexpr std::uint64_t kBlocks = 128;
  const FarMemory far(Bytes{kBlocks * kSlot.count()});
  {
    const Gate gate(stream_);
    for (std::uint64_t i = 0; i < kBlocks; ++i) send(i, far, stream_, false);
  }
  EXPECT_GT(wrong(far, 0, kBlocks, stream_), kBlocks / 2);
}

TEST_P(PinnedGpuTest, MemoryIsUsedAgainOnceItsCopiesAreDone) {  // PIN-3
  constexpr std::uint64_t kBlocks = 256;
  const FarMemory far(Bytes{kBlocks * kSlot.count()});
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    send(i, far, stream_);
    if (i % 16 == 15) gpu_.synchronize(stream_);
  }
  EXPECT_EQ(wrong(far, 0, kBlocks, stream_), 0u);
  EXPECT_LE(stats().reserved_bytes[0].peak, (20_MiB).count()) << "no more than one segment";
  EXPECT_TRUE(allocator_->process_events().is_ok());
  EXPECT_EQ(stats().active_bytes[0].current, 0u);
}

TEST_P(PinnedGpuTest, AStreamThatIsHeldUpDelaysNoOther) {  // PIN-3, H8
  constexpr std::uint64_t kBlocks = 64;
  const FarMemory far(Bytes{2 * kBlocks * kSlot.count()});
  const Stream other = gpu_.create_stream();
  {
    const Gate gate(stream_);
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      send(i, far, stream_);
      send(kBlocks + i, far, other);
    }
    const std::uint64_t both = stats().active_bytes[0].current;
    gpu_.synchronize(other);
    EXPECT_TRUE(allocator_->process_events().is_ok());
    EXPECT_LT(stats().active_bytes[0].current, both);
    EXPECT_NE(stats().active_bytes[0].current, 0u);
  }
  EXPECT_EQ(wrong(far, 0, kBlocks, stream_), 0u);
  EXPECT_EQ(wrong(far, kBlocks, 2 * kBlocks, other), 0u);
  EXPECT_TRUE(allocator_->caching().retire_stream(other).is_ok());
  gpu_.destroy_stream(other);
}

TEST_P(PinnedGpuTest, ATrimUnlocksNothingThatACopyReads) {  // C28, D4
  const FarMemory far(Bytes{16 * kSlot.count()});
  {
    const Gate gate(stream_);
    for (std::uint64_t i = 0; i < 16; ++i) send(i, far, stream_);
    const std::uint64_t locked = stats().reserved_bytes[0].current;
    const auto began = std::chrono::steady_clock::now();
    static_cast<void>(allocator_->caching().trim(allocator_->device()));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
    EXPECT_EQ(stats().reserved_bytes[0].current, locked);
  }
  EXPECT_EQ(wrong(far, 0, 16, stream_), 0u);
  EXPECT_TRUE(allocator_->caching().trim(allocator_->device()).is_ok());
  EXPECT_EQ(stats().reserved_bytes[0].current, 0u);
}

TEST_P(PinnedGpuTest, AGraphsMemoryIsItsPoolsUntilItsLastLaunchIsDone) {  // PIN-6, C8
  constexpr std::uint64_t kBlocks = 16;
  const FarMemory far(Bytes{2 * kBlocks * kSlot.count()});
  const MemoryPoolId pool{1, 0};
  cache::CachingAllocator& caching = allocator_->caching();
  ASSERT_TRUE(allocator_->begin_pool(pool, [] { return true; }).is_ok());
  ASSERT_TRUE(caching.begin_capture(stream_).is_ok());
  std::vector<Address> captured;
  const cuda::GraphExec graph = gpu_.capture(stream_, [&] {
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      captured.push_back(allocate(size_of(i)));
      fill(captured.back(), size_of(i), i);
      gpu_.copy(far.base() + Bytes{i * kSlot.count()}, captured.back(), size_of(i), stream_);
      EXPECT_TRUE(allocator_->record_use(captured.back(), nullptr, stream_).is_ok());
    }
  });
  ASSERT_NE(graph, nullptr) << "C9: the capture was lost";
  EXPECT_TRUE(caching.end_capture(stream_).is_ok());
  EXPECT_TRUE(caching.end_pool(allocator_->device(), pool).is_ok());
  for (const Address block : captured) EXPECT_TRUE(allocator_->free(block).is_ok());
  for (std::uint64_t i = kBlocks; i < 2 * kBlocks; ++i) send(i, far, stream_);
  gpu_.launch(graph, stream_);
  EXPECT_EQ(wrong(far, 0, 2 * kBlocks, stream_), 0u) << "others had the graph's memory";
  std::vector<Address> others;
  {
    const Gate gate(stream_);
    gpu_.launch(graph, stream_);
    EXPECT_TRUE(caching.release_pool(allocator_->device(), pool).is_ok());
    // All memory that is to be had is written before the launch runs.
    EXPECT_TRUE(
        caching.set_memory_limit(allocator_->device(), Bytes{stats().reserved_bytes[0].current})
            .is_ok());
    for (auto got = allocator_->allocate(kSlot); got.is_ok(); got = allocator_->allocate(kSlot)) {
      others.push_back(got.value());
      fill(got.value(), kSlot, kBlocks + others.size());
    }
  }
  EXPECT_GT(others.size(), kBlocks) << "hardly anything was written";
  for (const Address block : others) EXPECT_TRUE(allocator_->free(block).is_ok());
  EXPECT_EQ(wrong(far, 0, 2 * kBlocks, stream_), 0u) << "others had it before the last launch";
  gpu_.destroy(graph);
}

TEST_P(PinnedGpuTest, ThreadsCopyOnStreamsOfTheirOwn) {
  constexpr std::uint64_t kThreads = 4, kBlocks = 64;
  const FarMemory far(Bytes{kThreads * kBlocks * kSlot.count()});
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      gpu_.enter();
      const Stream own = gpu_.create_stream();
      for (std::uint64_t i = t * kBlocks; i < (t + 1) * kBlocks; ++i) {
        send(i, far, own);
        if (i % 8 == 7) gpu_.synchronize(own);
      }
      EXPECT_EQ(wrong(far, t * kBlocks, (t + 1) * kBlocks, own), 0u);
      EXPECT_TRUE(allocator_->caching().retire_stream(own).is_ok());
      gpu_.destroy_stream(own);
      gpu_.leave();
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace ashlar
