// Workload: random allocations and frees. If this baseline were wrong, the comparison with it would
// be meaningless.
//
// Does not prove that its speed is the best possible for its design.
#include <vector>

#include <gtest/gtest.h>

#include "bench/adapters/offset_allocator.h"
#include "spec/ops/random.h"

namespace ashlar::bench {
namespace {

using Floor = OffsetAllocator;

TEST(OffsetAllocator, PutsEverySizeIntoTheLastBinThatIsNotLarger) {
  EXPECT_EQ(Floor::bin_below(0), 0u);
  EXPECT_EQ(Floor::bin_below(7), 7u);
  EXPECT_EQ(Floor::bin_below(8), 8u);
  EXPECT_EQ(Floor::bin_below(15), 15u);
  EXPECT_EQ(Floor::bin_below(16), 16u);
  EXPECT_EQ(Floor::bin_below(17), 16u);
  EXPECT_EQ(Floor::bin_above(17), 17u);
  EXPECT_EQ(Floor::bin_above(18), 17u);
  spec::Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto units = static_cast<std::uint32_t>(random.next() >> (32 + random.below(32)));
    EXPECT_LE(Floor::bin_below(units), Floor::bin_above(units));
    EXPECT_LE(Floor::bin_above(units), Floor::bin_below(units) + 1);
    if (units > 0) {
      EXPECT_LE(Floor::bin_above(units - 1), Floor::bin_above(units));
    }
  }
}

TEST(OffsetAllocator, GivesDisjointRangesAndKeepsItsInvariantsOnAnyHistory) {
  Floor floor(1 << 16);
  spec::Random random(2);
  struct Live {
    Floor::Allocation allocation;
    std::uint32_t units;
  };
  std::vector<Live> live;
  std::vector<bool> is_taken(1 << 16);
  const auto set = [&](const Live& block, bool taken) {
    for (std::uint32_t i = 0; i < block.units; ++i) {
      ASSERT_NE(is_taken[block.allocation.offset + i], taken);
      is_taken[block.allocation.offset + i] = taken;
    }
  };
  for (int i = 0; i < 4000; ++i) {
    if (live.empty() || !random.one_in(2 + live.size() / 50)) {
      const auto units =
          static_cast<std::uint32_t>(1 + random.below(std::uint64_t{1} << random.below(12)));
      const Floor::Allocation got = floor.allocate(units);
      if (got.node == Floor::kNone) continue;
      live.push_back({got, units});
      set(live.back(), true);
    } else {
      const std::size_t pick = random.below(live.size());
      set(live[pick], false);
      floor.free(live[pick].allocation);
      live[pick] = live.back();
      live.pop_back();
    }
    ASSERT_EQ(floor.validate(), nullptr);
  }
  for (const Live& block : live) floor.free(block.allocation);
  EXPECT_EQ(floor.validate(), nullptr);
  EXPECT_EQ(floor.free_units(), 1u << 16);
  EXPECT_NE(floor.allocate(1 << 16).node, Floor::kNone) << "everything merged again";
}

TEST(OffsetAllocator, SaysSoWhenThereIsNoRoom) {
  Floor floor(100);
  EXPECT_EQ(floor.allocate(101).node, Floor::kNone);
  EXPECT_NE(floor.allocate(60).node, Floor::kNone);
  EXPECT_EQ(floor.allocate(60).node, Floor::kNone);
  EXPECT_EQ(floor.validate(), nullptr);
}

}  // namespace
}  // namespace ashlar::bench
