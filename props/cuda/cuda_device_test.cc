// CudaDevice over the CUDA driver's functions that a simulated GPU provides (spec/cuda_face): what opens, what each call passes
// on, and what a driver that is old, absent, lost or gone is answered with. That it keeps D1 to D7 is in
// props/device/conformance_test.cc.
//
// Imitates: the CUDA driver as its documentation describes it. Does not prove: that a driver behaves so (ci/gpu).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cuda/cuda_device.h>
#include <ashlar/cuda/driver_status.h>

#include "props/cache/forked_child.h"
#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

using cuda::CudaDevice;
namespace face = spec::cuda_face;

class CudaDeviceTest : public ::testing::Test {
 protected:
  CudaDeviceTest() : gpu_(options()) { face::attach(&gpu_); }
  ~CudaDeviceTest() override {
    device_.reset();
    EXPECT_EQ(face::context_uses(0), 0) << "its use of the context is given up";
    EXPECT_EQ(face::context_uses(1), 0) << "its use of the context is given up";
    EXPECT_EQ(face::context_depth(), 0u) << "D2";
    EXPECT_EQ(face::live_pools(), 0u);
    face::attach(nullptr);
  }
  static spec::SimGpuOptions options() {
    spec::SimGpuOptions options;
    options.capacities = {64_MiB, 64_MiB};
    options.page_granularity = 4_MiB;
    return options;
  }
  static Result<std::unique_ptr<CudaDevice>> try_open(int ordinal = 0,
                                                      const char* library = nullptr) {
    return CudaDevice::open(ordinal, DeviceId{ordinal}, library);
  }
  CudaDevice& open(int ordinal = 0) {
    auto opened = try_open(ordinal);
    EXPECT_TRUE(opened.is_ok()) << opened.status().why();
    device_ = std::move(opened).value();
    return *device_;
  }

