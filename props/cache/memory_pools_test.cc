// Memory pools as their users call them: names, filters, nesting, misuse, and what a snapshot says.
//
// What a pool's memory may be used for is judged in lockstep (spec/model/clause_isolated.cc). Imitates: a
// user's pool that belongs to a thread (PyTorch's MemPool). Does not imitate: graphs.
#include <thread>

#include <ashlar/device/forwarding_device.h>

#include "props/adapters/cache_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

constexpr MemoryPoolId kPool{0, 7};
constexpr MemoryPoolId kOther{3, 0};

class MemoryPoolsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec::SimGpuOptions options;
    options.capacities = {256_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0)};
    allocator_ = make_allocator(devices, "");
    stream_ = gpu_->create_stream(kDevice).value();
  }
  /// The pool of the segment that holds the address.
  MemoryPoolId pool_of(Address address) {
    Snapshot shown;
    EXPECT_TRUE(allocator_->snapshot(kDevice, &shown).is_ok());
    for (const SnapshotSegment& each : shown.segments) {
      if (address.value() - each.base.value() < each.size.count()) return each.memory_pool;
    }
    ADD_FAILURE() << "not in the snapshot";
    return {};
  }
  MemoryPoolId pool_of_next() {
    const Result<Address> got = allocator_->allocate(1_MiB, stream_);
    EXPECT_TRUE(got.is_ok());
    return got.is_ok() ? pool_of(got.value()) : MemoryPoolId{};
  }
  static bool any(const Stream&) { return true; }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
};

TEST_F(MemoryPoolsTest, CallsOutOfOrderAreTypedErrorsAndChangeNothing) {
  EXPECT_EQ(allocator_->begin_pool(kDevice, {}, any).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->retain_pool(kDevice, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->begin_pool(kDevice, kPool, nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->begin_pool(DeviceId{1}, kPool, any).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->end_pool(kDevice, kPool).code(), Code::kNotFound);
  EXPECT_EQ(allocator_->release_pool(kDevice, kPool).code(), Code::kNotFound);
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  EXPECT_EQ(allocator_->begin_pool(kDevice, kPool, any).code(), Code::kBusy);
  EXPECT_EQ(allocator_->release_pool(kDevice, kPool).code(), Code::kBusy);
  EXPECT_EQ(pool_of_next(), kPool);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  EXPECT_EQ(pool_of_next(), MemoryPoolId{});
  ASSERT_TRUE(allocator_->release_pool(kDevice, kPool).is_ok());
  EXPECT_EQ(allocator_->release_pool(kDevice, kPool).code(), Code::kNotFound);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(MemoryPoolsTest, TheInnermostPoolServes) {
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kOther, any).is_ok());
  EXPECT_EQ(pool_of_next(), kOther);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kOther).is_ok());
  EXPECT_EQ(pool_of_next(), kPool);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
}

TEST_F(MemoryPoolsTest, AFilterByThreadTakesThatThreadsAllocationsAlone) {
  const std::thread::id owner = std::this_thread::get_id();
  const auto is_owner = [owner](const Stream&) { return std::this_thread::get_id() == owner; };
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, is_owner).is_ok());
  EXPECT_EQ(pool_of_next(), kPool);
  MemoryPoolId of_other{9, 9};
  std::thread([&] { of_other = pool_of_next(); }).join();
  EXPECT_EQ(of_other, MemoryPoolId{});
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
}

TEST_F(MemoryPoolsTest, AnAllocationKnowsItsStreamAndTheSnapshotItsHeap) {
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  const Address a = allocator_->allocate(1_MiB, stream_).value();
  EXPECT_EQ(allocator_->info(a).value().stream, stream_);
  Snapshot shown;
  ASSERT_TRUE(allocator_->snapshot(kDevice, &shown).is_ok());
  ASSERT_EQ(shown.segments.size(), 1u);
  EXPECT_EQ(shown.segments[0].stream, stream_.id);
  EXPECT_NE(shown.segments[0].heap, 0u);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  const Address b = allocator_->allocate(1_MiB, stream_).value();
  ASSERT_TRUE(allocator_->snapshot(kDevice, &shown).is_ok());
  ASSERT_EQ(shown.segments.size(), 2u);
  EXPECT_EQ(shown.segments[0].heap == 0, shown.segments[0].base == b);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_TRUE(allocator_->free(b).is_ok());
}

