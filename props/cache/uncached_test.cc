// The allocator without a cache (`cache:off`, row DEV-22), as a memory checker's user sees it.
//
// Every call is judged in lockstep (clause_uncached.cc; random and fuzzed sequences draw the mode). Imitates: a run
// under a checker that watches the driver's allocations; work that is done late; several streams, devices and
// threads; graphs. Does not imitate: a checker itself.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/cache/history_calls.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

/// A device that is done with what it has unless the test keeps it busy, as a driver is with an idle stream's event.
class PromptDevice final : public device::ForwardingDevice {
 public:
  PromptDevice(spec::SimGpu& gpu, int ordinal) : ForwardingDevice(gpu.device(ordinal)), gpu_(gpu) {}
  std::atomic<bool> is_busy{false};
  Status event_query(EventHandle event) noexcept override {
    const Status at_first = ForwardingDevice::event_query(event);
    if (!is_busy) static_cast<void>(gpu_.drain_all());
    return at_first;
  }

 private:
  spec::SimGpu& gpu_;
};

class UncachedTest : public ::testing::Test {
 protected:
  void make(const std::string& more = "", Bytes capacity = 64_MiB) {
    allocator_.reset();
    spec::SimGpuOptions options;
    options.capacities = {capacity, capacity};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    for (int i = 0; i < 2; ++i) devices_[i] = std::make_unique<PromptDevice>(*gpu_, i);
    device::Device* devices[] = {devices_[0].get(), devices_[1].get()};
    allocator_ = make_allocator(devices, ("cache:off" + more).c_str());
    stream_ = gpu_->create_stream(kDevice).value();
    other_ = gpu_->create_stream(kDevice).value();
  }
  void TearDown() override {
    EXPECT_EQ(allocator_->validate(), nullptr) << allocator_->validate();
    for (const spec::Fault& fault : gpu_->take_faults()) ADD_FAILURE() << fault.text;
    allocator_.reset();
    for (const spec::Fault& fault : gpu_->take_faults()) ADD_FAILURE() << fault.text;
  }
  Address alloc(Bytes size) { return alloc(size, stream_); }
  Address alloc(Bytes size, const Stream& stream) {
    const Result<Address> got = allocator_->allocate(size, stream);
    EXPECT_TRUE(got.is_ok()) << got.status().why();
    return got.value_or(Address{});
  }
  void free(Address address) { EXPECT_TRUE(allocator_->free(address).is_ok()); }
  /// From now on work of the stream, and events, stay unfinished until finish().
  void work(const Stream& stream) {
    devices_[0]->is_busy = true;
    EXPECT_TRUE(gpu_->launch(stream, std::span<const spec::Touch>{}).is_ok());
  }
  void finish() {
    devices_[0]->is_busy = false;
    EXPECT_TRUE(gpu_->drain_all().is_ok());
  }
  std::uint64_t calls(CallKind kind) {
    return allocator_->stats(kDevice).value().device_calls[static_cast<unsigned>(kind)];
  }
  Bytes reserved() { return Bytes{allocator_->stats(kDevice).value().reserved_bytes[0].current}; }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<PromptDevice> devices_[2];
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
  Stream other_;
};

TEST_F(UncachedTest, EachAllocationIsASegmentAsLongAsItsRequestAndEachFreeReturnsIt) {
  make(",granule:16");
  for (const std::uint64_t size : {1u, 15u, 16u, 17u, 511u, 4096u, 1u << 20, (12u << 20) + 1}) {
    const Address at = alloc(Bytes{size});
    const AllocationInfo info = allocator_->info(at).value();
    EXPECT_EQ(info.segment, at);
    EXPECT_EQ(info.segment_size.count(), (size + 15) / 16 * 16)
        << "no byte to spare but the granule's";
    EXPECT_EQ(reserved(), info.segment_size);
    free(at);
    EXPECT_EQ(reserved(), 0_B) << "in the call of the free: its stream is idle";
  }
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 8u);
  EXPECT_EQ(calls(CallKind::kSegmentFree), 8u);
}

