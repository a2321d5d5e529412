// The caching allocator against its model, on random sequences of every shape. Imitated: caches
// that fill, split, merge, wait and run short; failing drivers, captures, misuse, dying streams,
// callbacks, lost devices, several devices.
// Not proved: anything about sequences not drawn; threads (the stress suites).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <iterator>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/cache_sequences.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

RC_GTEST_PROP(CacheLockstep, HasNoDivergenceOnAnyByteString, (std::vector<std::uint8_t> bytes)) {
  spec::OpFile file;
  byte_sequence(bytes, SIZE_MAX, &file);
  const std::string failure = judge_sequence(file);
  if (!failure.empty()) RC_FAIL(failure);
}

/// Ops drawn one by one, so that RapidCheck can shrink them too.
RC_GTEST_PROP(CacheLockstep, HasNoDivergenceOnSequencesOfDrawnOps, ()) {
  const auto seeds =
      *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>());
  SequenceShape shape = shape_from(*rc::gen::inRange<std::uint64_t>(0, 8192));
  spec::OpFile file = random_sequence(shape, *rc::gen::arbitrary<std::uint64_t>());
  file.ops.resize(std::min<std::size_t>(file.ops.size(), 8 + seeds.size()));
  for (const std::uint64_t seed : seeds) {
    shape.ops = 12;
    const spec::OpFile more = random_sequence(shape, seed);
    file.ops.insert(file.ops.end(), more.ops.begin(), more.ops.end());
  }
  const std::string failure = judge_sequence(file);
  if (!failure.empty()) RC_FAIL(failure);
}

TEST(CacheLockstep, HasNoDivergenceOnLongSequencesOfEveryShape) {
  for (std::uint64_t seed = 0; seed < 2048; ++seed) {
    const std::string failure = judge_sequence(random_sequence(shape_from(seed % 2048), seed));
    ASSERT_EQ(failure, "") << "seed " << seed;
  }
}

/// The world's network library keeps registrations by address, and drops them when it is told (DEV-24).
TEST(CacheLockstep, NoSendGoesThroughARegistrationWhoseMemoryHasGone) {
  constexpr const char* kConfs[] = {"backing:segments", "backing:pages,move:limit",
                                    "backing:pages,move:never",
                                    "backing:pages,wait_ms:0,reuse:own"};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SequenceShape shape = shape_from(seed * 10 % 4096);
    shape.has_capacity = shape.has_pins = true;
    shape.has_conf = shape.has_collections = false;
    spec::OpFile file = random_sequence(shape, seed);
    file.ops.front().text = kConfs[seed % std::size(kConfs)];
    const std::string failure = judge_sequence(file);
    ASSERT_EQ(failure, "") << "seed " << seed;
  }
}

/// Sparse walks raise no false alarm about the calls between them.
TEST(CacheLockstep, HasNoDivergenceWhereNotEveryCallIsWalked) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  for (std::uint64_t seed = 0; seed < 2048; ++seed) {
    options.stats_every = 2 + static_cast<std::uint32_t>(seed % 7);
    options.defers_last_walks = seed % 3 == 0;  // with it, as the fuzz target walks
    options.walk_every = options.defers_last_walks ? 1 : options.stats_every;
    const spec::LockstepResult result =
        spec::CacheLockstep::run(random_sequence(shape_from(seed % 2048), ~seed), options);
    ASSERT_EQ(result.divergence.clause + result.divergence.text, "")
        << "seed " << seed << ", op " << result.op_index;
  }
}

/// Each stream's event takes the machine a millisecond, and no wait is permitted.
TEST(CacheLockstep, ATrimOfManyIdleStreamsOnASlowMachineKnowsThatAllIsDone) {
  std::string text = "ashlar-ops 1 cache\nconf wait_ms:0\n";
  for (int i = 1; i <= 80; ++i) {
    const std::string n = std::to_string(i);
    text += "stream s" + n + " d0\nalloc p" + n + " 512 s" + n + "\nfree p" + n + "\n";
  }
  spec::OpFile file;
  spec::TextError error;
  ASSERT_TRUE(spec::parse_ops(text + "drain d0\ntrim d0\n", &file, &error));
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.machine.entries_per_ms = 1;
  EXPECT_EQ(spec::CacheLockstep::run(file, options).divergence.text, "") << "C28";
}

