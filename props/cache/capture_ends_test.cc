// Captures that do not end well, and pools that are no captures: bugs H13, H14 and H15.
//
// Imitates: a capture that the driver invalidates, so that its end is an error; one that its caller gives up;
// a user's pool that stays begun for a program's life. Does not imitate: how bindings unwind an exception.
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

constexpr MemoryPoolId kCapturePool{0, 7};

class CaptureEndsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec::SimGpuOptions options;
    options.capacities = {64_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0)};
    allocator_ = make_allocator(devices, "");
    stream_ = gpu_->create_stream(kDevice).value();
    other_ = gpu_->create_stream(kDevice).value();
    ASSERT_TRUE(allocator_
                    ->begin_pool(kDevice, kCapturePool,
                                 [this](const Stream& s) { return s.id == stream_.id; })
                    .is_ok());
  }
  /// A capture of stream_ that allocates and then ends as an error.
  void capture_and_fail() {
    ASSERT_TRUE(allocator_->begin_capture(stream_).is_ok());
    ASSERT_TRUE(gpu_->begin_capture(stream_, device::CaptureMode::kGlobal).is_ok());
    captured_ = allocator_->allocate(20_MiB, stream_).value();
    {
      const spec::CallerScope callers_own;
      EXPECT_EQ(gpu_->device(0).synchronize().code(), Code::kCaptureUnsafe);
    }
    EXPECT_EQ(gpu_->end_capture(stream_).code(), Code::kCaptureInvalidated);
    EXPECT_TRUE(allocator_->end_capture(stream_).is_ok());
    static_cast<void>(gpu_->take_faults());
  }
  std::uint64_t reserved() { return allocator_->stats(kDevice).value().reserved_bytes[0].current; }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
  Stream other_;
  Address captured_;
};

// H13: nothing stays of a capture whose end is an error: frees wait no longer than their uses, a trim is not
// refused, and the next capture begins.
TEST_F(CaptureEndsTest, NoCaptureIsUnderWayAfterOneThatFailed) {
  capture_and_fail();
  const Address used = allocator_->allocate(20_MiB, other_).value();
  ASSERT_TRUE(allocator_->record_use(used, stream_).is_ok());
  ASSERT_TRUE(allocator_->free(used).is_ok());
  ASSERT_TRUE(gpu_->drain_all().is_ok());
  EXPECT_EQ(allocator_->allocate(20_MiB, other_).value(), used);
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_TRUE(allocator_->begin_capture(stream_).is_ok());
  EXPECT_TRUE(allocator_->end_capture(stream_).is_ok());
}

// H14: the pool of a capture that failed ends with its one release, and its memory is the device's again.
TEST_F(CaptureEndsTest, ThePoolOfAnAbandonedCaptureIsReleased) {
  capture_and_fail();
  ASSERT_TRUE(allocator_->free(captured_).is_ok());
  ASSERT_TRUE(allocator_->end_pool(kDevice, kCapturePool).is_ok());
  ASSERT_TRUE(allocator_->release_pool(kDevice, kCapturePool).is_ok());
  EXPECT_EQ(allocator_->release_pool(kDevice, kCapturePool).code(), Code::kNotFound);
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(reserved(), 0u);
}

// H15: while a pool is begun and nothing captures, its frees are no captured ones, and an allocation that is
// short of memory is helped as ever.
TEST_F(CaptureEndsTest, ABegunPoolIsNoCapture) {
  const Address used = allocator_->allocate(20_MiB, stream_).value();
  ASSERT_TRUE(allocator_->record_use(used, other_).is_ok());
  ASSERT_TRUE(allocator_->free(used).is_ok());
  ASSERT_TRUE(gpu_->drain_all().is_ok());
  EXPECT_EQ(allocator_->allocate(20_MiB, stream_).value(), used);
  ASSERT_TRUE(allocator_->free(allocator_->allocate(40_MiB, other_).value()).is_ok());
  EXPECT_TRUE(allocator_->allocate(44_MiB, other_).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
}

}  // namespace
}  // namespace ashlar::cache
