// The host runs out of memory while page-locked memory is made: at each allocation of the library's in turn.
//
// Imitates: a host that refuses the n-th allocation of records, or has no pages.
// Does not prove: anything about several threads. This executable links host_memory/refusing_host.cc.
#include <gtest/gtest.h>

#include <utility>

#include <ashlar/device/host_device.h>
#include <ashlar/pinned/pinned_allocator.h>
#include <ashlar/pinned/touched_memory.h>

#include "props/host_memory/refusing_host.h"

namespace ashlar {
namespace {

using props::host;

TEST(PinnedRefusals, ARangeThatCannotBeNotedIsUnlockedAndNotHeld) {  // C13
  host = {};
  device::HostDevice device;
  device::Device* const through[] = {&device};
  pinned::PinnedSpace space(DeviceId{1}, through, {.capacity = 10_MiB});
  bool was_refused = false;
  // The device has records of its own: which of the allocations is the space's is found by trying.
  for (std::uint64_t at = 1; at < 100; ++at) {
    host = {.fail_at = at, .throws = true};
    const auto got = space.segment_alloc(8_MiB);
    const bool is_refused = host.refused != 0;
    host = {};
    if (got.is_ok()) {
      EXPECT_TRUE(space.segment_free(got.value()).is_ok());
      if (!is_refused) break;
      continue;
    }
    was_refused |= got.code() == Code::kHostOutOfMemory;
    EXPECT_EQ(device.ledger().pinned, 0u);
    EXPECT_EQ(space.memory_info().value().free, 10_MiB);
  }
  EXPECT_TRUE(was_refused);
  host = {};
}

TEST(PinnedRefusals, PagesThatCannotBeCommittedAreReleased) {
  host = {};
  for (const std::uint64_t at : {1u, 2u}) {  // the reservation, the commitment
    host = {.fail_at = at};
    EXPECT_EQ(pinned::map_touched(64_MiB, 2, pinned::kAnyNode).code(), Code::kOutOfMemory);
    EXPECT_EQ(host.refused, 1u);
    EXPECT_EQ(host.mapped_bytes, 0);
  }
  host = {};
}

TEST(PinnedRefusals, WhatIsNotRegisteredAnyMoreIsUnmapped) {
  host = {};
  device::HostDevice device;
  device::Device* const through[] = {&device};
  pinned::PinnedSpace space(DeviceId{1}, through, {.by = pinned::PinBy::kRegistration});
  const std::int64_t before = host.mapped_bytes;
  const auto got = space.segment_alloc(3_MiB);
  ASSERT_TRUE(got.is_ok());
  EXPECT_EQ(host.mapped_bytes, before + (4 << 20));
  EXPECT_TRUE(space.segment_free(got.value()).is_ok());
  EXPECT_EQ(host.mapped_bytes, before);
}

TEST(PinnedRefusals, AnAllocatorThatCannotBeMadeLeavesNothing) {
  device::HostDevice device;
  device::Device* const devices[] = {&device};
  pinned::PinnedConfig config;
  config.reap_ms = 1;
  config.reserve = 2_MiB;
  for (std::uint64_t at = 1; at < 1000; ++at) {
    host = {.fail_at = at, .throws = true};
    auto made = pinned::PinnedAllocator::create(devices, config);
    const bool is_refused = host.refused != 0;
    host = {};
    EXPECT_TRUE(made.is_ok() || made.code() == Code::kHostOutOfMemory)
        << at << ": " << made.status().why();
    if (made.is_ok()) std::move(made).value().reset();
    EXPECT_EQ(device.ledger().pinned, 0u) << at;
    if (!is_refused) return;
  }
  ADD_FAILURE() << "more allocations than expected";
}

}  // namespace
}  // namespace ashlar