/// A poll may merge the block that fitted into one that is too large to take, and the call is then
/// a miss. Here it is the ninth call, which no walk follows.
TEST(CacheLockstep, MayMissWhereAMapBeforeTheCallShowsAFit) {
  spec::OpFile file;
  spec::TextError error;
  const char* const ops =
      "ashlar-ops 1 cache\nconf max_split_size_mb:22\nstream s1 d0\nalloc p0 21495808 s0\nalloc p1 "
      "1048577 s0\n"
      "kernel s1 p1 w\nuse p1 s1\nfree p0\nfree p1\nalloc p2 512 s0\nfree p2\nalloc p3 512 "
      "s0\nstep s1 9\nalloc p4 3MiB s0\n";
  ASSERT_TRUE(spec::parse_ops(ops, &file, &error)) << error.reason;
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.walk_every = 8;
  const spec::LockstepResult result = spec::CacheLockstep::run(file, options);
  EXPECT_EQ(result.skipped, 0u);
  EXPECT_EQ(result.divergence.clause + result.divergence.text, "");
}

TEST(CacheLockstep, HasNoDivergenceOnSequencesLongEnoughForMuchToPileUp) {
  // Each pair once diverged: with more events than are kept for reuse (6, 12), by an oversight of
  // sparse walks (38, 124), when one device's addresses came back as another's (255, 479).
  constexpr struct {
    std::uint64_t shape, seed;
  } kWorlds[] = {{6, 6}, {12, 12}, {38, 38}, {124, 124}, {255, 7}, {479, 479}};
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.walk_every = 64;
  for (const auto& world : kWorlds) {
    SequenceShape shape = shape_from(world.shape);
    shape.ops = 20'000;
    const spec::LockstepResult result =
        spec::CacheLockstep::run(random_sequence(shape, world.seed), options);
    EXPECT_EQ(result.divergence.clause + result.divergence.text, "")
        << "seed " << world.seed << ", op " << result.op_index;
  }
}

TEST(CacheLockstep, HasNoDivergenceWithManyLiveBlocksAndSparseWalks) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.walk_every = 64;
  SequenceShape shape;
  shape.ops = 20'000;
  shape.live_max = 4'000;
  const spec::LockstepResult result = spec::CacheLockstep::run(random_sequence(shape, 1), options);
  EXPECT_EQ(result.divergence.text, "");
  EXPECT_GT(result.checks, 15'000u);
}

TEST(CacheLockstep, TheSameOpsGiveTheSameAddressesTwice) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const spec::OpFile file = random_sequence(shape_from(seed * 8), seed);
    EXPECT_EQ(spec::CacheLockstep::run(file, options).address_hash,
              spec::CacheLockstep::run(file, options).address_hash);
  }
}

TEST(CacheLockstep, WithOwnStreamReuseTheOpsAloneDecideTheAddresses) {
  // The second half of C10: another seed of the adversary gives other device addresses and other
  // progress, but the same (segment, offset) pairs.
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    spec::OpFile file = random_sequence(SequenceShape{.live_max = 32, .streams = 1}, seed);
    spec::Op own;
    own.slot = spec::slot::kConf;
    own.text = "reuse:own";
    file.ops.insert(file.ops.begin(), own);
    std::erase_if(file.ops, [](const spec::Op& op) { return op.slot == spec::slot::kTrim; });
    const std::uint64_t first = spec::CacheLockstep::run(file, options).address_hash;
    std::erase_if(file.ops, [](const spec::Op& op) {
      return op.slot == spec::slot::kSeed || op.slot == spec::slot::kStep;
    });
    EXPECT_EQ(spec::CacheLockstep::run(file, options).address_hash, first) << seed;
  }
}

}  // namespace
}  // namespace ashlar::props
