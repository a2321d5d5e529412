// The incremental walker against the plain one: the same calls, the same verdict, the same recount
// and the same bounds after every op.
//
// Imitated: every sort of sequence that the judge meets (random ones of every shape, the stored
// ones, walks at every call and sparse walks); broken subjects are compared in checkers_*_test.cc.
// Not proved: that the plain walker is right; it is short, and checkers_*_test.cc see it fire.
#include <gtest/gtest.h>

#include <algorithm>

#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/cache_sequences.h"
#include "props/sequences/stored_sequences.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/model/plain_walker.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

using spec::CacheLockstep;
using Options = CacheLockstep::Options;

std::string verdict_of(const spec::LockstepResult& result) {
  return result.divergence.clause + ": " + result.divergence.text;
}

/// The same figures for every heap of either.
bool is_same_recount(const spec::Recount& a, const spec::Recount& b) {
  if (a.heaps.size() != b.heaps.size() || a.sum.cell != b.sum.cell) return false;
  return std::all_of(a.heaps.begin(), a.heaps.end(), [&b](const spec::HeapCount& heap) {
    return std::any_of(b.heaps.begin(), b.heaps.end(), [&heap](const spec::HeapCount& other) {
      return other.heap == heap.heap && other.now.cell == heap.now.cell;
    });
  });
}

bool is_same_bounds(const spec::StatBounds& a, const spec::StatBounds& b) {
  return a.increased().cell == b.increased().cell && a.peak_least().cell == b.peak_least().cell &&
         a.peak_most().cell == b.peak_most().cell;
}

/// What differs between the two judges now; empty: nothing.
std::string difference(CacheLockstep& a, CacheLockstep& b) {
  if (verdict_of(a.result()) != verdict_of(b.result()))
    return verdict_of(a.result()) + " or " + verdict_of(b.result());
  if (a.model() == nullptr || !a.result().is_good()) return {};
  for (std::uint32_t i = 0; i < a.gpu()->device_count(); ++i) {
    const spec::JudgedDevice& one = a.model()->device(spec::device_id(i));
    const spec::JudgedDevice& other = b.model()->device(spec::device_id(i));
    if (!is_same_recount(one.recount, other.recount)) return "the recounts differ";
    if (!is_same_bounds(one.bounds, other.bounds)) return "the bounds differ";
    if (one.books.owned().size() != other.books.owned().size()) return "the books differ";
  }
  return {};
}

/// Runs the ops judged by either walker in turn; the first difference.
std::string compare(const spec::OpFile& file, Options options, spec::WalkerFactory walker) {
  options.walker = spec::make_plain_walker;
  CacheLockstep plain(options);
  options.walker = walker;
  CacheLockstep other(options);
  for (const spec::Op& op : file.ops) {
    const bool goes_on = plain.step(op);
    if (other.step(op) != goes_on) return "one of them stops at " + spec::print_op(op);
    const std::string differs = difference(plain, other);
    if (!differs.empty()) return differs + " at " + spec::print_op(op);
    if (!goes_on) break;
  }
  const spec::LockstepResult& a = plain.finish();
  const spec::LockstepResult& b = other.finish();
  if (a.address_hash != b.address_hash || a.walks != b.walks) return "the ends differ";
  return difference(plain, other);
}

Options sound() {
  Options options;
  options.factory = caching_allocator_factory();
  return options;
}

TEST(Walkers, AgreeAtEveryStepOfSequencesOfEveryShape) {
  Options options = sound();
  for (std::uint64_t seed = 0; seed < 1024; ++seed) {
    options.stats_every = 1 + static_cast<std::uint32_t>(seed % 5);
    options.walk_every = seed % 3 == 0 ? options.stats_every : 1;
    const spec::OpFile file = random_sequence(shape_from(seed % 512), seed * 31);
    ASSERT_EQ(compare(file, options, spec::make_incremental_walker), "") << "seed " << seed;
  }
}

TEST(Walkers, AgreeOnALongSequenceWithManyLiveBlocks) {
  SequenceShape shape;
  shape.ops = 4'000;
  shape.live_max = 1'000;
  EXPECT_EQ(compare(random_sequence(shape, 1), sound(), spec::make_incremental_walker), "");
}

