// Call stacks as contexts: whose frames they are, one number for one stack, bounds.
//
// Imitates: a program whose functions allocate. Does not prove: who calls the recorder (history_test.cc), nor what a
// stripped program's frames are called.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/exchange.h>

namespace ashlar::exchange {
namespace {

/// Keeps a call from being the last thing that its caller does, which would take the caller's frame away.
cache::ContextId kept(cache::ContextId context) {
  asm volatile("" ::: "memory");
  return context;
}

[[gnu::noinline]] cache::ContextId gathered_in_a_static_function(StackContexts& stacks) {
  return kept(stacks.gather());
}
[[gnu::noinline]] cache::ContextId gathered_in_the_outer_one(StackContexts& stacks) {
  return kept(gathered_in_a_static_function(stacks));
}
[[gnu::noinline]] cache::ContextId gathered_below(StackContexts& stacks, int depth) {
  return kept(depth == 0 ? stacks.gather() : gathered_below(stacks, depth - 1));
}

TEST(StackContexts, FramesAreTheFunctionsThatCalledInnermostFirst) {
  StackContexts stacks;
  const std::vector<Frame> frames = stacks.frames_of(gathered_in_the_outer_one(stacks));
  ASSERT_GT(frames.size(), 3u);
  EXPECT_NE(frames[0].name.find("gathered_in_a_static_function"), std::string::npos)
      << frames[0].name;
  EXPECT_NE(frames[1].name.find("gathered_in_the_outer_one"), std::string::npos) << frames[1].name;
  EXPECT_NE(frames[2].name.find("FramesAreTheFunctions"), std::string::npos) << frames[2].name;
  EXPECT_EQ(frames[0].name.rfind("ashlar::", 0), 0u) << "demangled: " << frames[0].name;
  EXPECT_NE(frames[0].filename.find("exchange_test+0x"), std::string::npos) << frames[0].filename;
  const auto is_main = [](const Frame& frame) { return frame.name == "main"; };
  EXPECT_TRUE(std::any_of(frames.begin(), frames.end(), is_main));
  EXPECT_EQ(stacks.addresses_of(cache::ContextId{1}).empty(),
            stacks.frames()(cache::ContextId{1}).empty());
}

TEST(StackContexts, OneStackHasOneNumberAndAnotherOneHasAnother) {
  StackContexts stacks;
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 3; ++i) numbers.insert(gathered_in_a_static_function(stacks).value());
  EXPECT_EQ(numbers.size(), 1u);
  numbers.insert(gathered_in_the_outer_one(stacks).value());
  for (int depth = 0; depth < 40; ++depth) numbers.insert(gathered_below(stacks, depth).value());
  EXPECT_EQ(numbers.size(), 42u);
  EXPECT_EQ(stacks.count(), 42u);
  EXPECT_EQ(numbers.count(0), 0u);
  EXPECT_EQ(stacks.lost(), 0u);
}

TEST(StackContexts, TheInnermostFramesAreKeptAndSoManyStacks) {
  StackContexts stacks({.frames_max = 4, .stacks_max = 3});
  const cache::ContextId deep = gathered_below(stacks, 20);
  EXPECT_EQ(gathered_below(stacks, 21), deep) << "the same four";
  EXPECT_EQ(stacks.frames_of(deep).size(), 4u);
  EXPECT_NE(gathered_below(stacks, 1).value(), 0u);
  EXPECT_NE(gathered_below(stacks, 0).value(), 0u);
  EXPECT_EQ(gathered_in_the_outer_one(stacks), cache::ContextId{}) << "no room";
  EXPECT_EQ(stacks.lost(), 1u);
  EXPECT_EQ(gathered_below(stacks, 30), deep) << "what is known stays so";
  EXPECT_EQ(stacks.count(), 3u);
}

TEST(StackContexts, ThreadsGatherAtTheSameTime) {
  StackContexts stacks;
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint64_t>> numbers(4);
  for (auto& each : numbers) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) each.push_back(gathered_below(stacks, i % 20).value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : numbers) EXPECT_EQ(each, numbers[0]);
  EXPECT_EQ(stacks.count(), 20u);
}

TEST(StackContexts, AnUnknownContextHasNoFrames) {
  const StackContexts stacks;
  EXPECT_TRUE(stacks.frames()(cache::ContextId{0}).empty());
  EXPECT_TRUE(stacks.frames()(cache::ContextId{7}).empty());
}

TEST(ModuleSymbols, AnAddressOfNoModuleIsNamedByItsNumber) {
  ModuleSymbols symbols;
  const Frame frame = symbols.frame_at(0x10);
  EXPECT_EQ(frame.name, "??");
  EXPECT_EQ(frame.filename, "0x10");
  const Frame of_library = symbols.frame_at(reinterpret_cast<std::uintptr_t>(&std::rand));
  EXPECT_NE(of_library.filename.find("libc"), std::string::npos) << of_library.filename;
  EXPECT_NE(of_library.name.find("rand"), std::string::npos) << of_library.name;
}

}  // namespace
}  // namespace ashlar::exchange
