// Progress where some work never finishes, or tells of its end late: what is done elsewhere is found
// all the same (C12, C27, C29).
//
// Imitates: streams and devices that are stuck for good; devices that refuse events, or whose
// synchronisation has no time limit, fails, or takes its time.
// Does not prove: anything about real time.
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "props/cache/forked_child.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar {
namespace {

class StuckTest : public LivenessTest {
 protected:
  /// Blocks of `on` that wait for streams which never finish.
  void make_stuck(unsigned blocks, const Stream& on) {
    for (unsigned i = 0; i < blocks; ++i)
      ASSERT_TRUE(allocator_->free(allocate(512_B, on), stuck_stream()).is_ok());
  }
};

TEST_F(StuckTest, MemoryWhoseWorkIsNotDoneStaysWithTheDeviceAtTheEnd) {
  make(64_MiB, "wait_ms:0");
  const Stream stuck = stuck_stream();
  EXPECT_TRUE(allocator_->free(allocate(20_MiB, stuck)).is_ok());
  EXPECT_TRUE(allocator_->free(allocate(30_MiB, own_)).is_ok());
  device_->is_stuck = true;
  allocator_.reset();
  EXPECT_LE(gpu_->device(0).memory_info().value().free, 44_MiB) << "D4";
}

TEST_F(StuckTest, AStreamThatCannotBeRetiredIsLost) {
  make(64_MiB);
  const Address block = allocate(4_KiB, own_);
  device_->refuses_records = true;
  EXPECT_TRUE(allocator_->retire_stream(own_).is_ok());
  device_->refuses_records = false;
  EXPECT_EQ(allocator_->allocate(4_KiB, own_).code(), Code::kInvalidHandle);
  EXPECT_TRUE(allocator_->free(block).is_ok());
}

TEST_F(StuckTest, OversizeSegmentsGoBackBeforeOthers) {
  make(64_MiB, "reuse:own,max_split_size_mb:24");
  const Stream other = stream();
  const Address small = allocate(22_MiB, other);
  const Address oversize = allocate(40_MiB, other);
  EXPECT_TRUE(allocator_->free(small).is_ok());
  EXPECT_TRUE(allocator_->free(oversize).is_ok());
  EXPECT_NE(allocate(14_MiB, own_), Address{});
  EXPECT_EQ(reserved(), (22_MiB + 14_MiB).count()) << "DEV-13";
}

TEST_F(StuckTest, HitsSeeWhatFinishesBehindManyStuckStreams) {
  make(Bytes{0});
  const auto flag = gpu_->new_flag();
  const Stream slow = stream();
  ASSERT_TRUE(gpu_->host_function(slow, flag).is_ok());
  make_stuck(50, own_);
  ASSERT_TRUE(allocator_->free(allocate(512_B, own_), slow).is_ok());
  make_stuck(50, own_);
  gpu_->raise(flag);
  static_cast<void>(gpu_->drain_all());
  // A poll asks 16 of 101 streams, and comes after 256 hits at the latest.
  for (unsigned i = 0; i < (101 / 16 + 1) * 256 + 1; ++i)
    static_cast<void>(allocator_->free(allocate(4_KiB, own_)));
  EXPECT_EQ(stats().active[0].current, 100u);
}

TEST_F(StuckTest, AMissSeesWhatFinishedBehindManyStuckStreams) {
  make(42_MiB, "wait_ms:0");
  make_stuck(60, own_);
  const Stream other = stream();
  const Address large = allocate(40_MiB, own_);
  ASSERT_TRUE(allocator_->free(large, other).is_ok());
  gpu_->step(other, 10);
  EXPECT_EQ(allocate(40_MiB, own_), large);
}

TEST_F(StuckTest, AMissThatMayGrowSeesWhatFinishedBehindThemToo) {
  make(Bytes{0});
  make_stuck(60, own_);
  const Stream other = stream();
  const Address large = allocate(40_MiB, own_);
  ASSERT_TRUE(allocator_->free(large, other).is_ok());
  gpu_->step(other, 10);
  EXPECT_EQ(allocate(40_MiB, own_), large) << "C27";
}

TEST_F(StuckTest, MissesSeeAnEventRecordedLateBehindUsesThatGetNone) {
  make(Bytes{0});
  const Stream elsewhere = stream_of_other_thread(*gpu_);
  ASSERT_TRUE(gpu_->host_function(elsewhere, gpu_->new_flag()).is_ok());
  const auto use_elsewhere = [&] {
    for (unsigned i = 0; i < 20; ++i)
      ASSERT_TRUE(allocator_->free(allocate(512_B, own_), elsewhere).is_ok());
  };
  const Stream other = stream();
  const Address large = allocate(40_MiB, own_);
  use_elsewhere();
  device_->refuses_records = true;
  ASSERT_TRUE(allocator_->free(large, other).is_ok());
  device_->refuses_records = false;
  use_elsewhere();
  // Each looks at 16 of 41 uses again; the event is complete one step later.
  bool is_found = false;
  for (unsigned i = 0; i < 41 / 16 + 3; ++i) {
    is_found = is_found || allocate(40_MiB, own_) == large;
    gpu_->step(other, 10);
  }
  EXPECT_TRUE(is_found) << "C27";
}

TEST_F(StuckTest, AMissAsksForWhatOnlyASynchronisationAnswersFor) {
  // The idle memory of another thread's default stream, and of a stream that is gone: no event tells
  // of their work. One block is live at a time.
  for (const bool is_destroyed : {false, true}) {
    make(Bytes{0});
    for (unsigned i = 0; i < 50; ++i) {
      gpu_->act_as_thread(i + 1);
      const Stream passing =
          is_destroyed ? stream() : gpu_->default_stream(kDevice, spec::kPerThreadStream);
      ASSERT_TRUE(allocator_->free(allocate(64_MiB, passing)).is_ok());
      if (is_destroyed) {
        ASSERT_TRUE(gpu_->destroy_stream(passing).is_ok());
      }
      static_cast<void>(gpu_->drain_all());
    }
    EXPECT_LE(reserved(), (192_MiB).count()) << "C29";
  }
}

TEST_F(StuckTest, ARoundOverManyUsesOfOneStreamAsksForItOnce) {
  make(64_MiB, "wait_ms:0");
  const Stream elsewhere = stream_of_other_thread(*gpu_);
  ASSERT_TRUE(gpu_->host_function(elsewhere, gpu_->new_flag()).is_ok());
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 5000; ++i) blocks.push_back(allocate(512_B, own_));
  for (const Address block : blocks) ASSERT_TRUE(allocator_->free(block, elsewhere).is_ok());
  const std::uint64_t before = device_->calls;
  EXPECT_EQ(allocator_->allocate(64_MiB, own_).code(), Code::kOutOfMemory);
  EXPECT_LT(device_->calls - before, 200u) << "C30";
}

