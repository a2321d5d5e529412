// The allocator of page-locked memory over simulated GPUs: rows PIN-1 to PIN-6, and misuse.
//
// Imitates: a program that copies between the host and two GPUs, from several threads and in captures; a
// driver that refuses to lock memory; a host that has no NUMA node of that number.
// Does not prove: how long a real driver takes to lock memory.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <ashlar/cuda/cuda_device.h>
#include <ashlar/device/forwarding_device.h>
#include <ashlar/pinned/pinned_allocator.h>

#include "props/cache/forked_child.h"
#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

using pinned::PinnedAllocator;
using pinned::PinnedConfig;

/// How the allocator reaches the GPUs: as simulated ones, or by the CUDA driver's functions over them.
enum class Through : std::uint8_t { kSimulator, kCudaDriver };

class PinnedAllocatorTest : public ::testing::TestWithParam<Through> {
 protected:
  PinnedAllocatorTest() : gpu_(options()) {
    if (GetParam() == Through::kSimulator) return;
    spec::cuda_face::attach(&gpu_);
    for (const std::int32_t id : {0, 1})
      by_driver_.push_back(cuda::CudaDevice::open(id, DeviceId{id}, nullptr).value());
  }
  ~PinnedAllocatorTest() override {
    static_cast<void>(gpu_.drain_all());
    allocator_.reset();
    by_driver_.clear();
    spec::cuda_face::attach(nullptr);
    EXPECT_TRUE(gpu_.is_gone(DeviceId{0}) || gpu_.leak_check());
    for (const spec::Fault& fault : gpu_.take_faults()) ADD_FAILURE() << fault.text;
  }

  static spec::SimGpuOptions options() {
    spec::SimGpuOptions options;
    options.capacities = {Bytes{0}, Bytes{0}};
    return options;
  }
  Result<std::unique_ptr<PinnedAllocator>> try_make(const PinnedConfig& config) {
    device::Device* devices[] = {&device(0), &device(1)};
    return PinnedAllocator::create(devices, config);
  }
  device::Device& device(std::int32_t id) {
    if (by_driver_.empty()) return gpu_.device(id);
    return *by_driver_[static_cast<std::size_t>(id)];
  }
  void make(const PinnedConfig& config = {}) {
    auto made = try_make(config);
    ASSERT_TRUE(made.is_ok()) << made.status().why();
    allocator_ = std::move(made).value();
  }
  Stream stream(std::int32_t device) { return gpu_.create_stream(DeviceId{device}).value(); }
  Address allocate(Bytes size) {
    const auto got = allocator_->allocate(size);
    EXPECT_TRUE(got.is_ok()) << got.status().why();
    return got.value_or(Address{});
  }
  /// Work on the stream that uses the memory, announced.
  void use(Address memory, Bytes size, const Stream& on) {
    EXPECT_TRUE(gpu_.launch(on, {memory, size}).is_ok());
    EXPECT_TRUE(allocator_->record_use(memory, PinnedAllocator::context_of(memory), on).is_ok());
  }
  cache::DeviceStats stats() {
    cache::DeviceStats stats;
    EXPECT_TRUE(allocator_->caching().stats(allocator_->device(), &stats).is_ok());
    return stats;
  }
  /// The wait of a trim lets simulated work run, but not through the CUDA driver, whose events are asked by the clock.
  void run_what_a_trim_waits_for() {
    if (GetParam() == Through::kCudaDriver) {
      EXPECT_TRUE(gpu_.drain_all().is_ok());
    }
  }
  std::uint64_t locked_bytes() { return gpu_.ledger().pinned.bytes.count(); }

  spec::SimGpu gpu_;
  std::vector<std::unique_ptr<cuda::CudaDevice>> by_driver_;
  std::unique_ptr<PinnedAllocator> allocator_;
};

INSTANTIATE_TEST_SUITE_P(, PinnedAllocatorTest,
                         ::testing::Values(Through::kSimulator, Through::kCudaDriver),
                         [](const ::testing::TestParamInfo<Through>& each) {
                           return each.param == Through::kSimulator ? "Simulator" : "CudaDriver";
                         });

