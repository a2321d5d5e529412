// validate() against a sweep of damages: every field of every structure of a pool is set to some
// other values in turn, and validate() must notice each.
//
// Imitates: a stray write, or a mistake in any operation, whichever field it hits: pools with blocks
// in every state, moving windows, a map that is being split, deep trees. Left out is what validate()
// cannot judge: stamps, user words, requests (block_pool_validate_test), and values without effect.
// Does not prove that the text names the right invariant (block_pool_validate_test), or anything
// about two damages at once.
#include <cstring>

#include <gtest/gtest.h>

#include "props/block/by_address.h"
#include "props/block/pool_damage.h"

namespace ashlar::block {
namespace {

TEST(BlockPoolDamage, NoFieldCanBeChangedUnnoticed) {
  Seen sum;
  std::uint64_t damages = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    DamagedWorld world(seed);
    const Seen seen = world.seen();
    sum.moving_to_wide += seen.moving_to_wide;
    sum.moving_to_near += seen.moving_to_near;
    sum.splitting += seen.splitting;
    sum.branches += seen.branches;
    Sweep sweep(world.pool(), seed);
    sweep.run();
    damages += sweep.damages();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(damages, 50000u);
  EXPECT_GT(sum.moving_to_wide, 0u);
  EXPECT_GT(sum.moving_to_near, 0u);
  EXPECT_GT(sum.splitting, 0u);
  EXPECT_GT(sum.branches, 0u);
}

TEST(BlockPoolDamage, AWindowElsewhereIsNoticedWhileNoBlockIsInATree) {
  BlockPool pool{512_B};
  add_by_address(pool, kBase, 1_MiB, 0, 0);
  ASSERT_STREQ(pool.validate(), nullptr);
  FitClasses& near_classes = PartPeer::near_classes(PartPeer::index(pool));
  ASSERT_TRUE(near_classes.is_empty()) << "the only free block is the latest";
  PartPeer::window_base(near_classes) += (1_MiB).count();
  const char* const broken = pool.validate();
  ASSERT_NE(broken, nullptr);
  EXPECT_NE(std::strstr(broken, "the window"), nullptr) << broken;
}

/// Expects validate() to report that. The damaged pool is not used afterwards.
void expect_broken(const BlockPool& pool, const char* invariant) {
  const char* const broken = pool.validate();
  ASSERT_NE(broken, nullptr);
  EXPECT_EQ(std::strncmp(broken, invariant, std::strlen(invariant)), 0) << broken;
}

TEST(BlockPoolDamage, AStateThatNoBlockHasIsInvariant1) {
  for (const std::uint8_t state : {std::uint8_t{kBlockStates}, std::uint8_t{0x7f}, kUnused}) {
    BlockPool pool{512_B};
    const SegmentIndex segment = add_by_address(pool, kBase, 1_MiB, 0, 0);
    PartPeer::records(pool).state(raw(pool.view(segment).first)) = state;
    expect_broken(pool, "block(1) C3: an unused record");
  }
}

TEST(BlockPoolDamage, SegmentsThatShareTheirBlocksEndTheWalk) {
  BlockPool pool{512_B};
  const SegmentIndex segment = add_by_address(pool, kBase, 64_KiB, 0, 0);
  for (unsigned i = 0; i < 5; ++i) {
    const BlockIndex block = pool.best_fit(512_B, Bytes::max());
    pool.take(block, 512_B, true, 512_B, 0);
  }
  const SegmentRecord shared = PartPeer::segment(pool, segment);
  for (unsigned i = 1; i <= 4; ++i) {
    const SegmentIndex other = add_by_address(pool, kBase + 1_MiB * i, 64_KiB, 0, 0);
    SegmentRecord& record = PartPeer::segment(pool, other);
    record.base = shared.base;
    record.size = shared.size;
    record.first = shared.first;
  }
  ASSERT_GT(5u * 6u, PartPeer::records(pool).touched()) << "the walk meets more than there are";
  expect_broken(pool, "block(1) C3: a list of blocks is broken");
}

TEST(BlockPoolDamage, ASegmentOffTheGranuleIsInvariant5) {
  BlockPool pool{512_B};
  const SegmentIndex segment = add_by_address(pool, kBase, 64_KiB, 0, 0);
  SegmentRecord& record = PartPeer::segment(pool, segment);
  record.base += 8;
  PartPeer::records(pool).set_address(record.first, record.base);
  expect_broken(pool, "block(5)");
}

TEST(BlockPoolDamage, BlocksInClassesThatNoSearchLooksIntoAreReported) {
  unsigned wide = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    DamagedWorld world(seed);
    FreeIndex& index = PartPeer::index(world.pool());
    if (PartPeer::move(index) != 2) continue;  // on the way back from the wide classes
    wide += !PartPeer::wide_classes(index)->is_empty();
    PartPeer::settle(index);
    expect_broken(world.pool(), "block(3) C5: a block is in classes that are not searched");
  }
  EXPECT_GT(wide, 0u);
  BlockPool pool{512_B};
  add_by_address(pool, kBase, 64_KiB, 0, 0);
  ASSERT_EQ(PartPeer::wide_classes(PartPeer::index(pool)), nullptr);
  PartPeer::settle(PartPeer::index(pool), false);
  expect_broken(pool, "block(3) C5: a block is in classes that are not searched");
}

TEST(BlockPoolDamage, ANumberThatIsTheFirstBehindTheRecordsIsReported) {
  BlockPool pool{512_B};
  const SegmentIndex segment = add_by_address(pool, kBase, 1_MiB, 0, 0);
  const std::uint32_t first = PartPeer::segment(pool, segment).first;
  PartPeer::segment(pool, segment).first = PartPeer::records(pool).touched();
  expect_broken(pool, "block(7)");
  PartPeer::segment(pool, segment).first = first;
  PartPeer::records(pool)[first].next = PartPeer::records(pool).touched();
  expect_broken(pool, "block(1) C3: a list of blocks");
  PartPeer::records(pool)[first].next = kNone;
  PartPeer::first_segment(pool) = PartPeer::segments(pool).touched();
  expect_broken(pool, "block(7)");
}

}  // namespace
}  // namespace ashlar::block