TEST_F(StuckTest, MissesAskEveryStreamInTurnForItsIdleMemory) {
  make(Bytes{0});
  for (const bool is_stuck : {true, true, true, false}) {
    const Stream lender = stream();
    if (is_stuck) {
      ASSERT_TRUE(gpu_->host_function(lender, gpu_->new_flag()).is_ok());
    }
    ASSERT_TRUE(allocator_->free(allocate(40_MiB, lender)).is_ok());
  }
  // Each asks two of the four; the event that the question needs is complete afterwards.
  for (unsigned i = 0; i < 6 && stats().steals == 0; ++i) {
    ASSERT_FALSE(allocate(40_MiB, own_).is_null());
    static_cast<void>(gpu_->drain_all());
  }
  EXPECT_EQ(stats().steals, 1u) << "C27";
}

/// Uses without an event of streams of two devices, of which one never finishes.
TEST(TwoDevicesTest, AStuckDevicesUsesHideNoOtherDevices) {
  for (const char* conf : {"wait_ms:0", "wait_ms:20"}) {
    for (const std::int32_t stuck : {0, 1}) {
      for (const bool is_stuck_freed_first : {false, true}) {
        SCOPED_TRACE(std::string(conf) + ", device " + std::to_string(stuck) + " is stuck");
        spec::SimGpuOptions options;
        options.capacities = {64_MiB, 64_MiB};
        spec::SimGpu gpu(options);
        device::Device* devices[] = {&gpu.device(0), &gpu.device(1)};
        const auto allocator = make_allocator(devices, conf);
        const Stream own = gpu.create_stream(kDevice).value();
        const Stream users[] = {stream_of_other_thread(gpu, DeviceId{0}),
                                stream_of_other_thread(gpu, DeviceId{1})};
        ASSERT_TRUE(gpu.host_function(users[stuck], gpu.new_flag()).is_ok());
        const Address blocks[] = {allocator->allocate(30_MiB, own).value(),
                                  allocator->allocate(30_MiB, own).value()};
        const std::int32_t first = is_stuck_freed_first ? stuck : 1 - stuck;
        ASSERT_TRUE(allocator->free(blocks[first], users[first]).is_ok());
        ASSERT_TRUE(allocator->free(blocks[1 - first], users[1 - first]).is_ok());
        const Result<Address> served = allocator->allocate(30_MiB, own);
        ASSERT_TRUE(served.is_ok()) << "C12: the other device's work is done";
        EXPECT_EQ(served.value(), blocks[1 - stuck]);
      }
    }
  }
}

