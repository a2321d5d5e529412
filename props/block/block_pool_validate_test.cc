// validate() tested by damage: every invariant of block_pool.h is broken on purpose, one field at a time, and the walk
// must name that invariant. A check that never fires checks nothing.
//
// What this does not prove: that validate() sees every possible damage, only that each of its checks is alive.
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "props/block/pool_peer.h"

namespace ashlar::block {
namespace {

constexpr Address kBase{std::uint64_t{1} << 40};

/// A pool with two segments: live, free, pending, free, in transfer, live ... and four free blocks of one class.
class Damaged : public ::testing::Test {
 protected:
  Damaged() {
    first_ = pool_.add_segment(kBase, 2_MiB, 0, 0);
    pool_.add_segment(kBase + 2_MiB, 2_MiB, 0, 0);
    for (BlockIndex& b : blocks_) {
      b = pool_.take(pool_.best_fit(1_KiB, Bytes::max()), 1_KiB, true, 1000_B, 1);
    }
    for (unsigned i = 1; i < 16; i += 2) pool_.release(blocks_[i], i);
    pool_.defer(blocks_[2]);
    pool_.lift(blocks_[3]);
    EXPECT_STREQ(pool_.validate(), nullptr);
  }
  BlockRecord& record(unsigned i) { return PoolPeer::record(pool_, blocks_[i]); }
  FreeIndex& index() { return PoolPeer::index(pool_); }
  /// Damages, asks, repairs nothing: the pool is thrown away.
  void expect_broken(const char* invariant) {
    const char* broken = pool_.validate();
    ASSERT_NE(broken, nullptr) << "nobody noticed";
    EXPECT_EQ(std::strncmp(broken, invariant, std::strlen(invariant)), 0) << broken;
  }
  /// A free block that is in a tree and has a parent.
  unsigned child_in_tree() {
    for (unsigned i = 5; i < 16; i += 2) {
      if (PoolPeer::latest(index()) != static_cast<std::uint32_t>(blocks_[i]) && record(i).parent != kNone) return i;
    }
    ADD_FAILURE() << "no tree has two nodes";
    return 5;
  }

