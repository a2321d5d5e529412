// What waits for streams, over the simulated GPU: stuck streams, lost devices, retired streams, calls that cross each other.
//
// Imitates: a stream stuck behind a host function while others finish; a device that dies with work of its own on another's
// memory; two threads in the middle of one call each, by a device whose calls run a piece of the test's.
// Does not prove: anything about real time; threads_test.cc runs real threads.
#include <gtest/gtest.h>

#include <functional>

#include <ashlar/cache/caching_allocator.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

constexpr DeviceId kFirst{0};
constexpr DeviceId kSecond{1};
constexpr Bytes kBlock = 20_MiB;  // a segment of its own

class CacheWaitingTest : public ::testing::Test {
 protected:
  void make(std::vector<Bytes> capacities, const char* conf) {
    spec::SimGpuOptions options;
    options.capacities = std::move(capacities);
    gpu_ = std::make_unique<spec::SimGpu>(options);
    std::vector<Device*> devices;
    for (std::uint32_t i = 0; i < gpu_->device_count(); ++i) devices.push_back(&gpu_->device(static_cast<std::int32_t>(i)));
    std::string error;
    allocator_ = CachingAllocator::create(devices, parse_config(conf, &error).value()).value();
  }
  Stream stream(DeviceId device = kFirst) { return gpu_->create_stream(device).value(); }
  Address allocate(const Stream& on) { return allocator_->allocate(kBlock, on).value_or(Address{}); }
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
  std::unique_ptr<CachingAllocator> allocator_;
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

TEST_F(CacheWaitingTest, AWaitForEverEndsWhereTheMachineSaysThatNothingCanRun) {
  make({kBlock}, "wait_ms:forever");
  const Stream own = stream();
  const Stream stuck = stream();
  const Address block = allocate(own);
  const spec::HostFlag flag = hold(stuck);
  ASSERT_TRUE(allocator_->free(block, stuck).is_ok());
  OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(kBlock, own, &account).code(), Code::kOutOfMemory);
  EXPECT_TRUE(account.wait_ran_out);
  EXPECT_TRUE(has_fault(spec::FaultKind::kDeadlock));
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

}  // namespace
}  // namespace ashlar
