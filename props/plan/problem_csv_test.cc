// Planning problems as CSV: what is read, what is refused and with which message, and that a written
// problem reads the same.
//
// Imitates: MiniMalloc's own files, files edited by hand or by a spreadsheet, and cut-off ones.
// Does not prove: that no text makes the reader crash; fuzz/plan_problem_fuzz.cc looks for one.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include <ashlar/plan/problem_csv.h>

#include "props/plan/generate.h"

namespace ashlar::plan {
namespace {

using namespace std::string_view_literals;

ProblemCsv read(std::string_view text) {
  std::string error;
  Result<ProblemCsv> result = parse_problem_csv(text, "in.csv", &error);
  EXPECT_TRUE(result.is_ok()) << error;
  EXPECT_EQ(error, "");
  return result.value_or({});
}

std::string refusal(std::string_view text) {
  std::string error;
  const Result<ProblemCsv> result = parse_problem_csv(text, "in.csv", &error);
  EXPECT_EQ(result.code(), Code::kMalformed) << text;
  EXPECT_EQ(parse_problem_csv(text, "in.csv", nullptr).code(), Code::kMalformed);
  return error;
}

TEST(ProblemCsv, ReadsMiniMallocsExample) {
  const ProblemCsv csv = read(
      "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\nb5,0,21,4,0\n");
  ASSERT_EQ(csv.problem.buffers.size(), 5u);
  EXPECT_EQ(csv.problem.ids, (std::vector<std::string>{"b1", "b2", "b3", "b4", "b5"}));
  EXPECT_EQ(csv.problem.buffers[3].life, (Lifetime{9, 21}));
  EXPECT_EQ(csv.problem.buffers[3].size, 4_B);
  EXPECT_EQ(csv.problem.buffers[3].pinned, kNowhere);
  EXPECT_EQ(csv.offsets, (std::vector<Bytes>{8_B, 8_B, 4_B, 4_B, 0_B}));
}

TEST(ProblemCsv, ReadsEveryColumnInAnyOrder) {
  const ProblemCsv csv = read(
      "space,pinned,gaps,size,id,upper,group,lower,alignment,hint,offset\r\n"
      "sram,,5-10 20-30,100,x,40,in place,-5,64,128,\r\n"
      "dram,4096,,8,y z,41,,40,,,7\r\n"
      "sram,,,50,z,50,in place,45,,,9");
  const Problem& problem = csv.problem;
  ASSERT_EQ(problem.buffers.size(), 3u);
  const Buffer& x = problem.buffers[0];
  EXPECT_EQ(x.life, (Lifetime{-5, 40}));
  EXPECT_EQ(x.size, 100_B);
  EXPECT_EQ(x.alignment, 64_B);
  EXPECT_EQ(x.hint, 128_B);
  EXPECT_EQ(x.pinned, kNowhere);
  EXPECT_EQ(problem.gaps, (std::vector<Lifetime>{{5, 10}, {20, 30}}));
  EXPECT_EQ(x.gaps_end, 2u);
  const Buffer& y = problem.buffers[1];
  EXPECT_EQ(y.pinned, 4096_B);
  EXPECT_EQ(y.alignment, 1_B);
  EXPECT_EQ(y.group, kNoGroup);
  EXPECT_EQ(y.gaps_begin, y.gaps_end);
  EXPECT_EQ(problem.ids, (std::vector<std::string>{"x", "y z", "z"}));
  EXPECT_EQ(problem.spaces, (std::vector<Space>{{"sram", kNowhere}, {"dram", kNowhere}}));
  EXPECT_EQ(y.space, 1u);
  EXPECT_EQ(problem.groups, (std::vector<std::string>{"in place"}));
  EXPECT_EQ(problem.buffers[2].group, 0u);
  EXPECT_EQ(csv.offsets, (std::vector<Bytes>{kNowhere, 7_B, 9_B}));
}

TEST(ProblemCsv, ReadsNegativeTimesInGaps) {
  EXPECT_EQ(read("id,lower,upper,size,gaps\n0,-9,-1,1,-8--7 -3--2\n").problem.gaps,
            (std::vector<Lifetime>{{-8, -7}, {-3, -2}}));
}

TEST(ProblemCsv, StoresNoIdsThatEqualTheRowNumbers) {
  EXPECT_TRUE(read("id,lower,upper,size\n0,0,1,1\n1,0,1,1\n").problem.ids.empty());
  EXPECT_EQ(read("id,lower,upper,size\n0,0,1,1\n1,0,1,1\n3,0,1,1\n").problem.ids,
            (std::vector<std::string>{"0", "1", "3"}));
  EXPECT_EQ(read("id,lower,upper,size\n00,0,1,1\n").problem.ids, (std::vector<std::string>{"00"}));
}

TEST(ProblemCsv, ReadsAProblemWithoutBuffers) {
  for (const char* const text :
       {"id,lower,upper,size", "id,lower,upper,size\n", "id,lower,upper,size,space\r\n\r\n"}) {
    const ProblemCsv csv = read(text);
    EXPECT_TRUE(csv.problem.buffers.empty());
    EXPECT_EQ(csv.problem.spaces.size(), 1u);
  }
}

TEST(ProblemCsv, PassesOverEmptyLinesAtTheEnd) {
  EXPECT_EQ(read("id,lower,upper,size\n0,0,1,1\n\n\r\n\n").problem.buffers.size(), 1u);
  EXPECT_EQ(read("id,lower,upper,size\n0,0,1,1").problem.buffers.size(), 1u);
}

TEST(ProblemCsv, RefusesATextWithoutAHeaderOfKnownColumns) {
  EXPECT_EQ(refusal(""), "in.csv:1: the file is empty");
  EXPECT_EQ(refusal("\n"), "in.csv:1: the header does not name columns");
  EXPECT_EQ(refusal("\x1f\x8b\x08\0\0"sv), "in.csv:1: the header does not name columns");
  EXPECT_EQ(refusal("id,lower,upper,size,\n"), "in.csv:1: the header does not name columns");
  const std::string known =
      "; known are id, lower, upper, size, alignment, gaps, hint, pinned, group, space, offset";
  EXPECT_EQ(refusal("id,lower,upper,size,colour\n"), "in.csv:1: unknown column `colour`" + known);
  EXPECT_EQ(refusal("id,lower,upper, size\n"), "in.csv:1: unknown column ` size`" + known);
  EXPECT_EQ(refusal("id,lower,upper,size,lower\n"), "in.csv:1: column lower occurs twice");
  EXPECT_EQ(refusal("id,lower,size\n0,1,2\n"), "in.csv:1: column upper is missing");
}

// The refusal of a table with this second row.
std::string refusal_of_row(std::string_view row) {
  return refusal(
      "id,lower,upper,size,alignment,gaps,hint,pinned,group,space,offset\n"
      "0,0,8,16,,,,0,g,s,\n" +
      std::string(row) + "\n");
}

TEST(ProblemCsv, RefusesARowWithAnotherNumberOfFieldsThanTheHeader) {
  EXPECT_EQ(refusal_of_row("1,0,8,16"), "in.csv:3: the line has 4 fields, the header 11");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,,,s,,"),
            "in.csv:3: the line has more fields than the header");
  EXPECT_EQ(refusal("id,lower,upper,size\n\n0,0,1,1\n"), "in.csv:2: the line is empty");
}

TEST(ProblemCsv, RefusesFieldsThatAreNotNumbers) {
  EXPECT_EQ(refusal_of_row("1,,8,16,,,,,,s,"), "in.csv:3: lower is missing");
  EXPECT_EQ(refusal_of_row("1,0,8x,16,,,,,,s,"), "in.csv:3: upper is not a whole number");
  EXPECT_EQ(refusal_of_row("1,0,8\0,16,,,,,,s,"sv), "in.csv:3: upper is not a whole number");
  EXPECT_EQ(refusal_of_row("1,0, 8,16,,,,,,s,"), "in.csv:3: upper is not a whole number");
  EXPECT_EQ(refusal_of_row("1,0,8,+16,,,,,,s,"), "in.csv:3: size is not a whole number");
  EXPECT_EQ(refusal_of_row("1,0,8,1.5,,,,,,s,"), "in.csv:3: size is not a whole number");
  EXPECT_EQ(refusal_of_row("1,0,8,-,,,,,,s,"), "in.csv:3: size is not a whole number");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,,,s,-1"), "in.csv:3: offset is negative");
  EXPECT_EQ(refusal_of_row("1,0,8,-16,,,,,,s,"), "in.csv:3: size is negative");
  EXPECT_EQ(refusal_of_row("1,0,8,18446744073709551616,,,,,,s,"),
            "in.csv:3: size does not fit in 64 bits");
  EXPECT_EQ(refusal_of_row("1,-9223372036854775809,8,1,,,,,,s,"),
            "in.csv:3: lower does not fit in 64 bits");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,18446744073709551615,,s,"),
            "in.csv:3: pinned is over 2^62");
}

