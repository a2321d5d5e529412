// C10: two processes whose drivers give them other addresses place every allocation alike.
//
// Imitates: ranks of one program, as symmetric memory needs them (pytorch#190977): the same ops on
// simulated machines that differ in the addresses of segments alone, with every setting of `reuse`,
// on several streams, with segments that are adopted, given back and got anew. Compared are the
// (segment ordinal, offset) of every allocation, and every outcome.
// Does not prove: that machines which answer otherwise (events, room) place alike; with reuse:own
// they do (lockstep_test).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/cache_sequences.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

/// What a run placed, and how it got there.
struct Placed {
  std::vector<Code> outcomes;
  std::uint64_t placed = 0;          ///< the hash of every (ordinal, offset)
  std::vector<std::uint64_t> bases;  ///< of the segments held, after each op
  bool is_disordered = false;        ///< somewhen a younger segment lay below an older one
  std::uint64_t given_back = 0;      ///< ops after which there were fewer segments
  std::uint64_t steals = 0;
  std::string divergence;
};

/// Returns how many segments are held.
std::size_t note_segments(spec::CacheLockstep& lockstep, Placed* run) {
  if (lockstep.model() == nullptr) return 0;
  const auto& held = lockstep.model()->device(DeviceId{0}).ledger.witness().segments();
  for (std::size_t i = 0; i < held.size(); ++i) {
    run->bases.push_back(held[i].base);
    run->is_disordered |= i > 0 && held[i].ordinal < held[i - 1].ordinal;
  }
  return held.size();
}

Placed run_at(const spec::OpFile& file, std::uint64_t address_seed) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.machine.address_seed = address_seed;
  spec::CacheLockstep lockstep(options);
  Placed run;
  std::size_t segments = 0;
  for (const spec::Op& op : file.ops) {
    if (!lockstep.step(op)) break;
    run.outcomes.push_back(lockstep.outcome());
    const std::size_t held = note_segments(lockstep, &run);
    run.given_back += held < segments;
    segments = held;
  }
  cache::DeviceStats stats;
  if (lockstep.subject() != nullptr && lockstep.subject()->stats(DeviceId{0}, &stats).is_ok())
    run.steals = stats.steals;
  const spec::LockstepResult& result = lockstep.finish();
  run.placed = result.address_hash;
  run.divergence = result.divergence.clause + result.divergence.text;
  return run;
}

spec::OpFile with_reuse(spec::OpFile file, const char* reuse) {
  file.ops.front().text += std::string(",") + reuse;
  return file;
}

/// Runs random sequences of a shape on machines with other addresses.
void expect_alike(const SequenceShape& shape, const char* reuse, std::uint64_t seeds) {
  std::uint64_t disordered = 0, moved = 0, given_back = 0, steals = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const spec::OpFile file = with_reuse(random_sequence(shape, seed), reuse);
    const Placed first = run_at(file, 0);
    ASSERT_EQ(first.divergence, "");
    for (const std::uint64_t addresses : {1u, 2u, 3u}) {
      const Placed other = run_at(file, addresses);
      ASSERT_EQ(other.divergence, "");
      ASSERT_EQ(other.outcomes, first.outcomes);
      ASSERT_EQ(other.placed, first.placed) << "addresses " << addresses;
      ASSERT_EQ(other.steals, first.steals);
      moved += other.bases != first.bases;
      disordered += other.is_disordered;
    }
    given_back += first.given_back;
    steals += first.steals;
  }
  // Otherwise this test shows nothing.
  EXPECT_GT(moved, seeds);
  EXPECT_GT(disordered, seeds / 2);
  EXPECT_GT(given_back, 0u);
  if (shape.streams > 1 && std::string(reuse) != "reuse:own") {
    EXPECT_GT(steals, seeds);
  }
}

constexpr const char* kReuses[] = {"reuse:own", "reuse:completed", "reuse:ordered"};

TEST(Placement, IsTheSameOnOtherAddressesWithEveryReuseAndSeveralStreams) {
  for (const char* const reuse : kReuses) {
    SCOPED_TRACE(reuse);
    for (const std::uint32_t streams : {1u, 3u}) {
      expect_alike({.ops = 400, .live_max = 48, .streams = streams}, reuse, 16);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Placement, IsTheSameOnOtherAddressesWhereMemoryRunsShort) {
  for (const char* const reuse : kReuses) {
    SCOPED_TRACE(reuse);
    expect_alike({.ops = 400, .live_max = 48, .has_capacity = true, .has_dead_streams = true},
                 reuse, 16);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Placement, IsTheSameOnOtherAddressesWithMemoryPoolsAndCaptures) {
  expect_alike({.ops = 400, .live_max = 48, .has_captures = true, .has_pools = true},
               "reuse:completed", 16);
}

TEST(Placement, OfEquallyLargeSegmentsTheSameGoBackOnOtherAddresses) {
  const auto five = [](unsigned from, const char* before, const char* behind) {
    std::string ops;
    for (unsigned p = from; p < from + 5; ++p) ops += before + std::to_string(p) + behind;
    return ops;
  };
  // The first five give their ranges to the other five, in an order that the addresses' seed chooses.
  const std::string full = "ashlar-ops 1 cache\ndevice d0 100MiB\n" +
                           five(0, "alloc p", " 20MiB s0\n") + five(0, "free p", "\n") +
                           "step s0 9\ntrim d0\n" + five(5, "alloc p", " 20MiB s0\n") +
                           five(5, "free p", "\n") + "step s0 9\n";
  // Three of the largest go back; then the smallest that is enough, for the other pool.
  for (const char* const then : {"alloc p10 50MiB s0\nalloc p11 20MiB s0\nalloc p12 20MiB s0\n",
                                 "alloc p10 512 s0\nalloc p11 20MiB s0\nalloc p12 20MiB s0\n"}) {
    spec::OpFile file;
    spec::TextError error;
    ASSERT_TRUE(spec::parse_ops(full + then, &file, &error)) << error.reason;
    const Placed first = run_at(file, 0);
    for (std::uint64_t addresses = 1; addresses < 16; ++addresses) {
      const Placed other = run_at(file, addresses);
      ASSERT_EQ(other.divergence, "");
      ASSERT_EQ(other.placed, first.placed) << then << "addresses " << addresses;
    }
  }
}

TEST(Placement, IsTheSameOnOtherAddressesWhenWalksAreLong) {
  // Hundreds of equal free blocks: walks let go of the heap's lock, and trees have branches.
  expect_alike({.ops = 6'000, .live_max = 1'500}, "reuse:completed", 3);
}

}  // namespace
}  // namespace ashlar::props
