// The trace reader: what it accepts, and the one line with which it refuses everything else.
//
// Imitates: traces as recorders write them, then cut off, edited, or damaged. Does not prove: anything
// about trace runs, or about arbitrary bytes (fuzz/trace_reader_fuzz.cc).
#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <cstdio>
#include <map>

#include "src/tool/alter.h"
#include "src/tool/files.h"
#include "src/tool/repeat.h"
#include "src/tool/trace_file.h"

namespace ashlar::tool {
namespace {

const std::string kHeader = R"({"format":"alloc-trace","version":1,"unit":"bytes"})"
                            "\n";

std::optional<Trace> parse(const std::string& body, std::string* error) {
  return parse_trace(body, "t.trace", error);
}

std::string error_of(const std::string& text) {
  std::string error;
  EXPECT_FALSE(parse(text, &error).has_value()) << text;
  return error;
}

TEST(TraceTest, AllocationsFreesAndMarksAreRead) {
  std::string error;
  const auto trace =
      parse(kHeader + "m init begin\na 7 100\na 9 50 3\nf 7\na 8 0 3\nf 9\n", &error);
  ASSERT_TRUE(trace.has_value()) << error;
  EXPECT_EQ(trace->name, "t");
  EXPECT_EQ(trace->events.size(), 6u);
  EXPECT_EQ(trace->marks, std::vector<std::string>{"init begin"});
  EXPECT_EQ(trace->allocations, 3u);
  EXPECT_EQ(trace->frees, 2u);
  EXPECT_EQ(trace->peak_live, 150_B);
  EXPECT_EQ(trace->streams, (std::vector<std::uint64_t>{0, 3}));
  EXPECT_EQ(trace->events[2].stream, 1u);
  EXPECT_EQ(trace->events[3].slot, 0u);
  EXPECT_EQ(trace->events[5].slot, 1u);
}

/// A step that frees what the step before it left, and leaves as much.
const char* const kSteady =
    "m step 0 begin\na 0 100\na 1 50\nf 1\nm step 0 end\n"
    "m step 1 begin\na 2 50\nf 0\na 3 100\nf 2\nm step 1 end\na 4 7\n";

TEST(RepeatTest, TheLastStepIsRepeatedAndFreesWhatTheOneBeforeLeft) {
  std::string error;
  const auto trace = parse(kHeader + kSteady, &error);
  ASSERT_TRUE(trace.has_value()) << error;
  const auto repeated = repeat_last_step(*trace, &error);
  ASSERT_TRUE(repeated.has_value()) << error;
  EXPECT_EQ(repeated->allocations, 2 + 2 * kRepeats);
  EXPECT_EQ(repeated->frees, 1 + 2 * kRepeats);
  EXPECT_EQ(repeated->peak_live, 150_B);
  EXPECT_EQ(repeated->marks, std::vector<std::string>(kRepeats + 1, kRepeatMark));
  // The second repetition frees what the first one allocated last.
  std::vector<std::uint32_t> freed;
  for (const TraceEvent& event : repeated->events) {
    if (event.kind == TraceEvent::Kind::kFree) freed.push_back(event.slot);
  }
  EXPECT_EQ((std::vector<std::uint32_t>{freed.begin() + 1, freed.begin() + 5}),
            (std::vector<std::uint32_t>{0, 2, 3, 4}));
}

TEST(RepeatTest, AStepThatLeavesMoreThanItFreesIsNotRepeated) {
  std::string error;
  const auto leaves_more = parse(kHeader + "m step 0 begin\na 0 100\nm step 0 end\n", &error);
  EXPECT_FALSE(repeat_last_step(*leaves_more, &error).has_value());
  EXPECT_EQ(error, "its last step frees other sizes than it leaves");
  const auto without_marks = parse(kHeader + "a 0 100\nf 0\n", &error);
  EXPECT_FALSE(repeat_last_step(*without_marks, &error).has_value());
  EXPECT_EQ(error, "it has no marks `step N begin` and `step N end`");
  const auto other_sizes =
      parse(kHeader + "a 0 9\nm step 0 begin\nf 0\na 1 8\nm step 0 end\n", &error);
  EXPECT_FALSE(repeat_last_step(*other_sizes, &error).has_value());
}

TEST(TraceTest, ALastLineWithoutItsNewlineIsALine) {
  std::string error;
  EXPECT_TRUE(parse(kHeader + "a 0 1", &error).has_value()) << error;
}

TEST(TraceTest, TheHeaderMayCountAllLinesOrOnlyAllocationsAndFrees) {
  std::string error;
  for (const char* events : {"2", "3"}) {
    const std::string header =
        std::string(R"({"format":"alloc-trace","version":1,"events":)") + events + "}\n";
    EXPECT_TRUE(parse(header + "a 0 1\nm x\nf 0\n", &error).has_value()) << error;
  }
  EXPECT_EQ(error_of(R"({"format":"alloc-trace","version":1,"events":4})"
                     "\na 0 1\nm x\nf 0\n"),
            "t.trace:4: the header states 4 events, the file has 3");
}

TEST(TraceTest, EachFaultHasItsLineAndReason) {
  const std::string shape = "neither `a id bytes [stream]` nor `f id` nor `m text`";
  const std::pair<std::string, std::string> faults[] = {
      {"", "1: the file is empty"},
      {"\n", "1: the header is not a JSON object"},
      {"[1]\n", "1: the header is not a JSON object"},
      {"{\"format\":\"alloc-trace\",\"version\":1\n", "1: the header is not a JSON object"},
      {"{\"format\":\"other\",\"version\":1}\n", "1: the header's format is not alloc-trace"},
      {"{\"version\":1}\n", "1: the header's format is not alloc-trace"},
      {"{\"format\":\"alloc-trace\"}\n", "1: the header's version is not 1"},
      {"{\"format\":\"alloc-trace\",\"version\":2}\n", "1: the header's version is not 1"},
      {"{\"format\":\"alloc-trace\",\"version\":1,\"unit\":\"KiB\"}\n",
       "1: the header's unit is not bytes"},
      {"{\"format\":\"alloc-trace\",\"version\":1,\"events\":-1}\n",
       "1: the header's events is not a count"},
      {"{\"format\":\"alloc-trace\",\"version\":1,\"peak_live_bytes\":\"x\"}\n",
       "1: the header's peak_live_bytes is not a number of bytes"},
      {kHeader + "a 0 10\n\n", "3: the line is empty"},
      {kHeader + "x 0\n", "2: " + shape},
      {kHeader + "a\n", "2: " + shape},
      {kHeader + "alloc 0 10\n", "2: " + shape},
      {kHeader + "a 0\n", "2: the size is missing"},
      {kHeader + "a 0 -5\n", "2: the size is not a whole number from 0"},
      {kHeader + "a 0 5.5\n", "2: the size is not a whole number from 0"},
      {kHeader + "a 0  5\n", "2: the size is not a whole number from 0"},
      {kHeader + "a 0 99999999999999999999\n", "2: the size does not fit in 64 bits"},
      {kHeader + "a 0 1152921504606846977\n", "2: the size is over 1 EiB"},
      {kHeader + "a x 5\n", "2: the id is not a whole number from 0"},
      {kHeader + "a 0 5 y\n", "2: the stream is not a whole number from 0"},
      {kHeader + "a 0 5 1 1\n", "2: something follows the allocation"},
      {kHeader + "a 0 5 \n", "2: a space ends the line"},
      {kHeader + "a 0 5\r \n", "2: the size is not a whole number from 0"},
      {kHeader + "a 0 5\na 0 6\n", "3: id 0 is used again"},
      {kHeader + "a 0 5\nf 0\na 0 6\n", "4: id 0 is used again"},
      {kHeader + "f 3\n", "2: free of id 3, which was never allocated"},
      {kHeader + "a 3 1\nf 3\nf 3\n", "4: free of id 3, which is free already"},
      {kHeader + "a 3 1\nf 3 0\n", "3: something follows the free"},
      {kHeader + "a 0 5\nm " + std::string(kTraceLineMax, 'x') + "\n",
       "3: the line is longer than 1 MiB"},
  };
  for (const auto& [text, line] : faults) EXPECT_EQ(error_of(text), "t.trace:" + line);
}

TEST(TraceTest, LiveBytesThatOverflowAreAnError) {
  std::string text = kHeader;
  for (int i = 0; i < 16; ++i) text += "a " + std::to_string(i) + " 1152921504606846976\n";
  EXPECT_EQ(error_of(text), "t.trace:17: too many streams, or the live bytes overflow");
}

TEST(TraceTest, GzipIsReadAndDamageIsNoticed) {
  const std::string text = kHeader + "a 0 10\na 1 20\nf 0\n";
  const std::string zipped = gzip(text);
  std::string error;
  const auto trace = parse(zipped, &error);
  ASSERT_TRUE(trace.has_value()) << error;
  EXPECT_EQ(trace->peak_live, 30_B);
  for (std::size_t cut = 2; cut < zipped.size(); ++cut) {
    EXPECT_NE(error_of(zipped.substr(0, cut)).find("the gzip data is truncated"), std::string::npos)
        << cut;
  }
  EXPECT_NE(error_of(zipped + "more").find("bytes follow the gzip data"), std::string::npos);
  std::string damaged = zipped;
  // in the checksum
  damaged[zipped.size() - 6] = static_cast<char>(damaged[zipped.size() - 6] ^ 1);
  EXPECT_NE(error_of(damaged).find("the gzip data is damaged"), std::string::npos);
  EXPECT_TRUE(parse(gzip(kHeader) + gzip("a 0 10\n"), &error).has_value()) << error;
}

TEST(TraceTest, AMissingFileIsNamed) {
  std::string error;
  EXPECT_FALSE(read_trace("no/such.trace", &error).has_value());
  EXPECT_EQ(error, "no/such.trace: No such file or directory");
}

TEST(TraceTest, AWrittenTraceIsReadBackEqual) {
  rc::check([] {
    TraceBuilder builder("made");
    std::vector<std::uint32_t> live;
    for (const std::uint32_t choice : *rc::gen::arbitrary<std::vector<std::uint32_t>>()) {
      if (choice % 5 == 0) builder.mark("mark " + std::to_string(choice));
      if (choice % 3 == 0 && !live.empty()) {
        RC_ASSERT(builder.free(live.back()));
        RC_ASSERT(!builder.free(live.back()));
        live.pop_back();
      } else {
        live.push_back(*builder.allocate(Bytes{choice}, choice % 4));
      }
    }
    const Trace& made = builder.trace();
    std::string error;
    const auto read = parse_trace(gzip(format_trace(made)), "made.trace.gz", &error);
    RC_ASSERT(error.empty());
    RC_ASSERT(format_trace(*read) == format_trace(made));
    RC_ASSERT(read->name == "made");
    RC_ASSERT(read->peak_live == made.peak_live);
    RC_ASSERT(read->stated_peak_live == made.peak_live);
  });
}

TEST(TraceTest, AWrittenFileAppearsWholeOrNotAtAll) {
  TraceBuilder builder("made");
  ASSERT_TRUE(builder.allocate(5_B).has_value());
  const std::string path = testing::TempDir() + "trace_test.trace.gz";
  std::string error;
  ASSERT_TRUE(write_trace(builder.trace(), path, &error)) << error;
  ASSERT_TRUE(write_trace(builder.trace(), path, &error)) << error;
  const auto read = read_trace(path, &error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_EQ(read->allocations, 1u);
  std::remove(path.c_str());
  EXPECT_FALSE(write_trace(builder.trace(), "/no-such-folder/x.trace", &error));
  EXPECT_EQ(error, "/no-such-folder/x.trace: No such file or directory");
}

TEST(TraceTest, AFileThatUnpacksToMuchIsRefused) {
  const std::string line = "m " + std::string(kTraceLineMax - 2, 'x') + "\n";
  std::string text = "{\"format\":\"alloc-trace\",\"version\":1}\n";
  for (int i = 0; i < 64; ++i) text += line;
  std::string error;
  EXPECT_TRUE(parse_trace(text, "t", &error).has_value()) << error;
  text += "m " + std::string(200, 'x') + "\n";
  EXPECT_FALSE(parse_trace(gzip(text), "t", &error).has_value());
  EXPECT_EQ(error, "t:66: the texts of marks exceed 64 MiB");
}

TEST(TraceTest, LinesMayEndWithACarriageReturn) {
  std::string error;
  const auto trace = parse_trace(
      "{\"format\":\"alloc-trace\",\"version\":1}\r\na 0 100\r\nm half\r\nf 0\r\n", "t", &error);
  ASSERT_TRUE(trace.has_value()) << error;
  EXPECT_EQ(trace->peak_live, 100_B);
  EXPECT_EQ(trace->marks, std::vector<std::string>{"half"});
}

TEST(AlterTest, AClosedTraceFreesWhatTheTraceLeavesLive) {
  TraceBuilder builder("made");
  const std::uint32_t first = *builder.allocate(5_B, 7);
  static_cast<void>(builder.allocate(6_B, 8));
  static_cast<void>(builder.allocate(7_B, 7));
  ASSERT_TRUE(builder.free(first));
  const Trace trace = closed(builder.trace());
  EXPECT_EQ(trace.frees, 3u);
  EXPECT_EQ(trace.events.back().slot, 2u);
  EXPECT_EQ(format_trace(closed(trace)), format_trace(trace));
}

TEST(AlterTest, PerturbedSizesAreWithinATenthAndEqualOnesStayEqualIfAsked) {
  rc::check([] {
    TraceBuilder builder("made");
    for (const std::uint32_t choice : *rc::gen::arbitrary<std::vector<std::uint32_t>>()) {
      if (choice % 3 != 0 || !builder.free(choice % 16))
        static_cast<void>(builder.allocate(Bytes{choice % 7 * 300}, choice % 4));
    }
    const Trace& made = builder.trace();
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    for (const Perturb what : {Perturb::kSizes, Perturb::kAllocations}) {
      const Trace other = perturbed(made, what, seed);
      std::string error;
      const auto read = parse_trace(format_trace(other), "other", &error);
      RC_ASSERT(read.has_value());
      RC_ASSERT(read->peak_live == other.peak_live);
      RC_ASSERT(other.events.size() == made.events.size());
      std::map<Bytes, Bytes> size_for;
      for (std::size_t i = 0; i < made.events.size(); ++i) {
        if (made.events[i].kind != TraceEvent::Kind::kAllocate) continue;
        const Bytes was = made.events[i].size, is = other.events[i].size;
        RC_ASSERT(was > kPerturbedAbove || is == was);
        RC_ASSERT(is * 10 + 10_B > was * 9 && is * 10 <= was * 11);
        const Bytes first = size_for.emplace(was, is).first->second;
        RC_ASSERT(what != Perturb::kSizes || is == first);
      }
      RC_ASSERT(format_trace(perturbed(made, what, seed)) == format_trace(other));
    }
  });
}

TEST(AlterTest, AnAlteredTraceIsATraceInWhichAllIsFreedAndTheSameForTheSameSeed) {
  rc::check([] {
    TraceBuilder builder("made");
    for (const std::uint32_t choice : *rc::gen::arbitrary<std::vector<std::uint32_t>>()) {
      if (choice % 3 != 0 || !builder.free(choice % 16))
        static_cast<void>(builder.allocate(Bytes{choice}, choice % 4));
    }
    const Trace& made = builder.trace();
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const AlteredTrace altered = alter(made, 0.3, seed);
    std::string error;
    RC_ASSERT(parse_trace(format_trace(altered.trace), "altered", &error));
    RC_ASSERT(altered.trace.frees == altered.trace.allocations);
    RC_ASSERT(altered.altered <= made.events.size());
    RC_ASSERT(format_trace(alter(made, 0.3, seed).trace) == format_trace(altered.trace));
    RC_ASSERT(format_trace(alter(made, 0, seed).trace) == format_trace(closed(made)));
    if (!made.events.empty()) RC_ASSERT(alter(made, 1, seed).altered == made.events.size());
  });
}

}  // namespace
}  // namespace ashlar::tool
