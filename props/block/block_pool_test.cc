// The block pool by itself: each promise of its header in a minimal case.
//
// Does not prove: behaviour over long or random sequences (the lockstep suites), or that validate()
// detects damage (block_pool_validate_test).
#include <ashlar/block/block_pool.h>

#include <vector>

#include <gtest/gtest.h>

#include <ashlar/block/unmapped_ranges.h>

#include "props/block/by_address.h"

#include <ashlar/base/checked.h>

namespace ashlar::block {
namespace {

class BlockPoolTest : public ::testing::Test {
 protected:
  BlockIndex alloc(Bytes size, Bytes requested = Bytes{}) {
    const BlockIndex fit = pool_.best_fit(size, Bytes::max());
    if (fit == kNoBlock) return kNoBlock;
    return pool_.take(fit, size, true, requested == Bytes{} ? size : requested, 7);
  }
  void TearDown() override { EXPECT_STREQ(pool_.validate(), nullptr); }

  BlockPool pool_{512_B};
};

TEST_F(BlockPoolTest, AnEmptyPoolFitsNothingAndFindsNothing) {
  EXPECT_EQ(pool_.best_fit(512_B, Bytes::max()), kNoBlock);
  EXPECT_EQ(pool_.find(kBase), kNoBlock);
  EXPECT_EQ(pool_.largest_free(), 0_B);
  EXPECT_EQ(pool_.first_segment(), kNoSegment);
}

TEST_F(BlockPoolTest, ASplitHandsOutTheFrontAndLeavesTheRestFree) {
  add_by_address(pool_, kBase, 2_MiB, 5, 1);
  const BlockIndex a = alloc(1_KiB, 1000_B);
  EXPECT_EQ(pool_.address(a), kBase);
  EXPECT_EQ(pool_.size(a), 1_KiB);
  EXPECT_EQ(pool_.view(a).requested, 1000_B);
  EXPECT_EQ(pool_.user(a), 7u);
  EXPECT_EQ(pool_.find(kBase), a);
  const BlockView rest = pool_.view(pool_.next(a));
  EXPECT_EQ(rest.state, BlockState::kFree);
  EXPECT_EQ(rest.address, kBase + 1_KiB);
  EXPECT_EQ(rest.size, 2_MiB - 1_KiB);
  EXPECT_EQ(rest.stamp, 5u) << "a split copies the stamp to both parts";
  EXPECT_EQ(pool_.find(rest.address), kNoBlock) << "find() returns only live and pending blocks";
}

TEST_F(BlockPoolTest, WithoutSplitTheWholeBlockIsHandedOut) {
  add_by_address(pool_, kBase, 2_MiB, 0, 0);
  const BlockIndex a = pool_.take(pool_.best_fit(512_B, Bytes::max()), 512_B, false, 500_B, 0);
  EXPECT_EQ(pool_.size(a), 2_MiB);
  EXPECT_EQ(pool_.counts().blocks[0], 0u);
}

TEST_F(BlockPoolTest, AFreedBlockMergesWithBothNeighbours) {
  const SegmentIndex s = add_by_address(pool_, kBase, 2_MiB, 0, 0);
  const BlockIndex a = alloc(512_B);
  const BlockIndex b = alloc(512_B);
  const BlockIndex c = alloc(512_B);
  pool_.release(a, 3);
  pool_.release(c, 9);
  EXPECT_EQ(pool_.counts().blocks[0], 2u);
  EXPECT_FALSE(pool_.is_idle(s));
  const BlockIndex whole = pool_.release(b, 4);
  EXPECT_EQ(pool_.size(whole), 2_MiB);
  EXPECT_EQ(pool_.view(whole).stamp, 9u) << "a merge takes the later stamp";
  EXPECT_TRUE(pool_.is_idle(s));
  EXPECT_EQ(pool_.counts().idle_bytes, 2_MiB);
}

TEST_F(BlockPoolTest, AMergeTakesTheLaterStampOfEitherNeighbour) {
  add_by_address(pool_, kBase, 2_MiB, 0, 0);
  const BlockIndex a = alloc(512_B);
  const BlockIndex b = alloc(512_B);
  alloc(512_B);
  pool_.release(a, 9);
  EXPECT_EQ(pool_.view(pool_.release(b, 4)).stamp, 9u) << "the one before";
}

TEST_F(BlockPoolTest, ABlocksSegmentIsFoundWhateverTheOrderInWhichSegmentsWereAdded) {
  const Bytes gaps[] = {8_MiB, 0_B, 16_MiB, 4_MiB, 12_MiB};
  std::vector<SegmentIndex> segments;
  for (const Bytes gap : gaps) segments.push_back(add_by_address(pool_, kBase + gap, 2_MiB, 0, 0));
  for (const SegmentIndex segment : segments)
    EXPECT_EQ(pool_.segment(pool_.view(segment).first), segment);
  const BlockIndex low = alloc(512_B);
  EXPECT_EQ(pool_.segment(pool_.next(low)), segments[1])
      << "a block that is not the first of its segment";
  EXPECT_STREQ(pool_.validate(), nullptr);
  pool_.lift(pool_.view(segments[3]).first);
  pool_.remove_segment(segments[3]);
  EXPECT_EQ(pool_.segment(pool_.view(segments[0]).first), segments[0]);
}

TEST_F(BlockPoolTest, TheRangeOfASegmentInTransferMayBelongToANewSegment) {
  // One thread has returned a segment to the driver but not removed it yet; the driver gives the
  // range to another thread, which adds it.
  const SegmentIndex below = add_by_address(pool_, kBase - 2_MiB, 2_MiB, 0, 0);
  const SegmentIndex old = add_by_address(pool_, kBase, 4_MiB, 0, 0);
  const BlockIndex gone = pool_.view(old).first;
  pool_.lift(gone);
  const SegmentIndex again = add_by_address(pool_, kBase, 4_MiB, 0, 0);
  EXPECT_STREQ(pool_.validate(), nullptr);
  EXPECT_EQ(pool_.segment(gone), old);
  EXPECT_EQ(pool_.segment(pool_.view(again).first), again);
  EXPECT_EQ(pool_.segment(pool_.view(below).first), below);
  pool_.lift(pool_.view(again).first);
  pool_.release(gone, 0);
  EXPECT_STREQ(pool_.validate(), nullptr);
  EXPECT_EQ(pool_.segment(gone), old);
  EXPECT_EQ(pool_.segment(pool_.view(again).first), again);
  pool_.remove_segment(again);
  const SegmentIndex lent =
      add_by_address(pool_, kBase + 8_MiB, 2_MiB, 0, 0, BlockState::kInTransfer);
  EXPECT_EQ(pool_.segment(pool_.view(lent).first), lent);
}

TEST_F(BlockPoolTest, ABlockIsWholeExactlyWhenItHasNoNeighbours) {
  add_by_address(pool_, kBase, 2_MiB, 0, 0);
  const BlockIndex other = pool_.view(add_by_address(pool_, kBase + 4_MiB, 1_MiB, 0, 0)).first;
  EXPECT_TRUE(pool_.is_whole(other));
  const BlockIndex low = pool_.take(other, 512_B, true, 512_B, 0);
  EXPECT_FALSE(pool_.is_whole(low));
  EXPECT_FALSE(pool_.is_whole(pool_.next(low)));
  const BlockIndex middle = pool_.take(pool_.next(low), 512_B, true, 512_B, 0);
  EXPECT_FALSE(pool_.is_whole(middle));
  pool_.release(low, 0);
  // The links of the merged block's neighbours were written to the null sentinel.
  EXPECT_TRUE(pool_.is_whole(pool_.release(middle, 0)));
}

TEST_F(BlockPoolTest, AdjacentSegmentsDoNotMerge) {
  add_by_address(pool_, kBase, 1_MiB, 0, 0);
  add_by_address(pool_, kBase + 1_MiB, 1_MiB, 0, 0);
  EXPECT_EQ(pool_.best_fit(1_MiB + 512_B, Bytes::max()), kNoBlock);
  pool_.release(alloc(1_MiB), 0);
  EXPECT_EQ(pool_.largest_free(), 1_MiB);
  EXPECT_EQ(pool_.counts().idle_segments, 2u);
}

TEST_F(BlockPoolTest, TheSmallestBlockThatFitsIsTakenAndTheLowestAmongEquals) {
  for (unsigned i = 0; i < 4; ++i) {
    const Bytes size = i % 2 == 0 ? 8_KiB : 4_KiB;
    add_by_address(pool_, kBase + Bytes{(3 - i) * 0x100000u}, size, 0, 0);
  }
  EXPECT_EQ(pool_.address(alloc(3_KiB)), kBase);
  EXPECT_EQ(pool_.address(alloc(4_KiB)), kBase + 2_MiB);
  EXPECT_EQ(pool_.address(alloc(4_KiB)), kBase + 1_MiB)
      << "only the larger blocks are left; the lower one is taken first";
}

TEST_F(BlockPoolTest, OfEqualBlocksThatOfTheLowestPositionIsTakenWhateverItsAddress) {
  // C10. Positions rise where addresses fall. The front of each segment is taken, so that no free
  // block is a whole segment.
  constexpr unsigned kSegments = 30;
  for (unsigned i = 0; i < kSegments; ++i) {
    pool_.add_segment(kBase - 1_MiB * i, 12_KiB, Position{i * (12_KiB).count()}, 0, 0);
    const BlockIndex front = pool_.best_fit(12_KiB, Bytes::max());
    pool_.take(front, 4_KiB, true, 4_KiB, 0);
  }
  ASSERT_STREQ(pool_.validate(), nullptr);
  BlockIndex walked = pool_.best_fit(512_B, Bytes::max());
  for (unsigned i = 0; i < kSegments; ++i) {
    ASSERT_NE(walked, kNoBlock);
    EXPECT_EQ(pool_.address(walked), kBase - 1_MiB * i + 4_KiB);
    const BlockView view = pool_.view(walked);
    EXPECT_EQ(raw(view.position), (12_KiB).count() * i + (4_KiB).count());
    EXPECT_EQ(pool_.next_fit(view.size, view.position), pool_.next_fit(walked));
    walked = pool_.next_fit(walked);
  }
  EXPECT_EQ(walked, kNoBlock);
  for (unsigned i = 0; i < kSegments; ++i)
    EXPECT_EQ(pool_.address(alloc(8_KiB)), kBase - 1_MiB * i + 4_KiB);
}

TEST_F(BlockPoolTest, BestFitSkipsBlocksAtOrAboveItsSizeLimit) {
  add_by_address(pool_, kBase, 2_MiB, 0, 0);
  EXPECT_EQ(pool_.best_fit(512_B, 2_MiB), kNoBlock) << "the end of the range is not included";
  EXPECT_NE(pool_.best_fit(512_B, 2_MiB + 1_B), kNoBlock);
}

TEST_F(BlockPoolTest, NextFitWalksTheFreeBlocksBySizeThenAddress) {
  const Bytes sizes[] = {64_KiB, 4_KiB, 4_KiB, 1_MiB, 512_B, 33_KiB, 65_KiB};
  for (unsigned i = 0; i < 7; ++i)
    add_by_address(pool_, kBase + Bytes{i * 0x1000000u}, sizes[i], 0, 0);
  Bytes before;
  Address lowest;
  unsigned count = 0;
  for (BlockIndex b = pool_.best_fit(512_B, Bytes::max()); b != kNoBlock; b = pool_.next_fit(b)) {
    EXPECT_TRUE(pool_.size(b) > before || (pool_.size(b) == before && pool_.address(b) > lowest));
    before = pool_.size(b);
    lowest = pool_.address(b);
    count += 1;
  }
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(before, pool_.largest_free());
}

TEST_F(BlockPoolTest, APendingBlockIsNeitherFreeNorMerged) {
  add_by_address(pool_, kBase, 2_MiB, 0, 0);
  const BlockIndex a = alloc(512_B);
  pool_.defer(a);
  EXPECT_EQ(pool_.state(a), BlockState::kPending);
  EXPECT_EQ(pool_.find(kBase), a);
  EXPECT_EQ(pool_.counts().bytes[static_cast<unsigned>(BlockState::kPending)], 512_B);
  EXPECT_EQ(pool_.address(alloc(512_B)), kBase + 512_B);
  pool_.undefer(a);
  EXPECT_EQ(pool_.state(a), BlockState::kLive);
  pool_.defer(a);
  pool_.release(a, 1);
  EXPECT_EQ(pool_.find(kBase), kNoBlock);
}

TEST_F(BlockPoolTest, AnUnmappedBlockIsFoundByNoSearchUntilMemoryIsMappedThere) {
  UnmappedRanges ranges(pool_);
  EXPECT_EQ(ranges.smallest(512_B), kNoBlock) << "a pool without such segments";
  const SegmentIndex s = ranges.add_segment(kBase, 8_MiB, Position{0}, 7);
  const BlockIndex whole = pool_.view(s).first;
  EXPECT_EQ(pool_.best_fit(512_B, Bytes::max()), kNoBlock);
  EXPECT_EQ(ranges.smallest(8_MiB), whole);
  EXPECT_EQ(pool_.counts().bytes[4], 8_MiB);

  ranges.lift(whole);
  EXPECT_EQ(ranges.smallest(512_B), kNoBlock);
  const BlockIndex mapped = pool_.divide(whole, 2_MiB);
  const BlockIndex above = pool_.divide(mapped, 2_MiB);
  ranges.unmap(above);
  ranges.unmap(whole);
  EXPECT_EQ(pool_.release(mapped, 3), mapped) << "it merges with no unmapped neighbour";
  EXPECT_EQ(pool_.best_fit(2_MiB, Bytes::max()), mapped);
  EXPECT_EQ(ranges.before(mapped), whole);
  EXPECT_EQ(ranges.smallest(512_B), whole) << "2 MiB below it, 4 MiB above";
  EXPECT_EQ(ranges.next(2_MiB, Position{0}), above);
  EXPECT_EQ(pool_.validate(), nullptr);

  pool_.lift(mapped);
  EXPECT_EQ(ranges.unmap(mapped), whole) << "it merges with both neighbours";
  EXPECT_EQ(pool_.view(whole).size, 8_MiB);
  EXPECT_EQ(pool_.view(whole).stamp, 0u);
  EXPECT_EQ(pool_.validate(), nullptr);
}

TEST_F(BlockPoolTest, ABlockInTransferIsFoundByNoSearchUntilItIsReleased) {
  const SegmentIndex s = add_by_address(pool_, kBase, 2_MiB, 8, 0, BlockState::kInTransfer);
  EXPECT_EQ(pool_.best_fit(512_B, Bytes::max()), kNoBlock);
  EXPECT_EQ(pool_.find(kBase), kNoBlock);
  EXPECT_EQ(pool_.view(pool_.view(s).first).stamp, 8u);
  EXPECT_FALSE(pool_.is_idle(s));
  pool_.release(pool_.view(s).first, 9);
  EXPECT_TRUE(pool_.is_idle(s));
  EXPECT_NE(alloc(512_B), kNoBlock);
}

TEST_F(BlockPoolTest, ASegmentLiftedWholeCanBeRemoved) {
  add_by_address(pool_, kBase, 2_MiB, 0, 3);
  const SegmentIndex s = add_by_address(pool_, kBase + 4_MiB, 2_MiB, 0, 4);
  add_by_address(pool_, kBase + 8_MiB, 2_MiB, 0, 5);
  EXPECT_EQ(pool_.view(s).user, 4u);
  pool_.set_user(s, 44);
  EXPECT_EQ(pool_.view(s).user, 44u);
  pool_.lift(pool_.view(s).first);
  pool_.remove_segment(s);
  EXPECT_EQ(pool_.counts().segments, 2u);
  EXPECT_EQ(pool_.counts().segment_bytes, 4_MiB);
  for (SegmentIndex i = pool_.first_segment(); i != kNoSegment; i = pool_.next(i)) {
    EXPECT_NE(pool_.view(i).base, kBase + 4_MiB);
    pool_.lift(pool_.view(i).first);
  }
  pool_.remove_segment(pool_.first_segment());
  pool_.remove_segment(pool_.first_segment());
  EXPECT_EQ(pool_.counts().segments, 0u);
}

TEST_F(BlockPoolTest, TheUserWordCanBeChangedWhileABlockIsOwned) {
  add_by_address(pool_, kBase, 2_MiB, 0, 0);
  const BlockIndex a = alloc(512_B, 500_B);
  pool_.set_user(a, 99);
  EXPECT_EQ(pool_.user(a), 99u);
  EXPECT_EQ(pool_.view(a).requested, 500_B);
  const BlockIndex merged = pool_.release(a, 0);
  EXPECT_EQ(pool_.user(merged), 0u);
  EXPECT_EQ(pool_.view(merged).requested, 0_B);
  EXPECT_EQ(pool_.segment(merged), pool_.first_segment());
  EXPECT_EQ(pool_.granule(), 512_B);
}

TEST_F(BlockPoolTest, AUserWordSurvivesGrowthAndEndsWithItsBlock) {
  add_by_address(pool_, kBase, 2_MiB, 0, 0);
  constexpr std::uint64_t kBlocks = 1000;  // many more than the slab's first capacity, so it grows
  std::vector<BlockIndex> blocks;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const BlockIndex fit = pool_.best_fit(512_B, Bytes::max());
    blocks.push_back(pool_.take(fit, 512_B, true, 512_B, i % 2 == 0 ? 0 : ~i));
  }
  for (std::uint64_t i = 0; i < kBlocks; ++i)
    EXPECT_EQ(pool_.user(blocks[i]), i % 2 == 0 ? 0 : ~i) << i;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    pool_.release(blocks[i], 0);
    blocks[i] = pool_.take(pool_.best_fit(512_B, Bytes::max()), 512_B, true, 512_B, 0);
    EXPECT_EQ(pool_.user(blocks[i]), 0u) << i;
    EXPECT_EQ(pool_.view(blocks[i]).user, 0u) << i;
    pool_.set_user(blocks[i], i + 1);
    pool_.set_user(blocks[i], 0);
    EXPECT_EQ(pool_.user(blocks[i]), 0u) << i;
  }
}