  BlockPool pool_{512_B};
  SegmentIndex first_{};
  BlockIndex blocks_[17];
};

TEST_F(Damaged, AGapBetweenBlocksIsInvariant1) { record(4).address += 512; expect_broken("block(1) C3"); }
TEST_F(Damaged, AnOverlapIsInvariant1) { record(4).size += 512; expect_broken("block(1) C3"); }
TEST_F(Damaged, AWrongPreviousNeighbourIsInvariant1) { record(4).prev = kNone; expect_broken("block(1) C3"); }
TEST_F(Damaged, AWrongSegmentIsInvariant1) { record(4).segment += 1; expect_broken("block(1) C3"); }
TEST_F(Damaged, ARingOfBlocksIsInvariant1) { record(16).next = record(2).prev; expect_broken("block(1) C3"); }
TEST_F(Damaged, ALinkOutOfTheSlabIsInvariant1) { record(16).next = 1u << 30; expect_broken("block(1) C3"); }
TEST_F(Damaged, AnUnusedRecordInASegmentIsInvariant1) { record(4).state = kUnused; expect_broken("block(1) C3"); }
TEST_F(Damaged, ASegmentCutShortIsInvariant1) { record(4).next = kNone; expect_broken("block(1) C3"); }
TEST_F(Damaged, TwoTouchingFreeBlocksAreInvariant2) { record(4).state = 0; expect_broken("block(2) C4"); }
TEST_F(Damaged, AnEmptyBlockIsInvariant5) { record(0).size = 0; expect_broken("block(5)"); }
TEST_F(Damaged, AnOddSizeIsInvariant5) { record(0).size -= 1; expect_broken("block(5)"); }

TEST_F(Damaged, AFreeBlockMissingFromTheIndexIsInvariant3) {
  index().remove(PoolPeer::records(pool_), static_cast<std::uint32_t>(blocks_[7]));
  expect_broken("block(3) C5: the index holds");
}
TEST_F(Damaged, ABlockInTheIndexThatIsNotFreeIsInvariant3) {
  // Through the map and the counters the damage is consistent: only the index still thinks that it is free.
  BlockRecord& record7 = record(7);
  record7.state = static_cast<std::uint8_t>(State::kInTransfer);
  PoolCounts& counts = PoolPeer::counts(pool_);
  counts.blocks[0] -= 1;
  counts.bytes[0] -= Bytes{record7.size};
  counts.blocks[3] += 1;
  counts.bytes[3] += Bytes{record7.size};
  expect_broken("block(3) C5: a block in the index is not free");
}
TEST_F(Damaged, TheLatestRecordNotFreeIsInvariant3) {
  PoolPeer::latest(index()) = static_cast<std::uint32_t>(blocks_[0]);
  expect_broken("block(3) C5: a block in the index is not free");
}
TEST_F(Damaged, AWrongKeyIsInvariant3) {
  record(child_in_tree()).links.key ^= std::uint64_t{1} << 20;
  expect_broken("block(3) C5: a key");
}
TEST_F(Damaged, AWrongClassIsInvariant3) {
  record(child_in_tree()).size_class += 1;
  expect_broken("block(3) C5: a block is in a wrong class");
}
TEST_F(Damaged, AWrongParentIsInvariant3) {
  record(child_in_tree()).parent = kNone;
  expect_broken("block(3) C5: parent and child");
}
TEST_F(Damaged, AChildOnTheWrongSideIsInvariant3) {
  BlockRecord& parent = PoolPeer::records(pool_)[record(child_in_tree()).parent];
  std::swap(parent.links.child[0], parent.links.child[1]);
  expect_broken("block(3) C5: a block is under a wrong branch");
}
TEST_F(Damaged, AChildSmallerThanItsParentIsInvariant3) {
  // Root and child change places: every link and branch agrees, but the smallest is no longer on top.
  const unsigned i = child_in_tree();
  const auto child = static_cast<std::uint32_t>(blocks_[i]);
  const std::uint32_t top = record(i).parent;
  auto& records = PoolPeer::records(pool_);
  BlockRecord& up = records[top];
  ASSERT_EQ(up.parent, kNone);
  const unsigned side = up.links.child[1] == child;
  std::swap(up.links.child[1 - side], record(i).links.child[1 - side]);
  up.links.child[side] = record(i).links.child[side];
  record(i).links.child[side] = top;
  record(i).parent = kNone;
  up.parent = child;
  for (const std::uint32_t node : {child, top}) {
    for (const std::uint32_t c : records[node].links.child) {
      if (c != kNone) records[c].parent = node;
    }
  }
  PoolPeer::root(index(), up.size_class) = child;
  const char* broken = pool_.validate();
  ASSERT_NE(broken, nullptr);
  EXPECT_TRUE(std::strstr(broken, "smaller than its") != nullptr || std::strstr(broken, "wrong branch") != nullptr)
      << broken;
}
TEST_F(Damaged, AClassBitWithoutATreeIsInvariant3) {
  PoolPeer::subs(index(), 1) |= 1;
  expect_broken("block(3) C5: a class's bit");
}
TEST_F(Damaged, AClassWithoutItsBitIsInvariant3) {
  const unsigned size_class = record(child_in_tree()).size_class;
  PoolPeer::subs(index(), size_class >> PoolPeer::sub_bits()) &= ~(1u << (size_class & 31));
  expect_broken("block(3) C5: a class's bit");
}
TEST_F(Damaged, AGroupBitWithoutAClassIsInvariant3) {
  PoolPeer::groups(index(), 1) |= 1;
  expect_broken("block(3) C5: a group's bit");
}

TEST_F(Damaged, AnOwnedBlockMissingFromTheMapIsInvariant4) {
  PoolPeer::map(pool_).erase(PoolPeer::records(pool_), static_cast<std::uint32_t>(blocks_[0]));
  expect_broken("block(4)");
}
TEST_F(Damaged, AFreeBlockInTheMapIsInvariant4) {
  PoolPeer::map(pool_).insert(PoolPeer::records(pool_), static_cast<std::uint32_t>(blocks_[5]));
  expect_broken("block(4)");
}
TEST_F(Damaged, AWrongCountOfTheMapIsInvariant4) {
  PoolPeer::map_count(pool_) += 1;
  expect_broken("block(4)");
}
TEST_F(Damaged, AStrayCellOfTheMapIsInvariant4) {
  std::uint32_t* cell = PoolPeer::cells(pool_);
  while (*cell != kNone) ++cell;
  *cell = static_cast<std::uint32_t>(blocks_[5]);
  expect_broken("block(4)");
}

TEST_F(Damaged, EveryCounterIsInvariant6) {
  PoolCounts& counts = PoolPeer::counts(pool_);
  const PoolCounts good = counts;
  std::vector<std::function<void()>> damages{
      [&] { counts.segments += 1; },     [&] { counts.segment_bytes += 512_B; }, [&] { counts.requested_bytes += 1_B; },
      [&] { counts.idle_segments += 1; }, [&] { counts.idle_bytes += 512_B; }};
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
  auto& records = PoolPeer::records(pool_);
  ASSERT_NE(PoolPeer::unused(records), kNone);
  PoolPeer::unused(records) = records[PoolPeer::unused(records)].next;
  expect_broken("block(7)");
}
TEST_F(Damaged, ASegmentListThatDoesNotAgreeIsInvariant7) {
  PoolPeer::segment(pool_, first_).prev = kNone;
  expect_broken("block(7)");
}
TEST_F(Damaged, ASegmentMarkedUnusedIsInvariant7) {
  PoolPeer::segment(pool_, first_).state = kUnused;
  expect_broken("block(7)");
}

}  // namespace
}  // namespace ashlar::block