TEST(TwoDevicesTest, AnEventOfAnotherDeviceIsInNoRecordsWayWhileSomebodyWaits) {
  spec::SimGpuOptions options;
  options.capacities = {64_MiB, 64_MiB};
  spec::SimGpu gpu(options);
  WatchedDevice watched(gpu.device(0));
  device::Device* devices[] = {&watched, &gpu.device(1)};
  const auto allocator = make_allocator(devices, "wait_ms:200");
  const Stream own = gpu.create_stream(kDevice).value();
  const Stream side = gpu.create_stream(kDevice).value();
  const Stream stuck = gpu.create_stream(kDevice).value();
  const Stream of_other = gpu.create_stream(DeviceId{1}).value();
  // More nodes with events of the other device than its pool has room for.
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 700; ++i) blocks.push_back(allocator->allocate(512_B, own).value());
  for (const Address block : blocks) ASSERT_TRUE(allocator->free(block, of_other).is_ok());
  static_cast<void>(gpu.drain_all());
  ASSERT_TRUE(allocator->trim(kDevice).is_ok());
  ASSERT_TRUE(gpu.host_function(stuck, gpu.new_flag()).is_ok());
  ASSERT_TRUE(allocator->free(allocator->allocate(512_B, own).value(), stuck).is_ok());
  const Address large = allocator->allocate(50_MiB, own).value();
  // Another thread waits for memory, and holds the events of all devices meanwhile.
  std::atomic<bool> is_waiting{false};
  std::atomic<bool> may_go_on{false};
  watched.on_wait = [&, waits_here = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == waits_here) return;
    is_waiting = true;
    while (!may_go_on) std::this_thread::yield();
  };
  watched.is_stuck = true;
  std::thread waits([&] { static_cast<void>(allocator->allocate(50_MiB, own)); });
  while (!is_waiting) std::this_thread::yield();
  EXPECT_TRUE(allocator->free(large, side).is_ok());
  gpu.step(side, 10);
  EXPECT_TRUE(allocator->allocate(50_MiB, own).is_ok()) << "C12";
  may_go_on = true;
  waits.join();
}

/// A device whose synchronisation has no time limit, and takes its time.
class SlowSynchronize final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::atomic<bool> refuses_records{false};
  std::atomic<bool> fails{false};

  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    if (refuses_records) return {Code::kDriverError, "planted"};
    return ForwardingDevice::event_record(event, stream);
  }
  Status synchronize() noexcept override {
    if (fails) return {Code::kDriverError, "planted"};
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return ForwardingDevice::synchronize();
  }
  Status synchronize_for(std::uint32_t) noexcept override {
    return {Code::kUnsupported, "planted"};
  }
  std::uint64_t now_ns() const noexcept override {
    // The host's clock. NOLINTNEXTLINE(bugprone-parent-virtual-call): past the simulated one
    return Device::now_ns();
  }
};

/// 40 of 64 MiB wait for a synchronisation: they were used on another thread's default stream.
class SlowSynchronizeTest : public ::testing::Test {
 protected:
  void make(const char* conf) {
    spec::SimGpuOptions options;
    options.capacities = {64_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    slow_ = std::make_unique<SlowSynchronize>(gpu_->device(0));
    device::Device* devices[] = {slow_.get()};
    allocator_ = make_allocator(devices, conf);
    own_ = gpu_->create_stream(kDevice).value();
    const Stream elsewhere = stream_of_other_thread(*gpu_);
    const Address block = allocator_->allocate(40_MiB, own_).value();
    ASSERT_TRUE(allocator_->free(block, elsewhere).is_ok());
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<SlowSynchronize> slow_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream own_;
};

TEST_F(SlowSynchronizeTest, ABlockingSynchronisationIsWaitedForNoLongerThanPermitted) {
  make("wait_ms:20");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(allocator_->allocate(50_MiB, own_).code(), Code::kOutOfMemory);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  // The synchronisation goes on; once it is over, its answer is used.
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_TRUE(allocator_->allocate(50_MiB, own_).is_ok());
}

TEST_F(SlowSynchronizeTest, ASynchronisationThatFailsEndsAWaitForEver) {
  make("wait_ms:forever");
  slow_->fails = true;
  // The suite's time limit ends a call that goes on.
  EXPECT_EQ(allocator_->allocate(50_MiB, own_).code(), Code::kOutOfMemory);
}

TEST_F(SlowSynchronizeTest, WorkWithoutAnEventIsCoveredThoughItIsAskedForAllTheTime) {
  make("wait_ms:0");
  const auto is_served_in_time = [&](Bytes size) {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)) {
      if (allocator_->allocate(size, own_).is_ok()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  };
  ASSERT_TRUE(is_served_in_time(40_MiB));
  const Stream other = gpu_->create_stream(kDevice).value();
  slow_->refuses_records = true;
  ASSERT_TRUE(allocator_->free(allocator_->allocate(20_MiB, other).value()).is_ok());
  // Every call tries to record an event and asks for a synchronisation; one takes 300 ms.
  EXPECT_TRUE(is_served_in_time(20_MiB)) << "C12: other's idle memory is never known complete";
}

TEST_F(SlowSynchronizeTest, AForkedChildEndsThoughTheThreadIsTheParents) {
  make("wait_ms:1");
  ASSERT_EQ(allocator_->allocate(50_MiB, own_).code(), Code::kOutOfMemory);  // the thread runs now
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that waits for the thread is ended, and seen below
    allocator_.reset();
    props::end_child(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace ashlar
