// Imitates: a program that enqueues kernels, events and waits on a few streams of one or two
// devices. Does not prove: that a real GPU behaves this way (props/rules cites the documentation of
// each rule; a GPU must agree).
#include "props/gpu/fixture.h"

namespace ashlar::spec {
namespace {

struct SimStreams : SimTest {
  SimStreams() : SimTest(SimGpuOptions{.capacities = {Bytes{0}, Bytes{0}}}) {}
};

TEST_F(SimStreams, NoEntryFinishesUntilTold) {
  const Stream s = make();
  EXPECT_TRUE(kernel(s).is_ok());
  const EventHandle e = recorded(s);
  EXPECT_EQ(gpu.event_query(e).code(), Code::kNotReady);
  EXPECT_EQ(sim.step(s), 1u);
  EXPECT_EQ(gpu.event_query(e).code(), Code::kNotReady);
  EXPECT_EQ(sim.step(s), 1u);
  EXPECT_TRUE(gpu.event_query(e).is_ok());
  EXPECT_EQ(sim.step(s), 0u);
}

TEST_F(SimStreams, AWaitHoldsItsStreamUntilTheEventIsDone) {
  const Stream a = make();
  const Stream b = make();
  EXPECT_TRUE(kernel(a).is_ok());
  const EventHandle e = recorded(a);
  EXPECT_TRUE(gpu.stream_wait(b.handle, e).is_ok());
  EXPECT_TRUE(kernel(b).is_ok());
  EXPECT_EQ(sim.step(b, 9), 0u);
  EXPECT_EQ(sim.step(a, 9), 2u);
  EXPECT_EQ(sim.step(b, 9), 2u);
}

TEST_F(SimStreams, RecordingAgainReplacesTheEarlierRecord) {
  const Stream s = make();
  const EventHandle e = recorded(s);
  sim.step(s);
  EXPECT_TRUE(gpu.event_query(e).is_ok());
  EXPECT_TRUE(gpu.event_record(e, s.handle).is_ok());
  EXPECT_EQ(gpu.event_query(e).code(), Code::kNotReady);
}

TEST_F(SimStreams, SynchronizeRunsOnlyWhatTheEventNeeds) {
  const Stream a = make();
  const Stream b = make();
  EXPECT_TRUE(kernel(a).is_ok());
  const EventHandle e = recorded(a);
  EXPECT_TRUE(kernel(a).is_ok());
  EXPECT_TRUE(kernel(b).is_ok());
  EXPECT_TRUE(gpu.event_synchronize(e, device::kWaitForever).is_ok());
  EXPECT_EQ(sim.pending(a), 1u);
  EXPECT_EQ(sim.pending(b), 1u);
  EXPECT_EQ(sim.account().waits, 1u);
}

TEST_F(SimStreams, ABlockingCallThatCannotReturnIsADeadlock) {
  const Stream s = make();
  const HostFlag flag = sim.new_flag();
  EXPECT_TRUE(sim.host_function(s, flag).is_ok());
  const EventHandle e = recorded(s);
  EXPECT_EQ(gpu.event_synchronize(e, 5).code(), Code::kNotReady);
  EXPECT_EQ(gpu.event_synchronize(e, device::kWaitForever).code(), Code::kDeadlock);
  expect_fault(FaultKind::kDeadlock);
  EXPECT_EQ(gpu.synchronize().code(), Code::kDeadlock);
  expect_fault(FaultKind::kDeadlock);
  sim.raise(flag);
  EXPECT_TRUE(gpu.event_synchronize(e, device::kWaitForever).is_ok());
}

TEST_F(SimStreams, BoundedWaitsRepeatedWithoutEndAreADeadlockToo) {
  const Stream stuck = make();
  const HostFlag flag = sim.new_flag();
  ASSERT_TRUE(sim.host_function(stuck, flag).is_ok());
  const EventHandle event = recorded(stuck);
  const auto waits_until_deadlock = [&] {
    int waits = 0;
    while (gpu.event_synchronize(event, 1000).code() == Code::kNotReady) ++waits;
    return waits;
  };
  EXPECT_EQ(waits_until_deadlock(), 599);  // ten minutes
  expect_fault(FaultKind::kDeadlock);
  EXPECT_EQ(gpu.event_synchronize(event, 1000).code(), Code::kNotReady);
  ASSERT_TRUE(kernel(make()).is_ok());
  EXPECT_EQ(gpu.event_synchronize(event, 1000).code(), Code::kNotReady);
  EXPECT_EQ(waits_until_deadlock(), 598) << "counted from the last entry that finished";
  expect_fault(FaultKind::kDeadlock);
  sim.raise(flag);
  EXPECT_TRUE(gpu.event_synchronize(event, 1).is_ok());
}

TEST_F(SimStreams, ADeviceCallInsideAHostFunctionIsRefused) {
  const Stream s = make();
  Code answer = Code::kOk;
  EXPECT_TRUE(sim.host_function(s, 0, [&] { answer = gpu.segment_alloc(512_B).code(); }).is_ok());
  EXPECT_EQ(sim.step(s), 1u);
  EXPECT_EQ(answer, Code::kDriverError);
  expect_fault(FaultKind::kCalledFromHostFunction);
  EXPECT_TRUE(gpu.memory_info().is_ok());
}

TEST_F(SimStreams, AMemoryWaitHoldsUntilTheWordIsWritten) {
  const Stream a = make();
  const Stream b = make();
  EXPECT_TRUE(sim.wait_value(a, Address{64}, 2).is_ok());
  EXPECT_TRUE(sim.write_value(b, Address{64}, 1).is_ok());
  EXPECT_TRUE(sim.drain_all() == Status(Code::kDeadlock, ""));
  sim.host_write_value(Address{64}, 3);
  EXPECT_TRUE(sim.drain_all().is_ok());
}

TEST_F(SimStreams, ACollectiveRunsOnlyWhenAllMembersHaveReachedIt) {
  const Stream a = make();
  const Stream b = make();
  EXPECT_TRUE(sim.collective(a, 7, 2).is_ok());
  EXPECT_TRUE(kernel(b).is_ok());
  EXPECT_EQ(sim.step(a), 0u);
  EXPECT_TRUE(sim.collective(b, 7, 2).is_ok());
  EXPECT_EQ(sim.step(a), 0u);
  EXPECT_EQ(sim.step(b), 1u);
  EXPECT_EQ(sim.step(a), 1u);
  EXPECT_EQ(sim.pending(b), 0u);
}

TEST_F(SimStreams, AHiddenWaitBetweenCollectivesDeadlocks) {
  // Two streams have a collective; one of them waits first for an event behind the other's part.
  const Stream a = make();
  const Stream b = make();
  EXPECT_TRUE(sim.collective(a, 1, 2).is_ok());
  const EventHandle after = recorded(a);
  EXPECT_TRUE(gpu.stream_wait(b.handle, after).is_ok());
  EXPECT_TRUE(sim.collective(b, 1, 2).is_ok());
  EXPECT_EQ(sim.drain_all().code(), Code::kDeadlock);
}

TEST_F(SimStreams, LagFinishesEachEntryTicksAfterItsEnqueue) {
  const Stream s = make();
  sim.set_lag(2);
  EXPECT_TRUE(kernel(s).is_ok());
  sim.tick();
  EXPECT_TRUE(kernel(s).is_ok());
  EXPECT_EQ(sim.pending(s), 2u);
  sim.tick();
  EXPECT_EQ(sim.pending(s), 1u);
  sim.tick();
  EXPECT_EQ(sim.pending(s), 0u);
}

TEST_F(SimStreams, AHostThatSleepsLetsOneEntryFinishInNoTimeOrTimePass) {
  const Stream stream = make();
  ASSERT_TRUE(kernel(stream).is_ok());
  ASSERT_TRUE(kernel(stream).is_ok());
  const std::uint64_t began_ns = gpu.now_ns();
  sim.sleep_ns(1'000);
  EXPECT_EQ(sim.pending(stream), 1u);
  sim.sleep_ns(1'000);
  EXPECT_EQ(sim.pending(stream), 0u);
  EXPECT_EQ(gpu.now_ns(), began_ns);
  sim.sleep_ns(1'000);
  EXPECT_EQ(gpu.now_ns(), began_ns + 1'000);
}

TEST_F(SimStreams, AHandleIsReusedAndAnIdentityIsNot) {
  const Stream a = make();
  EXPECT_TRUE(kernel(a).is_ok());
  EXPECT_TRUE(sim.destroy_stream(a).is_ok());
  EXPECT_EQ(gpu.identify(a.handle).code(), Code::kInvalidHandle);
  expect_fault(FaultKind::kDeadStream);
  const Stream b = make();
  EXPECT_EQ(a.handle, b.handle);
  EXPECT_NE(a.id, b.id);
  EXPECT_EQ(sim.pending(a), 1u);
  EXPECT_EQ(sim.pending(b), 0u);
  EXPECT_EQ(sim.step(a), 1u);
}

TEST_F(SimStreams, ThePerThreadStreamIsOneHandleAndAStreamForEachThread) {
  const Stream first = gpu.identify(kPerThreadStream).value();
  sim.act_as_thread(1);
  const Stream second = gpu.identify(kPerThreadStream).value();
  EXPECT_EQ(first.handle, second.handle);
  EXPECT_NE(first.id, second.id);
  EXPECT_TRUE(first.thread_bound);
  sim.act_as_thread(0);
  EXPECT_EQ(gpu.identify(kPerThreadStream).value(), first);
  EXPECT_NE(sim.device(1).identify(kPerThreadStream).value().id, first.id);
}

TEST_F(SimStreams, TheLegacyStreamOrdersBlockingStreamsOnly) {
  const Stream blocking = make(StreamKind::kBlocking);
  const Stream free_running = make();
  const Stream legacy = sim.default_stream(kFirstDevice);
  EXPECT_TRUE(kernel(blocking).is_ok());
  EXPECT_TRUE(kernel(legacy).is_ok());
  EXPECT_TRUE(kernel(blocking).is_ok());
  EXPECT_TRUE(kernel(free_running).is_ok());
  EXPECT_EQ(sim.step(legacy, 9), 0u);
  EXPECT_EQ(sim.step(free_running, 9), 1u);
  EXPECT_EQ(sim.step(blocking, 9), 1u);
  EXPECT_EQ(sim.step(legacy, 9), 2u);  // the implicit wait and the kernel
  EXPECT_EQ(sim.step(blocking, 9), 2u);
}

TEST_F(SimStreams, AnEventOfAnotherDeviceCanBeWaitedForAndNotRecorded) {
  const EventHandle e = gpu.event_create().value();
  const Stream other = sim.create_stream(DeviceId{1}).value();
  EXPECT_EQ(sim.device(1).event_record(e, other.handle).code(), Code::kWrongDevice);
  expect_fault(FaultKind::kWrongDevice);
  const Stream own = make();
  EXPECT_TRUE(kernel(own).is_ok());
  EXPECT_TRUE(gpu.event_record(e, own.handle).is_ok());
  EXPECT_TRUE(sim.device(1).stream_wait(other.handle, e).is_ok());
  EXPECT_EQ(sim.step(other), 0u);
  EXPECT_TRUE(sim.drain(DeviceId{1}).is_ok());
  EXPECT_EQ(sim.pending(own), 0u);
}

TEST(SimQueues, AFullQueueBlocksTheLaunchUntilTheMachineHasRoom) {
  SimGpu sim(SimGpuOptions{.queue_depth = 2});
  const Stream s = sim.create_stream(kFirstDevice).value();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sim.launch(s, std::span<const Touch>{}).is_ok());
  EXPECT_EQ(sim.pending(s), 2u);
  const Stream held = sim.create_stream(kFirstDevice).value();
  const HostFlag flag = sim.new_flag();
  EXPECT_TRUE(sim.host_function(held, flag).is_ok());
  EXPECT_TRUE(sim.launch(held, std::span<const Touch>{}).is_ok());
  EXPECT_EQ(sim.launch(held, std::span<const Touch>{}).code(), Code::kDeadlock);
  EXPECT_EQ(sim.take_faults().size(), 1u);
}

TEST(SimQueues, StreamsThatShareAHardwareQueueDelayEachOther) {
  SimGpu sim(SimGpuOptions{.hardware_queues = 1});
  const Stream a = sim.create_stream(kFirstDevice).value();
  const Stream b = sim.create_stream(kFirstDevice).value();
  EXPECT_TRUE(sim.wait_value(a, Address{8}, 1).is_ok());
  EXPECT_TRUE(sim.write_value(b, Address{8}, 1).is_ok());
  EXPECT_EQ(sim.step(b), 0u);
  EXPECT_EQ(sim.drain_all().code(), Code::kDeadlock);
}

TEST(SimProgress, EachStreamFinishesWhatThePaceHasTimeForWhileTheHostSleeps) {
  SimGpuOptions options;
  options.entries_per_ms = 2;
  SimGpu sim(options);
  const Stream first = sim.create_stream(kFirstDevice).value();
  const Stream second = sim.create_stream(kFirstDevice).value();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(sim.launch(first, std::span<const Touch>{}).is_ok());
    ASSERT_TRUE(sim.launch(second, std::span<const Touch>{}).is_ok());
  }
  sim.sleep_ns(499'999);
  EXPECT_EQ(sim.pending(first) + sim.pending(second), 6u);
  sim.sleep_ns(1);
  EXPECT_EQ(sim.pending(first), 2u);
  EXPECT_EQ(sim.pending(second), 2u);
  sim.sleep_ns(1'000'000);
  EXPECT_EQ(sim.pending(first) + sim.pending(second), 0u);
  EXPECT_EQ(sim.device().now_ns(), 1'500'000u);
}

TEST(SimProgress, TheSameSeedMakesTheSameChoices) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    std::string story[2];
    for (std::string& told : story) {
      SimGpu sim(SimGpuOptions{.seed = seed});
      std::vector<Stream> streams;
      for (int i = 0; i < 3; ++i) streams.push_back(sim.create_stream(kFirstDevice).value());
      for (int i = 0; i < 30; ++i) {
        EXPECT_TRUE(
            sim.launch(streams[static_cast<std::size_t>(i % 3)], std::span<const Touch>{}).is_ok());
      }
      EXPECT_EQ(sim.progress(15), 15u);
      for (const Stream& s : streams) told += std::to_string(sim.pending(s)) + " ";
      for (int i = 0; i < 20; ++i)
        told += std::to_string(sim.device().segment_alloc(3000_B).value().value()) + " ";
    }
    EXPECT_EQ(story[0], story[1]);
  }
}

}  // namespace
}  // namespace ashlar::spec
