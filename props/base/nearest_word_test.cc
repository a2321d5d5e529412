// The word that an unknown one was probably meant to be.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/base/nearest_word.h>

namespace ashlar {
namespace {

TEST(NearestWord, ASlipOfTheHandCountsAsOneLetter) {
  EXPECT_EQ(edit_distance("check", "check"), 0u);
  EXPECT_EQ(edit_distance("chek", "check"), 1u) << "left out";
  EXPECT_EQ(edit_distance("checkk", "check"), 1u) << "doubled";
  EXPECT_EQ(edit_distance("chack", "check"), 1u) << "exchanged";
  EXPECT_EQ(edit_distance("chekc", "check"), 1u) << "swapped with its neighbour";
  EXPECT_EQ(edit_distance("", "check"), 5u);
  EXPECT_EQ(edit_distance("plan", "graph"), 4u);
}

TEST(NearestWord, OnlyANearWordIsNamedAndOfEquallyNearOnesTheFirst) {
  const std::vector<std::string_view> known{"replay", "check", "reduce", "plan", "graph"};
  EXPECT_EQ(nearest_word("chek", known), "check");
  EXPECT_EQ(nearest_word("pln", known), "plan");
  EXPECT_EQ(nearest_word("recude", known), "reduce");
  EXPECT_EQ(nearest_word("xyz", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word("ab", std::vector<std::string_view>{"ac", "ad"}), "ac");
  EXPECT_EQ(nearest_word(std::string_view(std::string(65, 'a')), known), "");
}

}  // namespace
}  // namespace ashlar
