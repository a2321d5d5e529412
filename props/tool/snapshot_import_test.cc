// Snapshots and logs as traces: what becomes an event, what was live before, and what is refused.
//
// Imitates: recordings of PyTorch and RMM: whole, truncated at their oldest end, without history, of
// several devices, in old forms, and edited so that they contradict themselves. Does not prove: that a
// trace's replay does what the recorded program did.
#include <gtest/gtest.h>

#include <algorithm>

#include "props/tool/stacks.h"
#include "src/tool/json_document.h"
#include "src/tool/pickle_reader.h"
#include "src/tool/rmm_csv.h"
#include "src/tool/snapshot_import.h"
#include "src/tool/snapshot_stacks.h"

namespace ashlar::tool {
namespace {

using namespace std::string_literals;

using props::stacks_in;

/// JSON as it is written below: with apostrophes for quotes.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return text;
}

/// The trace's lines after its header, or the error. `source` tells of it.
std::string lines_of(const std::optional<Trace>& trace, const std::string& error) {
  if (!trace) return error;
  const std::string text = format_trace(*trace);
  return text.substr(text.find('\n') + 1);
}

std::string imported(const std::string& json, TraceRequest request = {},
                     TraceSource* source = nullptr) {
  std::string error;
  TraceSource unused;
  const std::string text = quoted(json);
  const auto document = parse_json_document(text, "s", &error);
  if (!document) return error;
  return lines_of(
      import_snapshot(*document, "s", request, source == nullptr ? &unused : source, &error),
      error);
}

/// A snapshot with these events of device 0 and no segments.
std::string with_events(const std::string& events) {
  return "{'segments': [], 'device_traces': [[" + events + "]]}";
}

std::string event(const std::string& action, int address, int size, int stream = 0) {
  return "{'action': '" + action + "', 'addr': " + std::to_string(address) +
         ", 'size': " + std::to_string(size) + ", 'stream': " + std::to_string(stream) + "}";
}

std::string rmm(const std::string& lines, TraceSource* source = nullptr) {
  std::string error;
  TraceSource unused;
  const auto trace = parse_rmm_csv(std::string(kRmmHeader) + "\n" + lines, "l",
                                   source == nullptr ? &unused : source, &error);
  return lines_of(trace, error);
}

TEST(SnapshotImportTest, AllocationsEndWhereTheirFreeIsRequested) {
  EXPECT_EQ(imported(with_events(event("alloc", 512, 100) + "," + event("alloc", 1024, 200, 7) +
                                 "," + event("free_requested", 512, 100) + "," +
                                 event("free_requested", 1024, 200, 7) + "," +
                                 event("free_completed", 512, 100) + "," + event("alloc", 512, 50) +
                                 "," + event("free_completed", 1024, 200, 7))),
            "a 0 100 0\na 1 200 7\nf 0\nf 1\na 2 50 0\n");
}

TEST(SnapshotImportTest, ACompletionWithoutARequestIsTheEnd) {
  EXPECT_EQ(
      imported(with_events(event("alloc", 512, 100) + "," + event("free_completed", 512, 100) +
                           "," + event("alloc", 512, 50) + "," + event("free", 512, 50))),
      "a 0 100\nf 0\na 1 50\nf 1\n");
}

std::optional<Trace> trace_of(const std::string& json) {
  std::string error;
  TraceSource source;
  const std::string text = quoted(json);
  const auto document = parse_json_document(text, "s", &error);
  if (!document) return std::nullopt;
  return import_snapshot(*document, "s", {}, &source, &error);
}

/// A snapshot with call stacks: of allocations, of a free, and of a block that was live before.
constexpr const char* kWithStacks =
    "{'segments': [{'address': 4096, 'device': 0, 'blocks': [{'size': 64, 'state': "
    "'active_allocated', 'frames': [{'name': 'early', 'filename': 'e.py', 'line': 7}]}]}],"
    "'device_traces': [["
    "{'action': 'alloc', 'addr': 512, 'size': 100, 'stream': 0, 'frames': ["
    "{'name': 'inner', 'filename': 'a.py', 'line': 1}, {'name': 'outer', 'filename': 'a.py', "
    "'line': 2}]},"
    "{'action': 'alloc', 'addr': 1024, 'size': 100, 'stream': 0, 'frames': ["
    "{'name': 'inner', 'filename': 'a.py', 'line': 1}, {'name': 'outer', 'filename': 'a.py', "
    "'line': 2}]},"
    "{'action': 'free_requested', 'addr': 512, 'size': 100, 'stream': 0, 'frames': ["
    "{'name': 'drop', 'filename': 'b.py', 'line': 3}]},"
    "{'action': 'free_requested', 'addr': 2048, 'size': 100, 'stream': 0, 'frames': ["
    "{'name': 'drop', 'filename': 'b.py', 'line': 3}]}]]}";

TEST(SnapshotImportTest, CallStacksAreThoseOfTheirEvents) {
  const auto trace = trace_of(kWithStacks);
  ASSERT_TRUE(trace.has_value());
  const std::vector<std::string> expected{
      "-",           "early:e.py:7", "inner:a.py:1 outer:a.py:2", "inner:a.py:1 outer:a.py:2",
      "drop:b.py:3", "drop:b.py:3"};
  EXPECT_EQ(stacks_in(*trace), expected);
  EXPECT_EQ(trace->stacks.size(), 3u) << "equal stacks are one";
}

TEST(SnapshotImportTest, WhatIsNoCallStackIsLeftOut) {
  for (const char* frames :
       {"7", "null", "'f'", "[]", "[7, 'f', null]", "{'name': 'f'}", "[[{'name': 'f'}]]"}) {
    const auto trace = trace_of(with_events(
        std::string("{'action': 'alloc', 'addr': 1, 'size': 2, 'stream': 0, 'frames': ") + frames +
        "}"));
    ASSERT_TRUE(trace.has_value()) << frames;
    EXPECT_EQ(stacks_in(*trace), std::vector<std::string>{"-"}) << frames;
  }
  const auto odd = trace_of(with_events(
      "{'action': 'alloc', 'addr': 1, 'size': 2, 'frames': [{}, {'name': 7, 'line': -1}, "
      "{'filename': 'f', 'line': 4294967296}, {'name': 'n', 'line': 4294967295}]}"));
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(stacks_in(*odd), std::vector<std::string>{"::0 ::0 :f:0 n::4294967295"});
}

TEST(SnapshotImportTest, AStackHasSoManyFrames) {
  std::string frames;
  for (std::size_t i = 0; i < kSnapshotFramesMax + 5; ++i)
    frames += std::string(i == 0 ? "" : ",") + "{'name': 'f', 'line': " + std::to_string(i) + "}";
  const auto trace = trace_of(
      with_events("{'action': 'alloc', 'addr': 1, 'size': 2, 'frames': [" + frames + "]}"));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->stacks.frames_of(1).size(), kSnapshotFramesMax);
  EXPECT_EQ(trace->stacks.frames_of(1).front().line, 0u);
}

