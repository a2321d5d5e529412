// The allocator over the driver's stream-ordered pool (`backend:cudaMallocAsync`, row DEV-22), on the CUDA path: CudaDevice and
// the driver's functions of a simulated GPU, whose pool is spec/cuda_face/stream_pool.h.
//
// Imitates: a program that has the driver cache its memory; work that is late; several streams; graphs; a driver without
// pools, and one that refuses. The happens-before detector judges who gets bytes (C6) and when they go (D4). Does not
// prove: where a driver's pool places memory.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/ashlar.h>
#include <ashlar/cache/physical_ranges.h>

#include "props/adapters/cuda_devices.h"
#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

namespace face = spec::cuda_face;
using device::CallKind;
constexpr DeviceId kDevice{0};

class MallocAsyncTest : public ::testing::Test {
 protected:
  void make(const std::string& more = "", Bytes capacity = 64_MiB) {
    spec::SimGpuOptions options;
    options.capacities = {capacity};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    devices_ = props::cuda_devices()(*gpu_);
    device::Device* devices[] = {devices_[0].get()};
    const Config config = parse_config("backend:cudaMallocAsync" + more, nullptr).value();
    allocator_ = CachingAllocator::create(devices, config).value();
    stream_ = gpu_->create_stream(kDevice).value();
    other_ = gpu_->create_stream(kDevice).value();
  }
  void TearDown() override {
    if (allocator_ == nullptr) return;
    EXPECT_EQ(allocator_->validate(), nullptr) << allocator_->validate();
    static_cast<void>(gpu_->drain_all());
    allocator_.reset();
    devices_.clear();
    for (const spec::Fault& fault : gpu_->take_faults()) ADD_FAILURE() << fault.text;
    EXPECT_EQ(gpu_->ledger().segments.count, 0u) << "the pool's end gives back what it kept";
  }
  Address alloc(Bytes size, const Stream& stream) {
    const Result<Address> got = allocator_->allocate(size, stream);
    EXPECT_TRUE(got.is_ok()) << got.status().why();
    return got.value_or(Address{});
  }
  Address alloc(Bytes size) { return alloc(size, stream_); }
  void free(Address address) { EXPECT_TRUE(allocator_->free(address).is_ok()); }
  void work(const Stream& stream) {
    EXPECT_TRUE(gpu_->launch(stream, std::span<const spec::Touch>{}).is_ok());
  }
  std::uint64_t calls(CallKind kind) {
    return allocator_->stats(kDevice).value().device_calls[static_cast<unsigned>(kind)];
  }
  Bytes reserved() { return Bytes{allocator_->stats(kDevice).value().reserved_bytes[0].current}; }
  std::uint64_t segments() { return gpu_->ledger().segments.count; }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
  Stream other_;
};

TEST_F(MallocAsyncTest, AFreeGoesBehindItsStreamsWorkAndThePoolServesThatStreamAtOnce) {
  make();
  const Address p = alloc(3_MiB);
  EXPECT_EQ(allocator_->info(p).value().segment_size, 3_MiB);
  work(stream_);
  free(p);
  EXPECT_EQ(reserved(), 0_B) << "in the call of the free, though the work is pending";
  EXPECT_EQ(calls(CallKind::kStreamFree), 1u);
  EXPECT_EQ(calls(CallKind::kSegmentFree), 0u);
  EXPECT_EQ(calls(CallKind::kEventRecord), 0u) << "nothing is asked for";
  EXPECT_EQ(alloc(3_MiB), p);
  EXPECT_EQ(segments(), 1u);
  const Address q = alloc(3_MiB, other_);
  EXPECT_NE(q, p);
  free(q);
  free(p);
  EXPECT_EQ(allocator_->free(p).code(), Code::kUnknownPointer);
}

TEST_F(MallocAsyncTest, AnOutOfMemoryNamesWhatThePoolKeeps) {
  make(",wait_ms:0");
  const Address p = alloc(40_MiB);
  work(stream_);
  free(p);
  OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(40_MiB, other_, &account).code(), Code::kOutOfMemory);
  EXPECT_NE(account.message().find("40.00 MiB (41943040 bytes) in use outside this allocator, or "
                                   "kept by the driver's pool."),
            std::string::npos)
      << account.message();
}

