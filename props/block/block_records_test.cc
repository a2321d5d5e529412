// Records of blocks return what was written to them, whether it fits the compact fields or goes to
// an overflow record.
//
// Imitates: a slab whose records are taken, given back and moved, with values at the limits of each
// field, compared with plain numbers. Does not prove that a pool writes the right values; the
// lockstep suites test that.
#include <ashlar/block/block_records.h>

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "props/block/by_address.h"
#include "props/block/pool_peer.h"
#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

constexpr std::uint64_t kUnit = std::uint64_t{1} << BlockRecords::kUnitBits;
constexpr std::uint64_t kCenter = std::uint64_t{1} << 40;  // center_on() is called with it

/// What was written to one record, in plain numbers.
struct Written {
  std::uint64_t address, size, requested, user, stamp;
  bool owned;
};

/// Block records beside the plain numbers written to them.
class CheckedRecords {
 public:
  CheckedRecords() { records_.center_on(kCenter); }

  void take(std::uint64_t address, std::uint64_t size) {
    ASSERT_TRUE(records_.reserve_one());
    const std::uint32_t index = records_.take(kInUse);
    ASSERT_EQ(written_.count(index), 0u) << "a record is taken twice";
    records_.set_address(index, address);
    records_.set_size(index, size);
    written_[index] = Written{address, size, 0, 0, 0, false};
    set_stamp(index, 0);
  }
  void give_back(std::uint32_t index) {
    records_.give_back(index);
    written_.erase(index);
  }
  void resize(std::uint32_t index, std::uint64_t size) {
    Written& written = written_[index];
    if (written.owned && written.requested > size) return;
    written.size = size;
    records_.set_size(index, size);
    if (written.owned) records_.set_request(index, size, written.requested, written.user);
  }
  void set_request(std::uint32_t index, std::uint64_t requested, std::uint64_t user) {
    Written& written = written_[index];
    written.owned = true;
    written.requested = std::min(requested, written.size);
    written.user = user;
    records_.set_request(index, written.size, written.requested, user);
  }
  void set_stamp(std::uint32_t index, std::uint64_t stamp) {
    written_[index].owned = false;
    written_[index].stamp = stamp;
    records_.set_stamp(index, stamp);
  }
  std::uint32_t nth(std::uint64_t n) const {
    return std::next(written_.begin(), static_cast<long>(n % written_.size()))->first;
  }
  std::size_t count() const { return written_.size(); }

  void expect_as_written() const {
    for (const auto& [index, written] : written_) {
      EXPECT_EQ(records_.address(index), written.address);
      EXPECT_EQ(records_.size(index), written.size);
      if (written.owned) {
        EXPECT_EQ(records_.requested(index, written.size), written.requested);
        EXPECT_EQ(records_.user(index), written.user);
        EXPECT_EQ(records_.has_user(index), written.user != 0);
      } else {
        EXPECT_EQ(records_.stamp(index), written.stamp);
      }
    }
    EXPECT_TRUE(records_.accounts_for(written_.size()));
  }

 private:
  BlockRecords records_;
  std::map<std::uint32_t, Written> written_;
};

/// A number at or near a limit of some field: of an address below and above the center, a size,
/// request_or_stamp; or of a unit.
std::uint64_t near_limit(spec::Random& dice) {
  const std::uint64_t reach = std::uint64_t{1} << 31;
  const std::uint64_t limits[] = {0,
                                  kUnit,
                                  kCenter,
                                  kCenter - reach * kUnit,
                                  kCenter + reach * kUnit,
                                  2 * reach * kUnit,
                                  reach - 1,
                                  2 * reach - 1,
                                  reach,
                                  std::uint64_t{1} << 57};
  const std::uint64_t limit = limits[dice.below(std::size(limits))];
  const std::uint64_t by = (dice.below(2) == 0 ? 1 : kUnit) * dice.below(3);
  return dice.below(2) == 0 ? limit + by : limit - std::min(limit, by);
}

TEST(BlockRecords, ReturnWhatWasWrittenOnEitherSideOfEveryLimit) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    spec::Random dice(seed);
    CheckedRecords records;
    for (int step = 0; step < 200; ++step) {
      if (records.count() == 0 || dice.below(4) == 0)
        records.take(near_limit(dice), near_limit(dice));
      const std::uint32_t index = records.nth(dice.next());
      switch (dice.below(5)) {
        case 0: records.resize(index, near_limit(dice)); break;
        case 1: records.set_request(index, near_limit(dice), dice.below(2) * dice.next()); break;
        case 2: records.set_stamp(index, near_limit(dice)); break;
        case 3: records.set_stamp(index, ~std::uint64_t{0} - dice.below(2)); break;
        default:
          if (dice.below(3) == 0) records.give_back(index);
      }
      records.expect_as_written();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

TEST(BlockRecords, ValuesUpToTheLimitAreCompactAndTheFirstBeyondOverflows) {
  BlockRecords records;
  records.center_on(kCenter);
  ASSERT_TRUE(records.reserve_one());
  const std::uint32_t i = records.take(kInUse);
  const auto address_overflows = [&](std::uint64_t address) {
    records.set_address(i, address);
    return records[i].address == BlockRecords::kInOverflow;
  };
  const std::uint64_t reach = (std::uint64_t{1} << 31) * kUnit;
  EXPECT_FALSE(address_overflows(kCenter - reach));
  EXPECT_TRUE(address_overflows(kCenter - reach - kUnit));
  EXPECT_FALSE(address_overflows(kCenter + reach - 2 * kUnit));
  EXPECT_TRUE(address_overflows(kCenter + reach - kUnit)) << "its unit count is kInOverflow itself";
  EXPECT_TRUE(address_overflows(kCenter + 16));
  const auto size_overflows = [&](std::uint64_t size) {
    records.set_size(i, size);
    return records[i].size == BlockRecords::kInOverflow;
  };
  EXPECT_FALSE(size_overflows(2 * reach - 2 * kUnit));
  EXPECT_TRUE(size_overflows(2 * reach - kUnit));
  EXPECT_TRUE(size_overflows(kUnit + 16));
}

TEST(BlockRecords, OverflowRecordsSurviveGrowth) {
  CheckedRecords records;
  records.take(kCenter, 1 << 20);
  records.set_request(records.nth(0), 1, 7);
  // These use no overflow record.
  for (std::uint64_t i = 1; i < 1000; ++i) records.take(kCenter + i * kUnit, kUnit);
  records.expect_as_written();
}

TEST(BlockRecords, APoolsAddressesOverflowOnlyFarFromItsFirstSegment) {
  BlockPool pool{512_B};
  for (const std::uint64_t first :
       {std::uint64_t{1} << 46, std::uint64_t{1} << 20, std::uint64_t{0x7f} << 40}) {
    std::vector<SegmentIndex> segments;
    for (const std::uint64_t far :
         {std::uint64_t{0}, std::uint64_t{1} << 39, std::uint64_t{1} << 50}) {
      segments.push_back(add_by_address(pool, Address{first + far}, 2_MiB, 0, 0));
      const bool overflows = PoolPeer::record(pool, pool.view(segments.back()).first).address ==
                             BlockRecords::kInOverflow;
      EXPECT_EQ(overflows, far == std::uint64_t{1} << 50) << first << " + " << far;
    }
    EXPECT_STREQ(pool.validate(), nullptr);
    for (const SegmentIndex segment :
         segments) {  // so that the next round's first segment sets the origin
      pool.lift(pool.view(segment).first);
      pool.remove_segment(segment);
    }
  }
}

}  // namespace
}  // namespace ashlar::block
