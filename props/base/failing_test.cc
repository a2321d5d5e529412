// How the library says that something failed: a caller's misuse as a value, its own mistake by
// aborting, and what the standard library throws as a value again.
//
// Imitates: containers without memory, containers that are too long, callbacks that throw. Does not
// prove that every place uses them; the suites of a host without memory do.
#include <csignal>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include <ashlar/base/assert.h>
#include <ashlar/base/exceptions.h>
#include <ashlar/base/status.h>

namespace ashlar {
namespace {

Status require_positive(int number) {
  ASHLAR_REQUIRE(number > 0, Code::kMalformed, "not positive");
  return Status{};
}

TEST(Require, ReturnsItsCodeWhereTheConditionIsFalseAndGoesOnWhereItIsTrue) {
  EXPECT_TRUE(require_positive(1).is_ok());
  EXPECT_EQ(require_positive(0).code(), Code::kMalformed);
  EXPECT_STREQ(require_positive(0).why(), "not positive");
}

#if GTEST_HAS_DEATH_TEST
TEST(AssertionDeathTest, AFailedAssertionSaysWhereAndWhyAndAborts) {
  EXPECT_EXIT(assertion_failed("some.cc", 42, "C3: the reason"), ::testing::KilledBySignal(SIGABRT),
              "some.cc:42: ashlar assertion failed: C3: the reason");
}
#endif

#if defined(__cpp_exceptions)
TEST(Exceptions, AHostWithoutMemoryIsAValue) {
  int calls = 0;
  EXPECT_TRUE(with_host_memory([&] { calls += 1; }));
  EXPECT_FALSE(with_host_memory([&] {
    calls += 1;
    throw std::bad_alloc();
  }));
  EXPECT_FALSE(with_host_memory([&] {
    calls += 1;
    throw std::length_error("too long");
  }));
  EXPECT_EQ(calls, 3);
  EXPECT_THROW(with_host_memory([] { throw std::runtime_error("another"); }), std::runtime_error);
}

TEST(Exceptions, WhatAFunctionThrewIsKept) {
  EXPECT_EQ(exception_of([] {}), nullptr);
  const std::exception_ptr kept = exception_of([] { throw std::runtime_error("kept"); });
  ASSERT_NE(kept, nullptr);
  EXPECT_THROW(std::rethrow_exception(kept), std::runtime_error);
}
#endif

}  // namespace
}  // namespace ashlar
