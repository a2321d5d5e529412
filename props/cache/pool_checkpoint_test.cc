// Checkpoints of memory pools as their users call them: misuse, what comes next after a return, and other
// threads' mistakes meanwhile.
//
// What a return must restore is judged in lockstep (spec/model/checkpoint_answers.cc). Imitates: a tree of
// graphs that share a pool. Does not imitate: a thread that allocates from the pool meanwhile, which no
// caller can, because the pool is not begun.
#include <algorithm>
#include <thread>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

constexpr MemoryPoolId kTreePool{0, 7};

class PoolCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec::SimGpuOptions options;
    options.capacities = {Bytes{}, Bytes{}};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0)};
    allocator_ = make_allocator(devices, "");
    stream_ = gpu_->create_stream(kDevice).value();
  }
  std::vector<Address> allocate_in_pool(std::initializer_list<Bytes> sizes) {
    std::vector<Address> got;
    EXPECT_TRUE(
        allocator_->begin_pool(kDevice, kTreePool, [](const Stream&) { return true; }).is_ok());
    for (const Bytes size : sizes)
      got.push_back(allocator_->allocate(size, stream_).value_or(Address{}));
    EXPECT_TRUE(allocator_->end_pool(kDevice, kTreePool).is_ok());
    return got;
  }
  PoolCheckpoint checkpoint() {
    Result<PoolCheckpoint> made = allocator_->checkpoint_pool(kDevice, kTreePool);
    EXPECT_TRUE(made.is_ok()) << made.status().why();
    return std::move(made).value();
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
};

TEST_F(PoolCheckpointTest, SaysWhatItIsOf) {
  allocate_in_pool({1_MiB, 4_KiB});
  const PoolCheckpoint made = checkpoint();
  EXPECT_EQ(made.device(), kDevice);
  EXPECT_EQ(made.pool(), kTreePool);
  EXPECT_EQ(made.allocation_count(), 2u);
}

