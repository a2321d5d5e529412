// The pool's assertions: an operation on a block, a segment or a size that it may not have is stopped
// at once, with the invariant that it would break.
//
// Imitates: mistakes of the pool's owner. Does not prove that the caching allocator makes none; its
// suites run with these assertions on.
#include <gtest/gtest.h>

#include <ashlar/block/unmapped_ranges.h>

#include "props/block/by_address.h"
#include "props/block/pool_peer.h"

namespace ashlar::block {
namespace {

#if ASHLAR_ASSERTIONS && GTEST_HAS_DEATH_TEST

/// A pool with a block in every state; `gone` is one that was merged into another.
class BlockPoolDeathTest : public ::testing::Test {
 protected:
  BlockPoolDeathTest() {
    segment_ = add_by_address(pool_, kBase, 1_MiB, 0, 0);
    removed_ = add_by_address(pool_, kBase + 2_MiB, 1_MiB, 0, 0);
    for (BlockIndex* const block : {&live_, &pending_, &free_, &between_, &moving_, &last_, &gone_})
      *block = pool_.take(pool_.best_fit(1_KiB, Bytes::max()), 1_KiB, true, 1_KiB, 0);
    pool_.defer(pending_);
    pool_.release(free_, 0);
    pool_.release(moving_, 0);
    pool_.lift(moving_);
    pool_.release(gone_, 0);
    const BlockIndex other = pool_.view(removed_).first;
    pool_.lift(other);
    pool_.remove_segment(removed_);
    // The record of what lay behind the last block is unused now.
    const BlockRecords& records = PoolPeer::records(pool_);
    for (std::uint32_t i = 1; i < records.touched(); ++i)
      if (records.state(i) == kUnused) unused_ = BlockIndex{i};
    EXPECT_NE(unused_, kNoBlock);
    EXPECT_STREQ(pool_.validate(), nullptr);
  }
  void take(BlockIndex block, Bytes size, Bytes requested) {
    pool_.take(block, size, true, requested, 0);
  }

