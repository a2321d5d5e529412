// `ashlar convert`: every sample trace through every kind of file and back, and the command itself.
//
// Imitates: a user who takes a recording to another program and back. The further traces, recorded on
// GPUs, are used where their folder is present (bench/data/elsewhere.txt). Does not prove: that other
// programs read the files (props/exchange).
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "props/sanitizers.h"
#include "props/tool/cli.h"
#include "props/tool/pickles.h"
#include "props/tool/stacks.h"
#include "src/tool/files.h"
#include "src/tool/trace_export.h"
#include "src/tool/trace_file.h"

namespace ashlar::tool {
namespace {

using props::Cli;
using props::Ran;
using props::slurp;
using props::stacks_in;

/// Under a sanitizer the larger traces take minutes; without one all are converted.
constexpr std::uintmax_t kSizeMaxSanitized = 16 << 10;
constexpr std::size_t kAllEvents = std::numeric_limits<std::size_t>::max();

/// The events as text: a trace names streams by their first use, so this does not depend on numbers.
std::vector<std::string> events_of(const Trace& trace, bool with_marks) {
  std::vector<std::string> events;
  for (const TraceEvent& event : trace.events) {
    switch (event.kind) {
      case TraceEvent::Kind::kAllocate:
        events.push_back("a " + std::to_string(event.slot) + " " +
                         std::to_string(event.size.count()) + " " + std::to_string(event.stream));
        break;
      case TraceEvent::Kind::kFree: events.push_back("f " + std::to_string(event.slot)); break;
      case TraceEvent::Kind::kMark:
        if (with_marks) events.push_back("m " + trace.marks[event.slot]);
        break;
    }
  }
  return events;
}

/// The trace through a file of that kind.
std::optional<Trace> through(const Trace& trace, TraceTarget target, FileKind kind) {
  std::string error;
  auto bytes = export_trace(trace, target, kAllEvents, &error);
  if (!bytes) {
    ADD_FAILURE() << error;
    return std::nullopt;
  }
  TraceSource source;
  auto back = parse_trace_file(std::move(*bytes), trace.name, {}, &source, &error);
  EXPECT_TRUE(back.has_value()) << error;
  EXPECT_EQ(source.kind, kind);
  EXPECT_EQ(source.live_at_start + source.allocated_late, 0u);
  return back;
}

TEST(ConvertTest, SnapshotsKeepCallStacks) {
  TraceBuilder builder("stacks");
  TraceStacks& stacks = builder.trace().stacks;
  const TraceFrame inner{stacks.text("inner"), stacks.text("a.py"), 1};
  const TraceFrame outer{stacks.text("outer"), stacks.text("b.py"), 2};
  const std::uint32_t both = stacks.add({inner, outer});
  const std::uint32_t one = stacks.add({outer});
  const auto first = builder.allocate(1000_B, 0, both);
  builder.mark("between");
  const auto second = builder.allocate(2_MiB, 3, both);
  ASSERT_TRUE(builder.free(*first, one));
  builder.allocate(64_B, 0, 0);
  ASSERT_TRUE(builder.free(*second, 0));
  builder.allocate(64_B, 0, one);
  const Trace& trace = builder.trace();
  ASSERT_EQ(stacks_in(trace)[0], "inner:a.py:1 outer:b.py:2");
  for (const auto& [target, kind] :
       {std::pair{TraceTarget::kPickle, FileKind::kPickle},
        std::pair{TraceTarget::kSnapshotJson, FileKind::kSnapshotJson}}) {
    const auto back = through(trace, target, kind);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(stacks_in(*back), stacks_in(trace));
  }
  std::string error;
  const auto perfetto = export_trace(trace, TraceTarget::kPerfetto, kAllEvents, &error);
  ASSERT_TRUE(perfetto.has_value()) << error;
  EXPECT_NE(perfetto->find("inner"), std::string::npos);
}

void expect_round_trips(const Trace& trace) {
  const std::pair<TraceTarget, FileKind> kinds[] = {
      {TraceTarget::kTrace, FileKind::kTrace},
      {TraceTarget::kPickle, FileKind::kPickle},
      {TraceTarget::kSnapshotJson, FileKind::kSnapshotJson},
      {TraceTarget::kRmmLog, FileKind::kRmmLog},
  };
  for (const auto& [target, kind] : kinds) {
    const bool with_marks = target != TraceTarget::kRmmLog;
    const auto back = through(trace, target, kind);
    ASSERT_TRUE(back.has_value());
    EXPECT_TRUE(events_of(*back, with_marks) == events_of(trace, with_marks))
        << trace.name << " as kind " << static_cast<int>(target);
    EXPECT_EQ(back->peak_live, trace.peak_live);
  }
}

/// How many traces of the folder went there and back.
std::size_t round_trips_of(const std::filesystem::path& folder) {
  std::size_t count = 0;
  if (!std::filesystem::is_directory(folder)) return count;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().find(".trace") == std::string::npos) continue;
    if (props::kIsSanitized && entry.file_size() > kSizeMaxSanitized) continue;
    std::string error;
    const auto trace = read_trace(entry.path().string(), &error);
    EXPECT_TRUE(trace.has_value()) << error;
    if (trace) expect_round_trips(*trace);
    ++count;
  }
  return count;
}

