// A device's synchronisations (synchronizer.h), on devices with and without a time limit of their
// own.
//
// Imitates: a driver whose only synchronisation blocks, and takes as long as the test wants; a
// capture announced meanwhile; an end while the thread is at work; a host that makes no thread.
// Does not prove: how soon a thread gets a core (what has to take no time is tried several times,
// and the shortest counts); what waits for it (stuck_test.cc); races (cache_threads_test.cc).
#include <pthread.h>

#include <csignal>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cache/synchronizer.h>
#include <ashlar/device/forwarding_device.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::cache {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Its synchronisation without a limit waits while `is_shut`; the one with a limit may be missing.
class GateDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool has_limit = false;
  std::atomic<bool> is_shut{false};
  std::atomic<bool> fails{false};
  std::atomic<unsigned> began{0};
  std::vector<std::uint32_t> limits;
  std::function<void()> in_next;  ///< runs inside the next call with a limit
  // Of the calls without a limit; read once `began` says that it is written.
  std::vector<std::thread::id> asked_on;
  sigset_t blocked{};  ///< the calling thread's

  Status synchronize() noexcept override {
    asked_on.push_back(std::this_thread::get_id());
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    ++began;
    while (is_shut) std::this_thread::sleep_for(std::chrono::microseconds(200));
    return fails ? Status{Code::kDriverError, "planted"} : ForwardingDevice::synchronize();
  }
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override {
    limits.push_back(timeout_ms);
    if (const auto call = std::exchange(in_next, nullptr)) call();
    if (!has_limit) return {Code::kUnsupported, "planted"};
    return is_shut ? Status{Code::kNotReady, "planted"}
                   : ForwardingDevice::synchronize_for(timeout_ms);
  }
};

