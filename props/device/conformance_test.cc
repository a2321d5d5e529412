// The conformance suite of src/ashlar/device/device.h, run on every device: clauses D1-D5 and D7.
//
// Imitates: a client that keeps the contract, and one that passes dead handles and wrong ranges.
// Does not prove: anything about work that is still running (spec/gpu has its own suite), or about
// capture (D6) and a lost device (D8), which do not arise on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include <ashlar/cuda/cuda_device.h>
#include <ashlar/device/host_device.h>
#include <ashlar/pinned/pinned_space.h>

#include "props/device/device_under_test.h"
#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {
namespace {

constexpr Bytes kCapacity = 64_MiB;

class HostUnderTest final : public DeviceUnderTest {
 public:
  explicit HostUnderTest(Bytes capacity) : device_(DeviceId{0}, capacity) {}
  device::Device& device() override { return device_; }
  Result<Stream> create_stream() override { return device_.create_stream(); }
  Status destroy_stream(StreamHandle stream) override { return device_.destroy_stream(stream); }
  std::uint64_t held() override {
    const device::HostLedger l = device_.ledger();
    return l.segments + l.reservations + l.page_handles + l.mappings + l.events + l.streams +
           l.pinned + l.registered + l.held.count();
  }

 private:
  device::HostDevice device_;
};

class SimUnderTest final : public DeviceUnderTest {
 public:
  SimUnderTest(Bytes capacity, bool adversarial) : gpu_(options_of(capacity, adversarial)) {}
  device::Device& device() override { return gpu_.device(); }
  Result<Stream> create_stream() override { return gpu_.create_stream(DeviceId{0}); }
  Status destroy_stream(StreamHandle stream) override {
    const auto identified = device().identify(stream);
    return identified.is_ok() ? gpu_.destroy_stream(identified.value()) : identified.status();
  }
  std::uint64_t held() override { return gpu_.held().size(); }
  spec::SimGpu& gpu() { return gpu_; }

 private:
  static spec::SimGpuOptions options_of(Bytes capacity, bool adversarial) {
    spec::SimGpuOptions options;
    options.capacities = {capacity};
    options.adversarial = adversarial;
    return options;
  }
  spec::SimGpu gpu_;
};

/// The CUDA driver's functions over a simulated GPU, called as the driver's are.
class CudaUnderTest final : public DeviceUnderTest {
 public:
  CudaUnderTest(Bytes capacity, bool adversarial) : simulated_(capacity, adversarial) {
    spec::cuda_face::attach(&simulated_.gpu());
    device_ = cuda::CudaDevice::open(0, DeviceId{0}, nullptr).value();
  }
  ~CudaUnderTest() override {
    device_.reset();
    spec::cuda_face::attach(nullptr);
  }
  device::Device& device() override { return *device_; }
  Result<Stream> create_stream() override { return simulated_.create_stream(); }
  Status destroy_stream(StreamHandle stream) override { return simulated_.destroy_stream(stream); }
  std::uint64_t held() override { return simulated_.held(); }

 private:
  SimUnderTest simulated_;
  std::unique_ptr<cuda::CudaDevice> device_;
};

/// Page-locked memory of a host device, whichever way it is locked.
class PinnedUnderTest final : public DeviceUnderTest {
 public:
  PinnedUnderTest(Bytes capacity, pinned::PinBy by)
      : space_(DeviceId{0}, std::span<device::Device* const>(&through_, 1),
               {.by = by, .touch_threads = 3, .capacity = capacity}) {}
  device::Device& device() override { return space_; }
  Result<Stream> create_stream() override { return space_.stream(streams_++); }
  Status destroy_stream(StreamHandle) override { return Status::ok(); }
  std::uint64_t held() override {
    const device::HostLedger l = host_.ledger();
    const device::MemoryInfo info = space_.memory_info().value();
    return l.pinned + l.registered + (info.total - info.free).count();
  }