TEST_P(PinnedAllocatorTest, AnAllocationHasHardlyMoreThanItAsksFor) {  // PIN-1
  make();
  for (const Bytes size :
       {1_B, 512_B, 4_KiB + 1_B, 1_MiB, 1_MiB + 1_B, 5_MiB + 1_B, 33_MiB + 1_B}) {
    const Address got = allocate(size);
    EXPECT_LE(allocator_->caching().info(got).value().size,
              size + (size <= 1_MiB ? 511_B : 1_MiB + 511_B));
    EXPECT_TRUE(allocator_->free(got).is_ok());
  }
}

TEST_P(PinnedAllocatorTest, ThePowerOfTwoRuleIsASetting) {  // PIN-1
  PinnedConfig config;
  config.rounds_to_power_of_two = true;
  make(config);
  for (const Bytes size : {5_MiB + 1_B, 8_MiB}) {
    const Address got = allocate(size);
    EXPECT_EQ(allocator_->caching().info(got).value().size, 8_MiB);
    EXPECT_TRUE(allocator_->free(got).is_ok());
  }
  EXPECT_TRUE(allocate(0_B).is_null());
  EXPECT_EQ(allocator_->allocate(Bytes::max()).code(), Code::kSizeOverflow);
}

TEST_P(PinnedAllocatorTest, TheContextOrTheAddressNamesTheAllocation) {  // PIN-2
  make();
  const Stream on = stream(0);
  const Address memory = allocate(1_MiB);
  int foreign = 0;
  EXPECT_TRUE(allocator_->record_use(Address{}, PinnedAllocator::context_of(memory), on).is_ok());
  EXPECT_TRUE(allocator_->record_use(memory, nullptr, on).is_ok());
  EXPECT_TRUE(allocator_->record_use(memory, &foreign, on).is_ok());
  EXPECT_EQ(allocator_->record_use(Address::of(&foreign), &foreign, on).code(),
            Code::kUnknownPointer);
  EXPECT_EQ(allocator_->record_use(Address{}, nullptr, on).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator_->free_context(PinnedAllocator::context_of(memory)).is_ok());
  EXPECT_EQ(allocator_->record_use(memory, PinnedAllocator::context_of(memory), on).code(),
            Code::kDoubleFree);
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  EXPECT_TRUE(allocator_->process_events().is_ok());
  EXPECT_EQ(allocator_->record_use(memory, PinnedAllocator::context_of(memory), on).code(),
            Code::kUnknownPointer);
  EXPECT_EQ(allocator_->free_context(&foreign).code(), Code::kUnknownPointer);
}

TEST_P(PinnedAllocatorTest, MemoryComesBackWhenEveryRecordedStreamIsDone) {  // PIN-3
  make();
  const Stream first = stream(0);
  const Stream second = stream(1);
  const Address memory = allocate(30_MiB);
  use(memory, 30_MiB, first);
  use(memory, 30_MiB, second);
  EXPECT_TRUE(allocator_->free(memory).is_ok());
  EXPECT_EQ(stats().active_bytes[0].current, (30_MiB).count());
  EXPECT_EQ(gpu_.step(first, 2), 2u);
  EXPECT_TRUE(allocator_->process_events().is_ok());
  EXPECT_EQ(stats().active_bytes[0].current, (30_MiB).count()) << "the second one still runs";
  EXPECT_EQ(gpu_.step(second, 2), 2u);
  EXPECT_EQ(allocate(30_MiB), memory);
  EXPECT_TRUE(allocator_->free(memory).is_ok());
}

TEST_P(PinnedAllocatorTest, AFreeMakesNoCallThatWaits) {  // PIN-3
  make();
  const Stream on = stream(0);
  const Address memory = allocate(1_MiB);
  use(memory, 1_MiB, on);
  gpu_.reset_account();
  EXPECT_TRUE(allocator_->free(memory).is_ok());
  const spec::CallAccount account = gpu_.account();
  for (const device::CallKind kind :
       {device::CallKind::kEventSynchronize, device::CallKind::kSynchronize,
        device::CallKind::kPinnedFree})
    EXPECT_EQ(account.by_kind[static_cast<unsigned>(kind)].calls, 0u) << device::call_name(kind);
}

