// The caching allocator over real host memory, one caller: the rows DEV-1..5, 12, 16, 19, 20 as
// examples.
//
// Imitates: a framework's allocations on one stream, then two. Does not prove: anything about order
// (the host's events are done at once) or threads; the lockstep suites and the simulated GPU do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/host_device.h>

#include "props/adapters/in_segments.h"

namespace ashlar {
namespace {

class CachingAllocatorTest : public ::testing::Test {
 protected:
  CachingAllocatorTest() { make(props::config_in_segments()); }
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
  EXPECT_EQ(allocator_->info(a).value().stream.id, stream_.id) << "a user is no owner";
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
  make(props::config_in_segments("reuse:own"));
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

/// What goes back to the device to make room for 100 MiB under a limit that is reached. Requests of
/// 24 MiB or more are oversize: each has a segment of its own.
class MakingRoomTest : public CachingAllocatorTest {
 protected:
  MakingRoomTest() {
    cache::Config config;
    config.max_split_size = 24_MiB;
    make(config);
  }
  void hold_idle(Bytes size, const Stream& stream) {
    held_.push_back(allocator_->allocate(size, stream).value());
  }
  /// Frees what is held, and asks for 100 MiB more than there is room for. The sizes of the segments
  /// that are left, in MiB.
  std::multiset<std::uint64_t> left_after_the_request() {
    const Bytes reserved{stats().reserved_bytes[0].current};
    EXPECT_TRUE(allocator_->set_memory_limit(DeviceId{0}, reserved).is_ok());
    for (const Address address : held_) EXPECT_TRUE(allocator_->free(address).is_ok());
    const Address got = alloc(100_MiB);
    std::multiset<std::uint64_t> sizes;
    for (const cache::SnapshotSegment& segment : segments()) {
      if (segment.base != got) sizes.insert(segment.size / 1_MiB);
    }
    expect_valid();
    return sizes;
  }
  std::vector<cache::SnapshotSegment> segments() {
    cache::Snapshot snapshot;
    EXPECT_TRUE(allocator_->snapshot(DeviceId{0}, &snapshot).is_ok());
    return snapshot.segments;
  }
  std::vector<Address> held_;
};

using Sizes = std::multiset<std::uint64_t>;

TEST_F(MakingRoomTest, TheSmallestSegmentThatIsEnoughGoesBack) {
  for (const Bytes size : {400_MiB, 140_MiB, 900_MiB, 50_MiB}) hold_idle(size, stream_);
  EXPECT_EQ(left_after_the_request(), (Sizes{400, 900, 50}));
}

TEST_F(MakingRoomTest, TheAskingStreamsOwnGoesBeforeASmallerOneOfAnother) {
  hold_idle(130_MiB, other_);
  hold_idle(400_MiB, stream_);
  EXPECT_EQ(left_after_the_request(), (Sizes{130}));
}

TEST_F(MakingRoomTest, OfOtherStreamsTheSmallestOfAllGoesBack) {
  const Stream third = device_.create_stream().value();
  hold_idle(400_MiB, other_);
  hold_idle(200_MiB, other_);
  hold_idle(140_MiB, third);
  hold_idle(50_MiB, stream_);
  EXPECT_EQ(left_after_the_request(), (Sizes{400, 200, 50}));
}

TEST_F(MakingRoomTest, WhereNoneIsEnoughTheLargestGoFirst) {
  for (const Bytes size : {30_MiB, 60_MiB, 40_MiB, 50_MiB}) hold_idle(size, stream_);
  EXPECT_EQ(left_after_the_request(), (Sizes{30, 40}));
}

TEST_F(MakingRoomTest, MoreThanOneWalksWorthGoesBackWhereItIsNeeded) {
  for (unsigned i = 0; i < 50; ++i) hold_idle(20_MiB, other_);  // not oversize, and too small
  for (unsigned i = 0; i < 3; ++i) hold_idle(24_MiB, stream_);
  EXPECT_EQ(left_after_the_request().size(), 48u) << "three oversize ones, and two of the others";
}

TEST_F(MakingRoomTest, AnOversizeSegmentGoesBeforeASmallerOneThatIsNot) {
  hold_idle(20_MiB, stream_);
  hold_idle(400_MiB, stream_);
  EXPECT_EQ(left_after_the_request(), (Sizes{20}));
}

TEST_F(MakingRoomTest, OfEquallyLargeSegmentsTheOlderGoesBack) {
  for (unsigned i = 0; i < 4; ++i) hold_idle(140_MiB, stream_);
  static_cast<void>(left_after_the_request());
  std::vector<std::uint64_t> ordinals;
  for (const cache::SnapshotSegment& segment : segments()) ordinals.push_back(segment.ordinal);
  std::sort(ordinals.begin(), ordinals.end());
  EXPECT_EQ(ordinals, (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace ashlar
