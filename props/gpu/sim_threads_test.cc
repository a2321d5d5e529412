// Imitates: four threads that use one simulated machine at the same time, each on its own
// per-thread default stream. Shows, under the thread sanitizer, that the machine's lock covers
// everything. Does not prove: that any order of calls is correct.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec {
namespace {

TEST(SimThreads, MayAllCallAtTheSameTime) {
  SimGpu sim(SimGpuOptions{.pace = 2});
  std::atomic<AllocationTag> next_tag{1};
  const auto work = [&] {
    device::Device& gpu = sim.device();
    const Stream own = gpu.identify(kPerThreadStream).value();
    for (int i = 0; i < 200; ++i) {
      const AllocationTag tag = next_tag++;
      const Address at = gpu.segment_alloc(4_KiB).value();
      sim.on_allocate(tag, at, 4_KiB, own);
      EXPECT_TRUE(sim.launch(own, Touch{at, 4_KiB, Access::kWrite, tag}).is_ok());
      const EventHandle done = gpu.event_create().value();
      EXPECT_TRUE(gpu.event_record(done, kPerThreadStream).is_ok());
      sim.on_free(tag);
      EXPECT_TRUE(gpu.event_synchronize(done, device::kWaitForever).is_ok());
      EXPECT_TRUE(gpu.event_destroy(done).is_ok());
      EXPECT_TRUE(gpu.segment_free(at).is_ok());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (const Fault& fault : sim.take_faults())
    ADD_FAILURE() << fault_name(fault.kind) << ": " << fault.text;
  EXPECT_TRUE(sim.leak_check());
  EXPECT_EQ(sim.account().of(device::CallKind::kSegmentAlloc).calls, 800u);
}

TEST(SimThreads, EachHasItsOwnDefaultStreamAndCaptureMode) {
  SimGpu sim;
  device::Device& gpu = sim.device();
  const StreamId here = gpu.identify(kPerThreadStream).value().id;
  EXPECT_TRUE(gpu.exchange_capture_mode(device::CaptureMode::kRelaxed).is_ok());
  StreamId there;
  device::CaptureMode mode = device::CaptureMode::kRelaxed;
  std::thread([&] {
    there = gpu.identify(kPerThreadStream).value().id;
    mode = gpu.exchange_capture_mode(device::CaptureMode::kThreadLocal).value();
  }).join();
  EXPECT_NE(here, there);
  EXPECT_EQ(mode, device::CaptureMode::kGlobal);
  EXPECT_EQ(gpu.exchange_capture_mode(device::CaptureMode::kGlobal).value(),
            device::CaptureMode::kRelaxed);
}

}  // namespace
}  // namespace ashlar::spec
