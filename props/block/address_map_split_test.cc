// The address map while it grows: at every step of a split each entry is found, none is found
// twice, and what a wrong split would do is noticed.
//
// Imitates: a pool whose live blocks come, go and become more; then three bugs of a split: a cell
// that is skipped, a find and an erase that do not look into the lower half. Does not prove that
// the pool calls reserve_one() before each insertion (block_pool_memory_test).
#include <ashlar/block/address_map.h>

#include <vector>

#include <gtest/gtest.h>

#include "props/block/pool_peer.h"
#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

/// A map beside the addresses that are in it.
class CheckedMap {
 public:
  void insert() {
    ASSERT_TRUE(records_.reserve_one() && map_.reserve_one(records_));
    const std::uint32_t index = records_.take(kInUse);
    const std::uint64_t address = (std::uint64_t{0x7f} << 40) + 512 * next_++;
    records_.set_address(index, address);
    map_.insert(records_, index, address);
    live_.push_back(index);
  }
  void erase(std::uint64_t n) {
    std::swap(live_[n % live_.size()], live_.back());
    const std::uint32_t index = live_.back();
    map_.erase(records_, index, records_.address(index));
    EXPECT_EQ(map_.find(records_, records_.address(index)), kNone);
    records_.give_back(index);
    live_.pop_back();
  }
  /// Inserts until the map begins to split.
  void insert_until_it_splits(std::size_t at_least) {
    while (live_.size() < at_least || !map_.is_splitting()) insert();
  }
  std::uint32_t find(std::uint32_t index) const {
    return map_.find(records_, records_.address(index));
  }
  void expect_all_found() const {
    ASSERT_TRUE(map_.is_consistent(records_)) << live_.size();
    ASSERT_EQ(map_.count(), live_.size());
    for (const std::uint32_t index : live_) ASSERT_EQ(find(index), index);
    ASSERT_EQ(map_.find(records_, 512), kNone);
  }
  /// The first cell that is not split and has an entry of its upper half.
  std::uint32_t waiting_cell() const {
    for (std::uint32_t cell = PoolPeer::split(map_); cell < PoolPeer::half(map_); ++cell) {
      for (std::uint32_t entry = PoolPeer::cells(map_)[cell]; entry != kNone;
           entry = records_.link(PoolPeer::index_of(entry)).to) {
        waiting_ = PoolPeer::index_of(entry);
        if (PoolPeer::waits(map_, records_.address(waiting_))) return cell;
      }
    }
    ADD_FAILURE() << "no entry waits";
    return 0;
  }

  AddressMap map_;
  BlockRecords records_;
  std::vector<std::uint32_t> live_;
  mutable std::uint32_t waiting_ = kNone;  ///< an entry in waiting_cell()
  std::uint64_t next_ = 0;
};

TEST(AddressMapSplit, EveryEntryIsFoundAtEveryStep) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    spec::Random dice(seed);
    CheckedMap map;
    unsigned splits = 0;
    bool was_splitting = false;
    while (map.live_.size() < 1500) {
      if (map.live_.empty() || dice.below(5) < 3) {
        map.insert();
      } else {
        map.erase(dice.next());
      }
      splits += map.map_.is_splitting() && !was_splitting;
      was_splitting = map.map_.is_splitting();
      map.expect_all_found();
      if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    }
    EXPECT_GE(splits, 5u);
    while (!map.live_.empty()) map.erase(dice.next());
    map.expect_all_found();
  }
}

TEST(AddressMapSplit, EndsLongBeforeTheNextGrowth) {
  CheckedMap map;
  std::uint64_t capacity = 0;
  std::uint64_t inserted = 0, split_in = 0;
  for (unsigned i = 0; i < 200000; ++i) {
    map.insert();
    if (map.map_.capacity() != capacity) {
      EXPECT_TRUE(capacity == 0 || 2 * split_in <= inserted) << capacity;
      capacity = map.map_.capacity();
      inserted = split_in = 0;
    }
    inserted += 1;
    split_in += map.map_.is_splitting();
  }
  map.expect_all_found();
}

TEST(AddressMapSplit, ACellThatIsSkippedIsNoticed) {
  CheckedMap map;
  map.insert_until_it_splits(100);
  const std::uint32_t cell = map.waiting_cell();
  const std::uint32_t lost = map.waiting_;
  PoolPeer::split(map.map_) = cell + 1;
  EXPECT_FALSE(map.map_.is_consistent(map.records_));
  EXPECT_EQ(map.find(lost), kNone) << "a find looks where no entry may wait";
}

TEST(AddressMapSplit, AFindThatIgnoresTheLowerHalfIsNoticed) {
  CheckedMap map;
  map.insert_until_it_splits(100);
  map.waiting_cell();
  const std::uint32_t lost = map.waiting_;
  EXPECT_EQ(map.find(lost), lost);
  PoolPeer::split(map.map_) = PoolPeer::half(map.map_);  // as if nothing waited
  EXPECT_EQ(map.find(lost), kNone);
  EXPECT_FALSE(map.map_.is_consistent(map.records_));
}

#if ASHLAR_ASSERTIONS && GTEST_HAS_DEATH_TEST
TEST(AddressMapSplitDeathTest, AnEraseThatIgnoresTheLowerHalfIsNoticed) {
  CheckedMap map;
  map.insert_until_it_splits(100);
  map.waiting_cell();
  const std::uint32_t lost = map.waiting_;
  PoolPeer::split(map.map_) = PoolPeer::half(map.map_);
  EXPECT_DEATH(map.map_.erase(map.records_, lost, map.records_.address(lost)),
               "address map\\(1\\): an entry is missing");
}
#endif

TEST(AddressMapSplit, AnEntryInTheWrongHalfIsNoticed) {
  CheckedMap map;
  map.insert_until_it_splits(100);
  // An entry of a lower half put into the upper one: a split that looks at the wrong bit.
  std::uint32_t* const cells = PoolPeer::cells(map.map_);
  std::uint32_t cell = 0;
  while (cells[cell] == kNone ||
         PoolPeer::waits(map.map_, map.records_.address(PoolPeer::index_of(cells[cell])))) {
    ++cell;
  }
  ASSERT_LT(cell, PoolPeer::half(map.map_));
  std::swap(cells[cell], cells[cell + PoolPeer::half(map.map_)]);
  EXPECT_FALSE(map.map_.is_consistent(map.records_));
}

}  // namespace
}  // namespace ashlar::block