/// Until it holds, or ten seconds have passed.
template <class F>
bool comes_true(F&& holds) {
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (!holds() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
  return holds();
}

/// The shortest of `tries` times that `timed` returns.
template <class F>
Clock::duration shortest_of(int tries, F&& timed) {
  auto least = Clock::duration::max();
  for (int i = 0; i < tries; ++i) least = std::min(least, timed());
  return least;
}

class SynchronizerTest : public ::testing::Test {
 protected:
  ~SynchronizerTest() override { device_.is_shut = false; }
  /// How long an announcement of a capture takes.
  Clock::duration time_to_enter() {
    const auto begin = Clock::now();
    part_->let_enter();
    return Clock::now() - begin;
  }

  spec::SimGpu gpu_;
  GateDevice device_{gpu_.device(0)};
  Driver* first_ = nullptr;
  Driver driver_{device_, first_};
  std::atomic<unsigned> captures_{0};
  std::unique_ptr<Synchronizer> part_ = std::make_unique<Synchronizer>(driver_, captures_);
};

TEST_F(SynchronizerTest, OkCoversWhatWasEnqueuedBeforeAndNothingElseDoes) {
  device_.has_limit = true;
  const std::uint64_t first = part_->next_sequence();
  EXPECT_FALSE(part_->is_covered(first));
  device_.is_shut = true;
  EXPECT_EQ(part_->run(7).code(), Code::kNotReady);
  EXPECT_FALSE(part_->is_covered(first));
  device_.is_shut = false;
  EXPECT_TRUE(part_->ask().is_ok());  // takes the number first + 2
  EXPECT_TRUE(part_->is_covered(first + 2));
  EXPECT_FALSE(part_->is_covered(first + 3));
  EXPECT_EQ(part_->next_sequence(), first + 3);
  EXPECT_EQ(device_.limits, (std::vector<std::uint32_t>{7, 0}));
  EXPECT_TRUE(part_->run(device::kWaitForever).is_ok());
  EXPECT_EQ(device_.began, 1u) << "without an end the call without a limit is made";
  EXPECT_EQ(device_.limits.size(), 2u);
  EXPECT_TRUE(part_->is_covered(first + 4));
  EXPECT_FALSE(part_->is_covered(first + 5));
  EXPECT_EQ(device_.asked_on[0], std::this_thread::get_id());
}

TEST_F(SynchronizerTest, AThreadAsksAndItsAnswerIsLearntLater) {
  device_.is_shut = true;
  const std::uint64_t first = part_->next_sequence();
  const auto begin = Clock::now();
  EXPECT_EQ(part_->run(30).code(), Code::kNotReady);
  EXPECT_GE(Clock::now() - begin, milliseconds(30));
  ASSERT_TRUE(comes_true([&] { return device_.began == 1; }));
  const auto begin_ask = Clock::now();
  EXPECT_EQ(part_->run(0).code(), Code::kNotReady);
  EXPECT_GE(Clock::now() - begin_ask, milliseconds(1)) << "the thread needs a core";
  EXPECT_EQ(part_->ask().code(), Code::kNotReady);
  EXPECT_FALSE(part_->is_covered(first));
  device_.is_shut = false;
  // The first synchronisation answers for its own call, a second one for the two after it.
  ASSERT_TRUE(comes_true([&] { return part_->is_covered(first + 3); }));
  EXPECT_EQ(device_.began, 2u);
  EXPECT_FALSE(part_->is_covered(first + 4));
  EXPECT_TRUE(part_->run(5000).is_ok());
  EXPECT_TRUE(part_->is_covered(first + 4));
  EXPECT_EQ(device_.began, 3u);
  EXPECT_NE(device_.asked_on[0], std::this_thread::get_id());
  for (const std::thread::id& on : device_.asked_on)
    EXPECT_EQ(on, device_.asked_on[0]) << "one thread serves all";
}

TEST_F(SynchronizerTest, AFailureIsTheAnswerAndCoversNothing) {
  device_.fails = true;
  const std::uint64_t first = part_->next_sequence();
  EXPECT_EQ(part_->run(5000).code(), Code::kDriverError);
  EXPECT_FALSE(part_->is_covered(first));
  device_.fails = false;
  captures_ = 1;
  EXPECT_EQ(part_->run(5000).code(), Code::kNotReady);
  EXPECT_FALSE(part_->is_covered(first));
  EXPECT_EQ(device_.began, 1u) << "C9: none during a capture";
  captures_ = 0;
  EXPECT_TRUE(part_->run(5000).is_ok());
  EXPECT_TRUE(part_->is_covered(first));
}

TEST_F(SynchronizerTest, AnAnnouncementWaitsForASynchronisationThatBegins) {
  const auto shortest = [this] { return shortest_of(20, [this] { return time_to_enter(); }); };
  EXPECT_LT(shortest(), milliseconds(5)) << "no thread";
  for (int round = 0; round < 3; ++round) {
    device_.is_shut = true;
    const auto begin = Clock::now();
    EXPECT_EQ(part_->ask().code(), Code::kNotReady);
    ASSERT_TRUE(comes_true([&, round] { return device_.began == unsigned(round) + 1; }));
    part_->let_enter();
    EXPECT_GE(Clock::now() - begin, milliseconds(10)) << "it may not have entered the driver";
    EXPECT_LT(shortest(), milliseconds(5)) << "it has entered long ago";
    device_.is_shut = false;
    const std::uint64_t asked = part_->next_sequence() - 1;
    ASSERT_TRUE(comes_true([&] { return part_->is_covered(asked); }));
  }
  // Once answered, nothing is under way, however short a time ago it began.
  const auto least = shortest_of(20, [this] {
    EXPECT_TRUE(part_->run(5000).is_ok());
    return time_to_enter();
  });
  EXPECT_LT(least, milliseconds(5)) << "the thread is idle";
}

TEST_F(SynchronizerTest, AnEarlierCallThatEndsLaterTakesNothingBack) {
  device_.has_limit = true;
  std::uint64_t later = 0;
  device_.in_next = [&] {
    EXPECT_TRUE(part_->run(0).is_ok());
    later = part_->next_sequence() - 1;
    EXPECT_TRUE(part_->is_covered(later));
  };
  EXPECT_TRUE(part_->run(0).is_ok());
  EXPECT_TRUE(part_->is_covered(later));
  EXPECT_FALSE(part_->is_covered(later + 1));
}

TEST_F(SynchronizerTest, ToAskWaitsForNoThreadAndTheThreadTakesNoSignal) {
  device_.is_shut = true;
  const auto least = shortest_of(30, [this] {
    const auto begin = Clock::now();
    EXPECT_EQ(part_->ask().code(), Code::kNotReady);
    return Clock::now() - begin;
  });
  EXPECT_LT(least, milliseconds(1));
  ASSERT_TRUE(comes_true([&] { return device_.began == 1; }));
  for (const int signal : {SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCHLD, SIGWINCH})
    EXPECT_EQ(sigismember(&device_.blocked, signal), 1) << signal;
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGUSR1), 0) << "the caller's mask is as before";
  device_.is_shut = false;
}