TEST(Walkers, AgreeOnEveryStoredSequence) {
  const unsigned count = for_each_stored(
      ASHLAR_REGRESSIONS, spec::Subject::kCache, [](const spec::OpFile& file, const auto& path) {
        EXPECT_EQ(compare(file, sound(), spec::make_incremental_walker), "") << path;
      });
  EXPECT_GT(count, 20u);
}

// What was freed in a segment that came and went between two walks is complete, though the segments before
// and behind it are as they were. Otherwise the next walk, perhaps a query's, finds that out (C13).
TEST(Walkers, AgreeOnASegmentThatComesAndGoesBetweenTwoWalks) {
  spec::OpFile file;
  spec::TextError error;
  ASSERT_TRUE(spec::parse_ops(
      "ashlar-ops 1 cache\ndevice d0 72MiB\nalloc p0 20MiB s0\nalloc p1 20MiB s0\n"
      "alloc p2 20MiB s0\nfree p1\ntrim d0\nmempool-end 3 d0\nmempool-end 3 d0\nmempool-end 3 d0\n"
      "alloc p3 20MiB s0\nfree p3\ndrain d0\nalloc p4 30MiB s0\n"
      "mempool-end 3 d0\nmempool-end 3 d0\nmempool-end 3 d0\nmempool-retain 0 d0\nmempool-retain 0 "
      "d0\n",
      &file, &error))
      << error.reason;
  for (const std::uint32_t every : {4u, 7u, 8u, 16u}) {
    Options options = sound();
    options.walk_every = every;
    EXPECT_EQ(CacheLockstep::run(file, options).divergence.text, "") << every;
    EXPECT_EQ(compare(file, options, spec::make_incremental_walker), "") << every;
  }
}

// A segment that was another heap's at the last walk may be a memory pool's without splits by now, which
// lends of it (DEV-4, DEV-8).
TEST(Walkers, AnOldMapDoesNotTellWhichBlocksAreNeverSplit) {
  spec::OpFile file;
  spec::TextError error;
  ASSERT_TRUE(
      spec::parse_ops("ashlar-ops 1 cache\n"
                      "device d1 29360128\n"
                      "stream s1 d1\n"
                      "stream s2 d1\n"
                      "stream s3 d1\n"
                      "stream s5 d0\n"
                      "alloc p14 1048577 s2\n"
                      "mempool-create 0 d1 3\n"
                      "free p14\n"
                      "alloc p36 1048577 s0\n"
                      "mempool-begin 0 s2\n"
                      "alloc p51 1 s2\n"
                      "alloc p56 1 s1\n"
                      "alloc p75 1 s5\n"
                      "alloc p77 1048577 s2\n"
                      "free p77\n"
                      "alloc p88 1048577 s3\n",
                      &file, &error))
      << error.reason;
  Options options = sound();
  options.walk_every = 55;
  EXPECT_EQ(CacheLockstep::run(file, options).divergence.text, "");
}

/// Judges every second walk only: what an incremental walker does that skips too much.
class SleepyWalker final : public spec::MapWalker {
 public:
  void walk(const spec::MapWalk& walk, bool is_whole) override {
    if (++walks_ % 2 == 0) inner_.walk(walk, is_whole);
  }

 private:
  spec::PlainWalker inner_;
  unsigned walks_ = 0;
};

/// Counts one block too many in the third walk.
class MiscountingWalker final : public spec::MapWalker {
 public:
  void walk(const spec::MapWalk& walk, bool is_whole) override {
    inner_.walk(walk, is_whole);
    if (++walks_ == 3) walk.recount.heaps[0].now.add(spec::StatFigure::kActive, PoolId::kSmall, 1);
  }

 private:
  spec::PlainWalker inner_;
  unsigned walks_ = 0;
};

TEST(Walkers, ADifferenceIsNoticed) {
  const spec::OpFile file = random_sequence(SequenceShape{}, 1);
  EXPECT_NE(compare(file, sound(),
                    []() -> std::unique_ptr<spec::MapWalker> {
                      return std::make_unique<SleepyWalker>();
                    }),
            "");
  EXPECT_NE(compare(file, sound(),
                    []() -> std::unique_ptr<spec::MapWalker> {
                      return std::make_unique<MiscountingWalker>();
                    }),
            "");
}

}  // namespace
}  // namespace ashlar::props