TEST_F(UncachedTest, WhatItsStreamStillUsesGoesBackInALaterCall) {
  make();
  const Address p = alloc(1_MiB);
  work(stream_);
  free(p);
  EXPECT_EQ(reserved(), 1_MiB);
  const Address q = alloc(1_MiB);
  EXPECT_NE(p, q) << "it serves nobody meanwhile";
  finish();
  free(q);
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(UncachedTest, WhatAnotherStreamStillUsesGoesBackWhenThatIsDone) {
  make();
  const Address p = alloc(1_MiB);
  work(other_);
  EXPECT_TRUE(allocator_->free(p, other_).is_ok());
  EXPECT_EQ(allocator_->free(p).code(), Code::kDoubleFree);
  EXPECT_EQ(reserved(), 1_MiB);
  finish();
  EXPECT_TRUE(process_events(*allocator_, kDevice).is_ok());
  finish();  // the event behind the use
  EXPECT_TRUE(process_events(*allocator_, kDevice).is_ok());
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(UncachedTest, WhatAnotherStreamHasUsedAndIsDoneGoesBackInTheCallOfTheFree) {
  make();
  for (int i = 0; i < 4; ++i) {
    const Address p = alloc(1_MiB);
    EXPECT_TRUE(allocator_->record_use(p, other_).is_ok());
    EXPECT_TRUE(gpu_->drain_all().is_ok());
    free(p);
    EXPECT_EQ(reserved(), 0_B) << i;
  }
}

TEST_F(UncachedTest, AllocationsOfManyStreamsInOnePageOfTheMapAreToldApart) {
  make();
  std::vector<Stream> streams{stream_, other_};
  while (streams.size() < 12) streams.push_back(gpu_->create_stream(kDevice).value());
  std::vector<Address> addresses;
  std::set<std::uint64_t> pages;
  for (std::size_t i = 0; i < 600; ++i) {
    addresses.push_back(alloc(512_B, streams[i % streams.size()]));
    pages.insert(addresses.back().value() >> 21);
  }
  EXPECT_LT(pages.size(), 300u) << "several lie in one page";
  EXPECT_EQ(allocator_->validate(), nullptr);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    EXPECT_EQ(allocator_->info(addresses[i]).value().stream.id, streams[i % streams.size()].id);
    EXPECT_EQ(allocator_->free(addresses[i] + 256_B).code(), Code::kUnknownPointer);
    free(addresses[i]);
    EXPECT_EQ(allocator_->free(addresses[i]).code(), Code::kUnknownPointer);
  }
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(UncachedTest, InACaptureNothingGoesBackAndAPoolKeepsItsMemoryUntilItsRelease) {
  make();
  const MemoryPoolId pool{7, 0};
  ASSERT_TRUE(allocator_
                  ->begin_pool(kDevice, pool,
                               [id = stream_.id](const Stream& each) { return each.id == id; })
                  .is_ok());
  const Address outside = alloc(1_MiB, other_);
  ASSERT_TRUE(allocator_->begin_capture(stream_).is_ok());
  const Address p = alloc(1_MiB);
  free(p);
  const Address q = alloc(1_MiB);
  EXPECT_NE(p, q);
  free(outside);
  EXPECT_EQ(reserved(), 3_MiB);
  ASSERT_TRUE(allocator_->end_capture(stream_).is_ok());
  ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
  free(q);
  EXPECT_EQ(reserved(), 2_MiB) << "the pool's";
  ASSERT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(UncachedTest, WhatARestoreEndsGoesBackAfterThePoolsEnd) {
  make();
  const MemoryPoolId pool{7, 0};
  const auto is_own = [this](const Stream& each) { return each.id == stream_.id; };
  ASSERT_TRUE(allocator_->begin_pool(kDevice, pool, is_own).is_ok());
  ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
  const PoolCheckpoint empty = allocator_->checkpoint_pool(kDevice, pool).value();
  ASSERT_TRUE(allocator_->begin_pool(kDevice, pool, is_own).is_ok());
  alloc(2_MiB);
  ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
  RestoredPool restored;
  ASSERT_TRUE(allocator_->restore_pool(empty, &restored).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr) << allocator_->validate();
  // Two uses.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr) << allocator_->validate();
  // A graph may use it until the device is synchronised.
  ASSERT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(UncachedTest, ALimitIsKeptAndWhatWaitsForWorkIsWaitedFor) {
  make(",wait_ms:50", 4_MiB);
  const Address p = alloc(3_MiB);
  work(stream_);
  free(p);
  const Address q = alloc(2_MiB);
  EXPECT_FALSE(q.is_null()) << "it waited for the work";
  OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(3_MiB, stream_, &account).code(), Code::kOutOfMemory);
  EXPECT_EQ(account.segment, 3_MiB);
  EXPECT_EQ(account.largest_reachable, 0_B);
  EXPECT_EQ(allocator_->largest_free_block(stream_).value(), 0_B);
  free(q);
}

TEST_F(UncachedTest, AnObserverOfMappingsMayFree) {
  make();
  const Address kept = alloc(512_B);
  bool has_freed = false;
  allocator_->add_mapping_observer([&](const MappingEvent& event) {
    if (event.change != MappingChange::kUnmapping || has_freed) return;
    has_freed = true;
    free(kept);
  });
  free(alloc(4096_B));
  EXPECT_TRUE(has_freed);
  free(alloc(4096_B));
  EXPECT_EQ(reserved(), 0_B) << "the next call gives back what the observer freed";
}

TEST_F(UncachedTest, APinnedRangeStaysUntilItsLastPinEnds) {
  make();
  const Address p = alloc(1_MiB);
  const Result<PinnedRange> pinned = allocator_->pin(p);
  ASSERT_TRUE(pinned.is_ok());
  free(p);
  EXPECT_EQ(reserved(), 1_MiB);
  ASSERT_TRUE(allocator_->unpin(pinned.value()).is_ok());
  free(alloc(512_B));
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(UncachedTest, MemoryWhoseUserWasDestroyedComesBackWhenEventsAreProcessed) {  // C27
  make();
  const Address p = alloc(1_MiB);
  EXPECT_TRUE(allocator_->record_use(p, other_).is_ok());
  EXPECT_TRUE(gpu_->destroy_stream(other_).is_ok());
  free(p);
  EXPECT_EQ(reserved(), 1_MiB) << "no event can be recorded";
  EXPECT_TRUE(process_events(*allocator_, kDevice).is_ok());
  EXPECT_EQ(reserved(), 0_B);
  EXPECT_EQ(gpu_->take_faults().size(), 1u) << "D7: the dead handle was tried";
}

TEST_F(UncachedTest, AHistoryShowsTheSegmentBesideItsAllocation) {
  make();
  ASSERT_TRUE(start_history(*allocator_, kDevice).is_ok());
  free(alloc(4096_B));
  History history;
  ASSERT_TRUE(read_history(*allocator_, kDevice, 0, &history).is_ok());
  std::vector<HistoryAction> actions;
  for (const HistoryEvent& event : history.events) actions.push_back(event.action);
  EXPECT_EQ(actions, (std::vector<HistoryAction>{
                         HistoryAction::kSegmentAllocate, HistoryAction::kAllocate,
                         HistoryAction::kFreeRequested, HistoryAction::kFreeCompleted,
                         HistoryAction::kSegmentFree}));
}

TEST_F(UncachedTest, ThreadsOfSeveralStreamsFreeEachOthersMemory) {
  make();
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    const Stream stream = gpu_->create_stream(kDevice).value();
    threads.emplace_back([this, stream] {
      for (int i = 0; i < 200; ++i) {
        const Result<Address> got =
            allocator_->allocate(Bytes{512 + std::uint64_t(i) * 100}, stream);
        ASSERT_TRUE(got.is_ok());
        ASSERT_TRUE(allocator_->free(got.value()).is_ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  free(alloc(512_B));
  EXPECT_EQ(reserved(), 0_B);
}

TEST(UncachedConfig, NeedsADeviceThatAlignsSegmentsTo256Bytes) {
  class Unaligned : public device::ForwardingDevice {
   public:
    using ForwardingDevice::ForwardingDevice;
    device::DeviceTraits traits() const noexcept override {
      device::DeviceTraits traits = ForwardingDevice::traits();
      traits.address_alignment = 128_B;
      return traits;
    }
  };
  spec::SimGpu gpu{spec::SimGpuOptions{}};
  Unaligned unaligned(gpu.device(0));
  device::Device* const devices[] = {&unaligned};
  Config config;
  config.granule = 64_B;
  EXPECT_TRUE(CachingAllocator::create(devices, config).is_ok());
  config.caches = false;
  EXPECT_EQ(CachingAllocator::create(devices, config).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ashlar::cache