// What is exactly at a limit is taken.
TEST(SnapshotImportTest, WhatIsAtALimitIsTaken) {
  std::string keys = "'action': 'oom'";
  for (std::size_t i = 1; i < kSnapshotKeysMax; ++i) keys += ", 'k" + std::to_string(i) + "': 0";
  EXPECT_EQ(imported(with_events("{" + keys + "}")), "");
  EXPECT_EQ(imported("{'segments': [{'device': 1023, 'blocks': [{'size': 1, 'state': "
                     "'active_allocated'}]}]}"),
            "a 0 1\n");
}

// One text of 4096 bytes, said again in two bytes.
TEST(SnapshotImportTest, TheTextsOfMarksAreLimitedTogether) {
  for (const std::size_t beyond : {0u, 1u}) {
    const std::string text(4096, 'x');
    std::string pickle = "\x80\x04}\x8c\x0d"s + "device_traces](](}(\x8c\x06"s + "action\x8c\x08"s +
                         "annotate\x8c\x0duser_metadataX\x00\x10\x00\x00"s + text + "u\x94"s;
    for (std::size_t i = 1; i < kSnapshotMarkBytesMax / text.size() + beyond; ++i)
      pickle += "h\x00"s;
    pickle += "ees."s;
    std::string error;
    TraceSource source;
    const auto document = parse_pickle(pickle, "s", &error);
    ASSERT_TRUE(document.has_value()) << error;
    EXPECT_EQ(import_snapshot(*document, "s", {}, &source, &error).has_value(), beyond == 0);
    if (beyond == 1) {
      EXPECT_NE(error.find("the texts of marks exceed 64 MiB"), std::string::npos) << error;
    }
  }
}

// Blocks without addresses lie one behind the other, whatever their states: a free names the second.
TEST(SnapshotImportTest, ABlockWithoutAddressLiesBehindTheOneBefore) {
  EXPECT_EQ(
      imported("{'segments': [{'address': 4096, 'blocks': [{'size': 1024, 'state': 'inactive'},"
               "{'size': 512, 'state': 'active_pending_free'},"
               "{'size': 256, 'state': 'active_allocated'}]}], 'device_traces': [["
               "{'action': 'alloc', 'addr': 5632, 'size': 200, 'stream': 0}]]}"),
      "a 0 200\n");
}

