// The caching allocator over real host memory, one caller: the rows DEV-1..5, 12, 16, 19, 20 as
// examples.
//
// Imitates: a framework's allocations on one stream, then two. Does not prove: anything about order
// (the host's events are done at once) or threads; the lockstep suites and the simulated GPU do.
#include <gtest/gtest.h>

#include <cstring>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/host_device.h>

namespace ashlar {
namespace {

class CachingAllocatorTest : public ::testing::Test {
 protected:
  CachingAllocatorTest() { make(cache::Config{}); }
  void make(const cache::Config& config) {
    allocator_.reset();
    device::Device* devices[] = {&device_};
    auto made = cache::CachingAllocator::create(devices, config);
    ASSERT_TRUE(made.is_ok()) << made.status().why();
    allocator_ = std::move(made).value();
    stream_ = device_.create_stream().value();
    other_ = device_.create_stream().value();
  }
  Address alloc(Bytes size) {
    const auto result = allocator_->allocate(size, stream_);
    EXPECT_TRUE(result.is_ok()) << result.status().why();
    return result.value_or(Address{});
  }
  void expect_valid() { EXPECT_EQ(allocator_->validate(), nullptr) << allocator_->validate(); }
  cache::DeviceStats stats() { return allocator_->stats(DeviceId{0}).value(); }

