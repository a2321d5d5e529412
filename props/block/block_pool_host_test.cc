// What a pool asks of the host, call by call: no call of the pool pays for more than one of its long
// tables, and no table is made in vain.
//
// Imitates: a pool that grows to tens of thousands of blocks or segments. Does not prove how long the
// host takes for a call.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/block/block_pool.h>

#include "props/base/watched_host.h"
#include "props/block/by_address.h"
#include "props/block/part_peer.h"

namespace ashlar::block {
namespace {

using props::HostCall;
using props::HostEvent;
using props::take_events;
using props::WatchScope;

/// The tables that grew since the last call: each asks for memory once.
std::size_t growths() {
  const std::vector<HostEvent> events = take_events();
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [](const HostEvent& event) {
        return event.call == HostCall::kNew || event.call == HostCall::kCommit;
      }));
}

TEST(BlockPoolHost, ACallGrowsOneLongTableOfTheRecordsAndAtMostTheMapBesides) {
  const WatchScope scope;
  BlockPool pool{512_B};
  add_by_address(pool, kBase, 64_MiB, 0, 0);
  std::size_t growths_in_all = 0;
  for (unsigned i = 0; i < 60000; ++i) {
    const BlockIndex fit = pool.best_fit(512_B, Bytes::max());
    take_events();
    ASSERT_NE(pool.take(fit, 512_B, true, 512_B, i % 2), kNoBlock);
    const std::size_t grown = growths();
    growths_in_all += grown;
    if (i > 1100) {
      ASSERT_LE(grown, 2u) << "block " << i;
    }
  }
  EXPECT_GT(growths_in_all, 40u) << "the test needs tables that grow";
}

TEST(BlockPoolHost, ASegmentMoreGrowsOneLongTableOfTheSegmentsAndOneOfTheBlocks) {
  const WatchScope scope;
  BlockPool pool{512_B};
  for (unsigned i = 0; i < 20000; ++i) {
    take_events();
    ASSERT_NE(add_by_address(pool, kBase + 1_MiB * i, 512_B, 0, 0), kNoSegment);
    const std::size_t grown = growths();
    if (i > 1100) {
      ASSERT_LE(grown, 3u) << "segment " << i;
    }
  }
}

TEST(BlockPoolHost, TheWideClassesAreOneTableMadeWhenTheFirstRecordMustMove) {
  const WatchScope scope;
  BlockPool pool{512_B};
  for (unsigned i = 0; i < 4; ++i) add_by_address(pool, kBase + 2_MiB * i, 512_B, 0, 0);
  FreeIndex& index = PartPeer::index(pool);
  while (!PartPeer::is_settled(index)) {
    const BlockIndex fit = pool.best_fit(512_B, Bytes::max());
    pool.release(pool.take(fit, 512_B, false, 512_B, 0), 0);
  }
  take_events();
  const bool had_wide = PartPeer::wide_classes(index) != nullptr;
  add_by_address(pool, kBase + 64_GiB, 512_B, 0, 0);
  ASSERT_NE(PartPeer::wide_classes(index), nullptr);
  std::size_t tables = 0;
  for (const HostEvent& event : take_events()) {
    if (event.call != HostCall::kNew) continue;
    EXPECT_EQ(event.bytes, (sizeof(FitClasses) + 63) / 64 * 64);
    tables += 1;
  }
  EXPECT_EQ(tables, had_wide ? 0u : 1u);
  take_events();
  add_by_address(pool, kBase + 256_GiB, 512_B, 0, 0);
  EXPECT_EQ(growths(), 0u) << "it is made once";
}

}  // namespace
}  // namespace ashlar::block