TEST(SnapshotImportTest, MarksAreKeptAndOtherActionsAreCounted) {
  TraceSource source;
  EXPECT_EQ(imported(with_events(
                         "{'action': 'segment_alloc', 'addr': 0, 'size': 2097152, 'stream': 0},"
                         "{'action': 'user_defined', 'user_metadata': 'step 1\\nbegin'}," +
                         event("alloc", 512, 100) +
                         ",{'action': 'annotate'}, {'action': 'oom', 'device_free': 5, 'size': 9},"
                         "{'action': 'segment_map'}, {'action': 'segment_unmap'},"
                         "{'action': 'segment_free'}, {'action': 'snapshot'}"),
                     {}, &source),
            "m step 1 begin\na 0 100\nm -\n");
  EXPECT_EQ(source.events, 9u);
  EXPECT_EQ(source.skipped, 6u);
}

TEST(SnapshotImportTest, WhatIsLiveWithoutAnEventIsAllocatedFirstInTheOrderOfAddresses) {
  const std::string segments =
      "{'device': 0, 'address': 8192, 'stream': 3, 'blocks': ["
      "{'address': 8192, 'size': 512, 'requested_size': 300, 'state': 'active_allocated'},"
      "{'address': 8704, 'size': 512, 'requested_size': 9, 'state': 'active_pending_free'},"
      "{'address': 9216, 'size': 1024, 'requested_size': 0, 'state': 'inactive'}]},"
      "{'device': 0, 'address': 4096, 'stream': 0, 'blocks': ["
      "{'size': 1024, 'state': 'inactive'}, {'size': 512, 'state': 'active_allocated'}]},"
      "{'device': 1, 'address': 4096, 'blocks': [{'size': 1, 'state': 'active_allocated'}]}";
  TraceSource source;
  const std::string events = event("free_requested", 6144, 77) + "," + event("alloc", 6656, 5) +
                             "," + event("free_completed", 7168, 88);
  EXPECT_EQ(imported("{'segments': [" + segments + "], 'device_traces': [[" + events + "]]}", {},
                     &source),
            "a 0 512 0\na 1 77 0\na 2 88 0\na 3 300 3\nf 1\na 4 5 0\nf 2\n");
  EXPECT_EQ(source.live_at_start, 4u);
}

TEST(SnapshotImportTest, ABlockThatTheHistoryAllocatedIsNotAllocatedAgain) {
  TraceSource source;
  EXPECT_EQ(imported("{'segments': [{'address': 512, 'blocks': [{'size': 512, 'requested_size': "
                     "100, 'state': 'active_allocated'}]}], 'device_traces': [[" +
                         event("alloc", 512, 100) + "]]}",
                     {}, &source),
            "a 0 100\n");
  EXPECT_EQ(source.live_at_start + source.allocated_late, 0u);
}

TEST(SnapshotImportTest, AHistoryThatWasStoppedEarlyHasLateAllocations) {
  TraceSource source;
  EXPECT_EQ(imported("{'segments': [{'address': 512, 'blocks': [{'size': 512, 'requested_size': 33,"
                     " 'state': 'active_allocated'}]}], 'device_traces': [[" +
                         event("alloc", 512, 100) + "," + event("free_requested", 512, 100) + "]]}",
                     {}, &source),
            "a 0 100\nf 0\na 1 33\n");
  EXPECT_EQ(source.allocated_late, 1u);
  EXPECT_EQ(source.live_at_start, 0u);
}

TEST(SnapshotImportTest, WithoutAHistoryTheLiveBlocksAreTheTrace) {
  const std::string segments =
      "[{'address': 512, 'blocks': [{'size': 512, 'state': 'active_allocated'},"
      "{'size': 1024, 'requested_size': 600, 'state': 'active_allocated'}]}]";
  EXPECT_EQ(imported("{'segments': " + segments + "}"), "a 0 512\na 1 600\n");
  EXPECT_EQ(imported(segments), "a 0 512\na 1 600\n");
  EXPECT_EQ(imported("{'segments': [], 'device_traces': [[], []]}"), "");
}

