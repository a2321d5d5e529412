// The router: guards of threads and streams, frees that go to their owner, and threads that share a
// recorder and a replay.
//
// Imitates: a data loader and a training loop, and frees from a thread that allocates nothing. Does
// not prove: anything about orders of the threads that did not occur.
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/cache/caching_upstream.h>
#include <ashlar/device/host_device.h>
#include <ashlar/plan/planner.h>
#include <ashlar/replay/recorder.h>
#include <ashlar/replay/replay.h>
#include <ashlar/replay/router.h>

#include "spec/replay/upstreams.h"

namespace ashlar {
namespace {

const Stream kOwn{StreamHandle{1}, StreamId{1}, DeviceId{0}};
const Stream kOther{StreamHandle{2}, StreamId{2}, DeviceId{0}};

class RouterTest : public testing::Test {
 protected:
  spec::FakeUpstream upstream_{1_B};
  replay::Router router_{upstream_};
  replay::Recorder recorder_{upstream_, kOwn};

  plan::Time events() { return recorder_.take().value().events; }
};

TEST_F(RouterTest, AThreadsGuardSendsWhatItAllocatesAndNothingElse) {
  ASSERT_TRUE(router_.attach(recorder_).is_ok());
  static_cast<void>(router_.allocate(8_B, kOwn));
  EXPECT_EQ(events(), 0);
  {
    const replay::ThreadGuard guard(router_, recorder_);
    ASSERT_TRUE(guard.status().is_ok());
    static_cast<void>(router_.allocate(8_B, kOwn));
    std::thread([&] { static_cast<void>(router_.allocate(8_B, kOwn)); }).join();
    EXPECT_EQ(events(), 1);
  }
  static_cast<void>(router_.allocate(8_B, kOwn));
  EXPECT_EQ(events(), 0);
  router_.detach(recorder_);
}

/// A route whose free waits until it is let go.
class SlowRoute final : public replay::Route {
 public:
  Result<Address> allocate(Bytes, const Stream&) noexcept override { return Address{}; }
  Status free(Address) noexcept override {
    is_inside = true;
    while (!may_leave) std::this_thread::yield();
    return Status::ok();
  }
  Status record_use(Address, const Stream&) noexcept override { return Status::ok(); }
  bool owns(Address) const noexcept override { return true; }

