// The address map's chains: how long they get where blocks lie at equal strides, as blocks of one
// size do. What the map finds is block_pool_test's and the lockstep suites'.
#include <ashlar/block/address_map.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "props/block/pool_peer.h"

namespace ashlar::block {
namespace {

/// Entries passed by a find, its own included, and those of them that have its tag, so that their
/// records are looked at: on average over `blocks` addresses at that stride.
struct Visits {
  double entries, records;
};

Visits visits(std::uint64_t stride, std::uint32_t blocks) {
  BlockRecords records;
  AddressMap map;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    EXPECT_TRUE(records.reserve_one() && map.reserve_one(records));
    const std::uint32_t index = records.take(kInUse);
    const std::uint64_t address = (std::uint64_t{0x7f} << 40) + i * stride;
    records.set_address(index, address);
    map.insert(records, index, address);
  }
  std::uint64_t entries = 0, looked_at = 0;
  for (std::uint64_t cell = 0; cell < map.capacity(); ++cell) {
    std::vector<std::uint32_t> chain;
    for (std::uint32_t entry = PoolPeer::cells(map)[cell]; entry != kNone;) {
      const std::uint32_t index = PoolPeer::index_of(entry);
      chain.push_back(entry - index);
      entries += chain.size();
      looked_at += static_cast<std::uint64_t>(std::count(chain.begin(), chain.end(), chain.back()));
      entry = records.link(index).to;
    }
  }
  return {static_cast<double>(entries) / blocks, static_cast<double>(looked_at) / blocks};
}

/// Random addresses would make it 1.1 in a small map and 1.5 in a large one; and 1.02 of records.
constexpr double kEntriesMax = 2.0;
constexpr double kRecordsVisitedMax = 1.25;

void expect_short(std::uint64_t stride, std::uint32_t blocks) {
  const Visits found = visits(stride, blocks);
  EXPECT_LE(found.entries, kEntriesMax) << stride;
  EXPECT_LE(found.records, kRecordsVisitedMax) << stride;
}

struct Size {
  std::uint32_t blocks;  // as many as the map holds before it grows: chains are at their longest
  std::uint64_t stride_step;
};
class AddressMapChains : public ::testing::TestWithParam<Size> {};

TEST_P(AddressMapChains, StayShortAtEveryStride) {
  const Size size = GetParam();
  for (std::uint64_t stride = 512; stride <= std::uint64_t{1} << 32; stride *= 2) {
    expect_short(stride, size.blocks);
  }
  for (const std::uint64_t unit :
       {std::uint64_t{512}, std::uint64_t{64} << 10, std::uint64_t{2} << 20}) {
    for (std::uint64_t times = 3; times <= 512; times += size.stride_step) {
      expect_short(unit * times, size.blocks);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SmallAndLarge, AddressMapChains,
                         ::testing::Values(Size{1024, 1}, Size{4096, 4}, Size{32768, 16}));

}  // namespace
}  // namespace ashlar::block