TEST(SnapshotImportTest, OfSeveralDevicesOneIsChosen) {
  const std::string two =
      "{'device_traces': [[], [" + event("alloc", 512, 1) + "], [" + event("alloc", 512, 2) + "]]}";
  EXPECT_EQ(imported(two),
            "s: device_traces: events are of the devices 1 and 2: choose one with --trace-device");
  TraceSource source;
  EXPECT_EQ(imported(two, {2}, &source), "a 0 2\n");
  EXPECT_EQ(source.device, 2u);
  EXPECT_EQ(imported(two, {0}), "");
  EXPECT_EQ(imported(two, {3}), "s: device 3 is not there: events are of the devices 1 and 2");
  EXPECT_EQ(imported("{'device_traces': [[], [" + event("alloc", 512, 1) + "]]}", {}, &source),
            "a 0 1\n");
  EXPECT_EQ(source.device, 1u);
}

TEST(SnapshotImportTest, AContradictionIsRefusedWithItsEvent) {
  const std::string allocation = event("alloc", 512, 100);
  const std::string request = event("free_requested", 512, 100);
  const std::string done = event("free_completed", 512, 100);
  EXPECT_EQ(imported(with_events(request + "," + allocation + "," + allocation)),
            "s: device_traces[0][2]: allocates 0x200, which is live since event 1");
  EXPECT_EQ(imported(with_events(allocation + "," + request + "," + request)),
            "s: device_traces[0][2]: frees 0x200, which is free since event 1");
  EXPECT_EQ(imported(with_events(allocation + "," + request + "," + done + "," + done)),
            "s: device_traces[0][3]: frees 0x200, which is free since event 2");
}

TEST(SnapshotImportTest, WhatHasNoMeaningIsRefusedWithItsPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"5", "root: is no dict"},
      {"{}", "root: neither 'segments' nor 'device_traces' is there, so it is no memory snapshot"},
      {"{'segments': 5}", "segments: is no list"},
      {"{'device_traces': {}}", "device_traces: is no list"},
      {"{'device_traces': [5]}", "device_traces[0]: is no list"},
      {"{'segments': [5]}", "segments[0]: is no dict"},
      {"{'segments': [{'device': -1}]}", "segments[0]: 'device' is no whole number from 0"},
      {"{'segments': [{'device': 1024}]}",
       "segments[0]: 'device' is over the largest device's number"},
      {"{'segments': [{}]}", "segments[0]: has no 'blocks'"},
      {"{'segments': [{'blocks': 5}]}", "segments[0].blocks: is no list"},
      {"{'segments': [{'blocks': [{}]}]}", "segments[0].blocks[0]: has no 'size'"},
      {"{'segments': [{'blocks': [{'size': 1.5}]}]}",
       "segments[0].blocks[0]: 'size' is no whole number from 0"},
      {with_events("5"), "device_traces[0][0]: is no dict"},
      {with_events("{}"), "device_traces[0][0]: has no 'action'"},
      {with_events("{'action': 'alloc'}"), "device_traces[0][0]: has no 'addr'"},
      {with_events("{'action': 'alloc', 'addr': 1}"), "device_traces[0][0]: has no 'size'"},
      {with_events("{'action': 'alloc', 'addr': 1, 'size': -1}"),
       "device_traces[0][0]: 'size' is no whole number from 0"},
      {with_events("{'action': 'alloc', 'addr': 1, 'size': 1, 'stream': 'x'}"),
       "device_traces[0][0]: 'stream' is no number"},
      {with_events("{'action': 'alloc', 'addr': 1, 'size': 2305843009213693952}"),
       "an allocation over 1 EiB, too many events or streams, or live bytes that overflow"},
  };
  for (const auto& [json, text] : cases) EXPECT_EQ(imported(json), "s: " + text);
  std::string lists = "[5]";
  std::string names = "events are of the devices ";
  for (int d = 1; d < 1024; ++d) lists += ",[5]";
  for (int d = 0; d < 16; ++d) names += std::to_string(d) + ", ";
  EXPECT_EQ(imported("{'device_traces': [" + lists + "]}"),
            "s: device_traces: " + names + "and more: choose one with --trace-device");
  EXPECT_EQ(imported("{'device_traces': [" + lists + ",[]]}"),
            "s: device_traces: has more than 1024 lists");
  std::string keys = "'action': 'oom'";
  for (std::size_t i = 0; i < kSnapshotKeysMax; ++i) keys += ", 'k" + std::to_string(i) + "': 0";
  EXPECT_EQ(imported(with_events("{" + keys + "}")),
            "s: device_traces[0][0]: has more than 64 keys");
}