TEST_F(MallocAsyncTest, WhatAnotherStreamUsesWaitsForItsEvent) {
  make();
  const Address p = alloc(3_MiB);
  work(other_);
  EXPECT_TRUE(allocator_->free(p, other_).is_ok());
  EXPECT_EQ(allocator_->free(p).code(), Code::kDoubleFree);
  EXPECT_EQ(reserved(), 3_MiB);
  const Address q = alloc(3_MiB);
  EXPECT_NE(q, p);
  EXPECT_TRUE(gpu_->drain_all().is_ok());
  free(alloc(1_MiB));
  EXPECT_EQ(reserved(), 3_MiB) << "only what is allocated";
  free(q);
}

TEST_F(MallocAsyncTest, WhatAnotherStreamHasUsedAndIsDoneGoesBehindItsStreamsWork) {
  make();
  const Address p = alloc(3_MiB);
  const Address q = alloc(3_MiB);
  EXPECT_TRUE(allocator_->record_use(p, other_).is_ok());
  work(other_);
  free(p);
  EXPECT_EQ(reserved(), 6_MiB) << "the other stream uses it";
  EXPECT_TRUE(gpu_->drain_all().is_ok());
  work(stream_);
  free(q);
  EXPECT_EQ(reserved(), 0_B) << "its stream's own work is not waited for";
  EXPECT_EQ(calls(CallKind::kStreamFree), 2u);
}

TEST_F(MallocAsyncTest, ATrimHasThePoolGiveBackWhatIsDoneAndMakeRoomToo) {
  make();
  free(alloc(3_MiB));
  EXPECT_EQ(segments(), 1u) << "the pool keeps it";
  EXPECT_TRUE(gpu_->drain_all().is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(segments(), 0u);
  free(alloc(40_MiB));
  EXPECT_TRUE(gpu_->drain_all().is_ok());
  EXPECT_TRUE(allocator_->make_room(kDevice, 60_MiB).is_ok());
  EXPECT_EQ(segments(), 0u);
}

TEST_F(MallocAsyncTest, WhereThePoolHasNoMoreTheWorkThatHoldsMemoryIsWaitedFor) {
  make(",wait_ms:50");
  const Address p = alloc(40_MiB);
  work(stream_);
  free(p);
  const Address q = alloc(50_MiB, other_);
  EXPECT_FALSE(q.is_null());
  OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(20_MiB, stream_, &account).code(), Code::kOutOfMemory);
  EXPECT_EQ(account.allocated, 50_MiB);
  EXPECT_EQ(account.segment, 20_MiB);
  free(q);
}

TEST_F(MallocAsyncTest, WhatThePoolKeepsIsNotLackingElsewhere) {
  make();
  free(alloc(50_MiB));
  ASSERT_TRUE(gpu_->drain_all().is_ok());
  constexpr MemoryPoolId kPool{1, 0};
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kPool, [](const Stream&) { return true; }).is_ok());
  const Address p = alloc(40_MiB);
  ASSERT_TRUE(allocator_->end_pool(kDevice, kPool).is_ok());
  free(p);
  EXPECT_TRUE(allocator_->release_pool(kDevice, kPool).is_ok());
  EXPECT_TRUE(gpu_->drain_all().is_ok());
}

TEST_F(MallocAsyncTest, WhatThePoolKeepsIsNotLackingUnderAHeadroom) {
  make(",headroom_mb:16");
  for (int i = 0; i < 3; ++i) {
    free(alloc(40_MiB));
    EXPECT_TRUE(gpu_->drain_all().is_ok());
  }
  free(alloc(20_MiB, other_));
}