TEST_P(PinnedAllocatorTest, OneStuckEventDelaysNoOther) {  // PIN-3, H8
  make();
  const Stream stuck = stream(0);
  const Stream done = stream(0);
  const Address behind = allocate(30_MiB);
  use(behind, 30_MiB, stuck);
  EXPECT_TRUE(allocator_->free(behind).is_ok());
  std::vector<Address> others;
  for (int i = 0; i < 50; ++i) {
    others.push_back(allocate(30_MiB));
    use(others.back(), 30_MiB, done);
  }
  for (const Address each : others) EXPECT_TRUE(allocator_->free(each).is_ok());
  while (gpu_.step(done) != 0) {
  }
  EXPECT_TRUE(allocator_->process_events().is_ok());
  EXPECT_EQ(stats().active_bytes[0].current, (30_MiB).count());
  const std::uint64_t before = locked_bytes();
  for (Address& each : others) each = allocate(30_MiB);
  EXPECT_EQ(locked_bytes(), before);
  for (const Address each : others) EXPECT_TRUE(allocator_->free(each).is_ok());
}

TEST_P(PinnedAllocatorTest, WhatIsDoneGoesBackToTheDriver) {  // PIN-4
  make();
  const Stream on = stream(0);
  const Address used = allocate(30_MiB);
  const Address free = allocate(40_MiB);
  use(used, 30_MiB, on);
  EXPECT_TRUE(allocator_->free(free).is_ok());
  EXPECT_TRUE(allocator_->free(used).is_ok());
  EXPECT_EQ(locked_bytes(), (70_MiB).count());
  run_what_a_trim_waits_for();
  EXPECT_TRUE(allocator_->caching().trim(allocator_->device()).is_ok());
  EXPECT_EQ(locked_bytes(), 0u);
}

TEST_P(PinnedAllocatorTest, ZeroBytesAreNullAndNullIsFreeable) {  // PIN-5
  make();
  const Address nothing = allocate(0_B);
  EXPECT_TRUE(nothing.is_null());
  EXPECT_EQ(PinnedAllocator::context_of(nothing), nullptr);
  EXPECT_TRUE(allocator_->free(Address{}).is_ok());
  EXPECT_TRUE(allocator_->free_context(nullptr).is_ok());
  EXPECT_EQ(locked_bytes(), 0u);
}

TEST_P(PinnedAllocatorTest, RegisteredMemoryIsOrdinaryMemoryOfTheHost) {  // PIN-6
  PinnedConfig config;
  config.space.by = pinned::PinBy::kRegistration;
  config.space.touch_threads = 4;
  make(config);
  const Address memory = allocate(24_MiB + 1_B);
  static_cast<char*>(memory.pointer())[(24_MiB).count()] = 1;
  EXPECT_EQ(gpu_.ledger().registered.bytes, 26_MiB);
  EXPECT_EQ(locked_bytes(), 0u);
  const Stream on = stream(1);
  use(memory, 24_MiB, on);
  EXPECT_TRUE(allocator_->free(memory).is_ok());
  run_what_a_trim_waits_for();
  EXPECT_TRUE(allocator_->caching().trim(allocator_->device()).is_ok());
  EXPECT_EQ(gpu_.ledger().registered.count, 0u);
}

