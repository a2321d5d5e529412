// The two forms of the op language.
// Imitates: stored regressions, seeds and counterexamples that must replay for ever.
// Does not prove: what the ops do; the worlds that run them have their own suites.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "spec/ops/bytes.h"
#include "spec/ops/mutate.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"
#include "spec/ops/text.h"

namespace ashlar::spec {
namespace {

constexpr Subject kSubjects[] = {Subject::kPool, Subject::kCache, Subject::kGpu};

bool same_ops(const OpFile& a, const OpFile& b) { return a.subject == b.subject && a.ops == b.ops; }

RC_GTEST_PROP(OpCodec, EveryByteStringDecodesToOpsThatSurviveBothForms,
              (std::vector<std::uint8_t> bytes)) {
  for (const Subject subject : kSubjects) {
    const OpFile file = decode_ops(subject, bytes);
    for (const Op& op : file.ops) RC_ASSERT(slot_drives(subject, op.slot));
    OpFile parsed;
    TextError error;
    RC_ASSERT(parse_ops(print_ops(file), &parsed, &error));
    RC_ASSERT(same_ops(parsed, file));
    const OpFile canonical = canonical_ops(file);
    RC_ASSERT(same_ops(decode_ops(subject, encode_ops(file)), canonical));
    RC_ASSERT(same_ops(canonical_ops(canonical), canonical));
  }
}

TEST(OpCodec, LongMutatedSequencesKeepTheRoundTrip) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<std::uint8_t> data;
    std::vector<std::uint8_t> other;
    for (std::uint64_t i = 0; i < 60; ++i)
      mutate_ops(Subject::kCache, &data, 2000, seed * 1000 + i);
    for (std::uint64_t i = 0; i < 20; ++i)
      mutate_ops(Subject::kCache, &other, 2000, seed * 1000 + 500 + i);
    data = splice_ops(data, other, 2000, seed);
    ASSERT_LE(data.size(), 2000u);
    const OpFile file = decode_ops(Subject::kCache, data);
    const OpFile canonical = canonical_ops(file);
    ASSERT_TRUE(same_ops(decode_ops(Subject::kCache, encode_ops(file)), canonical))
        << print_ops(file);
    ASSERT_EQ(canonical.ops.size(), file.ops.size());
  }
}

TEST(OpCodec, StoredBytesKeepTheirMeaning) {
  // One op of every width, written by hand from the table in bytes.h. If this fails, stored inputs
  // have changed their meaning.
  const std::vector<std::uint8_t> bytes = {
      20,  1,        1,    1,    0,            // conf: four fragments
      1,   127,      0,    16,   0,   0,   5,  // alloc p0 4096 s1
      1,   64 + 40,  255,  255,  255, 255, 2,  // alloc p1, 21 bits
      1,   63,       255,  0,    0,   0,   0,  // alloc p2 2^63 - 1
      1,   128,      255,  255,  0,   0,   0,  // alloc p3 2^64 - 1
      1,   192 + 30, 3,    0,    0,   0,   3,  // alloc p4 3 GiB
      4,   1,        1,    2,                  // use p2 s2 (257 % 5)
      5,   1,        2,    0,    5,            // kernel s1 p2 rw
      2,   0,        0,                        // free p0
      22,  9,        0,                        // free-stale p0
      6,   3,        0x05, 0x80,               // step s3 5
      15,  22,       0x10, 0x00, 3,            // fail segment-alloc 0 on
      18,  2,        4,                        // capture-begin s2 thread-local
      255,                                     // nothing
      20,  0,        0,    0,    0,            // conf, too late
      17,  3,        130,  1,                  // capacity d1, cut short: 1 MiB + 1
  };
  EXPECT_EQ(print_ops(decode_ops(Subject::kCache, bytes)),
            "ashlar-ops 1 cache\n"
            "conf reuse:own,wait_ms:0,max_split_size_mb:21\n"
            "alloc p0 4096 s1\n"
            "alloc p1 2097151 s2\n"
            "alloc p2 9223372036854775807 s0\n"
            "alloc p3 18446744073709551615 s0\n"
            "alloc p4 3221225472 s3\n"
            "use p2 s2\n"
            "kernel s1 p2 rw\n"
            "free p0\n"
            "free-stale p0\n"
            "step s3 5\n"
            "fail segment-alloc 0 on\n"
            "capture-begin s2 thread-local\n"
            "capacity d1 1048577\n");
}