// Otherwise a program that captures again and again would end up with a heap for each of its pools.
TEST_F(MemoryPoolsTest, HeapsOfReleasedPoolsServeAgain) {
  for (std::uint64_t i = 1; i <= 200; ++i) {
    const MemoryPoolId pool{0, i};
    ASSERT_TRUE(allocator_->begin_pool(kDevice, pool, any).is_ok());
    const Address a = allocator_->allocate(1_MiB, stream_).value();
    ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
    ASSERT_TRUE(allocator_->free(a).is_ok());
    ASSERT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
    ASSERT_TRUE(gpu_->drain_all().is_ok());
    ASSERT_TRUE(allocator_->trim(kDevice).is_ok());
  }
  EXPECT_LE(allocator_->stats(kDevice).value().streams, 8u);
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, 0u);
}

// A program that captures on a new stream each time, all into one pool.
TEST_F(MemoryPoolsTest, WhatRetiredStreamsLeaveServesThePoolsOtherStreams) {
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  for (unsigned i = 0; i < 300; ++i) {  // more than fit beside each other
    const Stream stream = gpu_->create_stream(kDevice).value();
    const Result<Address> got = allocator_->allocate(1_MiB, stream);
    ASSERT_TRUE(got.is_ok()) << i;
    EXPECT_EQ(pool_of(got.value()), kPool);
    ASSERT_TRUE(allocator_->free(got.value()).is_ok());
    ASSERT_TRUE(allocator_->retire_stream(stream).is_ok());
    ASSERT_TRUE(gpu_->drain_all().is_ok());
    ASSERT_TRUE(gpu_->destroy_stream(stream).is_ok());
  }
  EXPECT_LE(allocator_->stats(kDevice).value().reserved_bytes[0].current, (8_MiB).count());
  EXPECT_LE(allocator_->stats(kDevice).value().streams, 16u);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

// A program that makes a pool for each graph: the next one takes what the last one had, before the driver
// is asked for more, and during the capture. But a pool keeps what it takes, so not what is far too large.
TEST_F(MemoryPoolsTest, APoolTakesWhatAReleasedOneHadInACaptureToo) {
  for (const Bytes size : {12_MiB, 100_MiB}) {
    const MemoryPoolId pool{5, size.count()};
    ASSERT_TRUE(allocator_->begin_pool(kDevice, pool, any).is_ok());
    ASSERT_TRUE(allocator_->free(allocator_->allocate(size, stream_).value()).is_ok());
    ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
    ASSERT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
  }
  ASSERT_TRUE(gpu_->drain_all().is_ok());
  const Stream other = gpu_->create_stream(kDevice).value();  // for its heap, the device is asked
  ASSERT_TRUE(allocator_->free(allocator_->allocate(512_B, other).value()).is_ok());
  const std::uint64_t reserved = allocator_->stats(kDevice).value().reserved_bytes[0].current;

  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  ASSERT_TRUE(allocator_->begin_capture(stream_).is_ok());
  const Address first = allocator_->allocate(12_MiB, stream_).value();
  EXPECT_EQ(pool_of(first), kPool);
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, reserved);
  const Address second = allocator_->allocate(12_MiB, stream_).value();
  EXPECT_EQ(pool_of(second), kPool);
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current,
            reserved + (12_MiB).count());
  ASSERT_TRUE(allocator_->end_capture(stream_).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(MemoryPoolsTest, AFilterMayFreeAndQueryAndIsRefusedTheRest) {
  const Address held = allocator_->allocate(1_MiB, stream_).value();
  std::vector<Code> answers;
  const auto filter = [&](const Stream& stream) {
    answers = {allocator_->allocate(1_MiB, stream).code(),
               allocator_->begin_pool(kDevice, kOther, any).code(),
               allocator_->end_pool(kDevice, kPool).code(),
               allocator_->retain_pool(kDevice, kPool).code(),
               allocator_->release_pool(kDevice, kPool).code(),
               allocator_->retire_stream(stream).code(),
               allocator_->begin_capture(stream).code(),
               allocator_->trim(kDevice).code(),
               allocator_->make_room(kDevice, 1_MiB).code(),
               allocator_->set_memory_limit(kDevice, 1_MiB).code(),
               allocator_->set_memory_fraction(kDevice, 0.5).code()};
    static_cast<void>(allocator_->info(held));
    static_cast<void>(
        allocator_->free(held));  // asked twice for one allocation, the filter frees once
    return true;
  };
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, filter).is_ok());
  EXPECT_EQ(pool_of_next(), kPool);
  EXPECT_EQ(answers, std::vector<Code>(11, Code::kReentrant));
  EXPECT_FALSE(allocator_->info(held).is_ok());
  EXPECT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  EXPECT_TRUE(allocator_->retire_stream(stream_).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr);
}

