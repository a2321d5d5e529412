// A stream whose handle another stream has too (H2): the device is asked whom it names, and the one
// that it does not name is dead.
//
// Imitates: streams destroyed without an announcement, whose handles come back; a driver that does
// not answer, or says that the handle is another device's; streams that die between two calls.
// Does not prove: what becomes of the dead one's memory (stuck_test.cc, the lockstep suites).
#include <optional>

#include "props/cache/crossing_fixture.h"

namespace ashlar {
namespace {

/// Answers what the test says when it is asked whom a handle names, or where to record an event.
class NamingDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::optional<Result<Stream>> answer;
  Code recording = Code::kOk;

  Result<Stream> identify(StreamHandle handle) noexcept override {
    return answer ? *answer : ForwardingDevice::identify(handle);
  }
  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    if (recording != Code::kOk) return {recording, "planted"};
    return ForwardingDevice::event_record(event, stream);
  }
};

class HandleCheckTest : public ::testing::Test {
 protected:
  HandleCheckTest() {
    spec::SimGpuOptions options;
    options.capacities = {Bytes{0}};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<NamingDevice>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, "");
    known_ = gpu_->create_stream(kDevice).value();
    other_ = gpu_->create_stream(kDevice).value();
    block_ = allocator_->allocate(512_B, other_).value();
    EXPECT_TRUE(allocator_->free(allocator_->allocate(512_B, known_).value()).is_ok());
    newer_ = known_;
    newer_.id = StreamId{1'000'000};
  }
  bool is_alive() { return allocator_->allocate(Bytes{512}, known_).is_ok(); }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<NamingDevice> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream known_;  ///< whose handle `newer_` has
  Stream other_;
  Stream newer_;
  Address block_;
};

TEST_F(HandleCheckTest, AHandleThatNamesTheNewStreamLeavesTheOldOneDead) {
  device_->answer = newer_;
  EXPECT_TRUE(allocator_->allocate(512_B, newer_).is_ok());
  EXPECT_EQ(allocator_->allocate(512_B, known_).code(), Code::kInvalidHandle);
}

TEST_F(HandleCheckTest, AHandleThatStillNamesTheOldStreamRefusesTheNew) {
  device_->answer = known_;
  EXPECT_EQ(allocator_->allocate(512_B, newer_).code(), Code::kInvalidHandle);
  device_->answer.reset();
  EXPECT_TRUE(is_alive());
}

TEST_F(HandleCheckTest, AHandleThatNamesNoStreamOfTheDeviceLeavesBothDead) {
  for (const Code code : {Code::kInvalidHandle, Code::kWrongDevice}) {
    SCOPED_TRACE(static_cast<int>(code));
    const Stream old = gpu_->create_stream(kDevice).value();
    Stream young = old;
    young.id = StreamId{2'000'000 + static_cast<std::uint64_t>(code)};
    EXPECT_TRUE(allocator_->allocate(512_B, old).is_ok());
    device_->answer = Status{code, "planted"};
    EXPECT_EQ(allocator_->allocate(512_B, young).code(), Code::kInvalidHandle);
    device_->answer.reset();
    EXPECT_EQ(allocator_->allocate(512_B, old).code(), Code::kInvalidHandle);
  }
}

TEST_F(HandleCheckTest, WhereTheDriverDoesNotAnswerBothAreTakenForAlive) {
  device_->answer = Status{Code::kDriverError, "planted"};
  EXPECT_TRUE(allocator_->allocate(512_B, newer_).is_ok());
  EXPECT_TRUE(is_alive());
}

TEST_F(HandleCheckTest, AStreamThatJoinedACaptureIsNotIdentified) {
  ASSERT_TRUE(allocator_->begin_capture(other_).is_ok());
  ASSERT_TRUE(gpu_->begin_capture(other_, device::CaptureMode::kRelaxed).is_ok());
  const EventHandle event = device_->event_create().value();
  ASSERT_TRUE(device_->event_record(event, other_.handle).is_ok());
  ASSERT_TRUE(device_->stream_wait(known_.handle, event).is_ok());
  EXPECT_TRUE(allocator_->begin_capture(newer_).is_ok()) << "not known now";
  EXPECT_TRUE(allocator_->begin_capture(known_).is_ok());
  EXPECT_EQ(device_->capture_status(other_.handle).value(), device::CaptureStatus::kActive) << "D6";
  for (const Stream& each : {known_, newer_, other_})
    EXPECT_TRUE(allocator_->end_capture(each).is_ok());
}

TEST_F(HandleCheckTest, AnEndedStreamOfACaptureIsFoundOutWhileAnotherCaptures) {
  ASSERT_TRUE(allocator_->begin_capture(other_).is_ok());
  ASSERT_TRUE(gpu_->begin_capture(other_, device::CaptureMode::kRelaxed).is_ok());
  device_->answer = newer_;
  EXPECT_TRUE(allocator_->allocate(512_B, newer_).is_ok());
  EXPECT_EQ(allocator_->allocate(512_B, known_).code(), Code::kInvalidHandle);
  EXPECT_TRUE(allocator_->end_capture(other_).is_ok());
}

TEST_F(HandleCheckTest, AUseByAStreamThatIsDeadAlreadyIsNotedAsALostOnes) {
  device_->answer = Status{Code::kInvalidHandle, "planted"};
  EXPECT_TRUE(allocator_->record_use(block_, newer_).is_ok()) << "C32";
  device_->answer.reset();
  EXPECT_EQ(allocator_->allocate(512_B, newer_).code(), Code::kInvalidHandle);
  const auto active = [this] { return allocator_->stats(kDevice).value().active[0].current; };
  const std::uint64_t before = active();
  EXPECT_TRUE(allocator_->free(block_).is_ok());
  EXPECT_EQ(active(), before) << "C7: only a synchronisation shows that its work is complete";
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(active(), 0u);
}

TEST_F(HandleCheckTest, AStreamThatDiesBetweenTheQuestionAndTheRecordingIsLost) {
  device_->recording = Code::kInvalidHandle;
  EXPECT_TRUE(allocator_->free(block_, known_).is_ok());
  device_->recording = Code::kOk;
  EXPECT_EQ(allocator_->allocate(512_B, known_).code(), Code::kInvalidHandle);
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().active[0].current, 0u);
}

/// Streams over one device whose blocks another may wait for.
class OrderedReuseTest : public CrossingTest {};

TEST_F(OrderedReuseTest, NoWaitIsEnqueuedOnAStreamThatTheHandleDoesNotNameHere) {
  make(2_MiB, "reuse:ordered,wait_ms:0");
  gpu_->act_as_thread(1);
  const Stream elsewhere = gpu_->default_stream(kDevice, spec::kPerThreadStream);
  const Address lent = allocate(512_KiB, own_);
  EXPECT_TRUE(gpu_->host_function(own_, flag_ = gpu_->new_flag()).is_ok());
  EXPECT_TRUE(allocator_->free(lent).is_ok());
  gpu_->act_as_thread(2);
  EXPECT_EQ(allocator_->allocate(512_KiB, elsewhere).code(), Code::kOutOfMemory) << "H5";
  EXPECT_EQ(device_->calls(CallKind::kStreamWait), 0u);
  gpu_->act_as_thread(1);
  EXPECT_NE(allocate(512_KiB, elsewhere), Address{});
  EXPECT_EQ(device_->calls(CallKind::kStreamWait), 1u);
  gpu_->raise(flag_);
}

}  // namespace
}  // namespace ashlar
