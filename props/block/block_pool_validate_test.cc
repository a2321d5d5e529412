// validate() tested by damage: each invariant of block_pool.h is broken on purpose, one field at a
// time, and validate() must name it. A check that never fires checks nothing.
//
// Does not prove that validate() detects every possible damage, only that each of its checks can
// fire.
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "props/block/by_address.h"
#include "props/block/pool_peer.h"

namespace ashlar::block {
namespace {

/// A pool of two segments with blocks in every state, and more free blocks of one class than a leaf
/// has slots.
class Damaged : public ::testing::Test {
 protected:
  Damaged() {
    first_ = add_by_address(pool_, kBase, 2_MiB, 0, 0);
    add_by_address(pool_, kBase + 2_MiB, 2_MiB, 0, 0);
    for (BlockIndex& b : blocks_) {
      b = pool_.take(pool_.best_fit(1_KiB, Bytes::max()), 1_KiB, true, 1000_B, 1);
    }
    for (unsigned i = 1; i < kBlocks - 1; i += 2) pool_.release(blocks_[i], i);
    pool_.defer(blocks_[2]);
    pool_.lift(blocks_[3]);
    EXPECT_STREQ(pool_.validate(), nullptr);
  }
  BlockRecord& record(unsigned i) { return PoolPeer::record(pool_, blocks_[i]); }
  std::uint32_t number(unsigned i) const { return static_cast<std::uint32_t>(blocks_[i]); }
  BlockRecords& records() { return PoolPeer::records(pool_); }
  void move_end(unsigned i, std::uint64_t by) {
    records().set_size(number(i), records().size(number(i)) + by);
  }
  void move_begin(unsigned i, std::uint64_t by) {
    records().set_address(number(i), records().address(number(i)) + by);
  }
  Link& link(unsigned i) { return records().link(number(i)); }
  std::uint8_t& state(unsigned i) { return records().state(number(i)); }
  FreeIndex& index() { return PoolPeer::index(pool_); }
  /// Expects validate() to report that invariant. The damaged pool is not used afterwards.
  void expect_broken(const char* invariant) {
    const char* broken = pool_.validate();
    ASSERT_NE(broken, nullptr) << "validate() did not notice the damage";
    EXPECT_EQ(std::strncmp(broken, invariant, std::strlen(invariant)), 0) << broken;
  }
  /// A free block that shares its leaf with others.
  unsigned in_tree() {
    for (unsigned i = 5; i < kBlocks - 1; i += 2) {
      if (PoolPeer::latest(index()) != number(i) && leaf_of(i).used > 1) return i;
    }
    ADD_FAILURE() << "no leaf has two records";
    return 5;
  }
  PoolPeer::Leaf& leaf_of(unsigned i) { return PoolPeer::leaf_of(index(), link(i)); }
  PoolPeer::Branch& a_branch() { return PoolPeer::branch(index(), leaf_of(in_tree()).parent); }

