// Heaps that are backed by pages, as their users see them: what the device is asked, and what it is not.
//
// What an allocation may be given is judged in lockstep. Imitates: a device with little memory, in pieces; one
// without virtual memory. Does not imitate: a driver's cost (src/tool, spec/gpu/cost_model.h).
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include <ashlar/device/forwarding_device.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

class PagesTest : public ::testing::Test {
 protected:
  void make(const char* conf, Bytes capacity = 64_MiB) {
    spec::SimGpuOptions options;
    options.capacities = {capacity};
    allocator_.reset();  // before its device
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0)};
    allocator_ = make_allocator(devices, conf);
    stream_ = gpu_->create_stream(kDevice).value();
  }
  Address alloc(Bytes size) {
    const Result<Address> got = allocator_->allocate(size, stream_);
    EXPECT_TRUE(got.is_ok()) << got.status().why();
    return got.value_or(Address{});
  }
  std::uint64_t calls(CallKind kind) {
    return allocator_->stats(kDevice).value().device_calls[static_cast<unsigned>(kind)];
  }
  /// 20 MiB live between two free ranges of 20 MiB each, and 4 MiB that nobody has.
  void fill_in_pieces() {
    const Address first = alloc(20_MiB);
    alloc(20_MiB);
    const Address last = alloc(20_MiB);
    EXPECT_TRUE(allocator_->free(first).is_ok());
    EXPECT_TRUE(allocator_->free(last).is_ok());
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
};

TEST_F(PagesTest, PagesInPiecesServeOneRequestWithoutGoingBackToTheDriver) {
  make("backing:pages");
  fill_in_pieces();
  alloc(40_MiB);
  EXPECT_EQ(calls(CallKind::kPageCreate), 30u) << "each of the 60 MiB was created once";
  EXPECT_EQ(calls(CallKind::kPageRelease), 0u);
  EXPECT_GT(calls(CallKind::kPageMap), 30u);
}

TEST_F(PagesTest, WhereTheyMayNotMoveTheDriverTakesThemBackAndGivesOthers) {
  make("backing:pages,move:never");
  fill_in_pieces();
  alloc(40_MiB);
  EXPECT_GT(calls(CallKind::kPageRelease), 0u);
  EXPECT_EQ(calls(CallKind::kPageCreate), calls(CallKind::kPageMap));
}

/// A block of a step and its pages, or 0 where it is freed.
struct StepOp {
  unsigned block;
  unsigned pages;
};

// C20: in each of these steps all of the device is live at once. Without pages that come back to remembered places
// each round of the first asks the device.
TEST_F(PagesTest, StepsThatNeedOnePageAtSeveralPlacesSettleWithoutADeviceCall) {
  const std::vector<StepOp> steps[] = {
      {{0, 6}, {1, 6}, {0, 0}, {2, 8}, {2, 0}, {1, 0}},
      {{0, 1}, {1, 4}, {2, 1}, {1, 0}, {3, 5}, {0, 0}, {3, 0}, {2, 0}},
      {{0, 5}, {1, 2}, {2, 12}, {0, 0}, {3, 7}, {1, 0}, {2, 0}, {3, 0}},
      {{0, 5}, {0, 0}, {1, 2}, {2, 1}, {3, 4}, {1, 0}, {2, 0}, {4, 10}, {3, 0}, {4, 0}}};
  const Bytes capacities[] = {28_MiB, 14_MiB, 42_MiB, 28_MiB};
  for (std::size_t i = 0; i < std::size(steps); ++i) {
    SCOPED_TRACE(i);
    make("backing:pages", capacities[i]);
    const auto step = [&] {
      std::array<Address, 5> at{};
      for (const StepOp& op : steps[i]) {
        if (op.pages != 0) {
          at[op.block] = alloc(2_MiB * op.pages);
        } else {
          EXPECT_TRUE(allocator_->free(at[op.block]).is_ok());
        }
      }
      return at;
    };
    const auto calls_in_all = [this] {
      const DeviceStats stats = allocator_->stats(kDevice).value();
      return std::accumulate(stats.device_calls.begin(), stats.device_calls.end(),
                             std::uint64_t{0});
    };
    for (unsigned n = 0; n < 80; ++n) step();
    const auto places = step();
    const std::uint64_t before = calls_in_all();
    for (unsigned n = 0; n < 20; ++n) EXPECT_EQ(step(), places);
    EXPECT_EQ(calls_in_all(), before);
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    EXPECT_EQ(gpu_->device(0).memory_info().value().free, capacities[i]);
  }
}