TEST(ConvertTest, EverySampleTraceComesBackFromEveryKindOfFile) {
  EXPECT_GT(round_trips_of(ASHLAR_TRACES_PATH), 0u);
}

TEST(ConvertTest, EveryTraceOfAGpuComesBackFromEveryKindOfFile) {
  if (round_trips_of(ASHLAR_GPU_TRACES_PATH) == 0) GTEST_SKIP() << "the further traces are absent";
}

TEST(ConvertTest, StreamsMarksAndEmptyAllocationsComeBack) {
  TraceBuilder builder("small");
  const auto first = builder.allocate(100_B, 7);
  builder.mark("step 0 begin");
  const auto second = builder.allocate(3_MiB, 9);
  ASSERT_TRUE(builder.free(*first));
  const auto third = builder.allocate(0_B, 7);
  builder.allocate(100_MiB, 7);
  ASSERT_TRUE(builder.free(*third));
  ASSERT_TRUE(builder.free(*second));
  builder.allocate(1_B, 9);
  expect_round_trips(builder.trace());
}

TEST(ConvertTest, WhatDoesNotFitInAddressesIsRefused) {
  TraceBuilder builder("large");
  builder.allocate(Bytes{std::uint64_t{1} << 53});
  std::string error;
  EXPECT_FALSE(export_trace(builder.trace(), TraceTarget::kPickle, kAllEvents, &error).has_value());
  EXPECT_EQ(error, "its allocations do not fit in 2^53 bytes of addresses");
}

// An empty allocation is made of one byte; no event of a file shows that.
TEST(ConvertTest, EveryEventOfAnEmptyAllocationHasSizeZero) {
  TraceBuilder builder("empty");
  const auto slot = builder.allocate(0_B);
  ASSERT_TRUE(builder.free(*slot));
  std::string error;
  const auto text = export_trace(builder.trace(), TraceTarget::kSnapshotJson, 100, &error);
  ASSERT_TRUE(text.has_value()) << error;
  EXPECT_EQ(text->find("\"size\":1,"), std::string::npos) << *text;
}

// Streams that pass their memory on: the most events for each of the trace's.
TEST(ConvertTest, AHistoryKeepsEveryEventOfATrace) {
  TraceBuilder builder("passing");
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto slot = builder.allocate(30_MiB, i % 2);
    ASSERT_TRUE(builder.free(*slot));
  }
  std::string error;
  const auto text = export_trace(builder.trace(), TraceTarget::kSnapshotJson, 1'000'000, &error);
  ASSERT_TRUE(text.has_value()) << error;
  EXPECT_NE(text->find(R"("trace_alloc_overflowed":false)"), std::string::npos);
}