  static constexpr unsigned kBlocks = 4 * PoolPeer::kLeafSlots + 1;
  BlockPool pool_{512_B};
  SegmentIndex first_{};
  BlockIndex blocks_[kBlocks];
};

TEST_F(Damaged, AGapBetweenBlocksIsInvariant1) {
  move_begin(4, 512);
  expect_broken("block(1) C3");
}
TEST_F(Damaged, AnOverlapIsInvariant1) {
  move_end(4, 512);
  expect_broken("block(1) C3");
}
TEST_F(Damaged, AWrongPreviousNeighbourIsInvariant1) {
  record(4).prev = kNone;
  expect_broken("block(1) C3");
}
TEST_F(Damaged, ARingOfBlocksIsInvariant1) {
  record(kBlocks - 1).next = record(2).prev;
  expect_broken("block(1) C3");
}
TEST_F(Damaged, ALinkOutsideTheSlabIsInvariant1) {
  record(kBlocks - 1).next = 1u << 30;
  expect_broken("block(1) C3");
}
TEST_F(Damaged, AnUnusedRecordInASegmentIsInvariant1) {
  state(4) = kUnused;
  expect_broken("block(1) C3");
}
TEST_F(Damaged, ASegmentCutShortIsInvariant1) {
  record(4).next = kNone;
  expect_broken("block(1) C3");
}
TEST_F(Damaged, TwoAdjacentFreeBlocksAreInvariant2) {
  state(4) = 0;
  expect_broken("block(2) C4");
}
TEST_F(Damaged, AnEmptyBlockIsInvariant5) {
  record(0).size = 0;
  expect_broken("block(5)");
}
TEST_F(Damaged, ASizeThatIsNotAMultipleOfTheGranuleIsInvariant5) {
  move_end(0, std::uint64_t{0} - 1);
  expect_broken("block(5)");
}

TEST_F(Damaged, AFreeBlockMissingFromTheIndexIsInvariant3) {
  index().remove(records(), number(7));
  expect_broken("block(3) C5: the index holds");
}
TEST_F(Damaged, ABlockInTheIndexThatIsNotFreeIsInvariant3) {
  // The map and the counters agree with the new state; only the index still holds the block.
  const Bytes size7 = pool_.size(blocks_[7]);
  state(7) = static_cast<std::uint8_t>(BlockState::kInTransfer);
  PoolCounts& counts = PoolPeer::counts(pool_);
  counts.blocks[0] -= 1;
  counts.bytes[0] -= size7;
  counts.blocks[3] += 1;
  counts.bytes[3] += size7;
  expect_broken("block(3) C5: a block in the index has another state");
}
TEST_F(Damaged, TheLatestRecordNotFreeIsInvariant3) {
  PoolPeer::latest(index()) = number(0);
  expect_broken("block(3) C5: a block in the index has another state");
}
TEST_F(Damaged, TheLatestRecordInATreeTooIsInvariant3) {
  PoolPeer::latest(index()) = number(in_tree());  // the former latest record is lost
  expect_broken("block(3) C5");
}
TEST_F(Damaged, AWrongKeyIsInvariant3) {
  const unsigned i = in_tree();
  leaf_of(i).keys[PoolPeer::slot_of(link(i))] ^= std::uint64_t{1} << 20;
  expect_broken("block(3) C5: a key");
}
TEST_F(Damaged, ABlockOfAnotherClassIsInvariant3) {
  // A block takes a granule from its neighbour, so that its key no longer matches its size.
  const unsigned i = in_tree();
  move_end(i, 512);
  move_begin(i + 1, 512);
  move_end(i + 1, std::uint64_t{0} - 512);
  records().set_request(number(i + 1), 512, 500, 1);
  PoolCounts& counts = PoolPeer::counts(pool_);
  counts.bytes[0] += 512_B;
  counts.bytes[1] -= 512_B;
  counts.requested_bytes -= 500_B;
  expect_broken("block(3) C5: a key");
}
TEST_F(Damaged, ALeafOfAnotherClassIsInvariant3) {
  leaf_of(in_tree()).size_class += 1;
  expect_broken("block(3) C5: a leaf names another class");
}
TEST_F(Damaged, ARecordThatNamesAnotherSlotIsInvariant3) {
  link(in_tree()).to ^= 1;
  expect_broken("block(3) C5: record and leaf");
}
TEST_F(Damaged, ARecordThatNamesAnotherLeafIsInvariant3) {
  link(in_tree()).to += 1u << PoolPeer::kSlotBits;
  expect_broken("block(3) C5: record and leaf");
}
TEST_F(Damaged, AKeyInAnEmptySlotIsInvariant3) {
  const unsigned i = in_tree();
  leaf_of(i).used =
      static_cast<std::uint16_t>(leaf_of(i).used & ~(1u << PoolPeer::slot_of(link(i))));
  expect_broken("block(3) C5: an empty slot has a key");
}
TEST_F(Damaged, AnEmptyLeafInATreeIsInvariant3) {
  PoolPeer::Leaf& leaf = leaf_of(in_tree());
  leaf.used = 0;
  for (std::uint64_t& key : leaf.keys) key = PoolPeer::kNoKey;
  expect_broken("block(3) C5: an empty leaf");
}
TEST_F(Damaged, AWrongParentIsInvariant3) {
  leaf_of(in_tree()).parent = kNoNode;
  expect_broken("block(3) C5: parent and child");
}
TEST_F(Damaged, AWrongParentOfABranchIsInvariant3) {
  a_branch().parent = 0;
  expect_broken("block(3) C5: parent and child");
}
TEST_F(Damaged, SwappedChildrenAreInvariant3) {
  std::swap(a_branch().child[0], a_branch().child[1]);
  const char* broken = pool_.validate();
  ASSERT_NE(broken, nullptr);
  EXPECT_NE(std::strstr(broken, "under a wrong branch"), nullptr) << broken;
}
TEST_F(Damaged, ABranchUnderAWrongBranchIsInvariant3) {
  a_branch().pivot |= std::uint64_t{1} << 63;
  const char* broken = pool_.validate();
  ASSERT_NE(broken, nullptr);
  EXPECT_NE(std::strstr(broken, "under a wrong branch"), nullptr) << broken;
}
TEST_F(Damaged, ARingOfBranchesIsInvariant3) {
  const std::uint32_t top = leaf_of(in_tree()).parent;
  a_branch().child[1] = top;
  const char* broken = pool_.validate();
  ASSERT_NE(broken, nullptr);
  EXPECT_EQ(std::strncmp(broken, "block(3) C5", 11), 0) << broken;
}
TEST_F(Damaged, ALeafOutsideTheStoreIsInvariant3) {
  a_branch().child[1] = 1u << 20;
  expect_broken("block(3) C5: a tree is broken");
}
TEST_F(Damaged, ALostNodeIsInvariant3) {
  PoolPeer::leaves(index()).take();
  expect_broken("block(3) C5: a node of the trees is lost");
}
TEST_F(Damaged, AClassBitWithoutATreeIsInvariant3) {
  PoolPeer::class_bits(index(), 40) |= 1;
  expect_broken("block(3) C5: a class's bit");
}
TEST_F(Damaged, AClassWithoutItsBitIsInvariant3) {
  const unsigned size_class = leaf_of(in_tree()).size_class;
  PoolPeer::class_bits(index(), size_class >> PoolPeer::kClassBits) &= ~(1u << (size_class & 31));
  expect_broken("block(3) C5: a class's bit");
}
TEST_F(Damaged, AGroupBitWithoutAClassIsInvariant3) {
  PoolPeer::group_bits(index()) |= std::uint64_t{1} << 40;
  expect_broken("block(3) C5: a group's bit");
}

TEST_F(Damaged, RecordsThatMoveToAnotherWindowUnsearchedAreInvariant3) {
  add_by_address(pool_, kBase + 1_GiB, 2_MiB, 0, 0);
  pool_.release(blocks_[0], 0);
  ASSERT_FALSE(PoolPeer::is_settled(index())) << "the test needs an index that moves its records";
  ASSERT_STREQ(pool_.validate(), nullptr);
  PoolPeer::settle(index());
  expect_broken("block(3) C5");
}

TEST_F(Damaged, AnOwnedBlockMissingFromTheMapIsInvariant4) {
  PoolPeer::map(pool_).erase(records(), number(0), kBase.value());
  expect_broken("block(4)");
}
TEST_F(Damaged, AFreeBlockInTheMapIsInvariant4) {
  const std::uint32_t latest =
      PoolPeer::latest(index());  // in no tree, so its link is free for the map
  PoolPeer::map(pool_).insert(records(), latest, records().address(latest));
  expect_broken("block(4)");
}
TEST_F(Damaged, AWrongCountOfTheMapIsInvariant4) {
  PoolPeer::parts(PoolPeer::map(pool_)).count += 1;
  expect_broken("block(4)");
}
TEST_F(Damaged, AStrayCellOfTheMapIsInvariant4) {
  std::uint32_t* cell = PoolPeer::cells(PoolPeer::map(pool_));
  while (*cell != kNone) ++cell;
  *cell = number(5);
  expect_broken("block(4)");
}

TEST_F(Damaged, AnEntryWithTheTagOfAnotherAddressIsInvariant4) {
  std::uint32_t* cell = PoolPeer::cells(PoolPeer::map(pool_));
  while (*cell == kNone) ++cell;
  *cell ^= std::uint32_t{1} << 31;
  expect_broken("block(4)");
}

TEST_F(Damaged, EveryCounterIsInvariant6) {
  PoolCounts& counts = PoolPeer::counts(pool_);
  const PoolCounts good = counts;
  std::vector<std::function<void()>> damages{
      [&] { counts.segments += 1; }, [&] { counts.segment_bytes += 512_B; },
      [&] { counts.requested_bytes += 1_B; }, [&] { counts.idle_segments += 1; },
      [&] { counts.idle_bytes += 512_B; }};
  for (unsigned i = 0; i < 4; ++i) {
    damages.push_back([&counts, i] { counts.blocks[i] += 1; });
    damages.push_back([&counts, i] { counts.bytes[i] += 512_B; });
  }
  for (const auto& damage : damages) {
    counts = good;
    damage();
    expect_broken("block(6) C14");
  }
}

TEST_F(Damaged, ALostRecordIsInvariant7) {
  std::uint32_t& unused = PoolPeer::unused(records());
  ASSERT_NE(unused, kNone);
  unused = records()[unused].next;
  expect_broken("block(7)");
}
TEST_F(Damaged, ANullSentinelInUseIsInvariant7) {
  records().state(kNone) = 0;
  expect_broken("block(7)");
}
TEST_F(Damaged, ARequestLargerThanItsBlockIsInvariant8) {
  records().set_request(number(0), 1024, 1025, 1);
  PoolPeer::counts(pool_).requested_bytes += 25_B;
  expect_broken("block(8) C1");
}
TEST_F(Damaged, AZeroUserWordInAnOverflowRecordIsInvariant8) {
  PoolPeer::overflow(pool_, blocks_[0]).user = 0;
  expect_broken("block(8): a user word");
}
TEST_F(Damaged, APositionOffTheGranuleIsInvariant5) {
  PoolPeer::segments(pool_).column<SegmentShift>(raw(first_)).bytes += 256;
  expect_broken("block(5): a position");
}
TEST_F(Damaged, ASegmentAtAnotherPositionThanWhenItsBlocksWereIndexedIsInvariant3) {
  PoolPeer::segments(pool_).column<SegmentShift>(raw(first_)).bytes += 512;
  expect_broken("block(3) C5: a key is not its block's");
}
TEST_F(Damaged, ABlockThatNamesAnotherSegmentIsInvariant9) {
  records().set_segment(number(0), records().segment(number(0)) + 1);
  expect_broken("block(9): a block names another segment");
}
TEST_F(Damaged, ASegmentWithAWrongPrevIsInvariant7) {
  PoolPeer::segment(pool_, first_).prev = kNone;
  expect_broken("block(7)");
}
TEST_F(Damaged, ASegmentMarkedUnusedIsInvariant7) {
  PoolPeer::segments(pool_).state(static_cast<std::uint32_t>(first_)) = kUnused;
  expect_broken("block(7)");
}

}  // namespace
}  // namespace ashlar::block