TEST(ProblemCsv, RefusesMalformedGaps) {
  for (const char* const gaps : {"5", "5-", "-", "3-5x", "3--", "3-5;6-7", "a-b", "3 - 5"}) {
    EXPECT_EQ(refusal_of_row("1,0,8,16,," + std::string(gaps) + ",,,,s,"),
              "in.csv:3: gaps are not `lower-upper ...`");
  }
  for (const char* const gaps : {"3-5@0:8", "3-5:0-8"}) {
    EXPECT_EQ(
        refusal_of_row("1,0,8,16,," + std::string(gaps) + ",,,,s,"),
        "in.csv:3: a gap that keeps a window of offsets is not supported: only `lower-upper`");
  }
}

TEST(ProblemCsv, RefusesNamesWithOtherCharacters) {
  EXPECT_EQ(refusal_of_row(",0,8,16,,,,,,s,"), "in.csv:3: id is missing");
  EXPECT_EQ(refusal_of_row("a\0b,0,8,16,,,,,,s,"sv),
            "in.csv:3: id has a quote or a character that is not printable ASCII");
  EXPECT_EQ(refusal_of_row("\"a\",0,8,16,,,,,,s,"),
            "in.csv:3: id has a quote or a character that is not printable ASCII");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,,g\t,s,"),
            "in.csv:3: group has a quote or a character that is not printable ASCII");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,,,,"), "in.csv:3: space is missing");
  EXPECT_EQ(refusal_of_row(std::string(1025, 'x') + ",0,8,16,,,,,,s,"),
            "in.csv:3: id is longer than 1024 characters");
  EXPECT_EQ(refusal_of_row("0,0,8,16,,,,,,s,"), "in.csv:3: line 2 has the same id");
  EXPECT_EQ(refusal("id,lower,upper,size\na,0,1,1\nb,0,1,1\na,0,1,1\n"),
            "in.csv:4: line 2 has the same id");
}