// One pool is released while others serve, and while its stream is retired.
TEST_F(MemoryPoolsTest, ThreadsReleasePoolsWhileOthersAllocateAndRetire) {
  const auto run = [&](std::uint64_t thread) {
    for (std::uint64_t i = 1; i <= 16; ++i) {
      const MemoryPoolId pool{thread, i};
      const Stream own = gpu_->create_stream(kDevice).value();
      const auto is_own = [own](const Stream& stream) { return stream.id == own.id; };
      EXPECT_TRUE(allocator_->begin_pool(kDevice, pool, is_own).is_ok());
      std::vector<Address> blocks;
      for (unsigned b = 0; b < 130; ++b) blocks.push_back(allocator_->allocate(512_B, own).value());
      EXPECT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
      const bool retires_first = i % 2 == 0;
      EXPECT_TRUE(!retires_first || allocator_->retire_stream(own).is_ok());
      EXPECT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
      for (const Address block : blocks) EXPECT_TRUE(allocator_->free(block).is_ok());
      EXPECT_TRUE(retires_first || allocator_->retire_stream(own).is_ok());
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i <= 3; ++i) threads.emplace_back(run, i);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(allocator_->validate(), nullptr);
}

// A thread that queues for the reclaim lock, to give a pool a heap, does so without the lock of the pools.
TEST_F(MemoryPoolsTest, AHitInAPoolWaitsForNoThreadThatQueuesForTheReclaimLock) {
  const Stream other = gpu_->create_stream(kDevice).value();
  const auto is_own = [this](const Stream& each) { return each.id == stream_.id; };
  const auto is_other = [other](const Stream& each) { return each.id == other.id; };
  ASSERT_TRUE(allocator_->free(allocator_->allocate(512_B, other).value()).is_ok());
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, is_own).is_ok());
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kOther, is_other).is_ok());
  ASSERT_TRUE(allocator_->free(allocator_->allocate(1_MiB, stream_).value()).is_ok());
  ReclaimLock& lock = CachePeer::device(*allocator_, 0).reclaimer().lock();
  std::thread queues;
  {
    const ReclaimGuard guard(lock);
    queues = std::thread([&] { EXPECT_TRUE(allocator_->allocate(1_MiB, other).is_ok()); });
    while (CachePeer::waiting(lock) == 0) std::this_thread::yield();
    EXPECT_TRUE(allocator_->allocate(1_MiB, stream_).is_ok()) << "C30";
  }
  queues.join();
  EXPECT_EQ(allocator_->validate(), nullptr);
}

// With several threads at it there may never be a moment at which no pool is checkpointed.
TEST_F(MemoryPoolsTest, ARetirementWaitsForNoPoolThatIsCheckpointed) {
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  const Address a = allocator_->allocate(1_MiB, stream_).value();
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  bool& is_closed = CachePeer::is_first_closed(CachePeer::device(*allocator_, 0).memory_pools());
  is_closed = true;
  EXPECT_TRUE(allocator_->retire_stream(stream_).is_ok());
  is_closed = false;
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr);
}

// The walk over the live blocks lets go of the heap's lock at every 64th block: it has to go on after a
// block that is free, and reach the last.
TEST_F(MemoryPoolsTest, EveryLiveBlockOfALongSegmentOutlivesThePool) {
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  for (const unsigned before : {0u, 1u, 2u, 3u}) {
    const MemoryPoolId pool{1, 100 + before};
    ASSERT_TRUE(allocator_->begin_pool(kDevice, pool, any).is_ok());
    for (unsigned i = 0; i < before; ++i) ASSERT_TRUE(allocator_->allocate(8_MiB, stream_).is_ok());
    std::vector<Address> small;
    for (unsigned i = 0; i < 600; ++i)
      small.push_back(allocator_->allocate(1_KiB, stream_).value());
    for (unsigned i = before % 2; i < 600; i += 2) ASSERT_TRUE(allocator_->free(small[i]).is_ok());
    ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
    ASSERT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
    Snapshot shown;
    ASSERT_TRUE(allocator_->snapshot(kDevice, &shown).is_ok());
    for (const SnapshotSegment& segment : shown.segments) {
      if (segment.memory_pool != pool) continue;
      for (std::uint32_t i = 0; i < segment.block_count; ++i) {
        const SnapshotBlock& block = shown.blocks[segment.block_first + i];
        EXPECT_EQ(block.other_uses, block.state == BlockState::kLive ? 1u : 0u);
      }
    }
  }
  EXPECT_EQ(allocator_->validate(), nullptr);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
}

