// Perfetto's trace, event by event: whose counters move, what has edges, what is written of a window.
//
// Imitates: memory pools that hold blocks from before the trace, frees that name no pool, segments that come and go. Does not prove:
// that Perfetto's UI opens it.
#include <gtest/gtest.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;
using cache::HistorySnapshot;

std::string trace_of(const HistorySnapshot& record, const exchange::ExportWindow& window = {}) {
  return text_of([&](const exchange::ByteSink& sink) {
    return exchange::write_perfetto_trace({{DeviceId{0}, &record}}, {}, window, sink);
  });
}
/// What the counter of that name is set to, in order: `time:allocated/pending`, and `/idle` where it has that.
std::string counter(const std::string& trace, const std::string& name) {
  const std::string begin = R"({"ph":"C","name":")" + name + R"(","ts":)";
  std::string values;
  for (std::size_t at = trace.find(begin); at != std::string::npos; at = trace.find(begin, at)) {
    at += begin.size();
    const auto number_behind = [&](const std::string& key) {
      const std::size_t end = trace.find("}}", at), from = trace.find(key, at);
      if (from == std::string::npos || from > end) return std::string();
      return std::to_string(std::stoull(trace.substr(from + key.size())));
    };
    values += (values.empty() ? "" : " ") + std::to_string(std::stoull(trace.substr(at))) + ":" +
              number_behind("\"allocated\":") + "/" + number_behind("\"pending\":");
    const std::string idle = number_behind("\"idle\":");
    if (!idle.empty()) values += "/" + idle;
  }
  return values;
}
std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}
HistoryEvent in_pool(HistoryEvent event, MemoryPoolId pool) {
  event.memory_pool = pool;
  return event;
}

/// small_record(), and a second segment of another pool with a live block of 100 bytes; nothing happens.
HistorySnapshot record_of_two_pools() {
  HistorySnapshot record = small_record();
  record.history.events.clear();
  record.block_contexts.clear();
  record.snapshot.segments.push_back(
      {Address{16384}, 512_B, StreamId{7}, 1, 4, 1, PoolId::kSmall, {5, 0}});
  record.snapshot.blocks.push_back(
      {Address{16384}, 512_B, 100_B, StreamId{7}, 0, BlockState::kLive});
  return record;
}

TEST(PerfettoCounters, EachPoolThatHoldsMemoryAtTheStartHasACounter) {
  HistorySnapshot record = record_of_two_pools();
  const std::string still = trace_of(record);
  EXPECT_EQ(counter(still, "memory"), "0:1500/500/2608");
  EXPECT_EQ(counter(still, "pool 0,2"), "0:1400/500");
  EXPECT_EQ(counter(still, "pool 5,0"), "0:100/0");
  EXPECT_EQ(count_of(still, "\"name\":\"pool "), 2u);
  record.history.events = {event_of(HistoryAction::kSnapshot, 0, 4096, 30)};
  EXPECT_EQ(counter(trace_of(record), "pool 0,2"), "30:1400/500") << "at the first event's time";
}

TEST(PerfettoCounters, AFreeCountsForThePoolOfItsBlock) {
  HistorySnapshot record = record_of_two_pools();
  record.snapshot.blocks[4].state = BlockState::kFree;
  // As after a pool's release: its name is not in the frees.
  record.history.events = {in_pool(event_of(HistoryAction::kAllocate, 16384, 100, 20), {5, 0}),
                           event_of(HistoryAction::kFreeRequested, 16384, 100, 30),
                           event_of(HistoryAction::kFreeCompleted, 16384, 100, 40)};
  const std::string trace = trace_of(record);
  EXPECT_EQ(counter(trace, "pool 5,0"), "20:100/0 30:0/100 40:0/0") << trace;
}

TEST(PerfettoCounters, MemoryThatComesAndGoesIsIdle) {
  HistorySnapshot record;
  record.history.events = {
      in_pool(event_of(HistoryAction::kSegmentAllocate, 4096, 4096, 1), {0, 3}),
      event_of(HistoryAction::kSegmentMap, 16384, 512, 2),
      event_of(HistoryAction::kSegmentUnmap, 16384, 512, 3),
      in_pool(event_of(HistoryAction::kAllocate, 4096, 1000, 4), {0, 3}),
      in_pool(event_of(HistoryAction::kFreeRequested, 4096, 1000, 5), {0, 3}),
      in_pool(event_of(HistoryAction::kFreeCompleted, 4096, 1000, 6), {0, 3}),
      in_pool(event_of(HistoryAction::kSegmentFree, 4096, 4096, 7), {0, 3})};
  record.history.events[5].block_size = 1024_B;
  const std::string trace = trace_of(record);
  EXPECT_EQ(counter(trace, "memory"),
            "1:0/0/0 1:0/0/4096 2:0/0/4608 3:0/0/4096 4:1000/0/3096 5:0/1000/3096 6:0/0/4096 "
            "7:0/0/0");
  EXPECT_EQ(counter(trace, "pool 0,3"), "1:0/0 4:1000/0 5:0/1000 6:0/0 7:0/0");
}

// Requests can add up to more than the memory: those of pending blocks beside what was reused of them.
TEST(PerfettoCounters, WhatIsIdleIsNeverBelowZero) {
  HistorySnapshot record = small_record();
  record.history.events.clear();
  record.snapshot.blocks[0].requested = 4096_B;
  EXPECT_EQ(counter(trace_of(record), "memory"), "0:4496/500/0");
  record.snapshot.blocks[0].requested = 3196_B;
  EXPECT_EQ(counter(trace_of(record), "memory"), "0:3596/500/0");
  record.snapshot.blocks[0].requested = 3195_B;
  EXPECT_EQ(counter(trace_of(record), "memory"), "0:3595/500/1");
}

