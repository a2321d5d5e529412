// Device synchronisations with a time limit (Synchronizer), by themselves, over a device that offers
// none and over one that does.
//
// Imitates: a synchronisation that takes its time while a capture is announced; a second one that
// ends before the first; a host that makes no thread.
// Does not prove: what waits for them (stuck_test.cc); races (cache_threads_test.cc).
#include <pthread.h>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <utility>

#include <ashlar/cache/synchronizer.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Counts synchronisations; may offer none with a time limit, and hold up the others.
class SlowDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool has_limit = false;
  std::atomic<bool> is_held{false};
  std::atomic<unsigned> begun{0};
  std::function<void()> in_limited;

  Status synchronize() noexcept override {
    ++begun;
    while (is_held) std::this_thread::yield();
    return ForwardingDevice::synchronize();
  }
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override {
    if (!has_limit) return {Code::kUnsupported, "no time limit"};
    const std::function<void()> call = std::exchange(in_limited, {});
    if (call) call();
    return ForwardingDevice::synchronize_for(timeout_ms);
  }
};

class SynchronizerPartsTest : public ::testing::Test {
 protected:
  SynchronizerPartsTest()
      : device_(gpu_.device(0)), driver_(device_, first_), synchronizer_(driver_, captures_) {}
  ~SynchronizerPartsTest() override { device_.is_held = false; }
  /// How long let_enter() takes.
  milliseconds time_to_enter() {
    const auto begin = steady_clock::now();
    synchronizer_.let_enter();
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
  }

  spec::SimGpu gpu_;
  SlowDevice device_;
  Driver* first_ = nullptr;
  Driver driver_;
  std::atomic<unsigned> captures_{0};
  Synchronizer synchronizer_;
};

TEST_F(SynchronizerPartsTest, ACallWithoutALimitIsTheDriversOwn) {
  const std::uint64_t sequence = synchronizer_.next_sequence();
  EXPECT_FALSE(synchronizer_.is_covered(sequence));
  EXPECT_TRUE(synchronizer_.run(device::kWaitForever).is_ok());
  EXPECT_EQ(device_.begun, 1u);
  EXPECT_TRUE(synchronizer_.is_covered(sequence));
}

TEST_F(SynchronizerPartsTest, ASynchronisationThatEndsBehindALaterOneTakesNothingBack) {
  device_.has_limit = true;
  std::uint64_t later = 0;
  device_.in_limited = [&] {
    later = synchronizer_.next_sequence();
    EXPECT_TRUE(synchronizer_.run(1).is_ok());
  };
  EXPECT_TRUE(synchronizer_.run(1).is_ok());
  EXPECT_TRUE(synchronizer_.is_covered(later));
}

TEST_F(SynchronizerPartsTest, AnAnnouncementLetsTheThreadEnterTheDriver) {
  EXPECT_LT(time_to_enter(), milliseconds(10)) << "no thread is there";
  device_.is_held = true;
  EXPECT_EQ(synchronizer_.ask().code(), Code::kNotReady);
  while (device_.begun == 0) std::this_thread::yield();
  const auto begun = steady_clock::now();
  synchronizer_.let_enter();
  // Until 10 ms after the thread set out, which was some moments before it was seen in the driver.
  EXPECT_LT(steady_clock::now() - begun, milliseconds(500)) << "it does not wait for the answer";
  EXPECT_TRUE(device_.is_held);
  device_.is_held = false;
  while (!synchronizer_.ask().is_ok()) std::this_thread::yield();
  while (!synchronizer_.run(100).is_ok()) std::this_thread::yield();
  EXPECT_LT(time_to_enter(), milliseconds(10)) << "the thread has answered";
}

TEST_F(SynchronizerPartsTest, DuringACaptureTheThreadCallsNoDevice) {
  captures_ = 1;
  EXPECT_EQ(synchronizer_.run(1000).code(), Code::kNotReady);
  EXPECT_EQ(device_.begun, 0u) << "C9";
  captures_ = 0;
  EXPECT_TRUE(synchronizer_.run(10'000).is_ok());
  EXPECT_EQ(device_.begun, 1u);
}

#ifdef __GLIBC__
TEST_F(SynchronizerPartsTest, AHostThatMakesNoThreadIsSaidSoAndAskedAgain) {
  pthread_attr_t usual;
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const Status refused = synchronizer_.run(1000);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_EQ(device_.begun, 0u);
  EXPECT_TRUE(synchronizer_.run(10'000).is_ok());
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&usual);
}
#endif

}  // namespace
}  // namespace ashlar::cache
