// Blocks' records say what was written to them, on either side of what fits them: against plain
// numbers, while records are taken, given back and moved. Which values a pool writes is the
// lockstep suites'.
#include <ashlar/block/block_records.h>

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "props/block/pool_ops.h"
#include "props/block/pool_peer.h"

namespace ashlar::block {
namespace {

constexpr std::uint64_t kUnit = std::uint64_t{1} << BlockRecords::kUnitBits;
constexpr std::uint64_t kNear = std::uint64_t{1} << 40;  // an address whose blocks' are near

/// What one record was told, in plain numbers.
struct Told {
  std::uint64_t address, size, requested, word, stamp;
  bool owned;
};

class Records {
 public:
  Records() { records_.come_near(kNear); }

  void take(std::uint64_t address, std::uint64_t size) {
    ASSERT_TRUE(records_.reserve_one());
    const std::uint32_t index = records_.take(kInUse);
    ASSERT_EQ(told_.count(index), 0u) << "a record is taken twice";
    records_.set_address(index, address);
    records_.set_size(index, size);
    told_[index] = Told{address, size, 0, 0, 0, false};
    set_stamp(index, 0);
  }
  void put(std::uint32_t index) {
    records_.put(index);
    told_.erase(index);
  }
  void resize(std::uint32_t index, std::uint64_t size) {
    Told& told = told_[index];
    if (told.owned && told.requested > size) return;
    told.size = size;
    records_.set_size(index, size);
    if (told.owned) records_.set_request(index, size, told.requested, told.word);
  }
  void set_request(std::uint32_t index, std::uint64_t requested, std::uint64_t word) {
    Told& told = told_[index];
    told.owned = true;
    told.requested = std::min(requested, told.size);
    told.word = word;
    records_.set_request(index, told.size, told.requested, word);
  }
  void set_stamp(std::uint32_t index, std::uint64_t stamp) {
    told_[index].owned = false;
    told_[index].stamp = stamp;
    records_.set_stamp(index, stamp);
  }
  std::uint32_t nth(std::uint64_t n) const {
    return std::next(told_.begin(), static_cast<long>(n % told_.size()))->first;
  }
  std::size_t count() const { return told_.size(); }

  void expect_as_told() const {
    for (const auto& [index, told] : told_) {
      EXPECT_EQ(records_.address(index), told.address);
      EXPECT_EQ(records_.size(index), told.size);
      if (told.owned) {
        EXPECT_EQ(records_.requested(index, told.size), told.requested);
        EXPECT_EQ(records_.word(index), told.word);
        EXPECT_EQ(records_.has_word(index), told.word != 0);
      } else {
        EXPECT_EQ(records_.stamp(index), told.stamp);
      }
    }
    EXPECT_TRUE(records_.holds(told_.size()));
  }
  const BlockRecords& records() const { return records_; }

 private:
  BlockRecords records_;
  std::map<std::uint32_t, Told> told_;
};

/// A number at or about one where something ends: a record's reach below and above the origin, its
/// size, its number; a unit.
std::uint64_t edge(props::Dice& dice) {
  const std::uint64_t reach = std::uint64_t{1} << 31;
  const std::uint64_t ends[] = {0,
                                kUnit,
                                kNear,
                                kNear - reach * kUnit,
                                kNear + reach * kUnit,
                                2 * reach * kUnit,
                                reach - 1,
                                2 * reach - 1,
                                reach,
                                std::uint64_t{1} << 57};
  const std::uint64_t end = ends[dice.below(std::size(ends))];
  const std::uint64_t by = (dice.below(2) == 0 ? 1 : kUnit) * dice.below(3);
  return dice.below(2) == 0 ? end + by : end - std::min(end, by);
}

TEST(BlockRecords, SayWhatTheyWereToldOnEitherSideOfEveryEdge) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    props::Dice dice(seed);
    Records records;
    for (int step = 0; step < 200; ++step) {
      if (records.count() == 0 || dice.below(4) == 0) records.take(edge(dice), edge(dice));
      const std::uint32_t index = records.nth(dice.next());
      switch (dice.below(5)) {
        case 0: records.resize(index, edge(dice)); break;
        case 1: records.set_request(index, edge(dice), dice.below(2) * dice.next()); break;
        case 2: records.set_stamp(index, edge(dice)); break;
        case 3: records.set_stamp(index, ~std::uint64_t{0} - dice.below(2)); break;
        default:
          if (dice.below(3) == 0) records.put(index);
      }
      records.expect_as_told();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

TEST(BlockRecords, WhatIsNearFitsTheRecordAndTheFirstBeyondDoesNot) {
  BlockRecords records;
  records.come_near(kNear);
  ASSERT_TRUE(records.reserve_one());
  const std::uint32_t i = records.take(kInUse);
  const auto address_is_apart = [&](std::uint64_t address) {
    records.set_address(i, address);
    return records[i].address == BlockRecords::kApart;
  };
  const std::uint64_t reach = (std::uint64_t{1} << 31) * kUnit;
  EXPECT_FALSE(address_is_apart(kNear - reach));
  EXPECT_TRUE(address_is_apart(kNear - reach - kUnit));
  EXPECT_FALSE(address_is_apart(kNear + reach - 2 * kUnit));
  EXPECT_TRUE(address_is_apart(kNear + reach - kUnit))
      << "whose number is the sign of what stands apart";
  EXPECT_TRUE(address_is_apart(kNear + 16));
  const auto size_is_apart = [&](std::uint64_t size) {
    records.set_size(i, size);
    return records[i].size == BlockRecords::kApart;
  };
  EXPECT_FALSE(size_is_apart(2 * reach - 2 * kUnit));
  EXPECT_TRUE(size_is_apart(2 * reach - kUnit));
  EXPECT_TRUE(size_is_apart(kUnit + 16));
}

TEST(BlockRecords, WhatStandsApartOutlivesEveryGrowthThatFollows) {
  Records records;
  records.take(kNear, 1 << 20);
  records.set_request(records.nth(0), 1, 7);
  // nothing of these does
  for (std::uint64_t i = 1; i < 1000; ++i) records.take(kNear + i * kUnit, kUnit);
  records.expect_as_told();
}

TEST(BlockRecords, APoolsOwnStandApartOnlyFarFromItsFirstSegment) {
  BlockPool pool{512_B};
  for (const std::uint64_t first :
       {std::uint64_t{1} << 46, std::uint64_t{1} << 20, std::uint64_t{0x7f} << 40}) {
    std::vector<SegmentIndex> segments;
    for (const std::uint64_t far :
         {std::uint64_t{0}, std::uint64_t{1} << 39, std::uint64_t{1} << 50}) {
      segments.push_back(pool.add_segment(Address{first + far}, 2_MiB, 0, 0));
      const bool is_apart =
          PoolPeer::record(pool, pool.view(segments.back()).first).address == BlockRecords::kApart;
      EXPECT_EQ(is_apart, far == std::uint64_t{1} << 50) << first << " + " << far;
    }
    EXPECT_STREQ(pool.validate(), nullptr);
    for (const SegmentIndex segment : segments) {  // so that the next first one is another
      pool.lift(pool.view(segment).first);
      pool.remove_segment(segment);
    }
  }
}

}  // namespace
}  // namespace ashlar::block
