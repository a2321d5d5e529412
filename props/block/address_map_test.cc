// The lengths of the address map's chains when blocks lie at equal strides.
//
// Imitates: a pool of many blocks of one size. Does not prove that find() is right; block_pool_test
// and the lockstep suites test that.
#include <ashlar/block/address_map.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "props/block/pool_peer.h"

namespace ashlar::block {
namespace {

/// What a find visits on average: entries, its own included, and records, those of the entries with
/// an equal tag.
struct Visits {
  double entries, records;
};

/// The visits with `blocks` addresses at that stride.
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
  std::uint64_t entries = 0, visited_records = 0;
  for (std::uint64_t cell = 0; cell < map.capacity(); ++cell) {
    std::vector<std::uint32_t> tags;
    for (std::uint32_t entry = PoolPeer::cells(map)[cell]; entry != kNone;) {
      const std::uint32_t index = PoolPeer::index_of(entry);
      tags.push_back(entry - index);
      entries += tags.size();
      visited_records +=
          static_cast<std::uint64_t>(std::count(tags.begin(), tags.end(), tags.back()));
      entry = records.link(index).to;
    }
  }
  return {static_cast<double>(entries) / blocks, static_cast<double>(visited_records) / blocks};
}

/// Random addresses would give 1.1 entries in a small map, 1.5 in a large one, and 1.02 records.
constexpr double kEntriesMax = 2.0;
constexpr double kRecordsVisitedMax = 1.25;

void expect_short_chains(std::uint64_t stride, std::uint32_t blocks) {
  const Visits found = visits(stride, blocks);
  EXPECT_LE(found.entries, kEntriesMax) << stride;
  EXPECT_LE(found.records, kRecordsVisitedMax) << stride;
}

struct Size {
  std::uint32_t blocks;  // as many as the map holds before it grows, when chains are longest
  std::uint64_t stride_step;
};
class AddressMapChains : public ::testing::TestWithParam<Size> {};

TEST_P(AddressMapChains, StayShortAtEveryStride) {
  const Size size = GetParam();
  for (std::uint64_t stride = 512; stride <= std::uint64_t{1} << 32; stride *= 2) {
    expect_short_chains(stride, size.blocks);
  }
  for (const std::uint64_t unit :
       {std::uint64_t{512}, std::uint64_t{64} << 10, std::uint64_t{2} << 20}) {
    for (std::uint64_t multiple = 3; multiple <= 512; multiple += size.stride_step) {
      expect_short_chains(unit * multiple, size.blocks);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SmallAndLarge, AddressMapChains,
                         ::testing::Values(Size{1024, 1}, Size{4096, 4}, Size{32768, 16}));

}  // namespace
}  // namespace ashlar::block