// Two segments that are one list of blocks, as a memo can say it: each byte of a pickle could stand for
// thousands of blocks.
TEST(SnapshotImportTest, SegmentsThatShareTheirBlocksAreRefused) {
  const std::string key = "\x8c\x06"s + "blocks";
  std::string pickle = "\x80\x04}\x8c\x08segments](}"s + key + "]\x94("s;
  for (int b = 0; b < 50; ++b) pickle += b == 0 ? "}\x8c\x04size\x94K\x01s\x94"s : "h\x02"s;
  pickle += "es"s;
  for (int s = 0; s < 50; ++s) pickle += "}"s + key + "h\x00s"s;
  pickle += "es."s;
  std::string error;
  TraceSource source;
  const auto document = parse_pickle(pickle, "s", &error);
  ASSERT_TRUE(document.has_value()) << error;
  EXPECT_FALSE(import_snapshot(*document, "s", {}, &source, &error).has_value());
  EXPECT_NE(error.find("shares its blocks with other segments"), std::string::npos) << error;
}

TEST(RmmCsvTest, CallsOfSeveralThreadsBecomeEvents) {
  TraceSource source;
  EXPECT_EQ(rmm("1,11:30:00.000001,allocate,0x7f00,256,0x55aa\r\n"
                "2,11:30:00:000002,allocate,0x8000,512,0\n"
                "2,11:30:00:000003,allocate failure,(nil),999,0\n"
                "1,11:30:00.000004,free,0x7f00,256,0x55aa\n"
                "1,11:30:00.000005,allocate,(nil),0,0\n"
                "1,11:30:00.000006,free,(nil),0,0\n"
                "1,11:30:00.000007,allocate,0x7f00,128,55aa\n"
                "1,11:30:00.000008,free,0x9000,64,0x0",
                &source),
            "a 0 64 0\na 1 256 21930\na 2 512 0\nf 1\na 3 128 21930\nf 0\n");
  EXPECT_EQ(source.events, 8u);
  EXPECT_EQ(source.skipped, 3u);
  EXPECT_EQ(source.live_at_start, 1u);
}

TEST(RmmCsvTest, AFractionOfNoDigitsAndAFreeOfMemoryAtNullAreRefused) {
  EXPECT_EQ(rmm("1,11:30:00.,allocate,0x1,1,0\n"), "l:2: the time is no HH:MM:SS.micros");
  EXPECT_EQ(rmm("1,11:30:00.1,allocate,0x1,1,0\n"), "a 0 1\n");
  EXPECT_EQ(rmm("1,11:30:00.1,free,(nil),256,0\n"), "l:2: memory at the null pointer");
  EXPECT_EQ(rmm("1,11:30:00.1,free,0x0,256,0\n"), "l:2: memory at the null pointer");
}

TEST(RmmCsvTest, EachFaultHasItsLineAndReason) {
  const std::string call = "1,11:30:00.000001,allocate,0x7f00,256,0";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"\n", ""},  // empty lines are skipped, as editors leave one at the end
      {call + "\n\n\r\n", "a 0 256\n"},
      {"\n" + call + "\n\n" + call, "l:5: allocates 0x7f00, which is live since line 3"},
      {"1,2,3\n", "l:2: the line has not six fields"},
      {call + ",7\n", "l:2: the line has not six fields"},
      {call + "\n" + call + "\n", "l:3: allocates 0x7f00, which is live since line 2"},
      {"1,11:30:00,allocate,0x7f00,256,0\n", "l:2: the time is no HH:MM:SS.micros"},
      {"1,noon,allocate,0x7f00,256,0\n", "l:2: the time is no HH:MM:SS.micros"},
      {"1,11:30:00.1,allocate,here,256,0\n", "l:2: the pointer is neither 0x... nor (nil)"},
      {"1,11:30:00.1,allocate,(nil),256,0\n", "l:2: memory at the null pointer"},
      {"1,11:30:00.1,allocate,0x1,-1,0\n", "l:2: the size is no whole number from 0"},
      {"1,11:30:00.1,allocate,0x1,1,zero\n", "l:2: the stream is no hexadecimal number"},
      {"1,11:30:00.1,reallocate,0x1,1,0\n",
       "l:2: the action is neither allocate nor free nor allocate failure"},
  };
  for (const auto& [lines, text] : cases) EXPECT_EQ(rmm(lines), text);
  std::string error;
  TraceSource source;
  EXPECT_FALSE(parse_rmm_csv("Thread,Time\n", "l", &source, &error).has_value());
  EXPECT_EQ(error, "l:1: the header is not Thread,Time,Action,Pointer,Size,Stream");
  EXPECT_TRUE(
      parse_rmm_csv("\xef\xbb\xbf" + std::string(kRmmHeader), "l", &source, &error).has_value());
}

}  // namespace
}  // namespace ashlar::tool