  device::HostDevice device_{DeviceId{0}};
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream stream_;
  Stream other_;
};

TEST_F(CachingAllocatorTest, FreedMemoryIsGivenOutAgainWithoutADeviceCall) {
  const Address first = alloc(1_MiB);
  ASSERT_FALSE(first.is_null());
  std::memset(first.pointer(), 1, (1_MiB).count());
  EXPECT_TRUE(allocator_->free(first).is_ok());
  EXPECT_EQ(alloc(1_MiB), first);
  EXPECT_EQ(stats().device_calls[static_cast<unsigned>(device::CallKind::kSegmentAlloc)], 1u);
  expect_valid();
}

TEST_F(CachingAllocatorTest, SegmentsHaveTheSizesOfTheTable) {
  alloc(1_B);
  EXPECT_EQ(stats().reserved_bytes[0].current, (2_MiB).count());
  alloc(1_MiB + 1_B);
  EXPECT_EQ(stats().reserved_bytes[0].current, (22_MiB).count());
  alloc(20_MiB);
  EXPECT_EQ(stats().reserved_bytes[0].current, (42_MiB).count());
  alloc(21_MiB + 1_B);
  EXPECT_EQ(stats().reserved_bytes[0].current, (64_MiB).count());
  EXPECT_EQ(stats().segments[1].current, 1u);
  EXPECT_EQ(stats().segments[2].current, 3u);
  expect_valid();
}

TEST_F(CachingAllocatorTest, FreedNeighboursCoalesce) {
  const Address a = alloc(512_KiB);
  const Address b = alloc(512_KiB);
  const Address c = alloc(512_KiB);
  EXPECT_EQ(b - a, 512_KiB);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_TRUE(allocator_->free(c).is_ok());
  EXPECT_TRUE(allocator_->free(b).is_ok());
  EXPECT_EQ(allocator_->largest_free_block(stream_).value(), 2_MiB);
  EXPECT_EQ(stats().inactive_splits[0].current, 0u);
  expect_valid();
}

TEST_F(CachingAllocatorTest, FreeSplitsAreCountedWhereTheyArise) {
  const auto expect_totals = [this](std::uint64_t blocks, Bytes bytes) {
    for (const unsigned pool : {0u, 1u}) {
      const cache::DeviceStats now = stats();
      EXPECT_EQ(now.inactive_splits[pool].increased, blocks);
      EXPECT_EQ(now.inactive_split_bytes[pool].increased, bytes.count());
    }
  };
  Address four[4];
  for (Address& address : four) address = alloc(512_KiB);
  expect_totals(1, 1536_KiB);  // the rest of an idle segment; cut smaller, it grows no more
  EXPECT_TRUE(allocator_->free(four[0]).is_ok());
  expect_totals(2, 2_MiB);
  EXPECT_TRUE(allocator_->free(four[2]).is_ok());
  expect_totals(3, 2560_KiB);
  EXPECT_TRUE(allocator_->free(four[1]).is_ok());  // merges with both neighbours
  expect_totals(3, 3_MiB);
  EXPECT_EQ(stats().inactive_splits[0].peak, 2u);
  EXPECT_TRUE(allocator_->free(four[3]).is_ok());  // an idle segment is no split
  expect_totals(3, 3_MiB);
  EXPECT_EQ(stats().inactive_splits[0].decreased, 3u);
  const Address a = alloc(512_KiB);
  const Address b = alloc(512_KiB);
  EXPECT_TRUE(allocator_->reset_accumulated_stats(DeviceId{0}).is_ok());
  EXPECT_TRUE(allocator_->free(b).is_ok());  // merges with the rest
  expect_totals(0, 512_KiB);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  expect_totals(0, 512_KiB);
}

TEST_F(CachingAllocatorTest, MisuseIsATypedErrorAndChangesNothing) {
  const Address a = alloc(4_KiB);
  EXPECT_EQ(allocator_->free(a + 512_B).code(), Code::kUnknownPointer);
  EXPECT_EQ(allocator_->free(Address{0x1234000}).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_EQ(allocator_->free(a).code(), Code::kUnknownPointer);
  EXPECT_EQ(allocator_->record_use(a, other_).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator_->free(Address{}).is_ok());
  EXPECT_EQ(allocator_->allocate(Bytes::max(), stream_).code(), Code::kSizeOverflow);
  EXPECT_EQ(allocator_->allocate(cache::kRequestBytesMax + 1_B, stream_).code(),
            Code::kSizeOverflow);
  EXPECT_EQ(allocator_->allocate(0_B, stream_).value(), Address{});
  EXPECT_EQ(allocator_->allocate(1_B, Stream{{}, {}, DeviceId{7}, false}).code(),
            Code::kInvalidArgument);
  expect_valid();
}

TEST_F(CachingAllocatorTest, MemoryUsedOnAnotherStreamComesBackAfterItsEvent) {
  const Address a = alloc(4_KiB);
  EXPECT_TRUE(allocator_->record_use(a, other_).is_ok());
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_EQ(allocator_->free(a).code(), Code::kDoubleFree);
  EXPECT_EQ(stats().active[0].current, 1u);
  EXPECT_EQ(stats().allocations[0].current, 0u);
  EXPECT_EQ(alloc(4_KiB), a);
  const Address b = alloc(4_KiB);
  EXPECT_TRUE(allocator_->free(b, other_).is_ok());
  EXPECT_EQ(alloc(4_KiB), b);
  expect_valid();
}

TEST_F(CachingAllocatorTest, AnotherStreamsIdleMemoryIsWithinReach) {
  const Address whole = alloc(30_MiB);
  EXPECT_TRUE(allocator_->free(whole).is_ok());
  EXPECT_EQ(allocator_->allocate(30_MiB, other_).value(), whole);
  EXPECT_EQ(stats().steals, 1u);
  const Address kept = alloc(1_KiB);
  const Address lent = allocator_->allocate(1_KiB, other_).value();
  EXPECT_EQ(lent - kept, 1_KiB);
  EXPECT_EQ(allocator_->info(lent).value().stream, other_);
  EXPECT_TRUE(allocator_->free(lent).is_ok());
  expect_valid();
}

TEST_F(CachingAllocatorTest, TrimGivesEverythingIdleBack) {
  const Address a = alloc(4_KiB);
  const Address b = alloc(64_MiB);
  EXPECT_TRUE(allocator_->free(b).is_ok());
  EXPECT_TRUE(allocator_->trim(DeviceId{0}).is_ok());
  EXPECT_EQ(stats().reserved_bytes[0].current, (2_MiB).count());
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_TRUE(allocator_->trim(DeviceId{0}).is_ok());
  EXPECT_EQ(stats().reserved_bytes[0].current, 0u);
  expect_valid();
}

TEST_F(CachingAllocatorTest, TheMemoryLimitIsExactAndTheFailureSaysEverything) {
  EXPECT_TRUE(allocator_->set_memory_limit(DeviceId{0}, 40_MiB).is_ok());
  const Address a = alloc(20_MiB);
  const Address b = alloc(20_MiB);
  cache::OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(1_B, stream_, &account).code(), Code::kOutOfMemory);
  EXPECT_EQ(account.reserved, 40_MiB);
  EXPECT_EQ(account.allocated, 40_MiB);
  EXPECT_EQ(account.segment, 2_MiB);
  EXPECT_EQ(account.limit, 40_MiB);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_FALSE(alloc(1_B).is_null());  // gives one idle segment back to stay under the limit
  EXPECT_EQ(stats().reserved_bytes[0].current, (22_MiB).count());
  EXPECT_TRUE(allocator_->free(b).is_ok());
  expect_valid();
}

TEST_F(CachingAllocatorTest, TheAccountTellsWhatIsFreeFromWhatIsInReach) {
  cache::Config config;
  config.reuse = cache::Reuse::kOwn;
  make(config);
  EXPECT_TRUE(allocator_->set_memory_limit(DeviceId{0}, 64_MiB).is_ok());
  const Address whole = alloc(60_MiB);
  EXPECT_TRUE(allocator_->free(whole).is_ok());
  alloc(4_MiB);
  cache::OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(40_MiB, other_, &account).code(), Code::kOutOfMemory);
  EXPECT_EQ(account.largest_free, 56_MiB);
  EXPECT_EQ(account.largest_reachable, 0_B);
  EXPECT_EQ(account.fits_elsewhere, 56_MiB);
  EXPECT_DOUBLE_EQ(account.fragmentation(), 0);
  EXPECT_NE(account.message().find("let streams share it (reuse:completed)"), std::string::npos);
  EXPECT_EQ(account.message().find("max_split_size_mb"), std::string::npos);
  EXPECT_EQ(allocator_->largest_free_block(other_).value(), 0_B);
  EXPECT_EQ(allocator_->largest_free_block(stream_).value(), 56_MiB);
  expect_valid();
}

TEST_F(CachingAllocatorTest, ObserversMayFreeAndQueryButNotAllocate) {
  EXPECT_TRUE(allocator_->set_memory_limit(DeviceId{0}, 20_MiB).is_ok());
  const Address held = alloc(15_MiB);
  Code inside = Code::kOk;
  allocator_->add_free_memory_callback([&](DeviceId) {
    inside = allocator_->allocate(1_B, stream_).code();
    EXPECT_TRUE(allocator_->stats(DeviceId{0}).is_ok());
    EXPECT_TRUE(allocator_->free(held).is_ok());
  });
  EXPECT_FALSE(alloc(15_MiB).is_null());
  EXPECT_EQ(inside, Code::kReentrant);
  EXPECT_FALSE(allocator_->allocate(0_B, stream_).value_or(Address{1}) == Address{1});
  expect_valid();
}

TEST_F(CachingAllocatorTest, ARetiredStreamsMemoryServesOthers) {
  const Address a = alloc(64_MiB);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_TRUE(allocator_->retire_stream(stream_).is_ok());
  EXPECT_TRUE(device_.destroy_stream(stream_.handle).is_ok());
  EXPECT_EQ(allocator_->allocate(1_B, stream_).code(), Code::kInvalidHandle);
  EXPECT_EQ(allocator_->allocate(64_MiB, other_).value(), a);
  expect_valid();
}

TEST_F(CachingAllocatorTest, OversizeBlocksAreKeptWholeUnderMaxSplitSize) {
  cache::Config config;
  config.max_split_size = 32_MiB;
  make(config);
  const Address big = alloc(64_MiB);
  EXPECT_TRUE(allocator_->free(big).is_ok());
  EXPECT_NE(alloc(12_MiB), big);  // a smaller request never takes an oversize block
  EXPECT_EQ(alloc(50_MiB), big);  // one close to its size does, whole
  EXPECT_EQ(stats().oversize_allocations.current, 1u);
  EXPECT_EQ(stats().oversize_segments.current, 1u);
  EXPECT_EQ(stats().allocated_bytes[0].current, (64_MiB + 12_MiB).count());
  expect_valid();
}

}  // namespace
}  // namespace ashlar
