// The log of places by itself: which place it expects a request at.
#include <cstdint>
#include <memory>
#include <vector>

#include <ashlar/cache/place_log.h>
#include <gtest/gtest.h>

namespace ashlar::cache {
namespace {

using block::Position;

constexpr std::uint32_t kContext = kPlaceContextMax;

class PlaceLogTest : public ::testing::Test {
 protected:
  static Bytes size_of(std::uint64_t i) { return 2_MiB * (1 + i % 97 * 31 % 89); }
  static Position place_of(std::uint64_t i) { return Position{(i + 1) << 30}; }
  /// Notes `count` requests of the sizes that size_of() gives, at places from `first` on.
  void note(std::uint64_t count, std::uint64_t first) {
    for (std::uint64_t i = 0; i < count; ++i) log_->note(size_of(i), place_of(first + i));
  }

  std::unique_ptr<PlaceLog> log_ = std::make_unique<PlaceLog>(kContext);
};

TEST_F(PlaceLogTest, ASequenceThatRepeatsIsExpectedWhereItWas) {
  constexpr std::uint64_t kStep = 90;
  note(kStep, 0);
  for (std::uint64_t i = 0; i < kStep; ++i) {
    const auto expected = log_->expected(size_of(i));
    if (i >= kContext - 1) {
      EXPECT_EQ(expected, place_of(i)) << i;
    } else {
      EXPECT_EQ(expected, std::nullopt) << i << ": the sizes before it were others";
    }
    log_->note(size_of(i), place_of(i));
  }
  for (std::uint64_t i = 0; i < kStep; ++i) {
    EXPECT_EQ(log_->expected(size_of(i)), place_of(i)) << i;
    log_->note(size_of(i), place_of(i));
  }
}

TEST_F(PlaceLogTest, TheNewestPlaceIsExpected) {
  constexpr std::uint64_t kStep = 90;
  for (std::uint64_t n = 0; n < 4; ++n) note(kStep, n * kStep);
  for (std::uint64_t i = 0; i < kStep; ++i) {
    EXPECT_EQ(log_->expected(size_of(i)), place_of(3 * kStep + i)) << i;
    log_->note(size_of(i), place_of(3 * kStep + i));
  }
}

// The layers of a network ask for the same sizes, over a longer stretch than the context.
TEST_F(PlaceLogTest, APlaceInASequenceOfEqualPartsIsNotTakenForAnother) {
  constexpr std::uint64_t kLayer = 2 * kContext;
  constexpr std::uint64_t kLayers = 6;
  const auto step = [&](bool is_judged) {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kLayer * kLayers; ++i) {
      const Bytes size = i == 0 ? 1_GiB : size_of(i % kLayer);
      wrong += log_->expected(size) != place_of(i);
      log_->note(size, place_of(i));
    }
    if (is_judged) {
      EXPECT_EQ(wrong, 0u);
    }
  };
  for (unsigned n = 0; n < 5; ++n) step(n >= 3);
}

TEST_F(PlaceLogTest, AnotherSizeThanExpectedEndsWhatItFollows) {
  constexpr std::uint64_t kStep = 90;
  for (std::uint64_t n = 0; n < 3; ++n) note(kStep, 0);
  log_->note(size_of(0), place_of(0));
  EXPECT_EQ(log_->expected(size_of(1)), place_of(1));
  log_->note(3_GiB, place_of(500));
  EXPECT_EQ(log_->expected(size_of(1)), std::nullopt);
  EXPECT_EQ(log_->expected(size_of(2)), std::nullopt);
}

TEST_F(PlaceLogTest, ItForgetsWhatLiesFurtherBackThanItsEntries) {
  constexpr std::uint64_t kStep = 90;
  for (const std::uint64_t between : {PlaceLog::kEntries - kStep, PlaceLog::kEntries}) {
    log_ = std::make_unique<PlaceLog>(kContext);
    note(kStep, 0);
    for (std::uint64_t i = 0; i < between; ++i) log_->note(3_GiB, place_of(1000));
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < kStep; ++i) {
      found += log_->expected(size_of(i)) == place_of(i);
      log_->note(size_of(i), place_of(i));
    }
    const bool is_known = between < PlaceLog::kEntries;
    EXPECT_EQ(found, is_known ? kStep - kContext + 1 : 0u) << between;
  }
}

}  // namespace
}  // namespace ashlar::cache