TEST_P(PinnedAllocatorTest, BytesAreCopiedBetweenLiveAllocationsAlone) {  // PIN-5
  PinnedConfig config;
  config.space.by = pinned::PinBy::kRegistration;
  make(config);
  const Address from = allocate(4_KiB);
  const Address to = allocate(1_KiB);
  std::memset(from.pointer(), 7, 4096);
  std::memset(to.pointer(), 0, 1024);
  EXPECT_TRUE(allocator_->copy(to, from, 1_KiB).is_ok());
  EXPECT_EQ(static_cast<char*>(to.pointer())[1023], 7);
  EXPECT_TRUE(allocator_->copy(to, to, 1_KiB).is_ok());
  EXPECT_EQ(allocator_->copy(to, from, 4_KiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->copy(from, to, 4_KiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->copy(to, Address{}, 1_B).code(), Code::kUnknownPointer);
  EXPECT_EQ(allocator_->copy(to + 512_B, from, 1_B).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator_->free(from).is_ok());
  EXPECT_TRUE(allocator_->free(to).is_ok());
}

TEST_P(PinnedAllocatorTest, ARefusedRegistrationLeavesNothing) {  // C13
  PinnedConfig config;
  config.space.by = pinned::PinBy::kRegistration;
  make(config);
  const auto mapped_pages = [] {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages;
  };
  gpu_.fail(device::CallKind::kHostRegister, 1, spec::FailMode::kOn, Code::kOutOfMemory);
  EXPECT_EQ(allocator_->allocate(1_MiB).code(), Code::kOutOfMemory);
  const std::uint64_t before = mapped_pages();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(allocator_->allocate(256_MiB).code(), Code::kOutOfMemory);
  EXPECT_LT(mapped_pages(), before + (256_MiB).count() / 4096)
      << "what was not registered is unmapped";
  gpu_.heal();
  EXPECT_TRUE(allocator_->free(allocate(1_MiB)).is_ok());
}

TEST_P(PinnedAllocatorTest, HowLongLockingTookIsCounted) {  // PIN-6
  make();
  EXPECT_EQ(allocator_->space().times().pin.calls, 0u);
  EXPECT_TRUE(allocator_->free(allocate(30_MiB)).is_ok());
  EXPECT_TRUE(allocator_->free(allocate(64_MiB)).is_ok());
  EXPECT_TRUE(allocator_->caching().trim(allocator_->device()).is_ok());
  const pinned::PinTimes times = allocator_->space().times();
  EXPECT_EQ(times.pin.calls, 2u);
  EXPECT_EQ(times.unpin.calls, 2u);
  EXPECT_LE(times.pin.least_ns, times.pin.most_ns);
  EXPECT_EQ(times.pin.total_ns, times.pin.least_ns + times.pin.most_ns);
}

/// Answers every synchronisation with a status of the test's, and counts them.
class SynchronizedDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status synchronize() noexcept override {
    ++calls;
    return status;
  }
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override {
    ++calls;
    given_ms = timeout_ms;
    now += 2'500'000;
    return status;
  }
  std::uint64_t now_ns() const noexcept override { return now; }

  int calls = 0;
  Status status;
  std::uint32_t given_ms = 0;
  std::uint64_t now = 1'000'000;
};

TEST_P(PinnedAllocatorTest, ASynchronisationIsOneOfEveryDevice) {  // C8
  SynchronizedDevice first(device(0)), second(device(1));
  device::Device* const all[] = {&first, &second};
  pinned::PinnedSpace space(DeviceId{2}, all, {});
  EXPECT_TRUE(space.synchronize().is_ok());
  EXPECT_TRUE(space.synchronize_for(5).is_ok());
  EXPECT_EQ(first.given_ms, 5u);
  EXPECT_EQ(second.given_ms, 2u) << "of what is left, whole milliseconds";
  EXPECT_TRUE(space.synchronize_for(1).is_ok());
  EXPECT_EQ(second.given_ms, 0u) << "nothing is left";
  EXPECT_EQ(first.calls, 3);
  EXPECT_EQ(second.calls, 3);
  first.status = {Code::kDeviceLost, "its work is over"};
  EXPECT_TRUE(space.synchronize().is_ok());
  EXPECT_TRUE(space.synchronize_for(1).is_ok());
  EXPECT_EQ(second.calls, 5) << "the other one still works";
  for (const Code code : {Code::kNotReady, Code::kUnsupported, Code::kDriverError}) {
    second.status = {code, "planted"};
    EXPECT_EQ(space.synchronize().code(), code);
    EXPECT_EQ(space.synchronize_for(1).code(), code);
  }
}

/// Its clock stands at 1, 4, 9, ... ns when it is looked at.
class ClockedDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::uint64_t now_ns() const noexcept override {
    ++looks_;
    return looks_ * looks_;
  }

 private:
  mutable std::uint64_t looks_ = 0;
};

TEST_P(PinnedAllocatorTest, TheTimesAreThoseOfTheDevicesClock) {  // PIN-6
  ClockedDevice clocked(device(0));
  device::Device* const through[] = {&clocked};
  pinned::PinnedSpace space(DeviceId{1}, through, {});
  const Address first = space.segment_alloc(2_MiB).value();   // from 1 to 4
  const Address second = space.segment_alloc(2_MiB).value();  // from 9 to 16
  EXPECT_TRUE(space.segment_free(first).is_ok());             // from 25 to 36
  EXPECT_TRUE(space.segment_free(second).is_ok());            // from 49 to 64
  const pinned::PinTimes times = space.times();
  EXPECT_EQ(times.pin.least_ns, 3u);
  EXPECT_EQ(times.pin.most_ns, 7u);
  EXPECT_EQ(times.pin.total_ns, 10u);
  EXPECT_EQ(times.unpin.least_ns, 11u);
  EXPECT_EQ(times.unpin.total_ns, 26u);
}