class ConvertCliTest : public Cli {};

const char* const kSmallTrace =
    "{\"format\":\"alloc-trace\",\"version\":1}\na 0 100\nm half\na 1 200\nf 0\n";

TEST_F(ConvertCliTest, TheEndingSaysTheKindAndTheContentIsKnownAgain) {
  write("t.trace", kSmallTrace);
  for (const char* name : {"a.pickle", "a.pkl.gz", "a.json", "a.csv", "a.csv.gz", "a.trace.gz"}) {
    const Ran there = run(std::string("convert t.trace ") + name);
    EXPECT_EQ(there.code, 0) << there.err;
    const bool is_log = std::string(name).find(".csv") != std::string::npos;
    EXPECT_EQ(there.out, std::string(name) + ": 2 allocations, 1 frees, 1 marks" +
                             (is_log ? ", which the file cannot have\n" : "\n"));
    const Ran back = run(std::string("convert ") + name + " back.trace");
    EXPECT_EQ(back.code, 0) << back.err;
    std::string error;
    const auto trace = read_trace((folder_ / "back.trace").string(), &error);
    ASSERT_TRUE(trace.has_value()) << error;
    EXPECT_EQ(trace->allocations, 2u);
    EXPECT_EQ(trace->peak_live, 300_B);
    const Ran replayed = run(std::string("replay ") + name);
    EXPECT_EQ(replayed.code, 0) << replayed.err;
    EXPECT_EQ(run(std::string("plan --work 100 --from-trace ") + name).code, 0);
  }
  EXPECT_EQ(run("convert t.trace a.perfetto.json").code, 0);
  EXPECT_NE(slurp(folder_ / "a.perfetto.json").find("traceEvents"), std::string::npos);
  EXPECT_EQ(run("convert a.perfetto.json b.trace").err,
            "a.perfetto.json: is a trace for Chrome or Perfetto, which cannot be read back\n");
  EXPECT_EQ(run("convert t.trace --to rmm log.txt").code, 0);
  EXPECT_EQ(run("convert log.txt --to trace -").out.rfind("{\"format\":\"alloc-trace\",", 0), 0u);
  EXPECT_EQ(run("replay a.csv").err, "a.csv: a log of RMM: 3 events\n");
}

TEST_F(ConvertCliTest, WhatPythonWritesIsReplayed) {
  if (!props::has_python()) GTEST_SKIP() << "there is no python3";
  for (const char* protocol : {"2", "3", "4", "5"}) {
    write(
        "p.pickle",
        props::python("import pickle, sys; e = lambda a, p, n: {\"action\": a, \"addr\": p, "
                      "\"size\": n, \"stream\": 0, \"frames\": []}; pickle.dump({\"segments\": [], "
                      "\"device_traces\": [[], [e(\"alloc\", 2**46, 100), e(\"free_requested\", "
                      "2**46, 100), e(\"oom\", 0, 5)]]}, sys.stdout.buffer, protocol=" +
                      std::string(protocol) + ")"));
    const Ran ran = run("replay p.pickle");
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.err, "p.pickle: a memory snapshot, device 1: 3 events, 1 skipped\n");
    EXPECT_EQ(run("replay p.pickle --trace-device 2").err,
              "p.pickle: device 2 is not there: events are of device 1\n");
  }
}