  BlockPool pool_{512_B};
  SegmentIndex segment_{}, removed_{};
  BlockIndex live_{}, pending_{}, free_{}, between_{}, moving_{}, last_{}, gone_{}, unused_{};
};

TEST_F(BlockPoolDeathTest, AnOperationNeedsItsBlockInTheRightState) {
  for (const BlockIndex block : {pending_, free_, moving_, unused_})
    EXPECT_DEATH(pool_.defer(block), "the block in another state");
  for (const BlockIndex block : {live_, free_, moving_, unused_})
    EXPECT_DEATH(pool_.undefer(block), "the block in another state");
  for (const BlockIndex block : {live_, pending_, moving_, unused_})
    EXPECT_DEATH(pool_.lift(block), "the block in another state");
  for (const BlockIndex block : {live_, pending_, free_, unused_}) {
    EXPECT_DEATH(pool_.divide(block, 512_B), "the block in another state");
    EXPECT_DEATH(pool_.take_lifted(block, 1_B, 0), "the block in another state");
  }
  for (const BlockIndex block : {live_, pending_, moving_})
    EXPECT_DEATH(take(block, 512_B, 0_B), "the block in another state");
  for (const BlockIndex block : {free_, unused_})
    EXPECT_DEATH(pool_.release(block, 0), "C16: release of a free block");
  for (const BlockIndex block : {live_, pending_, moving_})
    EXPECT_DEATH(pool_.next_fit(block), "next_fit of a block that is not free");
  for (const BlockIndex block : {free_, moving_})
    EXPECT_DEATH(pool_.set_user(block, 1), "only live and pending blocks have a user word");
}

TEST_F(BlockPoolDeathTest, ABlockInTransferIsDividedInTwoAndHoldsWhatIsRequested) {
  const Bytes size = pool_.size(moving_);
  EXPECT_DEATH(pool_.divide(moving_, 0_B), "block\\(5\\)");
  EXPECT_DEATH(pool_.divide(moving_, 100_B), "block\\(5\\)");
  EXPECT_DEATH(pool_.divide(moving_, size), "divide leaves nothing of the block");
  EXPECT_DEATH(pool_.take_lifted(moving_, size + 1_B, 0), "block\\(8\\) C1");
}

TEST_F(BlockPoolDeathTest, AnUnmappedBlockIsLiftedAndNotReleased) {
  UnmappedRanges ranges(pool_);
  const SegmentIndex added = ranges.add_segment(kBase + 1_GiB, 1_MiB, Position{1 << 30}, 0);
  const BlockIndex unmapped = pool_.view(added).first;
  EXPECT_DEATH(pool_.release(unmapped, 0), "C1: release of a block without memory");
  EXPECT_DEATH(pool_.lift(unmapped), "the block in another state");
  EXPECT_DEATH(take(unmapped, 512_B, 0_B), "the block in another state");
  for (const BlockIndex block : {live_, pending_, free_, moving_, unused_})
    EXPECT_DEATH(ranges.lift(block), "the block in another state");
  for (const BlockIndex block : {live_, pending_, free_, unmapped, unused_})
    EXPECT_DEATH(ranges.unmap(block), "the block in another state");
  EXPECT_DEATH(static_cast<void>(ranges.smallest(100_B)), "block\\(5\\)");
}

TEST_F(BlockPoolDeathTest, AQueryNeedsABlockOfThePool) {
  EXPECT_DEATH(static_cast<void>(pool_.next(unused_)), "no such block");
  EXPECT_DEATH(static_cast<void>(pool_.state(unused_)), "no such block");
  EXPECT_DEATH(static_cast<void>(pool_.size(unused_)), "no such block");
  EXPECT_DEATH(static_cast<void>(pool_.address(unused_)), "no such block");
  EXPECT_DEATH(static_cast<void>(pool_.user(unused_)), "no such block");
  EXPECT_DEATH(static_cast<void>(pool_.view(unused_)), "no such block");
  EXPECT_DEATH(static_cast<void>(pool_.segment(unused_)), "no such block");
  EXPECT_DEATH(static_cast<void>(pool_.is_whole(unused_)), "no such block");
  const BlockIndex outside{PoolPeer::records(pool_).touched()};
  EXPECT_DEATH(static_cast<void>(pool_.state(outside)), "slab\\(1\\)");
}

TEST_F(BlockPoolDeathTest, ASegmentMustBeInThePool) {
  EXPECT_DEATH(static_cast<void>(pool_.view(removed_)), "no such segment");
  EXPECT_DEATH(static_cast<void>(pool_.next(removed_)), "no such segment");
  EXPECT_DEATH(static_cast<void>(pool_.is_idle(removed_)), "no such segment");
  EXPECT_DEATH(pool_.set_user(removed_, 1), "no such segment");
  EXPECT_DEATH(pool_.remove_segment(removed_), "no such segment");
  EXPECT_DEATH(pool_.remove_segment(segment_), "not one block in transfer");
}

TEST_F(BlockPoolDeathTest, SizesAndAddressesAreMultiplesOfTheGranule) {
  for (const Bytes size : {0_B, 1_B, 513_B}) {
    EXPECT_DEATH(static_cast<void>(pool_.best_fit(size, Bytes::max())), "block\\(5\\): best_fit");
    EXPECT_DEATH(static_cast<void>(pool_.next_fit(size, Position{kBase.value()})),
                 "block\\(5\\): next_fit");
    EXPECT_DEATH(take(free_, size, 0_B), "block\\(5\\): take");
    EXPECT_DEATH(add_by_address(pool_, kBase + 8_MiB, size, 0, 0),
                 "block\\(5\\): a segment's size");
  }
  EXPECT_DEATH(take(free_, 1536_B, 0_B), "C1: take of more");
  EXPECT_DEATH(take(free_, 512_B, 513_B), "block\\(8\\) C1");
  EXPECT_DEATH(add_by_address(pool_, kBase + 8_MiB, Bytes{std::uint64_t{1} << 63}, 0, 0),
               "block\\(8\\): a segment too large");
  EXPECT_DEATH(add_by_address(pool_, kBase + 1_B, 512_B, 0, 0),
               "block\\(5\\): a segment's address");
  EXPECT_DEATH(add_by_address(pool_, Address{~std::uint64_t{511}}, 1_KiB, 0, 0),
               "block\\(5\\): a segment extends");
  EXPECT_DEATH(add_by_address(pool_, kBase + 8_MiB, 1_KiB, 0, 0, BlockState::kLive),
               "a new segment is free or in transfer");
}

TEST(BlockPoolGranuleDeathTest, IsAPowerOfTwoFrom16BytesTo64KiB) {
  EXPECT_DEATH(BlockPool{8_B}, "granule out of range");
  EXPECT_DEATH(BlockPool{128_KiB}, "granule out of range");
  EXPECT_DEATH(BlockPool{48_B}, "the granule is not a power of two");
  EXPECT_STREQ(BlockPool{16_B}.validate(), nullptr);
  EXPECT_STREQ(BlockPool{64_KiB}.validate(), nullptr);
}

#else

TEST(BlockPoolMisuse, IsStoppedInBuildsWithAssertions) { GTEST_SKIP() << "no assertions"; }

#endif

}  // namespace
}  // namespace ashlar::block