// A user may tie a graph's life to the filter.
TEST_F(MemoryPoolsTest, WhatAFilterHoldsMayReleasePoolsWhenItDies) {
  ASSERT_TRUE(allocator_->retain_pool(kDevice, kOther).is_ok());
  Code answer = Code::kNotReady;
  {
    std::shared_ptr<int> graph(new int(0), [&](int* held) {
      delete held;
      answer = allocator_->release_pool(kDevice, kOther).code();
    });
    ASSERT_TRUE(
        allocator_->begin_pool(kDevice, kPool, [graph](const Stream&) { return true; }).is_ok());
  }
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  EXPECT_EQ(answer, Code::kOk);
}

TEST_F(MemoryPoolsTest, APoolServesNoStreamThatIsFoundDestroyed) {
  const Address x = allocator_->allocate(1_MiB, stream_).value();
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  ASSERT_TRUE(allocator_->allocate(1_MiB, stream_).is_ok());
  ASSERT_TRUE(allocator_->free(x).is_ok());
  ASSERT_TRUE(gpu_->destroy_stream(stream_).is_ok());
  static_cast<void>(allocator_->trim(kDevice));  // asks whom the handle names
  EXPECT_EQ(allocator_->allocate(1_MiB, stream_).code(), Code::kInvalidHandle);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  EXPECT_EQ(allocator_->allocate(1_MiB, stream_).code(), Code::kInvalidHandle);
}

// The device is never idle, so that no synchronisation ever answers.
TEST_F(MemoryPoolsTest, HeapsOfPoolsThatHeldNothingServeAgainOnABusyDevice) {
  const Stream busy = gpu_->create_stream(kDevice).value();
  ASSERT_TRUE(gpu_->host_function(busy, gpu_->new_flag()).is_ok());
  ASSERT_TRUE(allocator_->set_memory_limit(kDevice, 1_MiB).is_ok());  // nothing is served
  for (std::uint64_t i = 1; i <= 200; ++i) {
    const MemoryPoolId pool{0, i};
    ASSERT_TRUE(allocator_->begin_pool(kDevice, pool, any).is_ok());
    EXPECT_EQ(allocator_->allocate(1_MiB, stream_).code(), Code::kOutOfMemory);
    ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
    ASSERT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
  }
  EXPECT_LE(allocator_->stats(kDevice).value().streams, 40u);
}

// A stream's last event tells of its work in memory pools too: no synchronisation is needed.
TEST_F(MemoryPoolsTest, WhatRetiredStreamsLeaveServesThePoolOnABusyDevice) {
  const Stream busy = gpu_->create_stream(kDevice).value();
  ASSERT_TRUE(gpu_->host_function(busy, gpu_->new_flag()).is_ok());
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  for (unsigned i = 0; i < 100; ++i) {
    const Stream stream = gpu_->create_stream(kDevice).value();
    const Result<Address> got = allocator_->allocate(20_MiB, stream);
    ASSERT_TRUE(got.is_ok()) << i;
    ASSERT_TRUE(allocator_->free(got.value()).is_ok());
    ASSERT_TRUE(allocator_->retire_stream(stream).is_ok());
    gpu_->step(stream, 100);
    ASSERT_TRUE(gpu_->destroy_stream(stream).is_ok());
  }
  EXPECT_LE(allocator_->stats(kDevice).value().reserved_bytes[0].current, (60_MiB).count());
  EXPECT_LE(allocator_->stats(kDevice).value().streams, 40u);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

// A program that gives each of its phases a pool, and never captures.
TEST_F(MemoryPoolsTest, WhatAReleasedPoolLeavesComesBackOnABusyDevice) {
  const Stream busy = gpu_->create_stream(kDevice).value();
  ASSERT_TRUE(gpu_->host_function(busy, gpu_->new_flag()).is_ok());
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const MemoryPoolId pool{0, i};
    ASSERT_TRUE(allocator_->begin_pool(kDevice, pool, any).is_ok());
    const Result<Address> got = allocator_->allocate(20_MiB, stream_);
    ASSERT_TRUE(got.is_ok()) << i;
    const Address kept = allocator_->allocate(1_MiB, stream_).value();
    ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
    ASSERT_TRUE(allocator_->free(got.value()).is_ok());
    ASSERT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
    ASSERT_TRUE(allocator_->free(kept).is_ok());
    gpu_->step(stream_, 100);
  }
  EXPECT_LE(allocator_->stats(kDevice).value().reserved_bytes[0].current, (64_MiB).count());
  EXPECT_LE(allocator_->stats(kDevice).value().streams, 40u);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

// What a pool in use waits for is nobody else's: no wait for it helps a trim.
TEST_F(MemoryPoolsTest, ATrimDoesNotWaitForAPoolInUse) {
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  const Address a = allocator_->allocate(1_MiB, stream_).value();
  ASSERT_TRUE(gpu_->host_function(stream_, gpu_->new_flag()).is_ok());  // holds the stream for ever
  ASSERT_TRUE(allocator_->free(a).is_ok());
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().waits, 0u);
}

