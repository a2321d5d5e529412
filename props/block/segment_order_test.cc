// The order of segments by address: what contains an address, after any history.
//
// Imitates: thousands of segments that come and go, at rising, falling and random addresses, beside
// a sorted map. Does not prove that the pool keeps the order up to date (its validate() does).
#include <ashlar/block/segment_records.h>

#include <map>

#include <gtest/gtest.h>

#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

constexpr std::uint64_t kUnit = 4096;

/// An order beside a sorted map of base to segment.
class CheckedOrder {
 public:
  void insert(std::uint64_t base) {
    if (by_base_.contains(base)) return;
    if (records_.must_grow()) {
      ASSERT_TRUE(order_.reserve(records_.capacity_next()));
    }
    ASSERT_TRUE(records_.reserve_one());
    const std::uint32_t index = records_.take(kInUse);
    records_[index] = SegmentRecord{};
    records_[index].base = base;
    records_[index].size = kUnit;
    order_.insert(records_, index);
    by_base_[base] = index;
  }
  void erase(std::uint64_t n) {
    const auto at = std::next(by_base_.begin(), static_cast<long>(n % by_base_.size()));
    EXPECT_EQ(order_.erase(records_, at->first + kUnit / 2), at->second);
    records_.give_back(at->second);
    by_base_.erase(at);
  }
  void expect_found() const {
    for (const auto& [base, index] : by_base_) {
      ASSERT_EQ(order_.find(base), index);
      ASSERT_EQ(order_.find(base + kUnit - 16), index);
    }
  }
  std::size_t count() const { return by_base_.size(); }

 private:
  SegmentRecords records_;
  SegmentOrder order_;
  std::map<std::uint64_t, std::uint32_t> by_base_;
};

TEST(SegmentOrder, FindsWhatContainsAnAddressWhateverTheOrderOfInsertion) {
  constexpr std::uint64_t kMiddle = std::uint64_t{1} << 46;
  CheckedOrder rising, falling;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    rising.insert(kMiddle + i * kUnit);
    falling.insert(kMiddle - i * kUnit);
  }
  rising.expect_found();
  falling.expect_found();
}

TEST(SegmentOrder, AgreesWithASortedMapWhileSegmentsComeAndGo) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    spec::Random dice(seed);
    CheckedOrder order;
    const std::uint64_t spread = std::uint64_t{1} << (8 + dice.below(40));
    for (unsigned step = 0; step < 3000; ++step) {
      if (order.count() < 4 || dice.below(2 + step / 1000) == 0) {
        order.insert(dice.below(spread) * kUnit);
      } else if (dice.below(3) != 0) {
        order.erase(dice.next());
      }
      if (step % 100 == 0) order.expect_found();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace ashlar::block
