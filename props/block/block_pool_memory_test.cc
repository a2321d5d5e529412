// The block pool when host memory runs out.
//
// Imitates: a host that refuses the n-th allocation of records, for every n; one that has no pages
// at all. A call that fails changes nothing and succeeds when repeated; a free never allocates. Does
// not prove anything about two refusals in one run.
// This executable links host_memory/refusing_host.cc, which replaces the operators new.
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/block/block_pool.h>

#include "props/block/by_address.h"
#include "props/host_memory/refusing_host.h"

namespace ashlar::block {
namespace {

using props::host;

/// Grows and fills a pool while the host refuses allocation `fail_at`. A refused call must have
/// changed nothing, and is repeated. Returns the number of refusals that a call reported.
unsigned fill(std::uint64_t fail_at, bool has_pages = true, unsigned blocks_max = 400) {
  host = {0, fail_at, has_pages};
  unsigned refusals = 0;
  BlockPool pool{512_B};
  std::vector<BlockIndex> blocks;
  for (std::uint64_t i = 0; i < 40; ++i) {
    while (add_by_address(pool, kBase + Bytes{i * 0x400000}, 2_MiB, 0, 0) == kNoSegment) {
      refusals += 1;
      EXPECT_EQ(pool.counts().segments, i);
      EXPECT_STREQ(pool.validate(), nullptr);
    }
  }
  for (unsigned i = 0; i < blocks_max; ++i) {
    for (;;) {
      const BlockIndex fit = pool.best_fit(1_KiB, Bytes::max());
      const PoolCounts before = pool.counts();
      const BlockIndex taken = pool.take(fit, 1_KiB, true, 1_KiB, i);
      if (taken != kNoBlock) {
        blocks.push_back(taken);
        break;
      }
      refusals += 1;
      EXPECT_EQ(pool.counts().blocks[1], before.blocks[1]);
      EXPECT_EQ(pool.counts().bytes[0], before.bytes[0]);
      EXPECT_EQ(pool.state(fit), BlockState::kFree);
      EXPECT_STREQ(pool.validate(), nullptr);
    }
  }
  EXPECT_STREQ(pool.validate(), nullptr);
  const std::uint64_t allocations = host.allocations;
  for (const BlockIndex b : blocks) {
    pool.defer(b);
    pool.release(b, 1);
  }
  EXPECT_EQ(host.allocations, allocations) << "a free allocated";
  EXPECT_EQ(pool.counts().idle_segments, 40u);
  EXPECT_STREQ(pool.validate(), nullptr);
  return refusals;
}

TEST(BlockPoolMemory, AFailedAllocationOfRecordsLeavesThePoolAsItWas) {
  EXPECT_EQ(fill(0), 0u);
  const std::uint64_t allocations = host.allocations;
  EXPECT_GE(allocations, 12u) << "the test needs the slabs and the map to grow several times";
  unsigned refusals = 0;
  for (std::uint64_t n = 1; n <= allocations; ++n) {
    const unsigned reported = fill(n);
    EXPECT_LE(reported, 1u) << n;
    refusals += reported;
  }
  // A table whose pages are refused moves to plain memory, and the call succeeds.
  EXPECT_GE(refusals + 4, allocations);
}

TEST(BlockPoolMemory, ARefusalOfMorePagesLeavesThePoolAsItWas) {
  constexpr unsigned kBlocks = 20000;  // so that every table grows in place at least once
  EXPECT_EQ(fill(0, true, kBlocks), 0u);
  const std::uint64_t allocations = host.allocations;
  unsigned refusals = 0;
  for (std::uint64_t n = 1; n <= allocations; n += 7) refusals += fill(n, true, kBlocks);
  EXPECT_GT(refusals, 0u);
}

TEST(BlockPoolMemory, AHostWithoutPagesServesAPoolAsWell) {
  EXPECT_EQ(fill(0, false, 20000), 0u);
  const std::uint64_t allocations = host.allocations;
  unsigned refusals = 0;
  for (std::uint64_t n = 1; n < allocations; n += 7) refusals += fill(n, false, 20000);
  EXPECT_GT(refusals, 0u);
  // Large tables grow ahead of need: no call fails of the last growth.
  EXPECT_EQ(fill(allocations, false, 20000), 0u);
}

}  // namespace
}  // namespace ashlar::block
