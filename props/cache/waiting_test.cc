// Waiting for streams, over the simulated GPU: stuck streams, lost devices, retired streams, calls
// that run at the same time.
//
// Imitates: a stream stuck behind a host function while others finish; a device that is lost while
// its work uses another device's memory; two threads that are each inside a call, by a device whose
// calls run a part of the test.
// Does not prove: anything about real time; cache_threads_test.cc runs real threads.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/forwarding_device.h>

#include "props/adapters/in_segments.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

constexpr DeviceId kFirst{0};
constexpr DeviceId kSecond{1};
constexpr Bytes kBlock = 20_MiB;  // a segment of its own

/// Runs a part of the test inside the next call of a kind, after the inner device has answered: a
/// second thread's call could come there.
class CrossedDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::function<void()> in_memory_info;
  std::function<void()> in_event_record;
  std::function<void()> in_event_query;
  std::function<void()> in_segment_alloc;

  Result<device::MemoryInfo> memory_info() noexcept override {
    const Result<device::MemoryInfo> got = ForwardingDevice::memory_info();
    run_once(in_memory_info);
    return got;
  }
  Status event_query(EventHandle e) noexcept override {
    const Status status = ForwardingDevice::event_query(e);
    run_once(in_event_query);
    return status;
  }
  Result<Address> segment_alloc(Bytes size) noexcept override {
    const Result<Address> got = ForwardingDevice::segment_alloc(size);
    run_once(in_segment_alloc);
    return got;
  }
  Status event_record(EventHandle e, StreamHandle s) noexcept override {
    const Status status = ForwardingDevice::event_record(e, s);
    run_once(in_event_record);
    return status;
  }

 private:
  static void run_once(std::function<void()>& piece) {
    const std::function<void()> call = std::exchange(piece, {});
    if (call) call();
  }
};