TEST_P(PinnedAllocatorTest, TheReserveIsLockedAtOnceAndServesAllocations) {  // PIN-6
  PinnedConfig config;
  config.reserve = 256_MiB;
  make(config);
  EXPECT_EQ(locked_bytes(), (256_MiB).count());
  const Address first = allocate(100_MiB);
  const Address second = allocate(100_MiB);
  EXPECT_EQ(locked_bytes(), (256_MiB).count());
  EXPECT_TRUE(allocator_->free(first).is_ok());
  EXPECT_TRUE(allocator_->free(second).is_ok());
}

TEST_P(PinnedAllocatorTest, AReserveThatCannotBeLockedIsAnError) {
  PinnedConfig config;
  config.reserve = 256_MiB;
  config.space.capacity = 100_MiB;
  EXPECT_EQ(try_make(config).status().code(), Code::kOutOfMemory);
}

TEST_P(PinnedAllocatorTest, AReaperFreesWhatIsDoneWhileNobodyAllocates) {  // PIN-6
  PinnedConfig config;
  config.reap_ms = 1;
  make(config);
  const Stream on = stream(0);
  const Address memory = allocate(1_MiB);
  use(memory, 1_MiB, on);
  EXPECT_TRUE(allocator_->free(memory).is_ok());
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (stats().active_bytes[0].current != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(stats().active_bytes[0].current, 0u);
}

TEST_P(PinnedAllocatorTest, ACapturesMemoryIsItsPools) {  // PIN-6, C8
  make();
  const Stream on = stream(0);
  EXPECT_TRUE(allocator_->free(allocate(1_MiB)).is_ok());  // free, and not the pool's
  const MemoryPoolId pool{1, 0};
  const std::thread::id capturing = std::this_thread::get_id();
  ASSERT_TRUE(
      allocator_->begin_pool(pool, [capturing] { return std::this_thread::get_id() == capturing; })
          .is_ok());
  ASSERT_TRUE(allocator_->caching().begin_capture(on).is_ok());
  ASSERT_TRUE(gpu_.begin_capture(on, device::CaptureMode::kGlobal).is_ok());
  const Address in_graph = allocate(1_MiB);
  use(in_graph, 1_MiB, on);
  Address of_other;
  std::thread([&] { of_other = allocate(1_MiB); }).join();
  const auto graph = gpu_.end_capture(on);
  ASSERT_TRUE(graph.is_ok());
  ASSERT_TRUE(allocator_->caching().end_capture(on).is_ok());
  ASSERT_TRUE(allocator_->caching().end_pool(allocator_->device(), pool).is_ok());
  EXPECT_TRUE(allocator_->free(in_graph).is_ok());
  EXPECT_TRUE(allocator_->free(of_other).is_ok());
  std::vector<Address> later;
  for (int i = 0; i < 4; ++i) later.push_back(allocate(1_MiB));
  for (const Address each : later) {
    EXPECT_NE(each, in_graph) << "C8";
    EXPECT_TRUE(allocator_->free(each).is_ok());
  }
  EXPECT_TRUE(gpu_.destroy_graph(graph.value()).is_ok());
  EXPECT_TRUE(allocator_->caching().release_pool(allocator_->device(), pool).is_ok());
}

TEST_P(PinnedAllocatorTest, AReleasedPoolsMemoryWaitsForLaunchesOnEveryDevice) {  // C8
  make();
  for (const std::int32_t device : {0, 1}) {
    const Stream on = stream(device);
    const MemoryPoolId pool{7, static_cast<std::uint64_t>(device)};
    ASSERT_TRUE(allocator_->begin_pool(pool, nullptr).code() == Code::kInvalidArgument);
    ASSERT_TRUE(allocator_->begin_pool(pool, [] { return true; }).is_ok());
    ASSERT_TRUE(allocator_->caching().begin_capture(on).is_ok());
    ASSERT_TRUE(gpu_.begin_capture(on, device::CaptureMode::kGlobal).is_ok());
    const Address in_graph = allocate(30_MiB);
    use(in_graph, 30_MiB, on);
    const auto graph = gpu_.end_capture(on);
    ASSERT_TRUE(graph.is_ok());
    ASSERT_TRUE(allocator_->caching().end_capture(on).is_ok());
    ASSERT_TRUE(allocator_->caching().end_pool(allocator_->device(), pool).is_ok());
    EXPECT_TRUE(allocator_->free(in_graph).is_ok());
    ASSERT_TRUE(gpu_.launch_graph(on, graph.value()).is_ok());
    ASSERT_TRUE(allocator_->caching().release_pool(allocator_->device(), pool).is_ok());
    const Address meanwhile = allocate(30_MiB);
    // A driver without bounded synchronisations is asked on a thread of the library's, which lets the machine run.
    const bool has_run = gpu_.pending(on) == 0;
    EXPECT_FALSE(has_run && GetParam() == Through::kSimulator) << "nobody waited for it";
    EXPECT_TRUE(has_run || meanwhile != in_graph) << "the launch has not run";
    // The machine reports a launch whose bytes are not locked any more.
    static_cast<void>(allocator_->caching().trim(allocator_->device()));
    EXPECT_TRUE(gpu_.drain_all().is_ok());
    EXPECT_TRUE(allocator_->free(meanwhile).is_ok());
    EXPECT_TRUE(allocator_->caching().trim(allocator_->device()).is_ok());
    EXPECT_EQ(locked_bytes(), 0u);
    EXPECT_TRUE(gpu_.destroy_graph(graph.value()).is_ok());
  }
}

TEST_P(PinnedAllocatorTest, ALimitBelowWhatIsLiveIsObeyedByWhatComesLater) {
  make();
  const Address live = allocate(30_MiB);
  EXPECT_TRUE(allocator_->caching().set_memory_limit(allocator_->device(), 1_MiB).is_ok());
  cache::OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(30_MiB, &account).code(), Code::kOutOfMemory);
  EXPECT_FALSE(account.message().empty());
  EXPECT_TRUE(allocator_->free(live).is_ok());
}

