// The address map's chains: how long they get where blocks lie at equal strides, as blocks of one size do. What the map finds
// is block_pool_test's and the lockstep suites'.
#include <ashlar/block/address_map.h>

#include <gtest/gtest.h>

#include "props/block/pool_peer.h"

namespace ashlar::block {
namespace {

/// Records visited by a find, on average over `blocks` addresses at that stride.
double visits(std::uint64_t stride, std::uint32_t blocks) {
  BlockSlab records;
  AddressMap map;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    EXPECT_TRUE(records.reserve_one() && map.reserve_one(records));
    const std::uint32_t index = records.take(kInUse);
    records[index].address = (std::uint64_t{0x7f} << 40) + i * stride;
    map.insert(records, index);
  }
  std::uint64_t sum = 0;
  for (std::uint64_t cell = 0; cell < map.capacity(); ++cell) {
    std::uint64_t length = 0;
    for (std::uint32_t i = PoolPeer::cells(map)[cell]; i != kNone; i = records.side<Link>(i).to) sum += ++length;
  }
  return static_cast<double>(sum) / blocks;
}

/// Random addresses would make it 1.1 in a small map and 1.5 in a large one.
constexpr double kVisitsMax = 2.0;

struct Size {
  std::uint32_t blocks;  // as many as the map holds before it grows: chains are at their longest
  std::uint64_t stride_step;
};
class AddressMapChains : public ::testing::TestWithParam<Size> {};

TEST_P(AddressMapChains, StayShortAtEveryStride) {
  const Size size = GetParam();
  for (std::uint64_t stride = 512; stride <= std::uint64_t{1} << 32; stride *= 2) {
    EXPECT_LE(visits(stride, size.blocks), kVisitsMax) << stride;
  }
  for (const std::uint64_t unit : {std::uint64_t{512}, std::uint64_t{64} << 10, std::uint64_t{2} << 20}) {
    for (std::uint64_t times = 3; times <= 512; times += size.stride_step) {
      EXPECT_LE(visits(unit * times, size.blocks), kVisitsMax) << unit << " x " << times;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SmallAndLarge, AddressMapChains,
                         ::testing::Values(Size{1024, 1}, Size{4096, 4}, Size{32768, 16}));

}  // namespace
}  // namespace ashlar::block
