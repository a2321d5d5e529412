// Checked arithmetic at its limits: a result that would wrap is std::nullopt, never a small number.
#include <ashlar/base/checked.h>

#include <gtest/gtest.h>

namespace ashlar {
namespace {

constexpr std::uint64_t kMax = ~std::uint64_t{0};

TEST(Checked, ASumUpToTheLargestNumberIsReturnedAndALargerOneIsRefused) {
  EXPECT_EQ(checked_add(Bytes{kMax - 5}, 5_B), Bytes::max());
  EXPECT_FALSE(checked_add(Bytes{kMax - 5}, 6_B));
  EXPECT_EQ(checked_add(0_B, 0_B), 0_B);
}

TEST(Checked, AProductUpToTheLargestNumberIsReturnedAndALargerOneIsRefused) {
  EXPECT_EQ(checked_multiply(Bytes{kMax}, 1), Bytes::max());
  EXPECT_EQ(checked_multiply(Bytes{kMax / 3}, 3), Bytes{kMax});
  EXPECT_FALSE(checked_multiply(Bytes{kMax / 3 + 1}, 3));
  EXPECT_EQ(checked_multiply(Bytes::max(), 0), 0_B);
}

TEST(Checked, RoundingUpKeepsMultiplesAndRefusesToWrap) {
  EXPECT_EQ(checked_round_up(0_B, 512_B), 0_B);
  EXPECT_EQ(checked_round_up(1_B, 512_B), 512_B);
  EXPECT_EQ(checked_round_up(512_B, 512_B), 512_B);
  EXPECT_EQ(checked_round_up(513_B, 512_B), 1024_B);
  EXPECT_EQ(checked_round_up(7_B, 3_B), 9_B) << "the unit need not be a power of two";
  EXPECT_EQ(checked_round_up(Bytes{kMax - 511}, 512_B), Bytes{kMax - 511});
  EXPECT_FALSE(checked_round_up(Bytes{kMax - 510}, 512_B));
}

TEST(Checked, RoundingDownNeverIncreases) {
  EXPECT_EQ(round_down(511_B, 512_B), 0_B);
  EXPECT_EQ(round_down(1025_B, 512_B), 1024_B);
  EXPECT_EQ(round_down(Bytes::max(), 512_B), Bytes{kMax - 511});
}

TEST(Checked, PowersOfTwoAreRecognised) {
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(3));
  EXPECT_FALSE(is_power_of_two(kMax));
  for (unsigned i = 0; i < 64; ++i) EXPECT_TRUE(is_power_of_two(std::uint64_t{1} << i));
}

}  // namespace
}  // namespace ashlar