TEST(PerfettoEvents, AWindowHasItsEventsAndWhatIsLiveAtItsBeginning) {
  HistorySnapshot record = small_record();
  record.history.events.push_back(event_of(HistoryAction::kSnapshot, 0, 4096, 30));
  exchange::ExportWindow window;
  window.from_us = 15;
  window.to_us = 30;
  const std::string trace = trace_of(record, window);
  EXPECT_EQ(count_of(trace, R"("ph":"b")"), 3u) << trace;
  EXPECT_EQ(count_of(trace, R"("ph":"b","name":"400 bytes","ts":20)"), 1u);
  EXPECT_EQ(count_of(trace, R"("ph":"b","name":"1000 bytes","ts":20)"), 1u);
  EXPECT_EQ(count_of(trace, R"("ph":"e","name":"500 bytes","ts":20)"), 1u) << "freed before";
  EXPECT_EQ(count_of(trace, R"("ph":"i")"), 0u);
  EXPECT_EQ(counter(trace, "memory"), "20:1000/500/2596 20:1400/500/2196");
  window.events_max = 0;
  EXPECT_EQ(counter(trace_of(record, window), "memory"), "0:1400/500/2196");
}

TEST(PerfettoEvents, AnAddressThatIsUsedAgainHasAnotherAllocation) {
  HistorySnapshot record = small_record();
  record.history.events.clear();
  for (const std::uint64_t size : {100u, 200u}) {
    for (const auto action :
         {HistoryAction::kAllocate, HistoryAction::kFreeRequested, HistoryAction::kFreeCompleted})
      record.history.events.push_back(event_of(action, 6144, size, size));
  }
  const std::string trace = trace_of(record);
  EXPECT_EQ(
      count_of(
          trace,
          R"("ph":"e","name":"100 bytes","ts":100,"pid":0,"tid":7,"cat":"allocation","id":"0.3")"),
      1u);
  EXPECT_EQ(
      count_of(
          trace,
          R"("ph":"e","name":"200 bytes","ts":200,"pid":0,"tid":7,"cat":"allocation","id":"0.4")"),
      1u);
}

TEST(PerfettoEvents, InstantsHaveTheirNamesAndSizes) {
  HistorySnapshot record;
  record.history.texts = {"step 1", "step 2"};
  record.history.events = {event_of(HistoryAction::kSnapshot, 0, 64, 1),
                           event_of(HistoryAction::kOutOfMemory, 0, 65, 2)};
  for (const std::uint64_t text : {1u, 2u, 3u, 0u}) {
    record.history.events.push_back(event_of(HistoryAction::kUserDefined, 0, 0, 3));
    record.history.events.back().context = cache::ContextId{text};
  }
  record.history.events[1].device_free = 66_B;
  const auto instant = [](const std::string& name, const std::string& rest) {
    return R"({"ph":"i","name":")" + name + R"(","ts":)" + rest;
  };
  const std::string end = R"(3,"pid":0,"tid":7,"s":"p","args":{"bytes":0}})";
  const std::string trace = trace_of(record);
  const std::size_t from = trace.find(R"({"ph":"i")");
  EXPECT_EQ(trace.substr(from),
            instant("snapshot", R"(1,"pid":0,"tid":7,"s":"p","args":{"bytes":64}},)") +
                instant("out of memory",
                        R"(2,"pid":0,"tid":7,"s":"p","args":{"bytes":65,"device_free":66}},)") +
                instant("step 1", end) + "," + instant("step 2", end) + "," + instant("", end) +
                "," + instant("", end) + "]}");
}

TEST(PerfettoEvents, AddressesAreInHexadecimal) {
  for (const auto& [address, text] : {std::pair<std::uint64_t, const char*>{1, "0x1"},
                                      {15, "0xf"},
                                      {16, "0x10"},
                                      {0xfedcba9876543210, "0xfedcba9876543210"}}) {
    HistorySnapshot record;
    record.snapshot.segments = {{Address{address}, 8_B, StreamId{7}, 0, 0, 1, PoolId::kSmall}};
    record.snapshot.blocks = {{Address{address}, 8_B, 8_B, StreamId{7}, 0, BlockState::kLive}};
    EXPECT_EQ(count_of(trace_of(record), R"("address":")" + std::string(text) + "\""), 1u) << text;
  }
}

TEST(PerfettoEvents, DevicesThatCannotBeListedAreRefused) {
  const HistorySnapshot record = small_record();
  const auto code_with = [&](const std::vector<exchange::DeviceHistory>& devices) {
    std::string text;
    const Code code =
        exchange::write_perfetto_trace(devices, {}, {}, exchange::string_sink(&text)).code();
    EXPECT_EQ(text.empty(), code != Code::kOk);
    return code;
  };
  EXPECT_EQ(code_with({{DeviceId{0}, &record}, {DeviceId{4095}, &record}}), Code::kOk);
  EXPECT_EQ(code_with({{DeviceId{0}, &record}, {DeviceId{0}, &record}}), Code::kInvalidArgument);
  EXPECT_EQ(code_with({{DeviceId{4096}, &record}}), Code::kInvalidArgument);
  EXPECT_EQ(code_with({{DeviceId{0}, nullptr}}), Code::kInvalidArgument);
  HistorySnapshot bad = record;
  bad.history.events[0].address = Address{1};
  EXPECT_EQ(code_with({{DeviceId{0}, &record}, {DeviceId{1}, &bad}}), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ashlar::props
