// The allocators as std::pmr::memory_resource: the contract of do_allocate, and random workloads of containers beside
// the standard library's own pools.
//
// Imitates: containers of every sort that grow, shrink, are copied and swapped; threads; alignments up to a page and
// more; a full device.
// Does not prove: anything about GPUs; the memory is the host's.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/device/host_device.h>
#include <ashlar/interop/memory_resource.h>

#include "props/interop/random_containers.h"

namespace ashlar {
namespace {

struct StandardContainers {
  template <class T>
  using Vector = std::pmr::vector<T>;
  template <class T>
  using Deque = std::pmr::deque<T>;
  template <class T>
  using List = std::pmr::list<T>;
  template <class T>
  using Set = std::pmr::set<T>;
  template <class K, class V>
  using Map = std::pmr::map<K, V>;
  using String = std::pmr::string;
  using Resource = std::pmr::memory_resource;
  using Pool = std::pmr::unsynchronized_pool_resource;
  static constexpr bool kMovesStrings = true;
};

using interop::CachingResource;
using interop::PinnedResource;
using props::expect_equal_contents;

class MemoryResourceTest : public ::testing::Test {
 protected:
  explicit MemoryResourceTest(Bytes capacity = Bytes::max(), const cache::Config& config = {})
      : host_(DeviceId{0}, capacity) {
    device::Device* devices[] = {&host_};
    caching_ = cache::CachingAllocator::create(devices, config).value();
    pinned::PinnedConfig pinned_config;
    pinned_config.cache = config;
    pinned_ = pinned::PinnedAllocator::create(devices, pinned_config).value();
    stream_ = host_.identify(device::HostDevice::kDefaultStream).value();
  }
  ~MemoryResourceTest() override {
    for (const auto& [allocator, device] : {std::pair(caching_.get(), DeviceId{0}),
                                            std::pair(&pinned_->caching(), pinned_->device())})
      EXPECT_EQ(allocator->stats(device).value().allocated_bytes[0].current, 0u);
    caching_.reset();
    pinned_.reset();
    EXPECT_EQ(host_.ledger(), device::HostLedger{});
  }

  device::HostDevice host_;
  std::unique_ptr<cache::CachingAllocator> caching_;
  std::unique_ptr<pinned::PinnedAllocator> pinned_;
  Stream stream_;
};

TEST_F(MemoryResourceTest, EveryAlignmentIsKept) {
  CachingResource resource(*caching_, stream_);
  for (std::size_t alignment = 1; alignment <= (std::size_t{4} << 20); alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{70000}}) {
      void* const first = resource.allocate(bytes, alignment);
      void* const second = resource.allocate(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % alignment, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % alignment, 0u);
      std::memset(first, 1, bytes);
      std::memset(second, 2, bytes);
      EXPECT_EQ(static_cast<char*>(first)[bytes - 1], 1);
      resource.deallocate(first, bytes, alignment);
      resource.deallocate(second, bytes, alignment);
    }
  }
  EXPECT_EQ(resource.refused_frees(), 0u);
}

TEST_F(MemoryResourceTest, ZeroBytesHaveAnAddressOfTheirOwn) {
  PinnedResource resource(*pinned_);
  void* const first = resource.allocate(0);
  void* const second = resource.allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
  resource.deallocate(first, 0);
  resource.deallocate(second, 0);
}

TEST_F(MemoryResourceTest, WhatCannotBeAllocatedIsBadAlloc) {
  CachingResource resource(*caching_, stream_);
  EXPECT_THROW(static_cast<void>(resource.allocate(std::size_t{1} << 62)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(resource.allocate(~std::size_t{0} - 100, 4096)), std::bad_alloc);
}

TEST_F(MemoryResourceTest, AForeignPointerIsCountedAndHasNoEffect) {
  PinnedResource resource(*pinned_);
  int foreign = 0;
  resource.deallocate(&foreign, sizeof foreign, alignof(int));
  EXPECT_EQ(resource.refused_frees(), 1u);
}

TEST_F(MemoryResourceTest, AResourceEqualsItselfAlone) {
  const CachingResource first(*caching_, stream_), second(*caching_, stream_);
  const PinnedResource pinned(*pinned_);
  EXPECT_TRUE(first.is_equal(first));
  EXPECT_FALSE(first.is_equal(second));
  EXPECT_FALSE(first.is_equal(pinned));
  EXPECT_FALSE(pinned.is_equal(*std::pmr::new_delete_resource()));
}

class FullDeviceTest : public MemoryResourceTest {
 protected:
  FullDeviceTest() : MemoryResourceTest(64_MiB) {}
};

TEST_F(FullDeviceTest, AContainerThatDoesNotFitKeepsWhatItHas) {
  CachingResource resource(*caching_, stream_);
  std::pmr::vector<char> filled(std::size_t{40} << 20, 'x', &resource);
  EXPECT_THROW(filled.reserve(std::size_t{50} << 20), std::bad_alloc);
  EXPECT_EQ(filled.size(), std::size_t{40} << 20);
  EXPECT_EQ(filled.back(), 'x');
}

TEST_F(MemoryResourceTest, RandomContainersHoldWhatTheStandardsPoolsHold) {
  CachingResource caching(*caching_, stream_);
  PinnedResource pinned(*pinned_);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    expect_equal_contents<StandardContainers>(&caching, seed, 1000);
    expect_equal_contents<StandardContainers>(&pinned, seed, 1000);
    std::pmr::unsynchronized_pool_resource nodes(&caching);
    expect_equal_contents<StandardContainers>(&nodes, seed, 1000);
    std::pmr::monotonic_buffer_resource buffer(&pinned);
    expect_equal_contents<StandardContainers>(&buffer, seed, 1000);
  }
  EXPECT_EQ(caching.refused_frees() + pinned.refused_frees(), 0u);
  EXPECT_EQ(caching_->validate(), nullptr);
  EXPECT_EQ(pinned_->caching().validate(), nullptr);
}

TEST_F(MemoryResourceTest, ThreadsShareAResource) {
  CachingResource caching(*caching_, stream_);
  PinnedResource pinned(*pinned_);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      expect_equal_contents<StandardContainers>(&caching, 100 + t, 2000);
      expect_equal_contents<StandardContainers>(&pinned, 200 + t, 2000);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

cache::Config with_granule_of_16() {
  cache::Config config;
  config.granule = 16_B;
  return config;
}

class SmallGranuleTest : public MemoryResourceTest {
 protected:
  SmallGranuleTest() : MemoryResourceTest(Bytes::max(), with_granule_of_16()) {}
};

TEST_F(SmallGranuleTest, SmallNodesTakeSixteenBytesAndMore) {
  CachingResource resource(*caching_, stream_);
  std::pmr::list<std::uint64_t> list(&resource);
  for (std::uint64_t i = 0; i < 1000; ++i) list.push_back(i);
  EXPECT_EQ(caching_->stats(DeviceId{0}).value().allocated_bytes[0].current, 32'000u);
  expect_equal_contents<StandardContainers>(&resource, 7, 1000);
}

}  // namespace
}  // namespace ashlar