TEST_P(PinnedAllocatorTest, MisuseIsATypedError) {  // C16
  make();
  const Stream on = stream(0);
  const Address memory = allocate(1_MiB);
  EXPECT_TRUE(allocator_->caching().retire_stream(on).code() == Code::kNotFound);
  EXPECT_TRUE(allocator_->record_use(memory, PinnedAllocator::context_of(memory), on).is_ok());
  EXPECT_TRUE(allocator_->caching().retire_stream(on).is_ok());
  EXPECT_EQ(allocator_->free(memory + 512_B).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator_->free(memory).is_ok());
  EXPECT_FALSE(allocator_->free(memory).is_ok());
}

TEST_P(PinnedAllocatorTest, AUseByADeadStreamIsRefusedAndChangesNothing) {  // PIN-2
  make();
  const Stream retired = stream(0), replaced = stream(1);
  const Address memory = allocate(1_MiB);
  use(memory, 4_KiB, retired);
  ASSERT_TRUE(allocator_->caching().retire_stream(retired).is_ok());
  ASSERT_TRUE(gpu_.destroy_stream(retired).is_ok());
  ASSERT_TRUE(gpu_.destroy_stream(replaced).is_ok());  // the allocator never heard of it
  Stream other = stream(1);
  for (int i = 0; i < 64 && other.handle != replaced.handle; ++i) other = stream(1);
  ASSERT_EQ(other.handle, replaced.handle);
  use(memory, 4_KiB, other);
  for (const Stream& dead : {retired, replaced}) {
    EXPECT_EQ(allocator_->record_use(memory, nullptr, dead).code(), Code::kInvalidHandle);
    EXPECT_EQ(allocator_->record_use(memory + 1_B, nullptr, dead).code(), Code::kUnknownPointer);
  }
  EXPECT_TRUE(allocator_->free(memory).is_ok());
  static_cast<void>(gpu_.drain_all());
  EXPECT_TRUE(allocator_->process_events().is_ok());
  EXPECT_EQ(stats().active_bytes[0].current, 0u);
  EXPECT_EQ(allocator_->caching().validate(), nullptr);
}