TEST_F(MemoryPoolsTest, AReleaseInsideAnAllocationFromThePoolIsRefusedAndUndone) {
  std::vector<Code> answers;
  allocator_->add_free_memory_callback([&](DeviceId device) {
    static_cast<void>(allocator_->end_pool(device, kPool));
    answers.push_back(allocator_->release_pool(device, kPool).code());
  });
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  EXPECT_EQ(pool_of_next(), kPool);
  EXPECT_EQ(answers, std::vector<Code>{Code::kBusy});
  EXPECT_EQ(allocator_->validate(), nullptr);
  EXPECT_TRUE(allocator_->release_pool(kDevice, kPool).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(MemoryPoolsTest, DamageIsFound) {
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  const Address a = allocator_->allocate(1_MiB, stream_).value();
  StreamHeap* of_pool = nullptr;
  for (StreamHeap& heap : CachePeer::device(*allocator_, 0).heaps()) {
    if (!heap.membership.id.is_default()) of_pool = &heap;
  }
  ASSERT_NE(of_pool, nullptr);
  of_pool->membership.is_reserved = false;
  EXPECT_STREQ(allocator_->validate(), "memory pools(1): a pool's heap is not reserved for it");
  of_pool->membership.is_reserved = true;
  EXPECT_EQ(allocator_->validate(), nullptr);
  StreamHeap& own = *CachePeer::device(*allocator_, 0).heaps().find(stream_.id);
  own.membership.is_reserved = true;
  EXPECT_STREQ(allocator_->validate(), "memory pools(3): a reserved heap of no pool");
  own.membership.is_reserved = false;
  std::uint64_t& uses = CachePeer::uses_of_first(CachePeer::device(*allocator_, 0).memory_pools());
  uses = 0;
  EXPECT_STREQ(allocator_->validate(), "memory pools(1): a pool without uses");
  uses = 1;
  {
    const CachePeer::SecondRoute second(CachePeer::device(*allocator_, 0).memory_pools());
    EXPECT_STREQ(allocator_->validate(), "memory pools(2): two routes to one pool");
  }
  EXPECT_EQ(allocator_->validate(), nullptr);
  EXPECT_TRUE(allocator_->free(a).is_ok());
}

/// Counts the segments that come from it.
class CountingSource final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<Address> segment_alloc(Bytes size) noexcept override {
    ++held;
    return ForwardingDevice::segment_alloc(size);
  }
  Status segment_free(Address base) noexcept override {
    --held;
    return ForwardingDevice::segment_free(base);
  }
  int held = 0;
};

TEST_F(MemoryPoolsTest, APoolWithAGrowthDeviceTakesItsSegmentsThereAndGivesThemBackThere) {
  CountingSource source(gpu_->device(0));
  ASSERT_TRUE(allocator_->create_pool(kDevice, kPool, {.growth = &source}).is_ok());
  EXPECT_EQ(allocator_->create_pool(kDevice, kPool, {}).code(), Code::kBusy);
  const Address outside = allocator_->allocate(20_MiB, stream_).value();
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, any).is_ok());
  const Address inside = allocator_->allocate(20_MiB, stream_).value();
  EXPECT_EQ(source.held, 1);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  ASSERT_TRUE(allocator_->free(inside).is_ok());
  ASSERT_TRUE(allocator_->free(outside).is_ok());
  ASSERT_TRUE(allocator_->release_pool(kDevice, kPool).is_ok());
  ASSERT_TRUE(allocator_->release_pool(kDevice, kPool).is_ok());
  static_cast<void>(gpu_->drain_all());
  ASSERT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(source.held, 0);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

}  // namespace
}  // namespace ashlar::cache