TEST_F(ConvertCliTest, OnlyAFileOfTheSameKindIsReplaced) {
  write("t.trace", kSmallTrace);
  const std::pair<const char*, const char*> foreign[] = {
      {"notes.csv", "buy milk\n"},           {"table.csv", "time,value\n1,2\n"},
      {"random.pickle", "\x01\x02"},         {"other.trace", "a 0 100\n"},
      {"package.json", "{\"name\": \"x\"}"}, {"page.json", "<html>"},
      {"prose.trace.gz", "\x1f\x8b"}};
  for (const auto& [name, content] : foreign) {
    write(name, content);
    const Ran ran = run(std::string("convert t.trace ") + name);
    EXPECT_EQ(ran.code, 3) << name;
    EXPECT_EQ(ran.err,
              std::string(name) + ": not replaced, because it is a file of another kind\n");
    EXPECT_EQ(slurp(folder_ / name), content);
  }
  write("archive.trace.gz", gzip("some archive"));
  EXPECT_EQ(run("convert t.trace archive.trace.gz").code, 3);
  for (const char* name : {"a.pickle", "a.json", "a.csv", "a.trace", "a.perfetto.json",
                           "a.pickle.gz", "a.csv.gz", "a.trace.gz"}) {
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(run(std::string("convert t.trace ") + name).code, 0) << name;
  }
  EXPECT_EQ(run("convert t.trace --to rmm a.pickle").code, 3);
  EXPECT_EQ(run("convert t.trace --to trace a.json").code, 3);
  EXPECT_EQ(run("convert t.trace --to perfetto a.json").code, 3);
  EXPECT_EQ(run("replay t.trace --json a.json").code, 3);
  write("python.trace", "{\"version\": 1, \"format\": \"alloc-trace\"}\na 0 1\n");
  EXPECT_EQ(run("convert t.trace python.trace").code, 0);
}

TEST_F(ConvertCliTest, ABadOutputIsRefusedBeforeTheInputIsRead) {
  const Ran ran = run("convert none.trace no/out.csv");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "no/out.csv: No such file or directory\n");
}

TEST_F(ConvertCliTest, AFileThatIsGivenForAnotherIsSaidToBeWhatItIs) {
  write("t.trace", kSmallTrace);
  ASSERT_EQ(run("convert t.trace a.pickle").code, 0);
  ASSERT_EQ(run("convert t.trace a.csv").code, 0);
  ASSERT_EQ(run("convert t.trace a.trace").code, 0);
  EXPECT_EQ(run("plan a.pickle").err,
            "a.pickle: is a pickle; `ashlar replay` and `ashlar plan --from-trace` take a memory "
            "snapshot\n");
  EXPECT_EQ(
      run("plan a.csv").err,
      "a.csv: is a log of RMM; `ashlar replay` runs it, `ashlar plan --from-trace` plans it\n");
  EXPECT_EQ(run("check a.trace").err,
            "a.trace: is an allocation trace; `ashlar replay` runs it, `ashlar plan --from-trace` "
            "plans it\n");
  write("short.csv", "Thread,Time,Action,Pointer,Size\n");
  EXPECT_EQ(run("replay short.csv").err,
            "short.csv:1: the header is not Thread,Time,Action,Pointer,Size,Stream\n");
}

TEST_F(ConvertCliTest, AWrongUseIsRefused) {
  write("t.trace", kSmallTrace);
  EXPECT_EQ(run("convert t.trace").code, 2);
  const Ran unknown = run("convert t.trace out.txt");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err,
            "out.txt: the ending names no kind of file; give --to trace, pickle, json, rmm or "
            "perfetto\n");
  EXPECT_EQ(run("convert t.trace out.csv --limit-events 1").code, 2);
  EXPECT_EQ(run("convert none.trace out.csv").code, 3);
  EXPECT_EQ(run("convert t.trace no/out.csv").code, 3);
  const Ran few = run("convert t.trace few.pickle --limit-events 2");
  EXPECT_EQ(few.code, 0);
  EXPECT_EQ(
      few.out,
      "few.pickle: 2 allocations, 1 frees, 1 marks; at most the newest 2 events are written\n");
  for (const char* number : {"-1", "1.5", "x", "18446744073709551616"}) {
    const Ran bad = run(std::string("convert t.trace few.pickle --limit-events ") + number);
    EXPECT_EQ(bad.code, 2) << number;
    EXPECT_NE(bad.err.find("is not a whole number from 0 to 2^64 - 1"), std::string::npos)
        << bad.err;
  }
  EXPECT_NE(run("convert few.pickle few.trace").out.find("live at the start"), std::string::npos);
}

}  // namespace
}  // namespace ashlar::tool