TEST_P(PinnedAllocatorTest, AForkedChildGetsTypedErrorsAndEnds) {  // C25
  PinnedConfig config;
  config.reap_ms = 1;
  make(config);
  const Address held = allocate(1_MiB);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a child that waits for the parent's thread is ended, and seen below
    bool all = allocator_->allocate(1_B).code() == Code::kForked;
    all &= allocator_->free(held).code() == Code::kForked;
    all &= allocator_->record_use(held, nullptr, stream(0)).code() == Code::kForked;
    all &= allocator_->process_events().code() == Code::kForked;
    all &= allocator_->space().times().pin.calls == 0;
    const std::uint64_t locked = locked_bytes();
    allocator_.reset();
    props::end_child(all && locked_bytes() == locked ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(allocator_->free(held).is_ok());
}

TEST_P(PinnedAllocatorTest, NothingIsUnlockedOnceTheDriverIsGone) {  // C25
  make();
  ASSERT_FALSE(allocate(1_MiB).is_null());
  gpu_.tear_down();
  EXPECT_EQ(allocator_->allocate(40_MiB).code(), Code::kTornDown);
  static_cast<void>(gpu_.take_faults());  // the call that was answered so
  allocator_.reset();
  EXPECT_TRUE(gpu_.take_faults().empty());
}

TEST_P(PinnedAllocatorTest, BadSettingsAreNamed) {
  PinnedConfig config;
  config.space.touch_threads = 0;
  EXPECT_STREQ(try_make(config).status().why(), "touch_threads: not 1 to 128");
  config = {};
  config.space.numa_node = -2;
  EXPECT_STREQ(try_make(config).status().why(), "numa_node: not -1 (any) to 1023");
  config = {};
  config.space.capacity = 0_B;
  EXPECT_STREQ(try_make(config).status().why(), "capacity: zero");
  config = {};
  config.space.by = static_cast<pinned::PinBy>(7);
  EXPECT_STREQ(try_make(config).status().why(), "by: neither the driver nor a registration");
  config = {};
  config.arenas = 65;
  EXPECT_STREQ(try_make(config).status().why(), "arenas: more than 64");
  config = {};
  config.cache.granule = 3_B;
  EXPECT_EQ(try_make(config).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(PinnedAllocator::create({}, PinnedConfig{}).status().code(), Code::kInvalidArgument);
}

TEST_P(PinnedAllocatorTest, ANodeThatDoesNotExistIsAnErrorOfTheAllocation) {
  for (const pinned::PinBy by : {pinned::PinBy::kDriver, pinned::PinBy::kRegistration}) {
    PinnedConfig config;
    config.space.by = by;
    config.space.numa_node = pinned::kNodesMax - 1;
    make(config);
    const Code code = allocator_->allocate(1_MiB).code();
    EXPECT_TRUE(code == Code::kInvalidArgument || code == Code::kUnsupported) << code_name(code);
    allocator_.reset();
  }
}

TEST_P(PinnedAllocatorTest, TheFirstNodeHasMemory) {
  PinnedConfig config;
  config.space.by = pinned::PinBy::kRegistration;
  config.space.numa_node = 0;
  make(config);
  const auto got = allocator_->allocate(4_MiB);
  if (got.code() == Code::kUnsupported) return;  // a kernel or a container without NUMA policies
  ASSERT_TRUE(got.is_ok()) << got.status().why();
  EXPECT_TRUE(allocator_->free(got.value()).is_ok());
}

TEST_P(PinnedAllocatorTest, ThreadsAllocateFromArenasOfTheirOwn) {
  PinnedConfig config;
  config.arenas = 4;
  make(config);
  std::set<std::uint64_t> arenas;
  for (int i = 0; i < 8; ++i)
    std::thread([&] { arenas.insert(allocator_->arena().id.value()); }).join();
  EXPECT_EQ(arenas.size(), 4u);
  // What one thread freed serves another.
  Address memory;
  std::thread([&] {
    memory = allocate(30_MiB);
    EXPECT_TRUE(allocator_->free(memory).is_ok());
  }).join();
  std::thread([&] { EXPECT_TRUE(allocator_->free(allocate(30_MiB)).is_ok()); }).join();
  EXPECT_EQ(locked_bytes(), (30_MiB).count());
}

}  // namespace
}  // namespace ashlar