TEST_F(PoolCheckpointTest, OfNoPoolOrAnotherAllocatorsIsRefused) {
  RestoredPool changed;
  EXPECT_EQ(allocator_->restore_pool(PoolCheckpoint{}, &changed).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->checkpoint_pool(kDevice, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->checkpoint_pool(DeviceId{1}, kTreePool).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->checkpoint_pool(kDevice, kTreePool).code(), Code::kNotFound);
  const std::vector<Address> live = allocate_in_pool({1_MiB});
  const PoolCheckpoint made = checkpoint();

  device::Device* devices[] = {&gpu_->device(0)};
  const std::unique_ptr<CachingAllocator> other = make_allocator(devices, "");
  EXPECT_EQ(other->restore_pool(made, &changed).code(), Code::kNotFound);
  ASSERT_TRUE(other->retain_pool(kDevice, kTreePool).is_ok());
  EXPECT_EQ(other->restore_pool(made, &changed).code(), Code::kInvalidArgument);
  EXPECT_TRUE(allocator_->info(live[0]).is_ok());
  EXPECT_EQ(other->validate(), nullptr);
}

// Without its allocations, but with its pool's name, it would end everything that is live there.
TEST_F(PoolCheckpointTest, OneThatWasMovedFromIsOfNoPool) {
  const std::vector<Address> live = allocate_in_pool({1_MiB});
  PoolCheckpoint first = checkpoint();
  PoolCheckpoint second(std::move(first));
  RestoredPool changed;
  // NOLINTNEXTLINE(bugprone-use-after-move): what it is then is what is tested
  EXPECT_EQ(allocator_->restore_pool(first, &changed).code(), Code::kInvalidArgument);
  first = std::move(second);
  // NOLINTNEXTLINE(bugprone-use-after-move)
  EXPECT_EQ(allocator_->restore_pool(second, &changed).code(), Code::kInvalidArgument);
  EXPECT_TRUE(allocator_->info(live[0]).is_ok());
  EXPECT_EQ(first.allocation_count(), 1u);
  const PoolCheckpoint copy = first;
  EXPECT_TRUE(allocator_->restore_pool(copy, &changed).is_ok());
  EXPECT_EQ(changed.created, live);
}

TEST_F(PoolCheckpointTest, InsideTheFilterOfAPoolIsRefused) {
  allocate_in_pool({1_MiB});
  const PoolCheckpoint made = checkpoint();
  Code code = Code::kOk;
  Code restored = Code::kOk;
  ASSERT_TRUE(allocator_
                  ->begin_pool(kDevice, {0, 8},
                               [&](const Stream&) {
                                 RestoredPool changed;
                                 code = allocator_->checkpoint_pool(kDevice, kTreePool).code();
                                 restored = allocator_->restore_pool(made, &changed).code();
                                 return false;
                               })
                  .is_ok());
  static_cast<void>(allocator_->allocate(4_KiB, stream_));
  EXPECT_EQ(code, Code::kReentrant);
  EXPECT_EQ(restored, Code::kReentrant);
}

TEST_F(PoolCheckpointTest, WhatComesNextIsWhatWouldHaveComeThen) {
  const std::vector<Address> first = allocate_in_pool({1_MiB, 4_KiB, 3_MiB, 512_B, 700_KiB});
  ASSERT_TRUE(allocator_->free(first[1]).is_ok());
  ASSERT_TRUE(allocator_->free(first[4]).is_ok());
  const PoolCheckpoint made = checkpoint();
  const auto next = [this] { return allocate_in_pool({2_KiB, 600_KiB, 5_MiB, 512_B}); };
  const std::vector<Address> then = next();
  RestoredPool changed;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(allocator_->restore_pool(made, &changed).is_ok());
    EXPECT_EQ(next(), then);
  }
  EXPECT_EQ(changed.created.size(), 3u);
  EXPECT_EQ(changed.freed.size(), 7u);
  EXPECT_EQ(allocator_->info(first[2]).value().requested, 3_MiB);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(PoolCheckpointTest, WhatADeadStreamLeftInThePoolIsLentOnlyInPlaceOfAnOutOfMemory) {
  const Stream survivor = std::exchange(stream_, gpu_->create_stream(kDevice).value());
  const std::vector<Address> left = allocate_in_pool({4_MiB, 4_MiB});
  EXPECT_TRUE(allocator_->free(left[0]).is_ok());
  EXPECT_TRUE(allocator_->retire_stream(stream_).is_ok());
  EXPECT_TRUE(gpu_->destroy_stream(stream_).is_ok());
  static_cast<void>(gpu_->drain_all());
  stream_ = survivor;
  const std::uint64_t reserved = allocator_->stats(kDevice).value().reserved_bytes[0].current;
  allocate_in_pool({4_MiB});
  EXPECT_GT(allocator_->stats(kDevice).value().reserved_bytes[0].current, reserved);
  EXPECT_EQ(checkpoint().allocation_count(), 2u) << "nothing is on loan";
}

TEST_F(PoolCheckpointTest, InACaptureItAsksTheDeviceNothing) {
  const Stream other = gpu_->create_stream(kDevice).value();
  const std::vector<Address> live = allocate_in_pool({1_MiB});
  const PoolCheckpoint made = checkpoint();
  ASSERT_TRUE(gpu_->launch(other, {live[0], 1_MiB, spec::Access::kWrite}).is_ok());
  ASSERT_TRUE(allocator_->free(live[0], other).is_ok());
  static_cast<void>(gpu_->drain_all());
  ASSERT_TRUE(allocator_->begin_capture(stream_).is_ok());
  RestoredPool changed;
  EXPECT_EQ(allocator_->restore_pool(made, &changed).code(), Code::kNotReady);
  ASSERT_TRUE(allocator_->end_capture(stream_).is_ok());
  EXPECT_TRUE(allocator_->restore_pool(made, &changed).is_ok());
}

TEST_F(PoolCheckpointTest, AThreadThatFreesMeanwhileLosesNothing) {
  // The free comes before the return, or after it, or is refused: a mistake of that thread's, but every
  // byte stays accounted for.
  const std::vector<Address> first = allocate_in_pool({1_MiB, 4_KiB, 3_MiB, 512_B, 700_KiB});
  const PoolCheckpoint made = checkpoint();
  std::atomic<bool> is_over{false};
  std::thread mistaken([&] {
    while (!is_over.load()) {
      for (const Address each : first) static_cast<void>(allocator_->free(each));
    }
  });
  for (int round = 0; round < 300; ++round) {
    RestoredPool changed;
    const Code code = allocator_->restore_pool(made, &changed).code();
    EXPECT_TRUE(code == Code::kOk || code == Code::kBusy) << code_name(code);
  }
  is_over = true;
  mistaken.join();
  EXPECT_EQ(allocator_->validate(), nullptr);
  RestoredPool changed;
  EXPECT_TRUE(allocator_->restore_pool(made, &changed).is_ok());
  EXPECT_EQ(changed.created, [&] {
    std::vector<Address> sorted = first;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }());
}

TEST_F(PoolCheckpointTest, OfTwoThreadsThatRestoreOneIsServedAtATime) {
  allocate_in_pool({1_MiB, 4_KiB, 3_MiB});
  const PoolCheckpoint made = checkpoint();
  const auto restore = [&] {
    for (int round = 0; round < 300; ++round) {
      RestoredPool changed;
      const Code code = allocator_->restore_pool(made, &changed).code();
      EXPECT_TRUE(code == Code::kOk || code == Code::kBusy) << code_name(code);
    }
  };
  std::thread one(restore);
  std::thread two(restore);
  for (int round = 0; round < 100; ++round) {
    const Stream passing = gpu_->create_stream(kDevice).value();
    static_cast<void>(allocator_->allocate(4_KiB, passing));
    EXPECT_TRUE(allocator_->retire_stream(passing).is_ok());
  }
  one.join();
  two.join();
  EXPECT_EQ(allocator_->validate(), nullptr);
}

}  // namespace
}  // namespace ashlar::cache
