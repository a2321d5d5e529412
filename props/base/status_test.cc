// Status and Result as values, and the names of codes, which stored files contain: every code has
// one, no two are equal, and each maps back to its code.
#include <ashlar/base/status.h>

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace ashlar {
namespace {

TEST(Status, IsOkWhenDefault) {
  EXPECT_TRUE(Status{}.is_ok());
  EXPECT_STREQ(Status::ok().why(), "");
}

TEST(Status, CarriesItsCodeAndItsReasonAndComparesByCode) {
  const Status status{Code::kBusy, "still mapped"};
  EXPECT_FALSE(status.is_ok());
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_STREQ(status.why(), "still mapped");
  EXPECT_EQ(status, (Status{Code::kBusy, "another reason"}));
  EXPECT_FALSE(status == Status::ok());
}

TEST(Result, IsAValueOrAStatus) {
  const Result<int> good = 7;
  ASSERT_TRUE(good.is_ok());
  EXPECT_EQ(good.value(), 7);
  EXPECT_EQ(good.value_or(1), 7);
  EXPECT_EQ(good.code(), Code::kOk);
  const Result<int> bad{Code::kNotFound, "no such thing"};
  EXPECT_FALSE(bad.is_ok());
  EXPECT_EQ(bad.value_or(1), 1);
  EXPECT_EQ(bad.status(), (Status{Code::kNotFound, ""}));
}

#if GTEST_HAS_DEATH_TEST
/// Without assertions it was a default value, such as address 0, with which the program went on.
TEST(ResultDeathTest, TheValueOfAFailureStopsTheProgramInEveryBuildAndNamesTheStatus) {
  const Result<int> bad{Code::kNotFound, "no such thing"};
  constexpr const char* kSaid = "value.. of a failed Result: not-found: no such thing";
  EXPECT_DEATH(static_cast<void>(bad.value()), kSaid);
  EXPECT_DEATH(static_cast<void>(Result<int>(bad.status()).value()), kSaid);
}
#endif

TEST(CodeNames, AreDistinctAndRoundTrip) {
  std::set<std::string> names;
  unsigned known = 0;
  for (unsigned i = 0; i < 256; ++i) {
    const Code code = static_cast<Code>(i);
    const std::string name = code_name(code);
    if (name == "unknown") continue;
    known += 1;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(code_from_name(name.c_str()), code);
  }
  EXPECT_EQ(known, 24u);
  EXPECT_EQ(code_from_name("no-such-code"), std::nullopt);
  EXPECT_EQ(code_from_name("unknown"), std::nullopt);
}

}  // namespace
}  // namespace ashlar
