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

// The second allocation does not fit beside the first. Each by itself, the sizes could shrink until
// the first one does not fit either, and then it would be dropped.
TEST(Reducer, ShrinksSizesAndCapacitiesTogetherOrNotAtAll) {
  constexpr std::uint64_t kPage = 2u << 20;
  const auto run = [](const OpFile& ops) -> FailureStory {
    std::uint64_t capacity = 1u << 30, live = 0;
    std::string fitted;
    for (const Op& op : ops.ops) {
      if (op.slot == slot::kDevice) capacity = op.arg[1] / kPage * kPage;
      if (op.slot != slot::kAlloc) continue;
      if (live + op.arg[1] > capacity) return {"full", fitted};
      live += op.arg[1];
      fitted += "live ";
    }
    return {};
  };
  OpFile file;
  file.ops.resize(3);
  file.ops[0].slot = slot::kDevice;
  file.ops[0].arg = {0, 64u << 20, 0, 0};
  file.ops[1].slot = file.ops[2].slot = slot::kAlloc;
  file.ops[1].arg = {0, 40u << 20, 0, 0};
  file.ops[2].arg = {1, 40u << 20, 0, 0};
  const Reduction reduced = reduce_ops(file, run);
  ASSERT_EQ(reduced.file.ops.size(), 3u) << print_ops(reduced.file);
  EXPECT_EQ(reduced.file.ops[0].arg[1], kPage) << "as small as a device with a page can be";
  EXPECT_EQ(reduced.file.ops[1].arg[1], (40u << 20) / 32);
  EXPECT_EQ(run(reduced.file).shape, "live ");

  Op conf;
  conf.slot = slot::kConf;
  conf.text = "max_split_size_mb:64";
  file.ops.insert(file.ops.begin(), conf);
  const auto with_conf = [&run](const OpFile& ops) -> FailureStory {
    return ops.ops.empty() || ops.ops[0].slot != slot::kConf ? FailureStory{} : run(ops);
  };
  EXPECT_EQ(reduce_ops(file, with_conf).file.ops[2].arg[1], 40u << 20)
      << "the configuration's size cannot shrink with the others";
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
