// Exhaustive search: every short word over a small alphabet, each letter judged by the model, each
// world brought to its end (props/sequences/exhaustive.h).
//
// The counts are asserted: a change means that the alphabet or the allocator's policy changed. Only
// plain release builds search to the greater depths; ci/deep goes further. Not proved: anything
// beyond the depth or outside of the alphabet. What a merged state leaves out: cache_state_words.h.
#include <gtest/gtest.h>

#include <cstdio>

#include "props/sequences/exhaustive.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::props {
namespace {

/// Long enough for a difference to show: polls are postponed for a few calls.
constexpr unsigned kMergeSteps = 12;
#if ASHLAR_EXHAUSTIVE_FULL
constexpr unsigned kMergeDepth = 5;
constexpr unsigned kWordDepth = 5;
constexpr unsigned kStateDepth = 6;
constexpr std::uint64_t kWords = 179'098;
constexpr std::uint64_t kStates = 107'033;
#else
constexpr unsigned kMergeDepth = 4;
constexpr unsigned kWordDepth = 4;
constexpr unsigned kStateDepth = 4;
constexpr std::uint64_t kWords = 11'621;
constexpr std::uint64_t kStates = 2'412;
#endif

TEST(CacheExhaustive, EveryWordIsJudgedRightToItsEnd) {
  const SearchCounts counts = all_words({}, kWordDepth);
  EXPECT_EQ(counts.failure, "");
  std::printf("%llu words of %u letters\n", static_cast<unsigned long long>(counts.words),
              kWordDepth);
  EXPECT_EQ(counts.words, kWords);
}

TEST(CacheExhaustive, WordsThatLeadToOneStateGoOnAlike) {
  const SearchCounts counts = all_merges({.has_kernels = false}, kMergeDepth, kMergeSteps);
  EXPECT_EQ(counts.failure, "");
  std::printf("%llu merges\n", static_cast<unsigned long long>(counts.merges));
  EXPECT_GT(counts.merges, 1'000u);
}

TEST(CacheExhaustive, EveryStateIsJudgedRightToItsEnd) {
  const SearchCounts counts =
      all_states({.has_kernels = false}, kStateDepth, [](unsigned depth, const SearchCounts& now) {
        std::printf("depth %u: %llu states, %llu transitions so far\n", depth,
                    static_cast<unsigned long long>(now.states),
                    static_cast<unsigned long long>(now.transitions));
      });
  EXPECT_EQ(counts.failure, "");
  EXPECT_EQ(counts.states, kStates);
}

}  // namespace
}  // namespace ashlar::props
