// Misuse and lifecycle of the caching allocator: what each call must refuse, and a process that
// forks.
//
// Imitates: callers that name the wrong device or stream, or call in the wrong state or process.
// Does not prove: anything about the memory itself.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/host_device.h>

#include "props/adapters/in_segments.h"
#include "props/cache/forked_child.h"

namespace ashlar {
namespace {

constexpr DeviceId kDeviceZero{0};
constexpr DeviceId kNone{7};

class CacheMisuseTest : public ::testing::Test {
 protected:
  CacheMisuseTest() {
    device::Device* devices[] = {&device_};
    allocator_ = cache::CachingAllocator::create(devices, props::config_in_segments()).value();
    stream_ = device_.create_stream().value();
  }
  device::HostDevice device_{kDeviceZero};
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream stream_;
};

TEST_F(CacheMisuseTest, AnAllocatorIsNotMadeOverDevicesOutOfPlaceOrASettingOutOfRange) {
  EXPECT_EQ(cache::CachingAllocator::create({}, cache::Config{}).code(), Code::kInvalidArgument);
  device::Device* null_device[] = {nullptr};
  EXPECT_EQ(cache::CachingAllocator::create(null_device, cache::Config{}).code(),
            Code::kInvalidArgument);
  device::HostDevice second{DeviceId{1}};
  device::Device* misplaced[] = {&second};
  EXPECT_EQ(cache::CachingAllocator::create(misplaced, cache::Config{}).code(),
            Code::kInvalidArgument);
  device::Device* devices[] = {&device_};
  cache::Config bad;
  bad.granule = 3_B;
  EXPECT_EQ(cache::CachingAllocator::create(devices, bad).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->device_count(), 1u);
  EXPECT_EQ(allocator_->config().granule, 512_B);
}

/// A device that promises addresses aligned to 256 bytes, as CUDA's documentation does.
class CoarserDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  device::DeviceTraits traits() const noexcept override {
    device::DeviceTraits traits = ForwardingDevice::traits();
    traits.address_alignment = 256_B;
    return traits;
  }
};

TEST_F(CacheMisuseTest, AGranuleOverTheDevicesAlignmentIsSaidToBeTooLarge) {
  CoarserDevice coarser(device_);
  device::Device* devices[] = {&coarser};
  cache::Config config;
  const auto refused = cache::CachingAllocator::create(devices, config);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_STREQ(refused.status().why(),
               "the granule is larger than the alignment that the device promises of addresses");
  config.granule = 256_B;
  EXPECT_TRUE(cache::CachingAllocator::create(devices, config).is_ok());
}

/// A device whose segments end where the test says.
class HighDevice final : public device::ForwardingDevice {
 public:
  explicit HighDevice(device::HostDevice& inner) : ForwardingDevice(inner) {}
  Result<Address> segment_alloc(Bytes size) noexcept override {
    const Result<Address> base = ForwardingDevice::segment_alloc(size);
    if (!base.is_ok()) return base;
    last_shift = ends_at == 0 ? Bytes{} : Bytes{ends_at - base.value().value()} - size;
    return base.value() + last_shift;
  }
  Status segment_free(Address base) noexcept override {
    return ForwardingDevice::segment_free(base - last_shift);
  }
  std::uint64_t ends_at = 0;  ///< where segments end; 0: where the other device puts them
  Bytes last_shift;
};

/// It was taken for a host without memory, which made the allocator empty its cache for it.
TEST_F(CacheMisuseTest, ASegmentBeyondThePageMapGoesBackWithATypedError) {
  device::HostDevice low;
  HighDevice high(low);
  device::Device* devices[] = {&high};
  const auto allocator =
      cache::CachingAllocator::create(devices, props::config_in_segments()).value();
  const Stream stream = low.create_stream().value();
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 57;
  for (const std::uint64_t ends_at : {kEnd + 512, kEnd << 1, ~std::uint64_t{0} - 511}) {
    high.ends_at = ends_at;
    const Result<Address> refused = allocator->allocate(12_MiB, stream);
    EXPECT_EQ(refused.code(), Code::kUnsupported);
    EXPECT_STREQ(refused.status().why(),
                 "the device's address has over 57 bits, more than the page map covers");
    EXPECT_EQ(low.ledger().segments, 0u) << "the segment is back with the device";
    EXPECT_EQ(allocator->stats(kDeviceZero).value().reserved_bytes[0].current, 0u);
    EXPECT_EQ(allocator->validate(), nullptr);
  }
  high.ends_at = kEnd;
  const Address last = allocator->allocate(12_MiB, stream).value();
  EXPECT_EQ(last.value(), kEnd - (12_MiB).count());
  EXPECT_TRUE(allocator->free(last).is_ok());
  EXPECT_EQ(allocator->free(last + Bytes{std::uint64_t{1} << 60}).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator->trim(kDeviceZero).is_ok());
  high.ends_at = 0;
  EXPECT_TRUE(allocator->allocate(12_MiB, stream).is_ok()) << "other addresses are served";
}

TEST_F(CacheMisuseTest, EveryCallRefusesADeviceThatIsNotThere) {
  Stream lost = stream_;
  for (const DeviceId id : {kNone, DeviceId{-1}}) {
    lost.device = id;
    cache::Snapshot snapshot;
    EXPECT_EQ(allocator_->allocate(1_B, lost).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->free(Address{1}, lost).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->record_use(Address{1}, lost).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->retire_stream(lost).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->begin_capture(lost).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->end_capture(lost).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->trim(id).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->set_memory_limit(id, 1_MiB).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->set_memory_fraction(id, 0.5).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->largest_free_block(lost).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->stats(id).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->reset_peak_stats(id).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->reset_accumulated_stats(id).code(), Code::kInvalidArgument);
    EXPECT_EQ(allocator_->snapshot(id, &snapshot).code(), Code::kInvalidArgument);
  }
}

TEST_F(CacheMisuseTest, StreamsAndCapturesOutOfTurnAreTypedErrors) {
  EXPECT_EQ(allocator_->retire_stream(stream_).code(), Code::kNotFound);
  EXPECT_EQ(allocator_->end_capture(stream_).code(), Code::kNotFound);
  EXPECT_TRUE(allocator_->begin_capture(stream_).is_ok());
  EXPECT_EQ(allocator_->begin_capture(stream_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->trim(kDeviceZero).code(), Code::kBusy);
  EXPECT_EQ(allocator_->retire_stream(stream_).code(), Code::kBusy);
  const Stream other = device_.create_stream().value();
  EXPECT_TRUE(allocator_->begin_capture(other).is_ok());
  EXPECT_TRUE(allocator_->end_capture(stream_).is_ok());
  EXPECT_EQ(allocator_->trim(kDeviceZero).code(), Code::kBusy);
  EXPECT_TRUE(allocator_->end_capture(other).is_ok());
  EXPECT_TRUE(allocator_->trim(kDeviceZero).is_ok());
  EXPECT_TRUE(allocator_->retire_stream(stream_).is_ok());
  EXPECT_EQ(allocator_->retire_stream(stream_).code(), Code::kInvalidHandle);
  EXPECT_EQ(allocator_->begin_capture(stream_).code(), Code::kInvalidHandle);
  EXPECT_TRUE(allocator_->trim(kDeviceZero).is_ok());
}

TEST_F(CacheMisuseTest, ANullPlaceForAnAnswerIsATypedError) {
  EXPECT_EQ(allocator_->stats(kDeviceZero, nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->snapshot(kDeviceZero, nullptr).code(), Code::kInvalidArgument);
  const MemoryPoolId pool{1, 0};
  ASSERT_TRUE(allocator_->create_pool(kDeviceZero, pool, {}).is_ok());
  const auto checkpoint = allocator_->checkpoint_pool(kDeviceZero, pool);
  ASSERT_TRUE(checkpoint.is_ok());
  EXPECT_EQ(allocator_->restore_pool(checkpoint.value(), nullptr).code(), Code::kInvalidArgument);
  EXPECT_TRUE(allocator_->release_pool(kDeviceZero, pool).is_ok());
}

TEST_F(CacheMisuseTest, AnEmptyFunctionIsNotCalled) {
  allocator_->add_free_memory_callback(nullptr);
  allocator_->add_out_of_memory_observer(nullptr);
  allocator_->add_mapping_observer(nullptr);
  ASSERT_TRUE(allocator_->set_memory_limit(kDeviceZero, 4_MiB).is_ok());
  EXPECT_EQ(allocator_->allocate(8_MiB, stream_).code(), Code::kOutOfMemory);
}

TEST_F(CacheMisuseTest, AFreeOfNothingIsRightWhateverStreamItNames) {
  EXPECT_TRUE(allocator_->free(Address{}).is_ok());
  EXPECT_TRUE(allocator_->free(Address{}, stream_).is_ok());
  EXPECT_TRUE(allocator_->free(Address{}, Stream{}).is_ok());
  EXPECT_EQ(allocator_->stats(kDeviceZero).value().streams, 0u) << "no stream is made known by it";
}

TEST_F(CacheMisuseTest, AFractionIsOverZeroAndAtMostOneAndIsKept) {
  for (const double fraction : {0.0, -1.0, 1.5}) {
    EXPECT_EQ(allocator_->set_memory_fraction(kDeviceZero, fraction).code(),
              Code::kInvalidArgument);
  }
  device::HostDevice small{kDeviceZero, 64_MiB};
  device::Device* devices[] = {&small};
  cache::Config config;
  config.memory_fraction = 0.5;
  auto capped = cache::CachingAllocator::create(devices, config).value();
  const Stream stream = small.create_stream().value();
  EXPECT_TRUE(capped->allocate(32_MiB, stream).is_ok());
  EXPECT_EQ(capped->allocate(1_B, stream).code(), Code::kOutOfMemory);
  EXPECT_TRUE(capped->set_memory_fraction(kDeviceZero, 1.0).is_ok());
  EXPECT_TRUE(capped->allocate(1_B, stream).is_ok());
}

TEST_F(CacheMisuseTest, AnObserverHearsTheWholeAccountBeforeTheFailure) {
  cache::OutOfMemory heard;
  allocator_->add_out_of_memory_observer(
      [&heard](const cache::OutOfMemory& account) { heard = account; });
  EXPECT_TRUE(allocator_->set_memory_limit(kDeviceZero, 20_MiB).is_ok());
  const Address held = allocator_->allocate(12_MiB, stream_).value();
  EXPECT_EQ(allocator_->allocate(12_MiB, stream_).code(), Code::kOutOfMemory);
  EXPECT_EQ(heard.requested, 12_MiB);
  EXPECT_EQ(heard.allocated, 12_MiB);
  EXPECT_EQ(allocator_->info(held).value().requested, 12_MiB);
  EXPECT_EQ(allocator_->info(held + 512_B).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator_->reset_accumulated_stats(kDeviceZero).is_ok());
  const cache::DeviceStats stats = allocator_->stats(kDeviceZero).value();
  EXPECT_EQ(stats.ooms, 0u);
  EXPECT_EQ(stats.allocations[0].current, 1u);
  EXPECT_EQ(stats.allocations[0].increased, 0u);
  EXPECT_EQ(stats.allocations[0].decreased, 0u);
}

/// Two allocators of one process, each over 8 MiB.
class TwoAllocatorsTest : public ::testing::Test {
 protected:
  struct Side {
    Side() {
      device::Device* devices[] = {&device};
      allocator = cache::CachingAllocator::create(devices, props::config_in_segments()).value();
      stream = device.create_stream().value();
    }
    Code allocate(Bytes size) { return allocator->allocate(size, stream).code(); }
    device::HostDevice device{kDeviceZero, 8_MiB};
    std::unique_ptr<cache::CachingAllocator> allocator;
    Stream stream;
  };
  Side a_;
  Side b_;
};

/// With one depth for all allocators, what A's callback is told by B depends on whether an observer
/// of B runs in any thread: it is served while none does, and refused while one does.
TEST_F(TwoAllocatorsTest, AnObserverOfOneAllocatesFromTheOtherOnly) {
  std::atomic<int> phase{0};
  Code own = Code::kOk, other = Code::kBusy, back = Code::kOk;
  a_.allocator->add_free_memory_callback([&](DeviceId) {
    own = a_.allocate(512_B);
    other = b_.allocate(512_B);
    back = a_.allocate(512_B);
  });
  b_.allocator->add_out_of_memory_observer([&](const cache::OutOfMemory&) {
    phase = 1;
    while (phase != 2) std::this_thread::yield();
  });
  std::thread observed([&] { EXPECT_EQ(b_.allocate(1_GiB), Code::kOutOfMemory); });
  while (phase != 1) std::this_thread::yield();
  EXPECT_EQ(a_.allocate(4_MiB), Code::kOutOfMemory);  // a segment of 20 MiB
  phase = 2;
  observed.join();
  EXPECT_EQ(own, Code::kReentrant);
  EXPECT_EQ(other, Code::kOk);
  EXPECT_EQ(back, Code::kReentrant) << "the other allocator's call has not ended this one's";
}

TEST_F(TwoAllocatorsTest, AnObserverInsideAnObserverMayUseNeither) {
  Code of_a = Code::kOk, of_b = Code::kOk;
  b_.allocator->add_free_memory_callback([&](DeviceId) {
    of_a = a_.allocate(512_B);
    of_b = b_.allocate(512_B);
  });
  a_.allocator->add_free_memory_callback(
      [&](DeviceId) { EXPECT_EQ(b_.allocate(512_B), Code::kOk); });
  EXPECT_EQ(a_.allocate(512_B), Code::kOk);
  EXPECT_EQ(of_a, Code::kReentrant);
  EXPECT_EQ(of_b, Code::kReentrant);
  EXPECT_EQ(a_.allocate(512_B), Code::kOk) << "outside every observer";
}

TEST_F(CacheMisuseTest, AForkedChildGetsTypedErrorsAndItsFreesDoNothing) {
  const Address held = allocator_->allocate(1_MiB, stream_).value();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cache::Snapshot snapshot;
    bool all = allocator_->allocate(1_B, stream_).code() == Code::kForked;
    all &= allocator_->free(held).code() == Code::kForked;
    all &= allocator_->free(held, stream_).code() == Code::kForked;
    all &= allocator_->record_use(held, stream_).code() == Code::kForked;
    all &= allocator_->info(held).code() == Code::kForked;
    all &= allocator_->trim(kDeviceZero).code() == Code::kForked;
    all &= allocator_->stats(kDeviceZero).code() == Code::kForked;
    all &= allocator_->snapshot(kDeviceZero, &snapshot).code() == Code::kForked;
    // makes no device call, and does not hang on a lock that another thread held
    allocator_.reset();
    props::end_child(all ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(allocator_->free(held).is_ok());
  EXPECT_EQ(allocator_->validate(), nullptr);
}

}  // namespace
}  // namespace ashlar