TEST_F(SynchronizerTest, ItsEndWaitsForASynchronisationThatIsUnderWay) {
  for (const bool is_destroyed : {false, true}) {
    device_.is_shut = true;
    device_.began = 0;
    EXPECT_EQ(part_->ask().code(), Code::kNotReady);
    ASSERT_TRUE(comes_true([&] { return device_.began == 1; }));
    std::thread opens([&] {
      std::this_thread::sleep_for(milliseconds(50));
      device_.is_shut = false;
    });
    is_destroyed ? part_.reset() : part_->stop();
    EXPECT_FALSE(device_.is_shut) << "the device may be destroyed now";
    opens.join();
    part_ = std::make_unique<Synchronizer>(driver_, captures_);
  }
}

TEST_F(SynchronizerTest, ToStopTwiceJoinsNoOtherThread) {
  ASSERT_TRUE(part_->run(5000).is_ok());
  part_->stop();
  // A new thread may be given the ended one's name.
  std::atomic<bool> may_end{false};
  std::atomic<bool> has_ended{false};
  std::thread other([&] {
    for (int i = 0; i < 3000 && !may_end; ++i) std::this_thread::sleep_for(milliseconds(1));
    has_ended = true;
  });
  part_->stop();
  EXPECT_FALSE(has_ended) << "it waited for a thread that is not its own";
  may_end = true;
  EXPECT_NO_THROW(other.join());
}

TEST_F(SynchronizerTest, ToStopBeforeTheThreadIsMadeDoesNothing) {
  part_->stop();
  EXPECT_TRUE(part_->run(5000).is_ok());
  part_->stop();
}

TEST_F(SynchronizerTest, ACallWithoutALimitIsTheDriversOwn) {
  const std::uint64_t sequence = part_->next_sequence();
  EXPECT_FALSE(part_->is_covered(sequence));
  EXPECT_TRUE(part_->run(device::kWaitForever).is_ok());
  EXPECT_EQ(device_.began, 1u);
  EXPECT_TRUE(part_->is_covered(sequence));
}

TEST_F(SynchronizerTest, AnAnnouncementLetsTheThreadEnterTheDriver) {
  EXPECT_LT(time_to_enter(), milliseconds(10)) << "no thread is there";
  device_.is_shut = true;
  EXPECT_EQ(part_->ask().code(), Code::kNotReady);
  while (device_.began == 0) std::this_thread::yield();
  const auto began = Clock::now();
  part_->let_enter();
  // Until 10 ms after the thread set out, which was some moments before it was seen in the driver.
  EXPECT_LT(Clock::now() - began, milliseconds(500)) << "it does not wait for the answer";
  EXPECT_TRUE(device_.is_shut);
  device_.is_shut = false;
  while (!part_->ask().is_ok()) std::this_thread::yield();
  while (!part_->run(100).is_ok()) std::this_thread::yield();
  EXPECT_LT(time_to_enter(), milliseconds(10)) << "the thread has answered";
}

TEST_F(SynchronizerTest, DuringACaptureTheThreadCallsNoDevice) {
  captures_ = 1;
  EXPECT_EQ(part_->run(1000).code(), Code::kNotReady);
  EXPECT_EQ(device_.began, 0u) << "C9";
  captures_ = 0;
  EXPECT_TRUE(part_->run(10'000).is_ok());
  EXPECT_EQ(device_.began, 1u);
}

#ifdef __GLIBC__
TEST_F(SynchronizerTest, AHostThatMakesNoThreadIsSaidSoAndAskedAgain) {
  pthread_attr_t usual;
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const Status refused = part_->run(1000);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_EQ(device_.began, 0u);
  EXPECT_TRUE(part_->run(10'000).is_ok());
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&usual);
}
#endif

}  // namespace
}  // namespace ashlar::cache