TEST_F(PagesTest, APageWhosePlaceIsWantedAgainStaysMappedThere) {
  make("backing:pages", 34_MiB);
  const Address first = alloc(8_MiB);
  alloc(4_MiB);
  const Address last = alloc(20_MiB);
  EXPECT_TRUE(allocator_->free(first).is_ok());
  EXPECT_TRUE(allocator_->free(last).is_ok());
  // The device has 2 MiB: the 8 MiB move, and of the 20 MiB those that were taken come back to their place.
  EXPECT_EQ(alloc(30_MiB), last);
  EXPECT_EQ(calls(CallKind::kPageUnmap), 0u);
  EXPECT_EQ(calls(CallKind::kPageMap), 16u + 5u) << "each once, and where 10 MiB are new";
}

TEST_F(PagesTest, WhereAddressesAreShortARangeIsHalvedUntilItIsGranted) {
  make("backing:pages");
  gpu_->set_addresses(kDevice, 700_MiB);
  alloc(2_MiB);
  Snapshot shown;
  ASSERT_TRUE(allocator_->snapshot(kDevice, &shown).is_ok());
  ASSERT_EQ(shown.segments.size(), 1u);
  EXPECT_EQ(shown.segments[0].size, 512_MiB) << "4 GiB, halved three times";
}

TEST_F(PagesTest, EveryDeviceOfTheAllocatorMayUseAPage) {
  spec::SimGpuOptions options;
  options.capacities = {64_MiB, 64_MiB, 64_MiB};
  allocator_.reset();
  gpu_ = std::make_unique<spec::SimGpu>(options);
  device::Device* devices[] = {&gpu_->device(0), &gpu_->device(1), &gpu_->device(2)};
  allocator_ = make_allocator(devices, "backing:pages");
  stream_ = gpu_->create_stream(kDevice).value();
  alloc(2_MiB);
  for (const int each : {0, 1, 2}) {
    const DeviceStats stats = allocator_->stats(DeviceId{each}).value();
    EXPECT_EQ(stats.device_calls[static_cast<unsigned>(CallKind::kPageAccess)], 1u) << each;
  }
}