 private:
  device::HostDevice host_;
  device::Device* const through_ = &host_;
  pinned::PinnedSpace space_;
  std::uint64_t streams_ = 0;
};

class Conformance : public testing::TestWithParam<DeviceMaker> {
 protected:
  void SetUp() override { under_test_ = GetParam().make(kCapacity); }
  void TearDown() override {
    EXPECT_EQ(under_test_->held(), 0u) << "the test did not return everything";
  }
  device::Device& device() { return under_test_->device(); }
  Bytes page() { return device().traits().page_granularity; }
  Address reserve(Bytes size) {
    const auto range = device().address_reserve(size, 0_B);
    EXPECT_TRUE(range.is_ok()) << range.status().why();
    return range.value_or(Address{});
  }
  PageHandle create(Bytes size) {
    const auto handle = device().page_create(size);
    EXPECT_TRUE(handle.is_ok()) << handle.status().why();
    return handle.value_or(PageHandle{});
  }

  std::unique_ptr<DeviceUnderTest> under_test_;
};

/// Of devices that have every call.
class FullConformance : public Conformance {};

#define ASSERT_OK(call) ASSERT_EQ((call).code(), Code::kOk)
#define EXPECT_OK(call) EXPECT_EQ((call).code(), Code::kOk)
#define EXPECT_CODE(call, expected) EXPECT_EQ((call).code(), (expected))

TEST_P(Conformance, TraitsAreUsable) {
  const device::DeviceTraits traits = device().traits();
  EXPECT_EQ(traits.id, DeviceId{0});
  EXPECT_GE(traits.address_alignment, 512_B);
  EXPECT_EQ(traits.address_alignment.count() & (traits.address_alignment.count() - 1), 0u);
  EXPECT_GE(traits.page_granularity, 4_KiB);
}

TEST_P(Conformance, SegmentsAreAlignedAndDisjoint) {  // D3
  std::vector<Address> segments;
  for (int i = 0; i < 5; ++i) {
    const auto base = device().segment_alloc(3_MiB + 1_B);
    ASSERT_TRUE(base.is_ok());
    EXPECT_EQ(base.value().value() % device().traits().address_alignment.count(), 0u);
    for (const Address other : segments) {
      EXPECT_TRUE(base.value() + 3_MiB + 1_B <= other || other + 3_MiB + 1_B <= base.value());
    }
    segments.push_back(base.value());
  }
  for (const Address base : segments) EXPECT_OK(device().segment_free(base));
}

TEST_P(Conformance, ASegmentOverTheCapacityIsRefusedAndChangesNothing) {  // D1
  EXPECT_CODE(device().segment_alloc(kCapacity + 1_B), Code::kOutOfMemory);
  const auto whole = device().segment_alloc(kCapacity);
  ASSERT_TRUE(whole.is_ok());
  EXPECT_CODE(device().segment_alloc(1_B), Code::kOutOfMemory);
  EXPECT_CODE(device().segment_alloc(Bytes::max()), Code::kOutOfMemory);
  EXPECT_OK(device().segment_free(whole.value()));
  const auto again = device().segment_alloc(kCapacity);
  ASSERT_TRUE(again.is_ok());
  EXPECT_OK(device().segment_free(again.value()));
}

TEST_P(Conformance, FreeingAnAddressThatIsNotASegmentIsAnError) {
  const auto base = device().segment_alloc(2_MiB);
  ASSERT_TRUE(base.is_ok());
  EXPECT_CODE(device().segment_free(base.value() + 512_B), Code::kInvalidArgument);
  EXPECT_CODE(device().segment_free(Address{}), Code::kInvalidArgument);
  EXPECT_OK(device().segment_free(base.value()));
  EXPECT_CODE(device().segment_free(base.value()), Code::kInvalidArgument);
}

TEST_P(Conformance, MemoryInfoReflectsTheMemoryHeld) {
  const auto before = device().memory_info();
  ASSERT_TRUE(before.is_ok());
  EXPECT_EQ(before.value().total, kCapacity);
  EXPECT_EQ(before.value().free, kCapacity);
  const auto base = device().segment_alloc(6_MiB);
  ASSERT_TRUE(base.is_ok());
  EXPECT_LE(device().memory_info().value().free, kCapacity - 6_MiB);
  EXPECT_OK(device().segment_free(base.value()));
  EXPECT_EQ(device().memory_info().value().free, kCapacity);
}

TEST_P(FullConformance, APageIsReservedCreatedMappedAndReleased) {
  const Bytes two = page() * 2;
  const Address range = reserve(page() * 4);
  EXPECT_EQ(range.value() % page().count(), 0u);
  const PageHandle handle = create(two);
  EXPECT_OK(device().page_map(range + page(), two, handle));
  EXPECT_OK(device().page_access(range + page(), two));
  EXPECT_FALSE(device().address_release(range, page() * 4).is_ok()) << "mapped";
  EXPECT_OK(device().page_unmap(range + page(), two));
  EXPECT_OK(device().page_release(handle));
  EXPECT_OK(device().address_release(range, page() * 4));
}

TEST_P(FullConformance, AReservationHasTheAlignmentThatWasAskedFor) {
  const Bytes alignments[] = {0_B, page(), page() * 16, page() * 512};
  std::vector<Address> held;
  for (const Bytes alignment : alignments) {
    const Result<Address> range = device().address_reserve(page(), alignment);
    ASSERT_TRUE(range.is_ok()) << alignment.count();
    EXPECT_EQ(range.value().value() % std::max(alignment, page()).count(), 0u) << alignment.count();
    held.push_back(range.value());
  }
  for (const Address range : held) EXPECT_OK(device().address_release(range, page()));
}

TEST_P(FullConformance, AReleasedPageKeepsItsMemoryWhileMapped) {
  const Address range = reserve(page());
  const PageHandle handle = create(page());
  EXPECT_OK(device().page_map(range, page(), handle));
  EXPECT_OK(device().page_release(handle));
  EXPECT_LE(device().memory_info().value().free, kCapacity - page());
  EXPECT_OK(device().page_unmap(range, page()));
  EXPECT_EQ(device().memory_info().value().free, kCapacity);
  EXPECT_OK(device().address_release(range, page()));
}

TEST_P(FullConformance, SegmentsAndPagesShareTheCapacity) {
  const auto segment = device().segment_alloc(kCapacity - page());
  ASSERT_TRUE(segment.is_ok());
  EXPECT_CODE(device().page_create(page() * 2), Code::kOutOfMemory);
  const PageHandle handle = create(page());
  EXPECT_CODE(device().segment_alloc(1_B), Code::kOutOfMemory);
  EXPECT_OK(device().page_release(handle));
  EXPECT_OK(device().segment_free(segment.value()));
}

TEST_P(FullConformance, MappingsAreWholeAndNeverOverlap) {
  const Address range = reserve(page() * 4);
  const PageHandle a = create(page() * 2);
  const PageHandle b = create(page() * 2);
  EXPECT_FALSE(device().page_map(range, page(), a).is_ok()) << "half a handle";
  EXPECT_FALSE(device().page_map(range + page() * 3, page() * 2, a).is_ok())
      << "past the end of the reservation";
  EXPECT_OK(device().page_map(range, page() * 2, a));
  EXPECT_FALSE(device().page_map(range + page(), page() * 2, b).is_ok()) << "over a mapping";
  EXPECT_OK(device().page_map(range + page() * 2, page() * 2, b));
  EXPECT_FALSE(device().page_unmap(range, page()).is_ok()) << "half a mapping";
  EXPECT_FALSE(device().page_unmap(range + page(), page() * 2).is_ok())
      << "the halves of two mappings";
  EXPECT_OK(device().page_access(range, page() * 4));
  EXPECT_OK(device().page_unmap(range, page() * 4));
  EXPECT_FALSE(device().page_unmap(range, page() * 4).is_ok()) << "already unmapped";
  EXPECT_OK(device().page_release(a));
  EXPECT_OK(device().page_release(b));
  EXPECT_OK(device().address_release(range, page() * 4));
}

TEST_P(FullConformance, MisalignedVirtualMemoryCallsAreRefused) {
  EXPECT_CODE(device().address_reserve(page() + 1_B, 0_B), Code::kInvalidArgument);
  EXPECT_CODE(device().address_reserve(0_B, 0_B), Code::kInvalidArgument);
  EXPECT_CODE(device().page_create(page() - 1_B), Code::kInvalidArgument);
  EXPECT_CODE(device().page_create(0_B), Code::kInvalidArgument);
}

TEST_P(Conformance, AnEventIsCompleteBeforeItsFirstRecordingAndAfterItsWork) {  // D5
  const auto stream = under_test_->create_stream();
  const auto event = device().event_create();
  ASSERT_TRUE(stream.is_ok() && event.is_ok());
  EXPECT_OK(device().event_query(event.value()));
  EXPECT_OK(device().event_record(event.value(), stream.value().handle));
  EXPECT_OK(device().event_synchronize(event.value(), device::kWaitForever));
  EXPECT_OK(device().event_query(event.value()));
  EXPECT_OK(device().event_record(event.value(), stream.value().handle));
  EXPECT_OK(device().stream_wait(stream.value().handle, event.value()));
  EXPECT_OK(device().synchronize());
  EXPECT_OK(device().event_query(event.value()));
  EXPECT_OK(device().event_destroy(event.value()));
  EXPECT_OK(under_test_->destroy_stream(stream.value().handle));
}

TEST_P(Conformance, StreamIdentitiesAreUniqueAndNeverReused) {  // D7
  std::vector<StreamId> ids;
  for (int i = 0; i < 4; ++i) {
    const auto stream = under_test_->create_stream();
    ASSERT_TRUE(stream.is_ok());
    const auto identified = device().identify(stream.value().handle);
    ASSERT_TRUE(identified.is_ok());
    EXPECT_EQ(identified.value(), stream.value());
    EXPECT_EQ(identified.value().device, DeviceId{0});
    for (const StreamId other : ids) EXPECT_NE(other, stream.value().id);
    ids.push_back(stream.value().id);
    EXPECT_EQ(
        device().capture_status(stream.value().handle).value_or(device::CaptureStatus::kActive),
        device::CaptureStatus::kNone);
    EXPECT_OK(under_test_->destroy_stream(stream.value().handle));
  }
}

TEST_P(Conformance, TheCaptureModeBelongsToTheThread) {
  ASSERT_EQ(device()
                .exchange_capture_mode(device::CaptureMode::kRelaxed)
                .value_or(device::CaptureMode::kRelaxed),
            device::CaptureMode::kGlobal);
  std::thread other([this] {
    EXPECT_EQ(device()
                  .exchange_capture_mode(device::CaptureMode::kGlobal)
                  .value_or(device::CaptureMode::kRelaxed),
              device::CaptureMode::kGlobal);
  });
  other.join();
  EXPECT_EQ(device()
                .exchange_capture_mode(device::CaptureMode::kGlobal)
                .value_or(device::CaptureMode::kGlobal),
            device::CaptureMode::kRelaxed);
}

TEST_P(Conformance, PinnedMemoryIsFreedByItsBaseOnly) {
  const auto base = device().pinned_alloc(1_MiB);
  ASSERT_TRUE(base.is_ok());
  EXPECT_FALSE(device().pinned_free(base.value() + 4_KiB).is_ok());
  EXPECT_OK(device().pinned_free(base.value()));
  EXPECT_FALSE(device().pinned_free(base.value()).is_ok());
}

TEST_P(FullConformance, HostMemoryIsRegisteredInWholePagesAndOnce) {
  alignas(4096) static std::array<std::byte, 4 * 4096> memory;
  const Address base = Address::of(memory.data());
  ASSERT_OK(device().host_register(base + 4_KiB, 8_KiB));
  EXPECT_CODE(device().host_register(base + 8_KiB, 8_KiB), Code::kInvalidArgument) << "overlaps";
  EXPECT_CODE(device().host_register(base, 8_KiB), Code::kInvalidArgument) << "overlaps";
  EXPECT_CODE(device().host_register(base, 16_KiB), Code::kInvalidArgument) << "contains it";
  EXPECT_CODE(device().host_register(base + 512_B, 4_KiB), Code::kInvalidArgument);
  EXPECT_CODE(device().host_register(base, 1_KiB), Code::kInvalidArgument);
  EXPECT_CODE(device().host_register(base, 0_B), Code::kInvalidArgument);
  EXPECT_CODE(device().host_register(Address{~std::uint64_t{4095}}, 8_KiB), Code::kInvalidArgument);
  EXPECT_OK(device().host_register(base, 4_KiB)) << "touches it";
  EXPECT_CODE(device().host_unregister(base + 8_KiB), Code::kInvalidArgument);
  EXPECT_OK(device().host_unregister(base));
  EXPECT_OK(device().host_unregister(base + 4_KiB));
  EXPECT_CODE(device().host_unregister(base), Code::kInvalidArgument);
}

TEST_P(Conformance, ThreadsMayCallConcurrently) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 50; ++i) {
        const auto base = device().segment_alloc(1_MiB);
        const auto event = device().event_create();
        EXPECT_TRUE(base.is_ok() && event.is_ok());
        EXPECT_OK(device().event_query(event.value()));
        EXPECT_OK(device().event_destroy(event.value()));
        EXPECT_OK(device().segment_free(base.value()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Conformance, MemoryInTheOrderOfStreamsIsWholeOrUnsupported) {
  const Stream stream = under_test_->create_stream().value();
  if (!device().traits().has_stream_memory) {
    EXPECT_CODE(device().stream_alloc(1_MiB, stream.handle), Code::kUnsupported);
    EXPECT_CODE(device().stream_free(Address{4096}, stream.handle), Code::kUnsupported);
    EXPECT_CODE(device().stream_trim(0_B), Code::kUnsupported);
    EXPECT_OK(under_test_->destroy_stream(stream.handle));
    return;
  }
  const auto base = device().stream_alloc(3_MiB, stream.handle);
  const auto apart = device().stream_alloc(1_MiB, stream.handle);
  ASSERT_TRUE(base.is_ok() && apart.is_ok());
  EXPECT_EQ(base.value().value() % device().traits().address_alignment.count(), 0u);
  EXPECT_TRUE(base.value() + 3_MiB <= apart.value() || apart.value() + 1_MiB <= base.value());
  EXPECT_CODE(device().stream_alloc(kCapacity, stream.handle), Code::kOutOfMemory);
  EXPECT_CODE(device().stream_free(base.value() + 512_B, stream.handle), Code::kInvalidArgument);
  EXPECT_OK(device().stream_free(base.value(), stream.handle));
  EXPECT_CODE(device().stream_free(base.value(), stream.handle), Code::kInvalidArgument);
  EXPECT_OK(device().segment_free(apart.value())) << "its work is done";
  EXPECT_OK(device().synchronize());
  EXPECT_OK(device().stream_trim(0_B));
  const auto whole = device().segment_alloc(kCapacity);
  ASSERT_TRUE(whole.is_ok()) << "the pool has given back all";
  EXPECT_OK(device().segment_free(whole.value()));
  EXPECT_OK(under_test_->destroy_stream(stream.handle));
}

const DeviceMaker kHost{"Host",
                        [](Bytes capacity) { return std::make_unique<HostUnderTest>(capacity); }};
const DeviceMaker kSim{
    "Sim", [](Bytes capacity) { return std::make_unique<SimUnderTest>(capacity, false); }};
const DeviceMaker kAdversarialSim{"AdversarialSim", [](Bytes capacity) {
                                    return std::make_unique<SimUnderTest>(capacity, true);
                                  }};
const DeviceMaker kCuda{
    "Cuda", [](Bytes capacity) { return std::make_unique<CudaUnderTest>(capacity, false); }};
const DeviceMaker kAdversarialCuda{"AdversarialCuda", [](Bytes capacity) {
                                     return std::make_unique<CudaUnderTest>(capacity, true);
                                   }};
const DeviceMaker kPinnedByDriver{"PinnedByDriver", [](Bytes capacity) {
                                    return std::make_unique<PinnedUnderTest>(
                                        capacity, pinned::PinBy::kDriver);
                                  }};
const DeviceMaker kPinnedByRegistration{"PinnedByRegistration", [](Bytes capacity) {
                                          return std::make_unique<PinnedUnderTest>(
                                              capacity, pinned::PinBy::kRegistration);
                                        }};

std::string name_of(const testing::TestParamInfo<DeviceMaker>& made) { return made.param.name; }

INSTANTIATE_TEST_SUITE_P(Devices, Conformance,
                         testing::Values(kHost, kSim, kAdversarialSim, kCuda, kAdversarialCuda,
                                         kPinnedByDriver, kPinnedByRegistration),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Devices, FullConformance,
                         testing::Values(kHost, kSim, kAdversarialSim, kCuda, kAdversarialCuda),
                         name_of);

}  // namespace
}  // namespace ashlar::props