TEST(OpCodec, SizesNearEveryBoundaryAndEveryPowerOfTwoAreKeptExactly) {
  OpFile file;
  for (unsigned k = 0; k < 64; ++k) {
    for (const int off : {-1, 0, 1}) {
      Op op;
      op.slot = slot::kAlloc;
      op.arg[0] = file.ops.size();
      op.arg[1] = (std::uint64_t{1} << k) + static_cast<std::uint64_t>(off);
      file.ops.push_back(op);
    }
  }
  Random random(7);
  for (int i = 0; i < 1000; ++i) {
    Op op;
    op.slot = slot::kAlloc;
    op.arg[0] = file.ops.size();
    op.arg[1] = random.next() & 0xffffffffu;
    file.ops.push_back(op);
  }
  EXPECT_TRUE(same_ops(decode_ops(Subject::kCache, encode_ops(file)), file));
}

TEST(OpText, SuffixesCommentsAndBlankLinesAreRead) {
  OpFile file;
  TextError error;
  ASSERT_TRUE(parse_ops(
      "ashlar-ops 1 cache  # head\n\n  # c\n\talloc p7 3KiB s2 # x\nconf  a:1,b:[2:3]  # y\r\nheal",
      &file, &error));
  ASSERT_EQ(file.ops.size(), 3u);
  EXPECT_EQ(file.ops[0].arg[1], 3072u);
  EXPECT_EQ(file.ops[1].text, "a:1,b:[2:3]");
  EXPECT_EQ(file.lines, (std::vector<std::uint32_t>{4, 5, 6}));
}

TEST(OpText, EveryMistakeIsReportedWithItsLineAndReasonAndTheFileIsUnchanged) {
  const struct {
    const char* text;
    std::uint32_t line;
    const char* reason;
  } cases[] = {
      {"", 1, "empty file"},
      {"alloc p0 1 s0\n", 1, "the first line must be"},
      {"ashlar-ops 2 cache\n", 1, "version '2'"},
      {"ashlar-ops 1 tpu\n", 1, "not 'tpu'"},
      {"ashlar-ops 1 cache\nallok p0 1 s0\n", 2, "unknown operation 'allok'"},
      {"ashlar-ops 1 cache\n\nalloc s0 1 p0\n", 3, "argument 1 must be a pointer's name"},
      {"ashlar-ops 1 cache\nalloc p0 1TiB s0\n", 2, "argument 2 must be a size"},
      {"ashlar-ops 1 cache\nalloc p0 99999999999999999999 s0\n", 2, "argument 2 must be a size"},
      {"ashlar-ops 1 cache\nalloc p0 17179869184GiB s0\n", 2, "argument 2 must be a size"},
      {"ashlar-ops 1 cache\nalloc p0 -1 s0\n", 2, "argument 2 must be a size"},
      {"ashlar-ops 1 cache\nalloc p0 1\n", 2,
       "argument 3 must be a stream's name (s0, s1, ...), and is missing"},
      {"ashlar-ops 1 cache\nalloc p4294967296 1 s0\n", 2, "argument 1 must be"},
      {"ashlar-ops 1 cache\nfree p0 p1\n", 2, "nothing may follow"},
      {"ashlar-ops 1 cache\nfail malloc 1 once\n", 2, "driver call's name"},
      {"ashlar-ops 1 cache\nfail segment-alloc 1 twice\n", 2, "once or on"},
      {"ashlar-ops 1 cache\nexpect fine\n", 2, "an outcome's name"},
  };
  for (const auto& bad : cases) {
    OpFile file;
    file.ops.resize(3);
    TextError error;
    EXPECT_FALSE(parse_ops(bad.text, &file, &error)) << bad.text;
    EXPECT_EQ(error.line, bad.line) << bad.text;
    EXPECT_NE(error.reason.find(bad.reason), std::string::npos) << error.reason;
    EXPECT_EQ(error.reason.find('\n'), std::string::npos);
    EXPECT_EQ(file.ops.size(), 3u);
  }
}

TEST(OpTable, EveryRowIsFoundByNameAndBySlot) {
  int rows = 0;
  for (unsigned s = 0; s < 256; ++s) {
    const OpInfo& info = op_info(static_cast<std::uint8_t>(s));
    if (info.slot != s) {
      EXPECT_EQ(info.slot, slot::kNop);
      continue;
    }
    ++rows;
    EXPECT_EQ(find_op(info.name), &info);
  }
  EXPECT_GE(rows, 48);
  EXPECT_EQ(find_op("no-such-op"), nullptr);
}

}  // namespace
}  // namespace ashlar::spec
