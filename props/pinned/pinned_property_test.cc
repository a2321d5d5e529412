// Random programs on the allocator of page-locked memory, each step checked (pinned_world.h).
//
// Imitates: programs that copy between the host and two GPUs, capture graphs and launch them, retire streams, misuse
// pointers, and meet drivers that fail. Does not prove: anything about threads or a real driver.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "props/pinned/pinned_world.h"
#include "spec/ops/random.h"

namespace ashlar::props {
namespace {

constexpr std::uint64_t kNever = 1'000'000'000;

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

/// Runs the program, the n-th driver call of that kind failing; n 0: none. Its finding, and how often each kind was called.
std::string run_failing(std::uint64_t seed, device::CallKind kind, std::uint64_t n,
                        spec::FailMode mode,
                        std::array<std::uint64_t, device::kCallKinds>* calls = nullptr) {
  const std::vector<std::uint8_t> bytes = random_bytes(seed, 250);
  InputBytes input(bytes.data(), bytes.size());
  PinnedWorld world(input);
  world.plan_failure(kind, n == 0 ? kNever : n, mode);
  const std::string finding = world.run();
  for (unsigned each = 0; calls != nullptr && each < device::kCallKinds; ++each)
    (*calls)[each] = world.driver_calls(static_cast<device::CallKind>(each));
  return finding;
}

TEST(PinnedProperty, EveryDriverCallMayFail) {  // C13
  std::uint64_t worlds = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::array<std::uint64_t, device::kCallKinds> calls{};
    ASSERT_EQ(run_failing(seed, device::CallKind::kPinnedAlloc, 0, spec::FailMode::kOnce, &calls),
              "");
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind) {
      for (std::uint64_t n = 1; n <= calls[kind]; ++n) {
        for (const spec::FailMode mode : {spec::FailMode::kOnce, spec::FailMode::kOn}) {
          const auto failing = static_cast<device::CallKind>(kind);
          ASSERT_EQ(run_failing(seed, failing, n, mode), "")
              << "seed " << seed << ", " << device::call_name(failing) << ' ' << n
              << (mode == spec::FailMode::kOn ? " and all later ones" : "");
          ++worlds;
        }
      }
    }
  }
  EXPECT_GT(worlds, 3000u);
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
