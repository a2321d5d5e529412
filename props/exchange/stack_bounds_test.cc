// How much a recorder of call stacks keeps, and what its numbers stand for.
//
// Imitates: programs with deep recursion, and with more stacks than there is room for. Does not prove: what frames are called
// (stack_contexts_test.cc, module_symbols_test.cc).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include <ashlar/exchange.h>

namespace ashlar::exchange {
namespace {

/// A stack with `depth` frames more than with depth 0. The work behind the call keeps the caller's frame.
[[gnu::noinline]] cache::ContextId gathered_below(StackContexts& stacks, int depth) {
  const cache::ContextId context = depth == 0 ? stacks.gather() : gathered_below(stacks, depth - 1);
  asm volatile("" ::: "memory");
  return context;
}

TEST(StackBounds, SoManyInnermostFramesAreKept) {
  for (const unsigned most : {1u, 2u, 47u, 128u}) {
    StackContexts stacks({.frames_max = most});
    EXPECT_EQ(stacks.addresses_of(gathered_below(stacks, 300)).size(), most);
  }
  StackContexts usual;
  EXPECT_EQ(usual.addresses_of(gathered_below(usual, 300)).size(), 48u);
}

TEST(StackBounds, BoundsOutsideOfTheirRangeAreTakenToItsNearerEnd) {
  StackContexts least({.frames_max = 0, .stacks_max = 0});
  const cache::ContextId first = gathered_below(least, 3);
  EXPECT_EQ(least.addresses_of(first).size(), 1u);
  EXPECT_EQ(gathered_below(least, 9), first) << "the same one frame";
  EXPECT_EQ(least.gather(), cache::ContextId{}) << "another one";
  EXPECT_EQ(least.count(), 1u);
  EXPECT_EQ(least.lost(), 1u);
  for (const unsigned beyond : {129u, 0xffffffffu}) {
    StackContexts most({.frames_max = beyond});
    EXPECT_EQ(most.addresses_of(gathered_below(most, 300)).size(), StackContexts::kFramesMax);
  }
}

TEST(StackBounds, ADeeperStackHasTheFramesOfTheOther) {
  StackContexts stacks({.frames_max = 128});
  const std::vector<std::uintptr_t> shallow = stacks.addresses_of(gathered_below(stacks, 2));
  const std::vector<std::uintptr_t> deep = stacks.addresses_of(gathered_below(stacks, 12));
  ASSERT_EQ(deep.size(), shallow.size() + 10);
  // The innermost two are in the function itself, where it gathers and where it calls itself; the outermost are the caller's.
  EXPECT_TRUE(std::equal(shallow.begin(), shallow.begin() + 2, deep.begin()));
  const auto callers = static_cast<std::ptrdiff_t>(shallow.size()) - 4;
  EXPECT_TRUE(std::equal(shallow.end() - callers, shallow.end(), deep.end() - callers));
}

TEST(StackBounds, AStackEndsWithTheThreadsFirstFrame) {
  StackContexts stacks({.frames_max = 128});
  const std::vector<std::uintptr_t> addresses = stacks.addresses_of(gathered_below(stacks, 2));
  ASSERT_LT(addresses.size(), 128u) << "all of it";
  EXPECT_EQ(std::count(addresses.begin(), addresses.end(), 0u), 0);
}

TEST(StackBounds, AFrameIsOfItsCallAndNotOfWhatIsBehindIt) {
  StackContexts stacks;
  const cache::ContextId context = gathered_below(stacks, 2);
  const std::vector<std::uintptr_t> addresses = stacks.addresses_of(context);
  const std::vector<Frame> frames = stacks.frames_of(context);
  Dl_info program;
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(addresses[0]), &program), 0);
  // The last byte of the call is the one before the address where it returns to.
  std::ostringstream offset;
  offset << "+0x" << std::hex
         << addresses[0] - reinterpret_cast<std::uintptr_t>(program.dli_fbase) - 1;
  EXPECT_EQ(frames[0].filename.substr(frames[0].filename.rfind('+')), offset.str());
}

TEST(StackBounds, EveryNumberThatWasGivenHasItsStackAndNoOtherHasAny) {
  StackContexts stacks({.frames_max = 128});
  std::vector<std::uint64_t> numbers;
  for (int depth = 0; depth < 60; ++depth) numbers.push_back(gathered_below(stacks, depth).value());
  const std::size_t least = stacks.addresses_of(cache::ContextId{numbers[0]}).size();
  for (std::size_t depth = 0; depth < numbers.size(); ++depth) {
    const cache::ContextId context{numbers[depth]};
    EXPECT_EQ(stacks.addresses_of(context).size(), least + depth);
    EXPECT_EQ(stacks.frames_of(context).size(), least + depth);
  }
  const std::set<std::uint64_t> given(numbers.begin(), numbers.end());
  EXPECT_EQ(given.size(), 60u);
  for (std::uint64_t number = 0; number < 2000; ++number) {
    const bool has_stack = !stacks.addresses_of(cache::ContextId{number}).empty();
    EXPECT_EQ(has_stack, given.count(number) != 0) << number;
  }
  EXPECT_TRUE(stacks.addresses_of(cache::ContextId{~std::uint64_t{0}}).empty());
}

TEST(StackBounds, AStackThatIsNotKeptIsLostEachTime) {
  StackContexts stacks({.stacks_max = 2});
  const cache::ContextId first = gathered_below(stacks, 0), second = gathered_below(stacks, 1);
  for (std::uint64_t times = 1; times <= 3; ++times) {
    EXPECT_EQ(gathered_below(stacks, 2), cache::ContextId{});
    EXPECT_EQ(stacks.lost(), times);
    EXPECT_EQ(stacks.count(), 2u);
  }
  EXPECT_EQ(std::set({first.value(), second.value(), std::uint64_t{0}}).size(), 3u);
}

}  // namespace
}  // namespace ashlar::exchange