class CacheWaitingTest : public ::testing::Test {
 protected:
  void make(std::vector<Bytes> capacities, const char* conf) {
    spec::SimGpuOptions options;
    options.capacities = std::move(capacities);
    gpu_ = std::make_unique<spec::SimGpu>(options);
    std::vector<device::Device*> devices;
    for (std::uint32_t i = 0; i < gpu_->device_count(); ++i) {
      crossed_.push_back(
          std::make_unique<CrossedDevice>(gpu_->device(static_cast<std::int32_t>(i))));
      devices.push_back(crossed_.back().get());
    }
    std::string error;
    allocator_ = cache::CachingAllocator::create(devices, props::config_in_segments(conf)).value();
  }
  Stream stream(DeviceId device = kFirst) { return gpu_->create_stream(device).value(); }
  Address allocate(const Stream& on) {
    return allocator_->allocate(kBlock, on).value_or(Address{});
  }
  /// The stream does nothing more until the flag is raised.
  spec::HostFlag hold(const Stream& held) {
    const spec::HostFlag flag = gpu_->new_flag();
    EXPECT_TRUE(gpu_->host_function(held, flag).is_ok());
    return flag;
  }
  bool has_fault(spec::FaultKind kind) {
    bool found = false;
    for (const spec::Fault& fault : gpu_->take_faults()) found |= fault.kind == kind;
    return found;
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::vector<std::unique_ptr<CrossedDevice>> crossed_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
};

TEST_F(CacheWaitingTest, AWaitForEverIsForWhicheverStreamIsDoneFirst) {
  make({40_MiB}, "wait_ms:forever");
  const Stream own = stream();
  const Stream stuck = stream();
  const Stream busy = stream();
  const Address older = allocate(own);
  const Address younger = allocate(own);
  const spec::HostFlag flag = hold(stuck);
  ASSERT_TRUE(allocator_->free(older, stuck).is_ok());
  ASSERT_TRUE(gpu_->launch(busy, spec::Touch{younger, kBlock}).is_ok());
  ASSERT_TRUE(allocator_->free(younger, busy).is_ok());
  EXPECT_EQ(allocate(own), younger);
  EXPECT_FALSE(has_fault(spec::FaultKind::kDeadlock)) << "it waited for the oldest use alone";
  gpu_->raise(flag);
}

/// A setting of wait_ms.
class CacheLongWaitTest : public CacheWaitingTest,
                          public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(ForEverOrForDays, CacheLongWaitTest,
                         ::testing::Values("wait_ms:forever", "wait_ms:4294967294"));

TEST_P(CacheLongWaitTest, EndsWhereTheMachineSaysThatNothingCanRun) {
  make({kBlock}, GetParam());
  const Stream own = stream();
  const Stream stuck = stream();
  const Address block = allocate(own);
  const spec::HostFlag flag = hold(stuck);
  ASSERT_TRUE(allocator_->free(block, stuck).is_ok());
  cache::OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(kBlock, own, &account).code(), Code::kOutOfMemory);
  EXPECT_TRUE(account.wait_ran_out);
  EXPECT_TRUE(has_fault(spec::FaultKind::kDeadlock));
  // The machine says so once in ten minutes, of waits of 10 ms; sixteen times are enough.
  EXPECT_LE(gpu_->account().of(device::CallKind::kEventSynchronize).calls, 960'000u) << "C30";
  gpu_->raise(flag);
  EXPECT_EQ(allocate(own), block);
}

TEST_F(CacheWaitingTest, ALostDevicesHeapsKeepNoEventOfAnother) {
  make({kBlock, kBlock}, "");
  const Stream healthy = stream(kSecond);
  const Address block = allocate(stream(kFirst));
  ASSERT_TRUE(allocator_->free(block, healthy).is_ok());
  gpu_->lose(kFirst);
  allocator_.reset();
  EXPECT_TRUE(gpu_->leak_check());
}

TEST_F(CacheWaitingTest, ALostDevicesUseKeepsNoSegmentOfAnother) {
  make({kBlock, kBlock}, "");
  const Address block = allocate(stream(kFirst));
  ASSERT_TRUE(allocator_->free(block, stream(kSecond)).is_ok());
  gpu_->lose(kSecond);
  allocator_.reset();
  EXPECT_TRUE(gpu_->leak_check());
}

TEST_F(CacheWaitingTest, ALimitSetWhileTheFractionIsWorkedOutStands) {
  make({64_MiB}, "per_process_memory_fraction:0.25");
  crossed_[0]->in_memory_info = [this] {
    ASSERT_TRUE(allocator_->set_memory_limit(kFirst, 40_MiB).is_ok());
  };
  const Stream own = stream();
  EXPECT_FALSE(allocate(own).is_null());
  EXPECT_FALSE(allocate(own).is_null());
}

TEST_F(CacheWaitingTest, TwoFreesThatCrossLeaveAStreamsQueueInOrder) {
  make({40_MiB}, "wait_ms:never");
  const Stream own = stream();
  const Stream other = stream();
  const Address first = allocate(own);
  const Address second = allocate(own);
  spec::HostFlag flag = 0;
  // The second event is recorded after the first, behind work that does not end, and is filed
  // before it.
  crossed_[0]->in_event_record = [&] {
    flag = hold(other);
    ASSERT_TRUE(allocator_->free(second, other).is_ok());
  };
  ASSERT_TRUE(allocator_->free(first, other).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr) << allocator_->validate();
  gpu_->step(other);
  EXPECT_EQ(allocate(own), first) << "complete, but behind one that is not";
  gpu_->raise(flag);
}

TEST_F(CacheWaitingTest, AUseFinishedByAnotherThreadBetweenSearchAndWaitIsFound) {
  make({42_MiB}, "wait_ms:forever");
  const Stream own = stream();
  const Stream other = stream();
  ASSERT_TRUE(allocator_->free(allocator_->allocate(512_B, own).value()).is_ok());
  const Address block = allocate(own);
  ASSERT_FALSE(allocate(own).is_null());
  const spec::HostFlag flag = hold(other);
  ASSERT_TRUE(allocator_->free(block, other).is_ok());
  crossed_[0]->in_segment_alloc = [&] {
    // The driver has nothing, so this call reclaims: its mark on its own stream is done at once,
    // the use is not; and when its poll and search are over and it tries the driver again, another
    // thread's hit polls.
    crossed_[0]->in_event_record = [&] { gpu_->step(own, 9); };
    crossed_[0]->in_segment_alloc = [&] {
      gpu_->raise(flag);
      gpu_->step(other, 9);
      EXPECT_TRUE(allocator_->allocate(512_B, own).is_ok());
    };
  };
  EXPECT_EQ(allocate(own), block);
}

TEST_F(CacheWaitingTest, AUseInAnotherThreadsHandWhenTheWaitIsOverIsFound) {
  make({42_MiB}, "wait_ms:never");
  const Stream own = stream();
  const Stream other = stream();
  const Stream stuck = stream();
  ASSERT_TRUE(allocator_->free(allocator_->allocate(512_B, own).value()).is_ok());
  const Address done = allocate(own);
  const Address held = allocate(own);
  const spec::HostFlag flag = hold(stuck);
  ASSERT_TRUE(allocator_->free(done, other).is_ok());
  ASSERT_TRUE(allocator_->free(held, stuck).is_ok());
  gpu_->step(other, 9);
  // The other thread's hit has learnt that a use is done, but marks the block free only after this
  // call's search.
  std::promise<void> has_heard;
  std::promise<void> may_file;
  crossed_[0]->in_event_query = [&] {
    has_heard.set_value();
    may_file.get_future().wait();
  };
  std::thread hit([&] { EXPECT_TRUE(allocator_->allocate(512_B, own).is_ok()); });
  has_heard.get_future().wait();
  crossed_[0]->in_segment_alloc = [&] {
    crossed_[0]->in_segment_alloc = [&] {
      may_file.set_value();
      hit.join();
    };
  };
  EXPECT_EQ(allocate(own), done);
  gpu_->raise(flag);
}

TEST_F(CacheWaitingTest, ARetiredStreamOfAnotherDeviceIsWaitedForByItsLastEvent) {
  make({kBlock, kBlock}, "");
  const Stream own = stream();
  const Stream retired = stream(kSecond);
  const Stream stuck = stream(kSecond);
  const spec::HostFlag flag = hold(stuck);
  const Address block = allocate(own);
  ASSERT_TRUE(allocator_->record_use(block, retired).is_ok());
  ASSERT_TRUE(allocator_->retire_stream(retired).is_ok());
  ASSERT_TRUE(allocator_->free(block).is_ok());
  EXPECT_EQ(allocate(own), block);
  EXPECT_FALSE(has_fault(spec::FaultKind::kDeadlock)) << "it waited for the whole device";
  gpu_->raise(flag);
}

/// Two streams of a device of `capacity` bytes. One has a segment: `unfinished` free blocks of 1 KiB
/// whose work is not done, and a rest that nobody ever used. Is the other one's first block of 1 KiB
/// from that segment?
bool takes_the_rest(Bytes capacity, unsigned unfinished) {
  spec::SimGpuOptions options;
  options.capacities = {capacity};
  spec::SimGpu gpu(options);
  device::Device* devices[] = {&gpu.device()};
  const auto allocator =
      cache::CachingAllocator::create(devices, props::config_in_segments()).value();
  const Stream busy = gpu.create_stream(kFirst).value();
  const Stream other = gpu.create_stream(kFirst).value();
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 2 * unfinished; ++i)
    blocks.push_back(allocator->allocate(1_KiB, busy).value());
  const spec::HostFlag flag = gpu.new_flag();
  EXPECT_TRUE(gpu.host_function(busy, flag).is_ok());
  for (std::size_t i = 0; i < blocks.size(); i += 2)
    EXPECT_TRUE(allocator->free(blocks[i]).is_ok());
  const Address got = allocator->allocate(1_KiB, other).value_or(Address{});
  EXPECT_FALSE(got.is_null());
  gpu.raise(flag);
  return got > blocks.front() && got < blocks.front() + 2_MiB;
}

TEST(CacheSlicesTest, AMissLooksAtASliceOfAnotherStreamsBlocksAndAReclaimAtAll) {
  // C31: 10^5 free blocks whose work is not done cost a miss milliseconds, and the stream that has
  // them, under its lock.
  EXPECT_TRUE(takes_the_rest(4_MiB, 63)) << "the 64th best fit is within a miss's reach";
  EXPECT_FALSE(takes_the_rest(4_MiB, 64)) << "a miss looks at 64 blocks, then grows";
  EXPECT_TRUE(takes_the_rest(2_MiB, 64)) << "it cannot grow: a reclaim looks at all";
  EXPECT_TRUE(takes_the_rest(2_MiB, 500));
}

}  // namespace
}  // namespace ashlar