  std::atomic<bool> is_inside{false};
  std::atomic<bool> may_leave{false};
};

TEST_F(RouterTest, ARouteIsDetachedOnceNoCallIsUnderWayInIt) {
  SlowRoute slow;
  ASSERT_TRUE(router_.attach(slow).is_ok());
  std::thread freeing([&] { EXPECT_TRUE(router_.free(Address{64}).is_ok()); });
  while (!slow.is_inside) std::this_thread::yield();
  std::atomic<bool> is_detached{false};
  std::thread detaching([&] {
    router_.detach(slow);
    is_detached = true;
  });
  // No call enters it any more, and its place is not another route's yet.
  while (replay::ThreadGuard(router_, slow).status().is_ok()) std::this_thread::yield();
  EXPECT_FALSE(router_.free(Address{64}).is_ok());
  std::vector<std::unique_ptr<replay::Recorder>> others;
  for (std::size_t i = 0; i + 1 < replay::Router::kRoutesMax; ++i) {
    others.push_back(std::make_unique<replay::Recorder>(upstream_, kOwn));
    ASSERT_TRUE(router_.attach(*others.back()).is_ok());
  }
  EXPECT_EQ(router_.attach(recorder_).code(), Code::kBusy);
  EXPECT_FALSE(is_detached);
  slow.may_leave = true;
  freeing.join();
  detaching.join();
  EXPECT_TRUE(router_.attach(recorder_).is_ok());
  router_.detach(recorder_);
  for (const auto& each : others) router_.detach(*each);
}

TEST_F(RouterTest, AStreamsGuardSendsWhateverThreadAllocatesOnIt) {
  ASSERT_TRUE(router_.attach(recorder_).is_ok());
  const replay::StreamGuard guard(router_, recorder_, kOwn);
  ASSERT_TRUE(guard.status().is_ok());
  static_cast<void>(router_.allocate(8_B, kOther));
  std::thread([&] { static_cast<void>(router_.allocate(8_B, kOwn)); }).join();
  EXPECT_EQ(events(), 1);
}

TEST_F(RouterTest, GuardsDoNotNest) {
  ASSERT_TRUE(router_.attach(recorder_).is_ok());
  EXPECT_EQ(router_.attach(recorder_).code(), Code::kBusy);
  replay::Recorder stranger(upstream_, kOwn);
  EXPECT_EQ(replay::ThreadGuard(router_, stranger).status().code(), Code::kNotFound);
  EXPECT_EQ(replay::StreamGuard(router_, stranger, kOwn).status().code(), Code::kNotFound);
  replay::Router another(upstream_);
  {
    const replay::ThreadGuard guard(router_, recorder_);
    EXPECT_EQ(replay::ThreadGuard(router_, recorder_).status().code(), Code::kBusy);
    EXPECT_EQ(replay::ThreadGuard(another, recorder_).status().code(), Code::kBusy);
    static_cast<void>(router_.allocate(8_B, kOwn));
    EXPECT_EQ(events(), 1);  // the refused guards' ends changed nothing
    const replay::StreamGuard stream(router_, recorder_, kOwn);
    EXPECT_TRUE(stream.status().is_ok());
    EXPECT_EQ(replay::StreamGuard(router_, recorder_, kOwn).status().code(), Code::kBusy);
    EXPECT_TRUE(replay::StreamGuard(router_, recorder_, kOther).status().is_ok());
  }
  EXPECT_TRUE(replay::ThreadGuard(router_, recorder_).status().is_ok());
}

TEST_F(RouterTest, FullTablesRefuseMore) {
  std::vector<std::unique_ptr<replay::Recorder>> recorders;
  for (std::size_t i = 0; i <= replay::Router::kRoutesMax; ++i) {
    recorders.push_back(std::make_unique<replay::Recorder>(upstream_, kOwn));
    EXPECT_EQ(router_.attach(*recorders[i]).is_ok(), i < replay::Router::kRoutesMax);
  }
  std::vector<std::unique_ptr<replay::StreamGuard>> guards;
  for (std::uint64_t i = 0; i <= replay::Router::kRoutesMax; ++i) {
    guards.push_back(std::make_unique<replay::StreamGuard>(
        router_, *recorders[0], Stream{StreamHandle{i}, StreamId{i}, DeviceId{0}}));
    EXPECT_EQ(guards[i]->status().is_ok(), i < replay::Router::kRoutesMax);
  }
  guards.clear();
  for (const auto& recorder : recorders) router_.detach(*recorder);
  EXPECT_TRUE(router_.attach(recorder_).is_ok());
}

std::unique_ptr<replay::Replay> replay_of(Upstream& upstream, const Stream& stream,
                                          const replay::Recording& recording) {
  plan::PlanOptions options;
  options.work = 0;
  auto made = replay::Replay::create(upstream, stream, recording,
                                     plan::make_plan(replay::problem_of(recording), options));
  EXPECT_TRUE(made.is_ok());
  return std::move(made).value();
}

TEST_F(RouterTest, AFreeFindsItsOwnerWithoutAGuardAndFromAnotherThread) {
  const auto replay = replay_of(upstream_, kOwn, {{{64_B, 0, 1, false}}, 2});
  ASSERT_TRUE(router_.attach(*replay).is_ok());
  Address at;
  {
    const replay::ThreadGuard guard(router_, *replay);
    at = router_.allocate(64_B, kOwn).value();
  }
  EXPECT_TRUE(replay->owns(at));
  std::thread([&] { EXPECT_TRUE(router_.free(at).is_ok()); }).join();
  EXPECT_EQ(replay->counts().served, 1u);
  EXPECT_EQ(router_.free(at).code(), Code::kUnknownPointer);
  EXPECT_EQ(replay->counts().refused, 1u);
  EXPECT_EQ(router_.record_use(at, kOther).code(), Code::kUnknownPointer);
  EXPECT_TRUE(router_.free(Address{}).is_ok());
  router_.detach(*replay);
}

/// A step: allocations of some sizes, a few live at a time, each filled with a sign. Most are freed
/// here; some are put into a box, from which another thread frees them.
class Steps {
 public:
  Steps(replay::Router& router, const Stream& stream, std::uint8_t sign)
      : router_(router), stream_(stream), sign_(sign) {}