TEST_F(PagesTest, ARangeThatTheDriverKeepsIsFoundAgain) {
  make("backing:pages");
  EXPECT_TRUE(allocator_->free(alloc(8_MiB)).is_ok());
  gpu_->fail(CallKind::kAddressRelease, 1, spec::FailMode::kOnce);
  EXPECT_EQ(allocator_->trim(kDevice).code(), Code::kDriverError);
  const Address again = alloc(8_MiB);
  EXPECT_EQ(calls(CallKind::kAddressReserve), 1u);
  EXPECT_TRUE(allocator_->free(again).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(calls(CallKind::kAddressRelease), 2u);
}

TEST_F(PagesTest, AHeapThatPassesOnForgetsThePlacesOfItsBlocks) {
  make("backing:pages,wait_ms:0");
  fill_in_pieces();
  EXPECT_EQ(allocator_->allocate(60_MiB, stream_).code(),
            Code::kOutOfMemory);  // from now on it remembers
  Snapshot shown;
  ASSERT_TRUE(allocator_->snapshot(kDevice, &shown).is_ok());
  for (const SnapshotBlock& block : shown.blocks) {
    if (block.state != BlockState::kLive) continue;
    EXPECT_TRUE(allocator_->free(block.address).is_ok());
  }
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_TRUE(allocator_->retire_stream(stream_).is_ok());
  EXPECT_TRUE(gpu_->destroy_stream(stream_).is_ok());
  static_cast<void>(gpu_->drain_all());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  const std::uint64_t streams = allocator_->stats(kDevice).value().streams;
  stream_ = gpu_->create_stream(kDevice).value();
  for (unsigned i = 0; i < 4; ++i) alloc(4_MiB);
  EXPECT_EQ(allocator_->stats(kDevice).value().streams, streams) << "the heap has passed on";
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(PagesTest, AHopelessRequestTakesNothing) {
  make("backing:pages,wait_ms:0");
  alloc(20_MiB);
  const std::uint64_t created = calls(CallKind::kPageCreate);
  for (const Bytes hopeless : {1_GiB, 60_MiB})
    EXPECT_EQ(allocator_->allocate(hopeless, stream_).code(), Code::kOutOfMemory);
  EXPECT_EQ(calls(CallKind::kPageCreate), created);
}

TEST_F(PagesTest, AGrowthOfOnePageAsksForNoMemoryInfo) {
  make("backing:pages");
  alloc(2_MiB);
  const std::uint64_t asked = calls(CallKind::kMemoryInfo);
  alloc(2_MiB);
  EXPECT_EQ(calls(CallKind::kMemoryInfo), asked);
  alloc(4_MiB);
  EXPECT_EQ(calls(CallKind::kMemoryInfo), asked + 1);
}

TEST_F(PagesTest, ARangeThatLosesItsPagesKeepsItsAddressesUntilATrim) {
  make("backing:pages");
  const Address first = alloc(8_MiB);
  EXPECT_TRUE(allocator_->free(first).is_ok());
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, 0_B).is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().reserved_bytes[0].current, 0u);
  EXPECT_EQ(calls(CallKind::kAddressRelease), 0u);
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, Bytes::max()).is_ok());
  EXPECT_EQ(alloc(8_MiB), first);
}

TEST_F(PagesTest, APoolWithAGrowthDeviceGetsASegmentInPlaceOfPages) {
  make("backing:pages");
  EXPECT_TRUE(allocator_->free(alloc(60_MiB)).is_ok());
  MemoryPoolOptions options;
  options.growth = &gpu_->device(0);
  constexpr MemoryPoolId kGrown{0, 9};
  ASSERT_TRUE(allocator_->create_pool(kDevice, kGrown, options).is_ok());
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kGrown, [](const Stream&) { return true; }).is_ok());
  alloc(60_MiB);
  EXPECT_GT(calls(CallKind::kSegmentAlloc), 1u) << "refused at first";
}

/// A device that has no virtual memory.
class WithoutPages final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  device::DeviceTraits traits() const noexcept override {
    device::DeviceTraits traits = ForwardingDevice::traits();
    traits.has_virtual_memory = false;
    return traits;
  }
};

TEST_F(PagesTest, ADeviceWithoutVirtualMemoryHasSegmentsAndTheirRules) {
  make("");
  WithoutPages device(gpu_->device(0));
  device::Device* devices[] = {&device};
  const auto allocator = make_allocator(devices, "backing:pages");
  EXPECT_EQ(allocator->config().backing, Backing::kSegments);
  const Result<Address> got = allocator->allocate(9_MiB, stream_);
  ASSERT_TRUE(got.is_ok());
  EXPECT_EQ(allocator->info(got.value()).value().segment_size, 20_MiB);
}

TEST_F(PagesTest, OversizeBlocksAreNoSettingOfPages) {
  std::string why;
  EXPECT_EQ(parse_config("backing:pages,max_split_size_mb:64", &why).code(), Code::kMalformed);
  EXPECT_EQ(why, "max_split_size_mb: not with backing:pages, whose free blocks are of any size");
}

}  // namespace
}  // namespace ashlar::cache
