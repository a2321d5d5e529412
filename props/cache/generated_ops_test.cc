// Every op that the generators of cache sequences write does something: a function of the table
// (spec/lockstep/cache_ops.h) runs it, or the lockstep driver itself does.
//
// Imitates: an op whose name and generator are there, and whose function was forgotten; it would be
// skipped without a word, like an op whose names are not bound. `thread` and `thread-stream` were.
// Does not prove: that the function does what the op's name says.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "props/sequences/cache_sequences.h"
#include "props/sequences/churn_sequences.h"
#include "spec/lockstep/cache_ops.h"
#include "spec/ops/bytes.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::props {
namespace {

bool has_function(std::uint8_t slot) {
  const spec::OpHandler& handler = spec::cache_op(slot);
  return handler.set_up != nullptr || handler.run != nullptr ||
         slot == spec::slot::kEndNow;  // CacheLockstep::step() sees to it
}

/// How often each op was written.
using OpCounts = std::array<std::uint64_t, 256>;

void count(const spec::OpFile& file, OpCounts* counts) {
  for (const spec::Op& op : file.ops) ++(*counts)[op.slot];
}

/// The names of the ops that were written and that nothing runs.
std::string without_function(const OpCounts& counts) {
  std::string names;
  for (unsigned slot = 0; slot < counts.size(); ++slot) {
    if (counts[slot] != 0 && !has_function(static_cast<std::uint8_t>(slot)))
      names += std::string(spec::op_info(static_cast<std::uint8_t>(slot)).name) + " ";
  }
  return names;
}

TEST(GeneratedOps, EachOfARandomSequenceHasAFunction) {
  OpCounts counts{};
  for (std::uint64_t bits = 0; bits < 8192; ++bits) {
    for (std::uint64_t seed = 0; seed < 2; ++seed)
      count(random_sequence(shape_from(bits), 8192 * seed + bits), &counts);
  }
  EXPECT_EQ(without_function(counts), "");
  // The rarest ops of the rarest shapes were written.
  for (const std::uint8_t slot :
       {spec::slot::kThread, spec::slot::kThreadStream, spec::slot::kEndNow, spec::slot::kTeardown,
        spec::slot::kNameDead, spec::slot::kPinStale, spec::slot::kDeregister})
    EXPECT_NE(counts[slot], 0u) << spec::op_info(slot).name;
}

TEST(GeneratedOps, EachOfARoundHasAFunction) {
  OpCounts counts{};
  for (std::uint64_t bits = 0; bits < 256; ++bits) {
    const ChurnShape shape = churn_shape_from(bits);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      count(churning_round(shape, 256 * seed + bits), &counts);
      count(settling_round(shape, 256 * seed + bits), &counts);
    }
  }
  EXPECT_EQ(without_function(counts), "");
  EXPECT_NE(counts[spec::slot::kThreadStream], 0u);
}

TEST(GeneratedOps, EachThatTheByteFormCanSayHasAFunction) {
  OpCounts counts{};
  for (unsigned slot = 0; slot < counts.size(); ++slot)
    counts[slot] = spec::slot_drives(spec::Subject::kCache, static_cast<std::uint8_t>(slot));
  EXPECT_EQ(without_function(counts), "");
}

}  // namespace
}  // namespace ashlar::props
