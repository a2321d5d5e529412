// A capture that another library makes in a thread of its own, and tells nobody of, lives on: no stream that captures is identified,
// and no event recorded on it or on the legacy stream beside it (C9).
//
// Imitates: a blocking stream, as cudaStreamCreate makes them, that another thread captures in the thread-local mode. Does not
// prove: that a wait for the device leaves such a capture alone (it does not: caching_allocator.h, (d)).
#include "props/cache/liveness_fixture.h"

namespace ashlar {
namespace {

class ForeignCapture : public LivenessTest {
 protected:
  void SetUp() override {
    make(256_MiB);
    foreign_ = gpu_->create_stream(kDevice, spec::StreamKind::kBlocking).value();
    p_ = allocator_->allocate(1_MiB, own_).value();
  }
  void begin() {
    gpu_->act_as_thread(1);
    ASSERT_TRUE(gpu_->begin_capture(foreign_, device::CaptureMode::kThreadLocal).is_ok());
    gpu_->act_as_thread(0);
  }
  void expect_whole() {
    gpu_->act_as_thread(1);
    EXPECT_TRUE(gpu_->end_capture(foreign_).is_ok());
    gpu_->act_as_thread(0);
    for (const auto& fault : gpu_->take_faults()) ADD_FAILURE() << fault.text;
  }
  /// Once the capture is over, the block comes back.
  void expect_block_back() {
    EXPECT_EQ(gpu_->drain_all().code(), Code::kOk);
    EXPECT_EQ(allocator_->trim(kDevice).code(), Code::kOk);
    EXPECT_EQ(gpu_->ledger().segments.count, 0u);
  }

  /// Frees the block, which that stream used before the capture began.
  void expect_free_leaves_it(const Stream& user) {
    ASSERT_TRUE(allocator_->record_use(p_, user).is_ok());
    begin();
    EXPECT_TRUE(allocator_->free(p_).is_ok());
    expect_whole();
    expect_block_back();
  }

  Stream foreign_;
  Address p_;
};

TEST_F(ForeignCapture, AFreeAfterAUseOfTheStreamThatCaptures) { expect_free_leaves_it(foreign_); }

TEST_F(ForeignCapture, AFreeAfterAUseOfTheLegacyStream) {
  expect_free_leaves_it(gpu_->default_stream(kDevice));
}

TEST_F(ForeignCapture, AnotherStreamsMissThatAsksForItsMemory) {
  const Address idle = allocator_->allocate(30_MiB, foreign_).value();
  EXPECT_TRUE(allocator_->free(idle).is_ok());
  begin();
  const auto miss = allocator_->allocate(20_MiB, own_);
  EXPECT_TRUE(miss.is_ok());
  expect_whole();
  EXPECT_TRUE(allocator_->free(miss.value()).is_ok());
  EXPECT_TRUE(allocator_->free(p_).is_ok());
  expect_block_back();
}

TEST_F(ForeignCapture, AStreamThatComesWithItsHandle) {
  EXPECT_TRUE(allocator_->free(allocator_->allocate(1_MiB, foreign_).value()).is_ok());
  begin();
  Stream other = foreign_;
  other.id = StreamId{foreign_.id.value() + 1000};
  static_cast<void>(allocator_->allocate(1_MiB, other));
  expect_whole();
}

TEST_F(ForeignCapture, EventsThatAreProcessed) {
  ASSERT_TRUE(allocator_->record_use(p_, foreign_).is_ok());
  begin();
  EXPECT_TRUE(allocator_->free(p_).is_ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(process_events(*allocator_, kDevice).is_ok());
  expect_whole();
  expect_block_back();
}

}  // namespace
}  // namespace ashlar
