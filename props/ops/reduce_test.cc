// The reducer.
// Imitates: long failing sequences from a fuzzer, with one, two or a few ops that matter. Does not
// prove: that the result is the smallest of all; only that no single op of it can be dropped.
#include <gtest/gtest.h>

#include <algorithm>

#include "spec/ops/bytes.h"
#include "spec/ops/mutate.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"

namespace ashlar::spec {
namespace {

OpFile long_sequence(std::uint64_t seed) {
  std::vector<std::uint8_t> data;
  for (std::uint64_t i = 0; i < 200; ++i) mutate_ops(Subject::kCache, &data, 4000, seed + i);
  OpFile file = decode_ops(Subject::kCache, data);
  std::erase_if(file.ops,
                [](const Op& op) { return op.slot == slot::kTrim || op.slot == slot::kHeal; });
  return file;
}

std::uint64_t count(const OpFile& file, std::uint8_t s) {
  return static_cast<std::uint64_t>(
      std::count_if(file.ops.begin(), file.ops.end(), [&](const Op& op) { return op.slot == s; }));
}

TEST(Reducer, FindsTheFewOpsThatMatterInALongSequence) {
  OpFile file = long_sequence(1);
  ASSERT_GT(file.ops.size(), 100u);
  Op trim;
  trim.slot = slot::kTrim;
  Op big;
  big.slot = slot::kAlloc;
  big.arg = {99999, 777u << 20, 0, 0};
  file.ops.insert(file.ops.begin() + 30, trim);
  file.ops.insert(file.ops.begin() + 90, big);
  file.ops.push_back(trim);
  // Fails when an allocation of 64 MiB or more is between two trims.
  const Reduction reduced = reduce_ops(file, [](const OpFile& ops) -> std::string {
    int state = 0;
    for (const Op& op : ops.ops) {
      if (op.slot == slot::kTrim && state != 1) ++state;
      if (op.slot == slot::kAlloc && op.arg[1] >= 64u << 20 && state == 1) ++state;
    }
    return state >= 3 ? "planted" : "";
  });
  EXPECT_EQ(reduced.clause, "planted");
  EXPECT_TRUE(reduced.is_minimal);
  ASSERT_EQ(reduced.file.ops.size(), 3u) << print_ops(reduced.file);
  EXPECT_LT(reduced.file.ops[1].arg[1], 128u << 20);
}

TEST(Reducer, KeepsTheClauseThatBrokeFirst) {
  OpFile file = long_sequence(2);
  const auto run = [](const OpFile& ops) -> std::string {
    if (count(ops, slot::kAlloc) >= 3) return "many";
    return ops.ops.empty() ? "" : "few";
  };
  const Reduction reduced = reduce_ops(file, run);
  EXPECT_EQ(reduced.clause, "many");
  EXPECT_EQ(reduced.file.ops.size(), 3u);
}

TEST(Reducer, LeavesASequenceThatDoesNotFailAlone) {
  const OpFile file = long_sequence(3);
  const Reduction reduced = reduce_ops(file, [](const OpFile&) { return std::string(); });
  EXPECT_EQ(reduced.clause, "");
  EXPECT_EQ(reduced.runs, 1u);
  EXPECT_EQ(reduced.file.ops.size(), file.ops.size());
}

TEST(Reducer, StopsAtItsBoundOfRunsAndReportsIt) {
  const OpFile file = long_sequence(4);
  const Reduction reduced = reduce_ops(
      file, [](const OpFile& ops) { return std::string(ops.ops.size() > 3 ? "x" : ""); }, 5);
  EXPECT_EQ(reduced.runs, 5u);
  EXPECT_FALSE(reduced.is_minimal);
  EXPECT_EQ(reduced.clause, "x");
}

}  // namespace
}  // namespace ashlar::spec