TEST(BlockPoolSizes, InALargeAddressMapFindReturnsEveryBlockAndNothingElse) {
  // With more than 4,096 blocks the map grows only when it has as many entries as cells, so that
  // some chains are longer than one entry.
  constexpr std::uint64_t kBlocks = 60000;
  BlockPool pool{512_B};
  add_by_address(pool, kBase, 512_B * (2 * kBlocks), 0, 0);
  std::vector<BlockIndex> blocks;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(pool.take(pool.best_fit(1_KiB, Bytes::max()), 1_KiB, true, 1000_B, 0));
  }
  EXPECT_STREQ(pool.validate(), nullptr);
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(pool.find(kBase + 1_KiB * i), blocks[i]);
    ASSERT_EQ(pool.find(kBase + 1_KiB * i + 512_B), kNoBlock);
  }
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t mixed = i * 7919 % kBlocks;  // 7919 is prime, so each block is freed once
    pool.release(blocks[mixed], 0);
    ASSERT_EQ(pool.find(kBase + 1_KiB * mixed), kNoBlock);
    if (i % 10000 == 0) {
      ASSERT_STREQ(pool.validate(), nullptr);
    }
  }
  EXPECT_EQ(pool.counts().idle_segments, 1u);
}

TEST(BlockPoolSizes, TheLargestSegmentsAndTheHighestAddressesWork) {
  // H31: an index computed from a size must stay inside its table, whatever the size.
  for (const Bytes granule : {16_B, 512_B, 64_KiB}) {
    BlockPool pool{granule};
    const Bytes huge{std::uint64_t{1} << 57};
    add_by_address(pool, Address{huge.count()}, huge, 0, 0);
    add_by_address(pool, Address{huge.count() * 4}, huge * 16, 0, 0);
    add_by_address(pool, Address{Bytes::max().count() - granule.count() * 2 + 1}, granule, 0, 0);
    EXPECT_STREQ(pool.validate(), nullptr);
    EXPECT_EQ(pool.largest_free(), huge * 16);
    const BlockIndex all = pool.best_fit(huge, Bytes::max());
    EXPECT_EQ(pool.size(all), huge);
    EXPECT_EQ(pool.best_fit(round_down(Bytes::max(), granule), Bytes::max()), kNoBlock);
    pool.take(all, huge - granule, true, 1_B, 0);
    EXPECT_STREQ(pool.validate(), nullptr);
  }
}

}  // namespace
}  // namespace ashlar::block