  spec::SimGpu gpu_;
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(CudaDeviceTest, WhatCannotBeOpenedIsNamed) {
  EXPECT_EQ(try_open(0, "libnowhere.so.1").code(), Code::kNotFound);
  EXPECT_STREQ(try_open(0, "libnowhere.so.1").status().why(),
               "no CUDA driver: libcuda was not found, or is no library");
  EXPECT_EQ(try_open(0, "libm.so.6").code(), Code::kUnsupported);
  EXPECT_STREQ(try_open(0, "libm.so.6").status().why(), "the CUDA driver is older than CUDA 12.0");
  EXPECT_EQ(try_open(2).code(), Code::kNotFound);
  EXPECT_EQ(try_open(-1).code(), Code::kNotFound);
  face::answer_next(cuda::kErrorOutOfMemory);
  EXPECT_EQ(try_open(0).code(), Code::kOutOfMemory) << "of the primary context";
  face::attach(nullptr);
  EXPECT_EQ(try_open(0).code(), Code::kNotFound);
  EXPECT_STREQ(try_open(0).status().why(), "the CUDA driver has no GPU of that ordinal");
}

TEST_F(CudaDeviceTest, ADriverWithoutAFunctionIsTooOldAndTheFunctionNamed) {
  for (const char* name : {"cuInit",
                           "cuDeviceGet",
                           "cuDeviceGetAttribute",
                           "cuDevicePrimaryCtxRetain",
                           "cuDevicePrimaryCtxRelease",
                           "cuCtxGetCurrent",
                           "cuCtxPushCurrent",
                           "cuCtxPopCurrent",
                           "cuCtxSynchronize",
                           "cuMemGetInfo",
                           "cuMemAlloc",
                           "cuMemFree",
                           "cuMemHostAlloc",
                           "cuMemFreeHost",
                           "cuMemHostRegister",
                           "cuMemHostUnregister",
                           "cuStreamWaitEvent",
                           "cuStreamIsCapturing",
                           "cuThreadExchangeStreamCaptureMode",
                           "cuEventCreate",
                           "cuEventDestroy",
                           "cuEventRecord",
                           "cuEventQuery",
                           "cuEventSynchronize",
                           "cuStreamGetId"}) {
    face::hide(name);
    const auto opened = try_open();
    EXPECT_EQ(opened.code(), Code::kUnsupported) << name;
    EXPECT_EQ(opened.status().why(), std::string("the CUDA driver lacks ") + name);
  }
}

TEST_F(CudaDeviceTest, VirtualMemoryIsAllOrNone) {
  for (const char* name :
       {"cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",
        "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess"}) {
    face::hide(name);
    CudaDevice& device = open();
    EXPECT_FALSE(device.traits().has_virtual_memory) << name;
    EXPECT_EQ(device.address_reserve(2_MiB, 0_B).code(), Code::kUnsupported);
    EXPECT_EQ(device.address_release(Address{}, 2_MiB).code(), Code::kUnsupported);
    EXPECT_EQ(device.page_create(4_MiB).code(), Code::kUnsupported);
    EXPECT_EQ(device.page_release(PageHandle{}).code(), Code::kUnsupported);
    EXPECT_EQ(device.page_map(Address{}, 2_MiB, PageHandle{}).code(), Code::kUnsupported);
    EXPECT_EQ(device.page_access(Address{}, 2_MiB).code(), Code::kUnsupported);
    EXPECT_EQ(device.page_unmap(Address{}, 2_MiB).code(), Code::kUnsupported);
  }
}

TEST_F(CudaDeviceTest, AGpuWithoutVirtualMemoryHasSegmentsAlone) {
  for (const int value : {0, -1}) {  // it has none; the driver knows no such attribute
    face::set_attribute(cuda::kAttributeVirtualMemory, value);
    CudaDevice& device = open();
    EXPECT_FALSE(device.traits().has_virtual_memory);
    EXPECT_EQ(device.page_create(4_MiB).code(), Code::kUnsupported);
    const auto segment = device.segment_alloc(4_MiB);
    ASSERT_TRUE(segment.is_ok());
    EXPECT_TRUE(device.segment_free(segment.value()).is_ok());
  }
}

TEST_F(CudaDeviceTest, PagesAreTheDevicesOwnAndReachableByNetworkCardsWhereItCan) {
  for (const int has_direct_rdma : {1, 0, -1}) {
    face::set_attribute(cuda::kAttributeDirectRdma, has_direct_rdma);
    CudaDevice& device = open(1);
    EXPECT_TRUE(device.traits().has_virtual_memory);
    EXPECT_EQ(device.traits().page_granularity, 4_MiB);
    const auto page = device.page_create(4_MiB);
    ASSERT_TRUE(page.is_ok()) << "the face refuses other properties than the GPU has";
    EXPECT_EQ(gpu_.ledger(DeviceId{1}).pages.bytes, 4_MiB);
    EXPECT_EQ(gpu_.ledger(DeviceId{0}).pages.bytes, 0_B);
    const auto range = device.address_reserve(8_MiB, 0_B);
    ASSERT_TRUE(range.is_ok());
    EXPECT_TRUE(device.page_map(range.value() + 4_MiB, 4_MiB, page.value()).is_ok());
    EXPECT_TRUE(device.page_access(range.value() + 4_MiB, 4_MiB).is_ok());
    const Stream stream = gpu_.create_stream(DeviceId{1}).value();
    EXPECT_TRUE(gpu_.launch(stream, {range.value() + 4_MiB, 4_MiB}).is_ok());
    EXPECT_TRUE(gpu_.drain_all().is_ok());
    for (const spec::Fault& fault : gpu_.take_faults()) ADD_FAILURE() << fault.text;
    EXPECT_TRUE(device.page_unmap(range.value() + 4_MiB, 4_MiB).is_ok());
    EXPECT_TRUE(device.page_release(page.value()).is_ok());
    EXPECT_TRUE(device.address_release(range.value(), 8_MiB).is_ok());
  }
}

TEST_F(CudaDeviceTest,
       ACallInTheDevicesOwnContextPushesNone) {  // what a hit's question about an event costs
  CudaDevice& device = open();
  const EventHandle event = device.event_create().value();
  face::make_current(0);
  const int before = face::context_pushes();
  EXPECT_TRUE(device.event_query(event).is_ok());
  EXPECT_EQ(face::context_pushes(), before);
  face::make_current(-1);
  EXPECT_TRUE(device.event_query(event).is_ok());
  EXPECT_EQ(face::context_pushes(), before + 1);
  EXPECT_TRUE(device.event_destroy(event).is_ok());
}

TEST_F(CudaDeviceTest, TheOrderOfACaptureIsToldAllOrNone) {
  for (const char* name : {"cuStreamGetCaptureInfo", "cuStreamUpdateCaptureDependencies",
                           "cuGraphAddEmptyNode", "cuGraphNodeGetDependencies"}) {
    face::hide(name);
    CudaDevice& device = open();
    EXPECT_EQ(device.capture_mark(StreamHandle{}).code(), Code::kUnsupported) << name;
    EXPECT_EQ(device.capture_covers(StreamHandle{}, {}).code(), Code::kUnsupported) << name;
  }
}

TEST_F(CudaDeviceTest, ACallActsOnItsDeviceAndLeavesTheThreadsContext) {  // D2
  CudaDevice& first = open(0);
  const auto second = try_open(1);
  ASSERT_TRUE(second.is_ok());
  face::make_current(1);
  const Result<Address> on_first = first.segment_alloc(4_MiB);
  ASSERT_TRUE(on_first.is_ok());
  EXPECT_EQ(gpu_.ledger(DeviceId{0}).segments.bytes, 4_MiB);
  EXPECT_EQ(gpu_.ledger(DeviceId{1}).segments.bytes, 0_B);
  EXPECT_EQ(face::context_depth(), 1u);
  EXPECT_TRUE(second.value()->segment_free(on_first.value()).code() == Code::kInvalidArgument);
  EXPECT_TRUE(first.segment_free(on_first.value()).is_ok());
  face::make_current(-1);
}

/// Every call of the device.
std::vector<std::pair<const char*, Status>> call_all(device::Device& device) {
  const Address at{(2_MiB).count()};
  return {{"segment_alloc", device.segment_alloc(2_MiB).status()},
          {"segment_free", device.segment_free(at)},
          {"address_reserve", device.address_reserve(2_MiB, 0_B).status()},
          {"address_release", device.address_release(at, 2_MiB)},
          {"page_create", device.page_create(4_MiB).status()},
          {"page_release", device.page_release(PageHandle{1})},
          {"page_map", device.page_map(at, 2_MiB, PageHandle{1})},
          {"page_access", device.page_access(at, 2_MiB)},
          {"page_unmap", device.page_unmap(at, 2_MiB)},
          {"event_create", device.event_create().status()},
          {"event_destroy", device.event_destroy(EventHandle{1})},
          {"event_record", device.event_record(EventHandle{1}, StreamHandle{})},
          {"event_query", device.event_query(EventHandle{1})},
          {"event_synchronize", device.event_synchronize(EventHandle{1}, device::kWaitForever)},
          {"event_synchronize, 1 ms", device.event_synchronize(EventHandle{1}, 1)},
          {"stream_wait", device.stream_wait(StreamHandle{}, EventHandle{1})},
          {"identify", device.identify(StreamHandle{}).status()},
          {"capture_status", device.capture_status(StreamHandle{}).status()},
          {"capture_mark", device.capture_mark(StreamHandle{}).status()},
          {"capture_covers", device.capture_covers(StreamHandle{}, {1, 1})},
          {"exchange_capture_mode",
           device.exchange_capture_mode(device::CaptureMode::kGlobal).status()},
          {"memory_info", device.memory_info().status()},
          {"pinned_alloc", device.pinned_alloc(2_MiB).status()},
          {"pinned_free", device.pinned_free(at)},
          {"host_register", device.host_register(at, 2_MiB)},
          {"host_unregister", device.host_unregister(at)},
          {"synchronize", device.synchronize()},
          {"stream_alloc", device.stream_alloc(2_MiB, StreamHandle{}).status()},
          {"stream_free", device.stream_free(at, StreamHandle{})},
          {"stream_trim", device.stream_trim(0_B)}};
}

/// The same of what it shares.
std::vector<std::pair<const char*, Status>> call_all(device::Sharing& sharing) {
  const Address at{(2_MiB).count()};
  const PageHandle page{1};
  const device::ShareHandle fabric{device::ShareKind::kFabric, -1, {}};
  const device::ShareHandle segment{device::ShareKind::kSegment, -1, {}};
  return {{"page_create", sharing.page_create(4_MiB, device::ShareKind::kDescriptor).status()},
          {"page_kind", sharing.page_kind(page).status()},
          {"page_export", sharing.page_export(page).status()},
          {"page_import", sharing.page_import(fabric, 4_MiB).status()},
          {"segment_export", sharing.segment_export(at).status()},
          {"segment_open", sharing.segment_open(segment).status()},
          {"segment_close", sharing.segment_close(at)},
          {"copy", sharing.copy(at, at, 512_B, StreamHandle{})},
          {"copy_between", sharing.copy_between(at, sharing, at, sharing, 512_B, StreamHandle{})}};
}

TEST_F(CudaDeviceTest, ALostOrUnloadedDriverAnswersEveryCallAlikeAndIsNotAsked) {  // D8
  for (const auto& [answer, code] :
       {std::pair<cuda::CallResult, Code>{cuda::kErrorIllegalAddress, Code::kDeviceLost},
        {cuda::kErrorDeinitialized, Code::kTornDown}}) {
    CudaDevice& device = open();
    face::answer_next(answer);
    const Status first = device.synchronize();
    EXPECT_EQ(first.code(), code);
    face::answer_next(cuda::kErrorNotReady);  // of the next call that reaches the driver
    auto answers = call_all(device);
    const auto of_sharing = call_all(*device.sharing());
    answers.insert(answers.end(), of_sharing.begin(), of_sharing.end());
    for (const auto& [call, status] : answers) {
      EXPECT_EQ(status.code(), code) << call;
      EXPECT_STREQ(status.why(), first.why()) << call;
    }
    face::answer_next(cuda::kSuccess);
    EXPECT_EQ(device.synchronize_for(1).code(), Code::kUnsupported);
  }
  EXPECT_TRUE(gpu_.held().empty());
}

TEST_F(CudaDeviceTest, AnErrorOfTheDriverIsTheCallsAnswer) {  // D1
  CudaDevice& device = open();
  face::answer_next(cuda::kErrorOutOfMemory);
  EXPECT_EQ(device.segment_alloc(2_MiB).code(), Code::kOutOfMemory);
  face::answer_next(cuda::kErrorOutOfMemory);
  EXPECT_EQ(device.address_reserve(2_MiB, 0_B).code(), Code::kOutOfAddresses);
  face::answer_next(cuda::kErrorOutOfMemory);
  EXPECT_EQ(device.page_create(4_MiB).code(), Code::kOutOfMemory);
  face::answer_next(cuda::kErrorAlreadyRegistered);
  EXPECT_EQ(device.host_register(Address{4096}, 4_KiB).code(), Code::kInvalidArgument);
  EXPECT_TRUE(gpu_.held().empty());
}

TEST_F(CudaDeviceTest, AForkedChildLeavesTheParentsContext) {  // C25
  open();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    device_.reset();
    props::end_child(face::context_uses(0) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(CudaDeviceTest, EveryAnswerHasItsMeaning) {
  const std::pair<cuda::CallResult, Code> kMeanings[] = {
      {0, Code::kOk},
      {1, Code::kInvalidArgument},
      {2, Code::kOutOfMemory},
      {3, Code::kDriverError},  // not initialised: a forked child
      {4, Code::kTornDown},
      {101, Code::kUnsupported},
      {201, Code::kDriverError},
      {214, Code::kDeviceLost},
      {217, Code::kUnsupported},
      {220, Code::kDeviceLost},
      {226, Code::kDeviceLost},
      {400, Code::kInvalidHandle},
      {600, Code::kNotReady},
      {700, Code::kDeviceLost},
      {702, Code::kDeviceLost},
      {704, Code::kDriverError},  // but where it says what was asked for (CudaSharing::reach)
      {709, Code::kDeviceLost},
      {710, Code::kDeviceLost},
      {711, Code::kUnsupported},
      {712, Code::kInvalidArgument},
      {713, Code::kInvalidArgument},
      {714, Code::kDeviceLost},
      {715, Code::kDeviceLost},
      {716, Code::kDeviceLost},
      {717, Code::kDeviceLost},
      {718, Code::kDeviceLost},
      {719, Code::kDeviceLost},
      {721, Code::kDeviceLost},
      {800, Code::kUnsupported},
      {801, Code::kUnsupported},
      {810, Code::kDeviceLost},
      {900, Code::kCaptureUnsafe},
      {901, Code::kCaptureInvalidated},
      {902, Code::kCaptureUnsafe},
      {903, Code::kCaptureUnsafe},
      {904, Code::kCaptureUnsafe},
      {905, Code::kCaptureUnsafe},
      {906, Code::kCaptureUnsafe},
      {907, Code::kCaptureUnsafe},
      {908, Code::kCaptureUnsafe},
      {911, Code::kDeviceLost},
      {999, Code::kDriverError}};
  for (const auto& [answer, code] : kMeanings) EXPECT_EQ(cuda::status_of(answer).code(), code);
}

TEST_F(CudaDeviceTest, WhatKeepsAGpuFromStartingIsSaidWithItsNumber) {
  const auto why = [](cuda::CallResult answer) {
    face::answer_next(answer);
    const auto opened = try_open(0);
    EXPECT_EQ(opened.code(), Code::kDriverError);
    EXPECT_FALSE(face::is_answer_due());
    return std::string(opened.status().why());
  };
  EXPECT_NE(why(cuda::kErrorDeviceUnavailable).find("46"), std::string::npos);
  EXPECT_NE(why(cuda::kErrorSystemNotReady).find("802"), std::string::npos);
  EXPECT_NE(why(cuda::kErrorDriverMismatch).find("803"), std::string::npos);
  EXPECT_NE(why(cuda::kErrorNotCompatible).find("804"), std::string::npos);
  EXPECT_EQ(why(999), "the CUDA driver reports an error");
}

TEST_F(CudaDeviceTest, AHandleWhoseContextIsSaidToBeGoneEndsOnlyADeviceWhoseOwnIs) {
  CudaDevice& device = open();
  const EventHandle event = device.event_create().value();
  face::answer_next(
      cuda::kErrorContextIsDestroyed);  // as drivers answer of a stream that was destroyed
  EXPECT_EQ(device.event_query(event).code(), Code::kInvalidHandle);
  EXPECT_TRUE(device.event_query(event).is_ok());
  face::answer_next(cuda::kErrorContextIsDestroyed, 0, 2);  // of the context itself too
  EXPECT_EQ(device.event_query(event).code(), Code::kDeviceLost);
  EXPECT_EQ(device.event_query(event).code(), Code::kDeviceLost);
}

TEST_F(CudaDeviceTest, AContextThatIsInvalidEndsADeviceOnlyIfItsOwnIsGone) {
  CudaDevice& device = open();
  const EventHandle event = device.event_create().value();
  face::answer_next(cuda::kErrorInvalidContext);
  EXPECT_EQ(device.event_query(event).code(), Code::kDriverError);
  EXPECT_TRUE(device.event_query(event).is_ok());
  face::answer_next(cuda::kErrorInvalidContext, 0, 2);  // of the context itself too
  EXPECT_EQ(device.event_query(event).code(), Code::kDeviceLost);
  EXPECT_EQ(device.event_query(event).code(), Code::kDeviceLost);
}

TEST_F(CudaDeviceTest, AWaitForAnEventEndsWithItsLimitOrWithTheWork) {
  CudaDevice& device = open();
  const Stream stream = gpu_.create_stream(DeviceId{0}).value();
  const EventHandle event = device.event_create().value();
  ASSERT_TRUE(gpu_.host_function(stream).is_ok());
  ASSERT_TRUE(device.event_record(event, stream.handle).is_ok());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(device.event_synchronize(event, 5).code(), Code::kNotReady);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(5));
  gpu_.reset_account();
  EXPECT_EQ(device.event_synchronize(event, 20).code(), Code::kNotReady);
  EXPECT_LT(gpu_.account().by_kind[static_cast<unsigned>(device::CallKind::kEventQuery)].calls,
            2000u)
      << "it sleeps between its questions";
  EXPECT_EQ(device.event_synchronize(event, 0).code(), Code::kNotReady);
  std::thread worker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    static_cast<void>(gpu_.drain_all());
  });
  EXPECT_TRUE(device.event_synchronize(event, 60'000).is_ok());
  worker.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  EXPECT_TRUE(device.event_synchronize(event, device::kWaitForever).is_ok());
  EXPECT_TRUE(device.event_destroy(event).is_ok());
}

/// Time passes by sleeping alone, and each sleep is noted.
class NotingClock final : public cuda::HostClock {
 public:
  std::uint64_t now_ns() noexcept override { return now_; }
  void sleep_ns(std::uint64_t duration_ns) noexcept override {
    now_ += duration_ns;
    longest_ = std::max(longest_, duration_ns);
  }
  std::uint64_t longest_ns() const { return longest_; }

 private:
  std::uint64_t now_ = 0;
  std::uint64_t longest_ = 0;
};

TEST_F(CudaDeviceTest, AWaitNeverSleepsForLongNorBeyondItsLimit) {
  NotingClock clock;
  device_ = CudaDevice::open(0, DeviceId{0}, nullptr, &clock).value();
  const Stream stream = gpu_.create_stream(DeviceId{0}).value();
  const EventHandle event = device_->event_create().value();
  ASSERT_TRUE(gpu_.host_function(stream).is_ok());
  ASSERT_TRUE(device_->event_record(event, stream.handle).is_ok());
  EXPECT_EQ(device_->event_synchronize(event, 7).code(), Code::kNotReady);
  EXPECT_EQ(clock.now_ns(), 7'000'000u) << "to the nanosecond";
  EXPECT_LE(clock.longest_ns(), 100'000u) << "work that is done is soon noticed";
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  EXPECT_TRUE(device_->event_synchronize(event, 7).is_ok());
  EXPECT_EQ(clock.now_ns(), 7'000'000u) << "what is done is not waited for";
  EXPECT_TRUE(device_->event_destroy(event).is_ok());
}

TEST_F(CudaDeviceTest, AddressesAreAlignedAsTheyAreAskedFor) {
  CudaDevice& device = open();
  std::vector<Address> taken;
  for (const Bytes alignment : {0_B, 64_MiB, 0_B, 256_MiB, 32_MiB}) {
    taken.push_back(device.address_reserve(4_MiB, alignment).value());
    EXPECT_EQ(taken.back().value() % std::max(alignment, 4_MiB).count(), 0u) << alignment.count();
  }
  for (const Address each : taken) EXPECT_TRUE(device.address_release(each, 4_MiB).is_ok());
}

TEST_F(CudaDeviceTest, StreamsHaveIdentitiesAndThePerThreadOneIsTheThreads) {
  CudaDevice& device = open();
  const Stream stream = gpu_.create_stream(DeviceId{0}).value();
  EXPECT_EQ(device.identify(stream.handle).value(), stream);
  EXPECT_FALSE(device.identify(StreamHandle{cuda::kStreamLegacy}).value().thread_bound);
  EXPECT_TRUE(device.identify(StreamHandle{cuda::kStreamPerThread}).value().thread_bound);
}

TEST_F(CudaDeviceTest, AMarkIsCoveredByWhatComesBehindItInTheGraph) {
  CudaDevice& device = open();
  const Stream first = gpu_.create_stream(DeviceId{0}).value();
  const Stream other = gpu_.create_stream(DeviceId{0}).value();
  EXPECT_STREQ(device.capture_mark(first.handle).status().why(), "the stream does not capture");
  ASSERT_TRUE(gpu_.begin_capture(first, device::CaptureMode::kGlobal).is_ok());
  EXPECT_EQ(device.capture_status(first.handle).value(), device::CaptureStatus::kActive);
  EXPECT_EQ(device.capture_status(other.handle).value(), device::CaptureStatus::kNone);
  // Behind the fork the two streams have no order, until the join.
  const EventHandle fork = device.event_create().value(), join = device.event_create().value();
  ASSERT_TRUE(device.event_record(fork, first.handle).is_ok());
  ASSERT_TRUE(device.stream_wait(other.handle, fork).is_ok());
  ASSERT_TRUE(gpu_.host_function(other).is_ok());
  for (const int call : {0, 1, 2}) {  // where the stream is; the node; what comes behind it
    face::answer_next(cuda::kErrorOutOfMemory, call);
    EXPECT_EQ(device.capture_mark(other.handle).code(), Code::kOutOfMemory) << call;
  }
  const auto mark = device.capture_mark(other.handle);
  ASSERT_TRUE(mark.is_ok()) << mark.status().why();
  EXPECT_TRUE(device.capture_covers(other.handle, mark.value()).is_ok());
  const device::CaptureMark of_another{mark.value().capture + 1, mark.value().node};
  EXPECT_EQ(device.capture_covers(other.handle, of_another).code(), Code::kNotReady)
      << "nodes of an ended graph come again";
  EXPECT_EQ(device.capture_covers(first.handle, mark.value()).code(), Code::kNotReady);
  ASSERT_TRUE(device.event_record(join, other.handle).is_ok());
  ASSERT_TRUE(device.stream_wait(first.handle, join).is_ok());
  EXPECT_TRUE(device.capture_covers(first.handle, mark.value()).is_ok());
  const auto graph = gpu_.end_capture(first);
  ASSERT_TRUE(graph.is_ok());
  EXPECT_EQ(device.capture_covers(first.handle, mark.value()).code(), Code::kNotReady);
  EXPECT_EQ(device.capture_covers(first.handle, {}).code(), Code::kNotReady) << "no mark";
  EXPECT_TRUE(gpu_.destroy_graph(graph.value()).is_ok());
  EXPECT_TRUE(device.event_destroy(fork).is_ok());
  EXPECT_TRUE(device.event_destroy(join).is_ok());
}

TEST_F(CudaDeviceTest, OfACaptureThatIsInvalidatedNoOrderIsTold) {
  CudaDevice& device = open();
  const Stream stream = gpu_.create_stream(DeviceId{0}).value();
  ASSERT_TRUE(gpu_.begin_capture(stream, device::CaptureMode::kGlobal).is_ok());
  const auto mark = device.capture_mark(stream.handle);
  ASSERT_TRUE(mark.is_ok()) << mark.status().why();
  EXPECT_EQ(device.segment_alloc(4_MiB).code(), Code::kCaptureUnsafe);
  ASSERT_EQ(device.capture_status(stream.handle).value(), device::CaptureStatus::kInvalidated);
  EXPECT_EQ(device.capture_mark(stream.handle).code(), Code::kCaptureInvalidated);
  EXPECT_EQ(device.capture_covers(stream.handle, mark.value()).code(), Code::kCaptureInvalidated);
  static_cast<void>(gpu_.end_capture(stream));
}

TEST_F(CudaDeviceTest, AGraphOfManyWaysIsWalkedOnce) {  // two ways more with each mark
  CudaDevice& device = open();
  const Stream first = gpu_.create_stream(DeviceId{0}).value();
  const Stream other = gpu_.create_stream(DeviceId{0}).value();
  ASSERT_TRUE(gpu_.begin_capture(first, device::CaptureMode::kGlobal).is_ok());
  const EventHandle fork = device.event_create().value(), join = device.event_create().value();
  ASSERT_TRUE(device.event_record(fork, first.handle).is_ok());
  ASSERT_TRUE(device.stream_wait(other.handle, fork).is_ok());
  ASSERT_TRUE(gpu_.host_function(other).is_ok());
  const auto beside = device.capture_mark(other.handle);
  ASSERT_TRUE(beside.is_ok()) << beside.status().why();
  constexpr int kMarks = 28;
  for (int i = 0; i < kMarks; ++i) ASSERT_TRUE(device.capture_mark(first.handle).is_ok());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(device.capture_covers(first.handle, beside.value()).code(), Code::kNotReady);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  ASSERT_TRUE(device.event_record(join, other.handle).is_ok());
  ASSERT_TRUE(device.stream_wait(first.handle, join).is_ok());
  const auto graph = gpu_.end_capture(first);
  ASSERT_TRUE(graph.is_ok());
  EXPECT_TRUE(gpu_.destroy_graph(graph.value()).is_ok());
  EXPECT_TRUE(device.event_destroy(fork).is_ok());
  EXPECT_TRUE(device.event_destroy(join).is_ok());
}

TEST_F(CudaDeviceTest, ACapturesModeIsTheThreads) {
  CudaDevice& device = open();
  using device::CaptureMode;
  EXPECT_EQ(device.exchange_capture_mode(CaptureMode::kRelaxed).value(), CaptureMode::kGlobal);
  EXPECT_EQ(device.exchange_capture_mode(CaptureMode::kThreadLocal).value(), CaptureMode::kRelaxed);
  EXPECT_EQ(device.exchange_capture_mode(CaptureMode::kGlobal).value(), CaptureMode::kThreadLocal);
}

TEST_F(CudaDeviceTest, MemoryInfoIsTheDevices) {
  CudaDevice& device = open();
  const Address base = device.segment_alloc(16_MiB).value();
  EXPECT_EQ(device.memory_info().value().free, 48_MiB);
  EXPECT_EQ(device.memory_info().value().total, 64_MiB);
  EXPECT_TRUE(device.segment_free(base).is_ok());
}

class StreamMemoryTest : public CudaDeviceTest {
 protected:
  Stream stream(int device = 0) { return gpu_.create_stream(DeviceId{device}).value(); }
  /// A range that the stream has used and freed, and that is done.
  void use_and_free(CudaDevice& device, Bytes size, const Stream& stream) {
    const Result<Address> base = device.stream_alloc(size, stream.handle);
    ASSERT_TRUE(base.is_ok()) << base.status().why();
    ASSERT_TRUE(device.stream_free(base.value(), stream.handle).is_ok());
    ASSERT_TRUE(gpu_.drain_all().is_ok());
  }
  Bytes held(int device = 0) { return gpu_.ledger(DeviceId{device}).segments.bytes; }
};

TEST_F(StreamMemoryTest, WhatIsFreedIsKeptUntilATrimWhoeverWaits) {
  CudaDevice& device = open();
  use_and_free(device, 8_MiB, stream());
  EXPECT_TRUE(device.synchronize().is_ok());
  EXPECT_EQ(held(), 8_MiB) << "a wait gives nothing back";
  EXPECT_TRUE(device.stream_trim(8_MiB).is_ok());
  EXPECT_EQ(held(), 8_MiB) << "a trim keeps what it is told to";
  EXPECT_TRUE(device.stream_trim(4_MiB).is_ok());
  EXPECT_EQ(held(), 0_B);
}

TEST_F(StreamMemoryTest, IsTheDevicesOwnAndGoesWithIt) {
  CudaDevice& device = open(1);
  use_and_free(device, 8_MiB, stream(1));
  EXPECT_EQ(held(1), 8_MiB);
  EXPECT_EQ(held(0), 0_B);
  device_.reset();
  EXPECT_EQ(held(1), 0_B);
}

TEST_F(StreamMemoryTest, APoolThatCannotBeMadeWholeIsNoneAndTheNextCallAsksAgain) {
  int failed = 0;
  for (int after = 0; after < 8; ++after) {
    CudaDevice& device = open();
    face::answer_next(cuda::kErrorNotSupported, after);
    const Result<Address> base = device.stream_alloc(1_MiB, StreamHandle{});
    failed += base.is_ok() ? 0 : 1;
    face::answer_next(cuda::kSuccess);
    EXPECT_TRUE(device.stream_alloc(1_MiB, StreamHandle{}).is_ok()) << after;
    EXPECT_EQ(face::live_pools(), 1u) << after;
    EXPECT_FALSE(face::pools_add_waits()) << after;
    device_.reset();
    EXPECT_EQ(face::live_pools(), 0u) << after;
  }
  EXPECT_GE(failed, 4) << "the pool, its threshold, its waits, the memory";
}

TEST_F(StreamMemoryTest, AForkedChildLeavesTheParentsPool) {  // C25
  use_and_free(open(), 8_MiB, stream());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    device_.reset();
    props::end_child(held() == 8_MiB ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(StreamMemoryTest, ThreadsThatAreTheFirstToAskHaveOnePool) {
  constexpr int kThreads = 4;
  std::vector<Stream> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(stream());
  for (int round = 0; round < 50; ++round) {
    CudaDevice& device = open();
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (const Stream& own : streams) {
      threads.emplace_back([&] {
        ++ready;
        while (ready != kThreads) std::this_thread::yield();
        const Result<Address> base = device.stream_alloc(1_MiB, own.handle);
        EXPECT_TRUE(base.is_ok()) << base.status().why();
        EXPECT_TRUE(device.stream_free(base.value_or(Address{}), own.handle).is_ok());
      });
    }
    for (std::thread& each : threads) each.join();
    ASSERT_TRUE(gpu_.drain_all().is_ok());
    EXPECT_TRUE(device.stream_trim(0_B).is_ok());
    ASSERT_EQ(held(), 0_B) << "of another pool, in round " << round;
    device_.reset();
  }
}

class PeerContextsTest : public CudaDeviceTest {
 protected:
  PeerContextsTest() : second_(try_open(1).value()) { open(); }
  ~PeerContextsTest() override { second_.reset(); }
  device::Sharing& first() { return *device_->sharing(); }
  device::Sharing& second() { return *second_->sharing(); }

  std::unique_ptr<CudaDevice> second_;
};

TEST_F(PeerContextsTest, AnothersContextIsHeldForTheCallAlone) {  // D2
  const Stream stream = gpu_.create_stream(DeviceId{0}).value();
  const Address to = device_->segment_alloc(4_MiB).value();
  const Address from = second_->segment_alloc(4_MiB).value();
  EXPECT_TRUE(first().reach(second()).is_ok());
  EXPECT_TRUE(first().copy_between(to, first(), from, second(), 4_KiB, stream.handle).is_ok());
  EXPECT_TRUE(first().copy_between(from, second(), to, first(), 4_KiB, stream.handle).is_ok());
  EXPECT_EQ(face::context_uses(0), 1);
  EXPECT_EQ(face::context_uses(1), 1);
  for (const int call : {0, 1}) {  // the context, and what is done in it
    face::answer_next(cuda::kErrorOutOfMemory, call);
    EXPECT_EQ(first().copy_between(to, first(), from, second(), 4_KiB, stream.handle).code(),
              Code::kOutOfMemory);
    EXPECT_FALSE(face::is_answer_due());
    EXPECT_EQ(face::context_uses(1), 1) << call;
  }
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  EXPECT_TRUE(device_->segment_free(to).is_ok());
  EXPECT_TRUE(second_->segment_free(from).is_ok());
}

TEST_F(PeerContextsTest, WhatSomebodyEnabledBeforeIsNoError) {
  EXPECT_TRUE(first().reach(second()).is_ok());
  EXPECT_TRUE(first()
                  .reach(second())
                  .is_ok());  // the driver answers 704, as where CUDA's runtime enabled it before
  EXPECT_TRUE(second().reach(first()).is_ok()) << "the other direction is another";
  face::answer_next(cuda::kErrorTooManyPeers, 1);
  EXPECT_EQ(first().reach(second()).code(), Code::kUnsupported);
}

TEST_F(PeerContextsTest, WhatAnotherGpuHasLostEndsNothingHere) {
  face::answer_next(cuda::kErrorEccUncorrectable, 0);  // its context is asked for first
  EXPECT_EQ(first().reach(second()).code(), Code::kDeviceLost);
  EXPECT_FALSE(face::is_answer_due());
  EXPECT_TRUE(first().reach(second()).is_ok());
  EXPECT_TRUE(device_->memory_info().is_ok());
}

TEST_F(PeerContextsTest, AGpuWithoutANameSaysSo) {
  bool has_named = false;
  for (int call = 0; !has_named; ++call) {
    ASSERT_LT(call, 10);
    face::answer_next(cuda::kErrorNotSupported, call);
    const auto opened = try_open(0);
    has_named = opened.is_ok() && opened.value()->sharing()->uuid().is_ok();
    EXPECT_TRUE(!has_named || face::is_answer_due()) << "a name that the driver did not give";
    face::answer_next(cuda::kSuccess);
    if (!opened.is_ok() || has_named) continue;
    EXPECT_EQ(opened.value()->sharing()->uuid().code(), Code::kUnsupported);
  }
}

TEST_F(PeerContextsTest, ACopyIsOfTheStreamThatItIsFor) {
  const Stream stream = gpu_.create_stream(DeviceId{0}).value();
  const Address to = device_->segment_alloc(4_MiB).value();
  const Address from = second_->segment_alloc(4_MiB).value();
  ASSERT_TRUE(first().reach(second()).is_ok());
  const spec::HostFlag flag = gpu_.new_flag();
  ASSERT_TRUE(gpu_.host_function(stream, flag).is_ok());
  EXPECT_TRUE(first().copy(to, from, 4_KiB, stream.handle).is_ok());
  EXPECT_TRUE(first().copy_between(to, first(), from, second(), 4_KiB, stream.handle).is_ok());
  static_cast<void>(gpu_.drain_all());
  EXPECT_EQ(gpu_.account().entries_run, 0u) << "both come behind what holds the stream";
  gpu_.raise(flag);
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  EXPECT_TRUE(device_->segment_free(to).is_ok());
  EXPECT_TRUE(second_->segment_free(from).is_ok());
}

}  // namespace
}  // namespace ashlar