  void run(int deviation, std::vector<Address>* box, std::mutex* box_mutex) {
    std::vector<std::pair<Address, std::size_t>> live;
    for (int i = 0; i < 40; ++i) {
      const std::size_t size =
          512u * static_cast<std::size_t>(1 + i % 5) + (i == deviation ? 1024u : 0u);
      const Address at = router_.allocate(Bytes{size}, stream_).value();
      std::memset(at.pointer(), sign_, size);
      live.emplace_back(at, size);
      if (live.size() < 6) continue;
      check(live.front());
      if (box != nullptr && i % 7 == 0) {
        const std::lock_guard lock(*box_mutex);
        box->push_back(live.front().first);
      } else {
        EXPECT_TRUE(router_.free(live.front().first).is_ok());
      }
      live.erase(live.begin());
    }
    for (const auto& one : live) {
      check(one);
      EXPECT_TRUE(router_.free(one.first).is_ok());
    }
  }

 private:
  void check(const std::pair<Address, std::size_t>& one) const {
    const auto* const bytes = static_cast<const std::uint8_t*>(one.first.pointer());
    for (std::size_t i = 0; i < one.second; ++i) {
      if (bytes[i] != sign_) return ADD_FAILURE() << "live memory was overwritten";
    }
  }

  replay::Router& router_;
  const Stream stream_;
  const std::uint8_t sign_;
};

TEST(RouterThreadsTest, TwoStreamsReplayTheirStepsAtOnceAndAThirdThreadFrees) {
  device::HostDevice device;
  device::Device* const devices[] = {&device};
  const auto allocator = cache::CachingAllocator::create(devices, cache::Config{});
  ASSERT_TRUE(allocator.is_ok());
  cache::CachingUpstream upstream(*allocator.value());
  replay::Router router(upstream);
  std::vector<Address> box;
  std::mutex box_mutex;
  std::atomic<int> working{2};
  const auto work = [&](std::uint8_t sign) {
    const Stream stream = device.create_stream().value();
    Steps steps(router, stream, sign);
    replay::Recording recording;
    {
      replay::Recorder recorder(upstream, stream);
      ASSERT_TRUE(router.attach(recorder).is_ok());
      {
        const replay::StreamGuard guard(router, recorder, stream);
        steps.run(-1, nullptr, nullptr);
      }
      recording = recorder.take().value();
      router.detach(recorder);
    }
    EXPECT_EQ(recording.events, 80);
    const auto replay = replay_of(upstream, stream, recording);
    ASSERT_TRUE(router.attach(*replay).is_ok());
    for (int step = 0; step < 30; ++step) {
      const replay::ThreadGuard guard(router, *replay);
      steps.run(step % 3 == 0 ? step : -1, step < 20 ? &box : nullptr, &box_mutex);
      EXPECT_TRUE(replay->rewind().is_ok());
    }
    // The exact count depends on the third thread: memory that it frees late is in the way.
    EXPECT_GT(replay->counts().served, 30u);
    --working;
    while (working.load() >= 0) std::this_thread::yield();  // until the box is empty
    router.detach(*replay);
  };
  std::thread one(work, std::uint8_t{0x5a});
  std::thread other(work, std::uint8_t{0xa5});
  for (bool is_last = false; !is_last;) {
    is_last = working.load() == 0;
    std::vector<Address> taken;
    {
      const std::lock_guard lock(box_mutex);
      taken.swap(box);
    }
    for (const Address at : taken) EXPECT_TRUE(router.free(at).is_ok());
  }
  working = -1;
  one.join();
  other.join();
  EXPECT_TRUE(allocator.value()->trim(DeviceId{0}).is_ok());
  EXPECT_EQ(device.ledger().segments, 0u);
}

}  // namespace
}  // namespace ashlar