TEST(ProblemCsv, RefusesUnsoundProblems) {
  EXPECT_EQ(refusal_of_row("1,8,8,16,,,,,,s,"), "in.csv:3: upper is not above lower");
  EXPECT_EQ(refusal_of_row("1,0,8,0,,,,,,s,"), "in.csv:3: its size is zero");
  EXPECT_EQ(refusal_of_row("1,0,8,4611686018427387904,,,,,,s,"),
            "in.csv:3: sizes, padding and pins add up to over 2^62");
  EXPECT_EQ(refusal_of_row("1,0,8,16,12,,,,,s,"), "in.csv:3: its alignment is not a power of two");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,0-4,,,,s,"),
            "in.csv:3: it is not live before, between and after its gaps");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,8,,s,"),
            "in.csv:3: it is pinned onto a pinned buffer that is live with it (line 2)");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,8,g,s,"),
            "in.csv:3: its alias group is pinned elsewhere (line 2)");
  EXPECT_EQ(refusal_of_row("1,0,8,16,,,,,g,t,"),
            "in.csv:3: its alias group is in another space (line 2)");
}

TEST(ProblemCsv, WritesOnlyTheColumnsThatSaySomething) {
  const std::string plain = "id,lower,upper,size\n0,0,3,4\n1,3,9,4\n";
  EXPECT_EQ(format_problem_csv(read(plain).problem, {}).value(), plain);
  EXPECT_EQ(format_problem_csv(read(plain).problem, {4_B, kNowhere}).value(),
            "id,lower,upper,size,offset\n0,0,3,4,4\n1,3,9,4,\n");
  const std::string all =
      "id,lower,upper,size,alignment,gaps,hint,pinned,group,space,offset\n"
      "x,-5,40,100,64,5-10 20-30,128,,in place,sram,\n"
      "y z,40,41,8,1,,,4096,,dram,7\n";
  EXPECT_EQ(format_problem_csv(read(all).problem, read(all).offsets).value(), all);
}

