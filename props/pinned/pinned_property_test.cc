// Random programs on the allocator of page-locked memory, each step checked (pinned_world.h).
//
// Imitates: programs that copy between the host and two GPUs, capture graphs and launch them, retire streams, misuse
// pointers, and meet drivers that fail. Does not prove: anything about threads or a real driver.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "props/pinned/pinned_world.h"
#include "spec/ops/random.h"

namespace ashlar::props {
namespace {

std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t size) {
  spec::Random random(seed);
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next() >> 32);
  return bytes;
}

TEST(PinnedProperty, RandomProgramsKeepEveryClause) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const std::vector<std::uint8_t> bytes = random_bytes(seed, 40 + seed % 1000);
    InputBytes input(bytes.data(), bytes.size());
    PinnedWorld world(input);
    EXPECT_EQ(world.run(), "") << "seed " << seed;
  }
}

/// What the first of some random programs that finds the planted bug says: its clause.
std::string clause_of(PinnedWorld::Plant plant) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<std::uint8_t> bytes = random_bytes(seed, 500);
    InputBytes input(bytes.data(), bytes.size());
    PinnedWorld world(input, plant);
    const std::string finding = world.run();
    if (!finding.empty()) return finding.substr(0, finding.find(':'));
  }
  return "";
}

TEST(PinnedProperty, EveryPlantedBugIsReported) {
  EXPECT_EQ(clause_of(PinnedWorld::Plant::kForgottenUse), "C7");
  EXPECT_EQ(clause_of(PinnedWorld::Plant::kIdleProcess), "C27");
  EXPECT_EQ(clause_of(PinnedWorld::Plant::kForgivenMisuse), "C16");
  EXPECT_EQ(clause_of(PinnedWorld::Plant::kLeak), "C15");
  EXPECT_EQ(clause_of(PinnedWorld::Plant::kForgottenPool), "C8");
}

}  // namespace
}  // namespace ashlar::props
