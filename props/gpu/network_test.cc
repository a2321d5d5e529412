// The simulated network card: registrations of ranges, and the library's cache of them by address.
//
// Imitates: a library that registers a buffer once and sends from its address for ever. Does not imitate: a
// card that goes on reading the old pages; here that is a fault.
#include "props/gpu/fixture.h"

namespace ashlar::spec {
namespace {

class SimNetworkTest : public SimTest {
 protected:
  /// 4 MiB of addresses with pages of 2 MiB under them.
  Address mapped() {
    const Address base = gpu.address_reserve(4_MiB, Bytes{}).value();
    for (const Bytes offset : {0_B, 2_MiB}) map(base + offset);
    return base;
  }
  void map(Address at) {
    EXPECT_TRUE(gpu.page_map(at, 2_MiB, gpu.page_create(2_MiB).value()).is_ok());
    EXPECT_TRUE(gpu.page_access(at, 2_MiB).is_ok());
  }
};

TEST_F(SimNetworkTest, ASendNeedsARegistrationOfItsRange) {
  const Address at = gpu.segment_alloc(1_MiB).value();
  EXPECT_EQ(sim.send(RegistrationId{1}, at, 1_KiB).code(), Code::kNotFound);
  const RegistrationId id = sim.register_range(kFirstDevice, at, 1_MiB).value();
  EXPECT_TRUE(sim.send(id, at + 512_KiB, 512_KiB).is_ok());
  EXPECT_EQ(sim.send(id, at + 512_KiB, 513_KiB).code(), Code::kInvalidArgument);
  EXPECT_TRUE(sim.deregister(id).is_ok());
  EXPECT_EQ(sim.deregister(id).code(), Code::kNotFound);
  EXPECT_EQ(sim.send(id, at, 1_KiB).code(), Code::kNotFound);
}

TEST_F(SimNetworkTest, WhatIsNotMemoryOfTheDeviceIsNotRegistered) {
  const Address base = gpu.address_reserve(2_MiB, Bytes{}).value();
  EXPECT_EQ(sim.register_range(kFirstDevice, base, 2_MiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(sim.register_range(kFirstDevice, mapped(), 0_B).code(), Code::kInvalidArgument);
}

TEST_F(SimNetworkTest, ASendThroughARegistrationWhosePageWasReplacedIsAFault) {
  const Address base = mapped();
  const RegistrationId both = sim.register_range(kFirstDevice, base, 4_MiB).value();
  const RegistrationId first = sim.register_range(kFirstDevice, base, 2_MiB).value();
  EXPECT_TRUE(gpu.page_unmap(base + 2_MiB, 2_MiB).is_ok());
  map(base + 2_MiB);
  EXPECT_TRUE(sim.send(first, base, 2_MiB).is_ok());
  EXPECT_EQ(sim.send(both, base, 1_MiB).code(), Code::kInvalidHandle) << "whatever part it sends";
  const std::vector<Fault> faults = sim.take_faults();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_STREQ(fault_name(faults[0].kind), "stale-registration");
  EXPECT_NE(faults[0].text.find("made before the memory at " +
                                std::to_string((base + 2_MiB).value()) + " went away"),
            std::string::npos)
      << faults[0].text;
}

TEST_F(SimNetworkTest, SoIsOneOfASegmentThatWasFreed) {
  const Address at = gpu.segment_alloc(1_MiB).value();
  const RegistrationId id = sim.register_range(kFirstDevice, at, 1_MiB).value();
  EXPECT_TRUE(gpu.segment_free(at).is_ok());
  EXPECT_EQ(sim.send(id, at, 1_MiB).code(), Code::kInvalidHandle);
  expect_fault(FaultKind::kStaleRegistration);
}

TEST_F(SimNetworkTest, TheCacheUsesARegistrationAgainUntilItIsDropped) {
  const Address base = mapped();
  RegistrationCache cache(sim);
  EXPECT_TRUE(cache.send(kFirstDevice, base, 4_MiB).is_ok());
  EXPECT_TRUE(cache.send(kFirstDevice, base + 2_MiB, 1_MiB).is_ok());
  EXPECT_EQ(cache.count(), 1u);
  EXPECT_TRUE(gpu.page_unmap(base + 2_MiB, 2_MiB).is_ok());
  map(base + 2_MiB);
  EXPECT_EQ(cache.send(kFirstDevice, base, 1_KiB).code(), Code::kInvalidHandle);
  expect_fault(FaultKind::kStaleRegistration);
  cache.drop(base + 3_MiB, 1_B);
  EXPECT_EQ(cache.count(), 0u);
  EXPECT_TRUE(cache.send(kFirstDevice, base, 1_KiB).is_ok());
}

TEST_F(SimNetworkTest, TheCacheKeepsANumberOfRegistrations) {
  RegistrationCache cache(sim);
  const Address at = gpu.segment_alloc(1_MiB).value();
  for (std::uint64_t i = 0; i < 2 * RegistrationCache::kEntriesMax; ++i)
    EXPECT_TRUE(cache.send(kFirstDevice, at + Bytes{i}, 1_B).is_ok());
  EXPECT_EQ(cache.count(), RegistrationCache::kEntriesMax);
}

}  // namespace
}  // namespace ashlar::spec
