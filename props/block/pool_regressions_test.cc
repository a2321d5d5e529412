// Every stored sequence of props/regressions that drives a pool, in lockstep with the model and
// with the sequence's expectations.
//
// Imitates: historical bugs; each file opens with the one it reproduces. An unreadable file is a
// failure, and so is a folder without files.
#include <gtest/gtest.h>

#include <ashlar/base/checked.h>

#include "props/adapters/block_pool_subject.h"
#include "props/sequences/stored_sequences.h"
#include "spec/lockstep/pool_lockstep.h"

namespace ashlar::props {
namespace {

TEST(PoolRegressions, EveryStoredSequenceAgreesWithTheModelAndItsExpectations) {
  const auto run = [](const spec::OpFile& file, const std::filesystem::path& path) {
    BlockPoolSubject subject{512_B};
    spec::PoolLockstep lockstep(subject, 512_B, 1);
    for (const spec::Op& op : file.ops) {
      if (!lockstep.step(op)) break;
    }
    lockstep.finish();
    EXPECT_EQ(lockstep.report(), "") << path;
  };
  EXPECT_GE(for_each_stored(ASHLAR_REGRESSIONS, spec::Subject::kPool, run), 5u);
}

TEST(PoolRegressions, H25RoundingASizeNearTheMaximumIsAnErrorAndNotASmallNumber) {
  // ONNX Runtime PR 32010, PR 3447: RoundedBytes and region sizes overflowed.
  for (std::uint64_t short_of = 0; short_of < 511; ++short_of) {
    EXPECT_FALSE(checked_round_up(Bytes{~std::uint64_t{0} - short_of}, 512_B)) << short_of;
  }
  EXPECT_EQ(checked_round_up(Bytes{~std::uint64_t{0} - 511}, 512_B),
            Bytes{~std::uint64_t{0} - 511});
  EXPECT_FALSE(checked_add(Bytes::max(), 1_B));
  EXPECT_FALSE(checked_multiply(Bytes{std::uint64_t{1} << 60}, 16));
}

}  // namespace
}  // namespace ashlar::props