TEST(ProblemCsv, WritesNumbersForEmptyNames) {
  Problem problem = read("id,lower,upper,size,group,space\n0,0,3,4,g,s\n1,3,9,4,h,t\n").problem;
  problem.groups = {"", "h"};
  problem.spaces[1].name = "";
  EXPECT_EQ(format_problem_csv(problem, {}).value(),
            "id,lower,upper,size,group,space\n0,0,3,4,0,s\n1,3,9,4,h,1\n");
}

TEST(ProblemCsv, RefusesToWriteWhatItWouldNotRead) {
  const Problem problem =
      read("id,lower,upper,size,group,space\nx,0,3,4,g,s\ny,3,9,4,h,t\n").problem;
  EXPECT_EQ(format_problem_csv(problem, {0_B}).code(), Code::kInvalidArgument);
  EXPECT_EQ(format_problem_csv(problem, {0_B, kPlanBytesMax + 1_B}).code(), Code::kSizeOverflow);
  Problem changed = problem;
  changed.ids = {"x", "x"};
  EXPECT_EQ(format_problem_csv(changed, {}).code(), Code::kInvalidArgument);
  changed.ids = {"x", "a,b"};
  EXPECT_EQ(format_problem_csv(changed, {}).code(), Code::kInvalidArgument);
  changed = problem;
  changed.groups[0] = "h";
  EXPECT_EQ(format_problem_csv(changed, {}).code(), Code::kInvalidArgument);
  changed = problem;
  changed.spaces[0].name = "t";
  EXPECT_EQ(format_problem_csv(changed, {}).code(), Code::kInvalidArgument);
}

TEST(ProblemCsv, ReadsBackWhatItWrote) {
  spec::Random random(6);
  for (int i = 0; i < 5000; ++i) {
    const Problem problem = generate_problem(&random, {10, 12, 9});
    const std::vector<Bytes> offsets = generate_plan(&random, problem);
    const Result<std::string> text = format_problem_csv(problem, offsets);
    ASSERT_TRUE(text.is_ok()) << text.status().why();
    std::string error;
    const Result<ProblemCsv> again = parse_problem_csv(text.value(), "again", &error);
    ASSERT_TRUE(again.is_ok()) << error << "\n" << text.value();
    ASSERT_EQ(again.value().problem, problem) << text.value();
    ASSERT_EQ(again.value().offsets, offsets);
    ASSERT_EQ(hash_of(again.value().problem), hash_of(problem));
  }
}

}  // namespace
}  // namespace ashlar::plan