TEST_F(MallocAsyncTest, RoomIsMadeOfWhatIsDoneByThenAndNotInACapture) {
  make();
  const Address p = alloc(40_MiB);
  work(stream_);
  free(p);
  EXPECT_TRUE(allocator_->make_room(kDevice, 60_MiB).is_ok()) << "its work is waited for";
  ASSERT_TRUE(allocator_->begin_capture(other_).is_ok());
  ASSERT_TRUE(gpu_->begin_capture(other_, device::CaptureMode::kGlobal).is_ok());
  free(alloc(40_MiB));
  EXPECT_EQ(allocator_->make_room(kDevice, 60_MiB).code(), Code::kBusy);
  EXPECT_EQ(devices_[0]->capture_status(other_.handle).value(), device::CaptureStatus::kActive);
  EXPECT_TRUE(gpu_->end_capture(other_).is_ok());
  EXPECT_TRUE(allocator_->end_capture(other_).is_ok());
}

TEST_F(MallocAsyncTest, InACaptureAndAMemoryPoolMemoryIsTheDriversPlainOne) {
  make();
  const MemoryPoolId pool{3, 0};
  ASSERT_TRUE(allocator_
                  ->begin_pool(kDevice, pool,
                               [id = stream_.id](const Stream& each) { return each.id == id; })
                  .is_ok());
  ASSERT_TRUE(allocator_->begin_capture(stream_).is_ok());
  const Address p = alloc(1_MiB);
  const Address q = alloc(1_MiB, other_);
  free(p);
  free(q);
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 1u) << "p: its address is in the graph";
  EXPECT_EQ(calls(CallKind::kStreamAlloc), 1u) << "q: its stream does not capture";
  EXPECT_EQ(reserved(), 2_MiB) << "nothing goes back meanwhile";
  ASSERT_TRUE(allocator_->end_capture(stream_).is_ok());
  ASSERT_TRUE(allocator_->end_pool(kDevice, pool).is_ok());
  free(alloc(1_MiB, other_));
  EXPECT_EQ(reserved(), 1_MiB) << "the pool's";
  EXPECT_TRUE(allocator_->release_pool(kDevice, pool).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(MallocAsyncTest, APinKeepsMemoryThatNobodyElseCanBeGiven) {
  make();
  const Address p = alloc(3_MiB);
  const PinnedRange pinned = allocator_->pin(p).value();
  std::vector<cache::PhysicalRange> ranges;
  EXPECT_EQ(cache::physical_ranges(*allocator_, pinned, &ranges).code(), Code::kUnsupported);
  free(p);
  EXPECT_EQ(reserved(), 3_MiB);
  EXPECT_TRUE(allocator_->unpin(pinned).is_ok());
  free(alloc(1_MiB));
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(MallocAsyncTest, WhatARetiredStreamLeavesGoesBackOnceItsWorkIsDone) {
  make();
  const Address p = alloc(1_MiB, other_);
  work(other_);
  ASSERT_TRUE(allocator_->retire_stream(other_).is_ok());
  free(p);
  EXPECT_EQ(reserved(), 1_MiB) << "no work can be enqueued behind it";
  EXPECT_TRUE(gpu_->drain_all().is_ok());
  free(alloc(1_MiB));
  EXPECT_EQ(reserved(), 0_B);
  EXPECT_EQ(calls(CallKind::kSegmentFree), 1u);
}

TEST_F(MallocAsyncTest, AHandleThatNamesAnotherThreadsStreamHasPlainMemory) {
  make();
  gpu_->act_as_thread(1);
  const Stream elsewhere = gpu_->default_stream(kDevice, spec::kPerThreadStream);
  gpu_->act_as_thread(2);
  const Address p = alloc(1_MiB, elsewhere);
  EXPECT_EQ(calls(CallKind::kSegmentAlloc), 1u);
  EXPECT_EQ(calls(CallKind::kStreamAlloc), 0u);
  free(p);
}

TEST_F(MallocAsyncTest, AFreeThatTheDriverRefusesIsMadeUpForLater) {
  make();
  const Address p = alloc(1_MiB);
  const Address q = alloc(1_MiB);
  gpu_->heal();
  // The questions whom the handle names come first.
  face::answer_next(cuda::kErrorOutOfMemory, 1);
  free(p);
  free(q);
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(MallocAsyncTest, ADriverWithoutPoolsIsATypedError) {
  spec::SimGpuOptions options;
  options.capacities = {64_MiB};
  spec::SimGpu gpu(options);
  Config config;
  config.backend = cache::AllocatorBackend::kCudaMallocAsync;
  for (const bool has_functions : {false, true}) {
    face::attach(&gpu);
    if (has_functions) face::set_attribute(cuda::kAttributeMemoryPools, 0);
    else face::hide("cuMemFreeAsync");
    const std::unique_ptr<cuda::CudaDevice> device =
        cuda::CudaDevice::open(0, kDevice, nullptr).value();
    EXPECT_FALSE(device->traits().has_stream_memory);
    device::Device* const devices[] = {device.get()};
    EXPECT_EQ(CachingAllocator::create(devices, config).code(), Code::kUnsupported);
    EXPECT_EQ(device->stream_alloc(1_MiB, StreamHandle{}).code(), Code::kUnsupported);
  }
  face::attach(nullptr);
  device::HostDevice host{kDevice};
  device::Device* const devices[] = {&host};
  EXPECT_EQ(CachingAllocator::create(devices, config).code(), Code::kUnsupported);
}

/// A caller that keeps the rules, over three streams; the detector watches who gets which bytes.
class MallocAsyncWorld : public MallocAsyncTest {
 protected:
  struct Live {
    Address at;
    Bytes size;
    spec::AllocationTag tag;
    std::size_t own;              ///< the number of its stream
    std::set<std::size_t> users;  ///< likewise of all that use it
  };

  void allocate(std::size_t s) {
    const Bytes asked{512 * (1 + random_() % 4000)};
    const Result<Address> got = allocator_->allocate(asked, streams_[s]);
    if (!got.is_ok()) return;
    const Bytes size = allocator_->info(got.value()).value().size;
    live_.push_back({got.value(), size, next_tag_++, s, {s}});
    gpu_->on_allocate(live_.back().tag, got.value(), size, streams_[s]);
    touch(live_.back(), s);
  }
  void touch(const Live& used, std::size_t s) {
    const spec::Touch touch{used.at, used.size, spec::Access::kReadWrite, used.tag};
    EXPECT_TRUE(gpu_->launch(streams_[s], touch).is_ok());
  }
  /// Another stream uses it, behind its own.
  void use(Live& used, std::size_t s) {
    if (used.users.insert(s).second) {
      const EventHandle event = devices_[0]->event_create().value();
      EXPECT_TRUE(devices_[0]->event_record(event, streams_[used.own].handle).is_ok());
      EXPECT_TRUE(devices_[0]->stream_wait(streams_[s].handle, event).is_ok());
      EXPECT_TRUE(devices_[0]->event_destroy(event).is_ok());
      EXPECT_TRUE(allocator_->record_use(used.at, streams_[s]).is_ok());
      gpu_->on_use_announced(used.tag, streams_[s]);
    }
    touch(used, s);
  }
  void end(std::size_t i) {
    gpu_->on_free(live_[i].tag);
    free(live_[i].at);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void run_step() {
    const std::size_t s = random_() % streams_.size();
    const std::uint64_t what = random_() % 5;
    if (what < 2) allocate(s);
    else if (what == 4) static_cast<void>(gpu_->step(streams_[s], 1 + random_() % 4));
    else if (live_.empty()) return;
    else if (what == 2) use(live_[random_() % live_.size()], s);
    else end(random_() % live_.size());
  }
  /// The detector's first complaint.
  std::string fault() {
    const std::vector<spec::Fault> faults = gpu_->take_faults();
    return faults.empty() ? "" : faults[0].text;
  }

  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<Live> live_;
  spec::AllocationTag next_tag_ = 1;
};

TEST_F(MallocAsyncWorld, NoBytesPassOnTooEarlyWhateverTheOrder) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    make(seed % 2 == 0 ? ",wait_ms:0" : "", 24_MiB);
    random_.seed(seed);
    streams_ = {stream_, other_, gpu_->create_stream(kDevice).value()};
    for (int step = 0; step < 400; ++step) {
      run_step();
      ASSERT_EQ(fault(), "") << "seed " << seed << ", step " << step;
    }
    while (!live_.empty()) end(0);
    MallocAsyncTest::TearDown();
    allocator_.reset();
  }
}

}  // namespace
}  // namespace ashlar
