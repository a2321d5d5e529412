// Imitates: an allocator's driver calls for memory, correct and wrong, and planned failures.
// Does not prove: what a real driver answers to each misuse (props/rules).
#include <algorithm>
#include <map>

#include "props/gpu/fixture.h"
#include "spec/ops/random.h"

namespace ashlar::spec {
namespace {

struct SimMemory : SimTest {
  SimMemory() : SimTest(SimGpuOptions{.capacities = {Bytes{64_MiB}, Bytes{0}}}) {}
  /// The address of a mapped and accessible page of 2 MiB, whose handle is released.
  Address mapped() {
    const Address at = gpu.address_reserve(2_MiB, 0_B).value();
    const PageHandle page = gpu.page_create(2_MiB).value();
    EXPECT_TRUE(gpu.page_map(at, 2_MiB, page).is_ok());
    EXPECT_TRUE(gpu.page_release(page).is_ok());
    EXPECT_TRUE(gpu.page_access(at, 2_MiB).is_ok());
    return at;
  }
};

TEST_F(SimMemory, CapacityCountsSegmentsAndPagesTogether) {
  EXPECT_TRUE(gpu.segment_alloc(60_MiB).is_ok());
  EXPECT_TRUE(gpu.page_create(4_MiB).is_ok());
  EXPECT_EQ(gpu.segment_alloc(1_B).code(), Code::kOutOfMemory);
  EXPECT_EQ(gpu.page_create(2_MiB).code(), Code::kOutOfMemory);
  EXPECT_EQ(gpu.memory_info().value().free, 0_B);
  EXPECT_TRUE(sim.device(1).segment_alloc(64_GiB).is_ok());
  sim.set_capacity(kFirstDevice, 128_MiB);
  EXPECT_TRUE(gpu.segment_alloc(64_MiB).is_ok());
}

TEST_F(SimMemory, WrongFreesAreFaultsAndChangeNothing) {
  const Address at = gpu.segment_alloc(1_MiB).value();
  EXPECT_EQ(gpu.segment_free(at + 512_B).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadFree);
  EXPECT_EQ(sim.device(1).segment_free(at).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadFree);
  EXPECT_EQ(gpu.pinned_free(at).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadFree);
  EXPECT_EQ(sim.ledger().segments.count, 1u);
  EXPECT_TRUE(gpu.segment_free(at).is_ok());
  EXPECT_EQ(gpu.segment_free(at).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadFree);
}

TEST_F(SimMemory, AMisuseInsideACallerScopeIsTheCallersAndNotInTheAccount) {
  const SimGpu::CallerScope own;
  EXPECT_EQ(gpu.segment_free(Address{512}).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadFree, Blame::kCaller);
  EXPECT_EQ(sim.account().calls(), 0u);
}

TEST_F(SimMemory, APageIsReturnedOnceReleasedAndMappedNowhere) {
  const Address at = mapped();
  EXPECT_EQ(sim.ledger().pages.bytes, 2_MiB);
  EXPECT_EQ(gpu.address_release(at, 2_MiB).code(), Code::kBusy);
  expect_fault(FaultKind::kBadMapping);
  EXPECT_TRUE(gpu.page_unmap(at, 2_MiB).is_ok());
  EXPECT_EQ(sim.ledger().pages.bytes, 0_B);
  EXPECT_TRUE(gpu.address_release(at, 2_MiB).is_ok());
  EXPECT_TRUE(sim.ledger().nothing_held());
}

TEST_F(SimMemory, AHandleIsMappedAndUnmappedWhole) {
  const Address at = gpu.address_reserve(16_MiB, 0_B).value();
  const PageHandle page = gpu.page_create(4_MiB).value();
  EXPECT_EQ(gpu.page_map(at, 2_MiB, page).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadMapping);
  EXPECT_EQ(gpu.page_map(at + 14_MiB, 4_MiB, page).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadMapping);
  EXPECT_TRUE(gpu.page_map(at, 4_MiB, page).is_ok());
  EXPECT_TRUE(gpu.page_map(at + 4_MiB, 4_MiB, page).is_ok());  // twice, at two addresses
  EXPECT_EQ(gpu.page_map(at + 6_MiB, 4_MiB, page).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadMapping);
  EXPECT_EQ(gpu.page_unmap(at, 2_MiB).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadMapping);
  EXPECT_EQ(gpu.page_unmap(at, 10_MiB).code(), Code::kInvalidArgument);
  expect_fault(FaultKind::kBadMapping);
  EXPECT_TRUE(gpu.page_unmap(at, 8_MiB).is_ok());
  EXPECT_EQ(sim.ledger().pages.count, 1u);
  EXPECT_TRUE(gpu.page_release(page).is_ok());
  EXPECT_EQ(gpu.page_release(page).code(), Code::kInvalidHandle);
  expect_fault(FaultKind::kDeadPage);
  EXPECT_EQ(sim.ledger().pages.count, 0u);
}

TEST_F(SimMemory, AKernelThatTouchesUnmappedOrInaccessibleMemoryIsAFault) {
  const Stream s = make();
  const Address at = gpu.address_reserve(2_MiB, 0_B).value();
  const PageHandle page = gpu.page_create(2_MiB).value();
  EXPECT_TRUE(gpu.page_map(at, 2_MiB, page).is_ok());
  EXPECT_TRUE(kernel(s, at, 512_B).is_ok());
  sim.step(s);
  expect_fault(FaultKind::kTouchUnmapped, Blame::kCaller);
  EXPECT_TRUE(gpu.page_access(at, 2_MiB).is_ok());
  EXPECT_TRUE(kernel(s, at, 2_MiB).is_ok());
  sim.step(s);
  EXPECT_EQ(sim.fault_count(), 0u);
  EXPECT_TRUE(kernel(s, at + 512_B, 2_MiB).is_ok());
  sim.step(s);
  expect_fault(FaultKind::kTouchUnmapped, Blame::kCaller);
  EXPECT_TRUE(gpu.page_unmap(at, 2_MiB).is_ok());
  EXPECT_TRUE(gpu.page_map(at, 2_MiB, page).is_ok());
  EXPECT_TRUE(kernel(s, at, 1_B).is_ok());
  sim.step(s);
  expect_fault(FaultKind::kTouchUnmapped, Blame::kCaller);  // a new mapping has no access
}

TEST_F(SimMemory, FreeingUnderAKernelIsAFault) {
  const Stream s = make();
  const Address segment = gpu.segment_alloc(1_MiB).value();
  const Address page = mapped();
  EXPECT_TRUE(kernel(s, segment + 512_B, 512_B).is_ok());
  EXPECT_TRUE(kernel(s, page, 512_B).is_ok());
  EXPECT_TRUE(gpu.segment_free(segment).is_ok());
  expect_fault(FaultKind::kInFlight);
  sim.step(s);
  expect_fault(FaultKind::kTouchUnmapped, Blame::kCaller);
  EXPECT_TRUE(gpu.page_unmap(page, 2_MiB).is_ok());
  expect_fault(FaultKind::kInFlight);
  sim.step(s);
  expect_fault(FaultKind::kTouchUnmapped, Blame::kCaller);
}

TEST_F(SimMemory, PlannedFailuresHitTheNthCallOnceOrFromThenOn) {
  sim.fail(device::CallKind::kSegmentAlloc, 2, FailMode::kOnce);
  EXPECT_TRUE(gpu.segment_alloc(512_B).is_ok());
  EXPECT_EQ(gpu.segment_alloc(512_B).code(), Code::kOutOfMemory);
  EXPECT_TRUE(gpu.segment_alloc(512_B).is_ok());
  sim.fail(device::CallKind::kEventCreate, 1, FailMode::kOn);
  EXPECT_EQ(gpu.event_create().code(), Code::kDriverError);
  EXPECT_EQ(sim.device(1).event_create().code(), Code::kDriverError);
  sim.heal();
  EXPECT_TRUE(gpu.event_create().is_ok());
  EXPECT_EQ(sim.account().of(device::CallKind::kSegmentAlloc).failed, 1u);
  EXPECT_EQ(sim.account().of(device::CallKind::kEventCreate).calls, 3u);
}

TEST_F(SimMemory, ALostDeviceAndAnUnloadedDriverAnswerEveryCallWithThat) {
  const Stream s = make();
  EXPECT_TRUE(sim.launch_faulty(s).is_ok());
  EXPECT_TRUE(gpu.memory_info().is_ok());
  sim.step(s);
  EXPECT_EQ(gpu.memory_info().code(), Code::kDeviceLost);
  EXPECT_EQ(gpu.synchronize().code(), Code::kDeviceLost);
  EXPECT_EQ(kernel(s).code(), Code::kDeviceLost);
  EXPECT_TRUE(sim.device(1).memory_info().is_ok());
  sim.tear_down();
  EXPECT_EQ(sim.device(1).memory_info().code(), Code::kTornDown);
  expect_fault(FaultKind::kCallAfterTeardown);
}

TEST_F(SimMemory, LeaksAreListedByKind) {
  EXPECT_TRUE(sim.leak_check());
  static_cast<void>(mapped());
  EXPECT_TRUE(gpu.pinned_alloc(100_B).is_ok());
  EXPECT_TRUE(gpu.event_create().is_ok());
  EXPECT_FALSE(sim.leak_check());
  EXPECT_EQ(sim.take_faults().size(), 5u);  // reservation, page, mapping, event, pinned
  EXPECT_EQ(sim.held().size(), 4u);         // the page has no handle any more
}

TEST_F(SimMemory, TheCostModelIsChargedByTheCallAndTheStep) {
  static_cast<void>(mapped());
  const CostModel model;
  const CallAccount account = sim.account();
  EXPECT_EQ(account.of(device::CallKind::kPageCreate).ns, 193'000u);
  EXPECT_EQ(account.of(device::CallKind::kPageAccess).ns, 36'000u);
  EXPECT_EQ(account.of(device::CallKind::kPageMap).ns, 1'500u);
  EXPECT_EQ(model.of(device::CallKind::kPageCreate, 20_MiB), 1'930'000u);
  EXPECT_EQ(account.ns_max, 193'000u);
  EXPECT_EQ(account.step_ns, account.ns);
  sim.mark_step();
  EXPECT_EQ(sim.account().step_ns, 0u);
  EXPECT_EQ(sim.account().step_ns_max, account.ns);
}

// Ranges handed out are disjoint over devices and kinds, inside the address space, and aligned.
// Adversarial ones often come back at once, and often touch each other.
TEST(SimAddresses, AreDisjointAndComeBackAdversarially) {
  for (const bool adversarial : {false, true}) {
    SimGpu sim(SimGpuOptions{.capacities = {0_B, 0_B}, .seed = 5, .adversarial = adversarial});
    Random rng(9);
    struct Held {
      std::uint64_t size;
      std::int32_t device;
    };
    std::map<std::uint64_t, Held> held;
    std::uint64_t reused = 0;
    std::uint64_t touching = 0;
    std::uint64_t last_freed = 0;
    for (int i = 0; i < 4000; ++i) {
      if (!held.empty() && rng.below(2) == 0) {
        auto it = std::next(held.begin(), static_cast<std::ptrdiff_t>(rng.below(held.size())));
        ASSERT_TRUE(sim.device(it->second.device).segment_free(Address{it->first}).is_ok());
        last_freed = it->first;
        held.erase(it);
        continue;
      }
      const auto device = static_cast<std::int32_t>(rng.below(2));
      const std::uint64_t size = 1 + rng.below(std::uint64_t{1} << (9 + rng.below(16)));
      const std::uint64_t at = sim.device(device).segment_alloc(Bytes{size}).value().value();
      ASSERT_EQ(at % (adversarial ? 512u : 2u << 20), 0u);
      ASSERT_LE(at + size, std::uint64_t{1} << 47);
      const auto after = held.lower_bound(at);
      if (after != held.end()) {
        ASSERT_LE(at + size, after->first);
        if (after->first - (at + size) < 512) ++touching;
      }
      if (after != held.begin()) {
        const auto before = std::prev(after);
        ASSERT_LE(before->first + before->second.size, at);
        if (at - (before->first + before->second.size) < 512) ++touching;
      }
      if (at == last_freed) ++reused;
      held[at] = Held{size, device};
    }
    if (adversarial) {
      EXPECT_GT(reused, 100u);
      EXPECT_GT(touching, 200u);
    }
    EXPECT_EQ(sim.fault_count(), 0u);
  }
}

TEST(SimAddresses, AddressSpaceRunsOut) {
  SimGpu sim;
  EXPECT_EQ(sim.device().segment_alloc(Bytes{std::uint64_t{1} << 47}).code(), Code::kOutOfMemory);
  EXPECT_EQ(sim.device().address_reserve(Bytes{std::uint64_t{1} << 47}, 0_B).code(),
            Code::kOutOfAddresses);
  EXPECT_TRUE(sim.device().address_reserve(Bytes{std::uint64_t{1} << 46}, 0_B).is_ok());
  EXPECT_EQ(sim.device().address_reserve(Bytes{std::uint64_t{1} << 46}, 0_B).code(),
            Code::kOutOfAddresses);
}

TEST(SimAddresses, WithoutReuseEveryRangeIsAboveAllBefore) {
  for (const bool adversarial : {false, true}) {
    SimGpu sim(
        SimGpuOptions{.capacities = {0_B}, .adversarial = adversarial, .reuses_addresses = false});
    Address end;
    for (unsigned i = 0; i < 100; ++i) {
      const Result<Address> got = sim.device().segment_alloc(2_MiB);
      ASSERT_TRUE(got.is_ok());
      ASSERT_GE(got.value(), end);
      end = got.value() + 2_MiB;
      EXPECT_TRUE(i % 3 == 0 || sim.device().segment_free(got.value()).is_ok());
    }
  }
}

TEST(SimAddresses, AnAddressSeedGivesOtherAddresses) {
  const auto bases = [](std::uint64_t address_seed) {
    SimGpu sim(SimGpuOptions{.capacities = {0_B}, .address_seed = address_seed});
    std::vector<Address> got;
    for (unsigned i = 0; i < 20; ++i) {
      got.push_back(sim.device().segment_alloc(2_MiB).value());
      if (i % 2 == 0) {
        EXPECT_TRUE(sim.device().segment_free(got.back()).is_ok());
      }
    }
    return got;
  };
  EXPECT_EQ(bases(0), bases(0));
  EXPECT_NE(bases(0), bases(1));
}

}  // namespace
}  // namespace ashlar::spec
