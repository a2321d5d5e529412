// Records at their edges: whose context a block has under a window, what is pending at the start, and values at a limit.
//
// Imitates: histories that lost their beginning, and windows that end between an allocation and its free. Does not prove:
// that other programs read the files (read_back_test.sh).
#include <limits>

#include <gtest/gtest.h>

#include <ashlar/exchange/pickle_sink.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::ContextId;
using cache::HistoryAction;

std::string json_of(const cache::HistorySnapshot& record, std::uint64_t to_us = ~std::uint64_t{0},
                    exchange::TorchSnapshotOptions options = {}) {
  options.format = exchange::TorchFormat::kJson;
  options.frames = [](ContextId context) -> std::vector<exchange::Frame> {
    if (context == ContextId{}) return {};
    return {{"c" + std::to_string(context.value()), "f", 1}};
  };
  options.window.to_us = to_us;
  return text_of([&](const exchange::ByteSink& sink) {
    return exchange::write_torch_snapshot({{DeviceId{0}, &record}}, options, sink);
  });
}
/// The name of the innermost frame of the block at that address; "-" for none, "" for no block.
std::string name_at(const std::string& json, std::uint64_t address) {
  const std::size_t blocks = json.find("\"blocks\"");
  const std::size_t at = json.find("{\"address\":" + std::to_string(address) + ",\"size\"", blocks);
  if (at == std::string::npos) return "";
  const std::size_t frames = json.find("\"frames\":[", at) + 10;
  if (json[frames] == ']') return "-";
  const std::size_t name = json.find("\"name\":\"", frames) + 8;
  return json.substr(name, json.find('"', name) - name);
}
cache::HistoryEvent with(cache::HistoryEvent event, std::uint64_t context) {
  event.context = ContextId{context};
  return event;
}

// Whose context a block has at the window's end: its allocation's, and only without that its free's.
TEST(TorchSnapshot, ABlockHasTheContextOfItsNewestAllocationBeforeTheWindowsEnd) {
  const auto event = [](HistoryAction action, std::uint64_t time, std::uint64_t context) {
    return with(event_of(action, 6144, 512, time), context);
  };
  cache::HistorySnapshot record = small_record();
  record.history.events = {
      event(HistoryAction::kAllocate, 10, 11),      event(HistoryAction::kFreeRequested, 20, 12),
      event(HistoryAction::kFreeCompleted, 30, 13), event(HistoryAction::kAllocate, 40, 14),
      event(HistoryAction::kFreeRequested, 50, 15), event(HistoryAction::kFreeCompleted, 60, 16),
      event(HistoryAction::kAllocate, 70, 17),      event(HistoryAction::kFreeRequested, 80, 18),
      event(HistoryAction::kFreeCompleted, 90, 19)};
  EXPECT_EQ(name_at(json_of(record, 15), 6144), "c11") << "live";
  EXPECT_EQ(name_at(json_of(record, 25), 6144), "c11") << "pending";
  EXPECT_EQ(name_at(json_of(record, 45), 6144), "c14");
  EXPECT_EQ(name_at(json_of(record, 55), 6144), "c14");
  EXPECT_EQ(name_at(json_of(record, 75), 6144), "c17");
  record.history.events.erase(record.history.events.begin());
  EXPECT_EQ(name_at(json_of(record, 15), 6144), "c12") << "of its free, as nothing else is known";
}

TEST(TorchSnapshot, AContextThatTheSnapshotKnowsIsNotReplacedByThatOfTheFree) {
  cache::HistorySnapshot record = small_record();
  record.block_contexts[1] = ContextId{21};
  record.history.events[0].context = ContextId{22};
  EXPECT_EQ(name_at(json_of(record, 5), 5120), "c21");
}

TEST(TorchSnapshot, RangesOfTwoStreamsThatTouchStayTwo) {
  for (const bool is_before : {false, true}) {
    cache::HistorySnapshot record = small_record();
    cache::HistoryEvent unmapped =
        event_of(HistoryAction::kSegmentUnmap, is_before ? 2048 : 8192, 2048, 30);
    unmapped.stream = StreamId{9};
    record.history.events.push_back(unmapped);
    const std::string text = json_of(record, 25);
    EXPECT_NE(text.find(R"("address":4096,"total_size":4096)"), std::string::npos) << text;
    EXPECT_NE(text.find(R"("total_size":2048)"), std::string::npos) << text;
    record.history.events.back().stream = StreamId{7};
    EXPECT_NE(json_of(record, 25).find(R"("total_size":6144)"), std::string::npos);
  }
}

TEST(TorchSnapshot, AnAllocationThatIsPendingAtTheEndWithoutARequestIsRefused) {
  cache::HistorySnapshot record = small_record();
  record.history.events = {event_of(HistoryAction::kAllocate, 5120, 500, 10)};
  EXPECT_EQ(json_of(record), "");
  record.history.events.push_back(event_of(HistoryAction::kFreeRequested, 5120, 500, 20));
  EXPECT_NE(json_of(record), "");
}

TEST(TorchSnapshot, EventsThatTheRingLostAreAnOverflow) {
  cache::HistorySnapshot record = small_record();
  EXPECT_NE(json_of(record).find(R"("trace_alloc_overflowed":false)"), std::string::npos);
  record.history.lost = 1;
  EXPECT_NE(json_of(record).find(R"("trace_alloc_overflowed":true)"), std::string::npos);
}

TEST(TorchSnapshot, MemoryOfNoSizeIsRefused) {
  for (const auto action : {HistoryAction::kSegmentMap, HistoryAction::kSegmentAllocate,
                            HistoryAction::kSegmentUnmap, HistoryAction::kSegmentFree}) {
    cache::HistorySnapshot record = small_record();
    record.history.events.push_back(event_of(action, 6144, 0, 30));
    EXPECT_EQ(json_of(record), "") << static_cast<int>(action);
  }
}

TEST(TorchSnapshot, ARequestedSizeFrom2To53IsRefused) {
  cache::HistorySnapshot record = small_record();
  record.history.events.clear();
  record.snapshot.blocks[0].requested = Bytes{(std::uint64_t{1} << 53) - 1};
  EXPECT_NE(json_of(record), "");
  record.snapshot.blocks[0].requested = Bytes{std::uint64_t{1} << 53};
  EXPECT_EQ(json_of(record), "");
}

// From the beginning of a window up to, and without, its end: events and annotations alike.
TEST(TorchSnapshot, AWindowHasItsFirstMomentAndNotItsLast) {
  const cache::HistorySnapshot record = small_record();
  for (const std::uint64_t from : {9u, 10u, 11u}) {
    for (const std::uint64_t to : {19u, 20u, 21u}) {
      exchange::TorchSnapshotOptions options;
      for (const std::uint64_t time : {9u, 10u, 11u, 19u, 20u, 21u})
        options.annotations.push_back({DeviceId{0}, time, {}});
      options.window.from_us = from;
      const std::string text = json_of(record, to, options);
      for (const std::uint64_t time : {9u, 10u, 11u, 19u, 20u, 21u}) {
        const std::string shown = R"({"device":0,"time_us":)" + std::to_string(time) + "}";
        EXPECT_EQ(text.find(shown) != std::string::npos, time >= from && time < to)
            << from << " " << to << " " << time;
      }
      EXPECT_EQ(text.find("\"free_requested\"") != std::string::npos, from <= 10);
      EXPECT_EQ(text.find("\"alloc\"") != std::string::npos, to > 20);
    }
  }
}

TEST(PickleSink, EachReferenceIsToTheTextThatWasPut) {
  // At 256 the index of the memo needs four bytes.
  const std::string text = text_of([](const exchange::ByteSink& bytes) {
    exchange::PickleSink sink(bytes);
    sink.begin_list();
    for (int i = 0; i < 258; ++i) sink.text("t" + std::to_string(1000 + i));
    for (const int i : {255, 256, 257}) sink.text("t" + std::to_string(1000 + i));
    sink.end_list();
    return sink.finish();
  });
  using namespace std::string_literals;
  EXPECT_NE(text.find("t1255q\xff"s + "X"), std::string::npos);
  EXPECT_NE(text.find("t1256r\0\x01\0\0X"s), std::string::npos);
  EXPECT_NE(text.find("h\xffj\0\x01\0\0j\x01\x01\0\0e."s), std::string::npos);
}

TEST(JsonSink, ANumberWithAnExponentIsANumber) {
  exchange::TorchSnapshotOptions options;
  options.settings = {{"large", 1e300}, {"small", 1e-9}, {"whole", 4.0}};
  const std::string text = json_of(small_record(), ~std::uint64_t{0}, options);
  EXPECT_NE(text.find(R"("large":1e+300,"small":1e-09,"whole":4.0,)"), std::string::npos) << text;
}

/// A record in which a block of 500 bytes is pending, and nothing happens.
cache::HistorySnapshot still_record() {
  cache::HistorySnapshot record = small_record();
  record.history.events.clear();
  return record;
}

// What is pending before the first event was freed before it: no form shows it as live.
TEST(OtherFormats, WhatIsPendingAtTheStartIsNotLive) {
  const cache::HistorySnapshot record = still_record();
  EXPECT_EQ(text_of([&](const auto& sink) { return exchange::write_rmm_log(record, sink); }),
            "Thread,Time,Action,Pointer,Size,Stream\n"
            "0,00:00:00.000000,allocate,0x1000,1000,0x7\n"
            "0,00:00:00.000000,allocate,0x1600,400,0x7\n");
  EXPECT_EQ(
      text_of([&](const auto& sink) { return exchange::write_trace_text(record, "run", sink); }),
      "{\"format\":\"alloc-trace\",\"version\":1,\"name\":\"run\",\"unit\":\"bytes\"}\n"
      "a 0 1000 7\na 1 400 7\n");
  const std::string text = text_of([&](const auto& sink) {
    return exchange::write_perfetto_trace({{DeviceId{1}, &record}}, {}, {}, sink);
  });
  EXPECT_NE(text.find(R"("args":{"allocated":1400,"pending":500,"idle":2196})"), std::string::npos)
      << text;
}

TEST(PerfettoTrace, ABlockCountsForThePoolThatItWasAllocatedFrom) {
  cache::HistorySnapshot record = small_record();
  cache::HistoryEvent allocated = event_of(HistoryAction::kAllocate, 6144, 100, 25);
  allocated.memory_pool = {0, 5};
  cache::HistoryEvent other = event_of(HistoryAction::kAllocate, 5632, 400, 50);
  other.memory_pool = {0, 5};
  // The frees name no pool, as after its release.
  record.history.events = {record.history.events[0], allocated,
                           event_of(HistoryAction::kFreeRequested, 6144, 100, 30),
                           event_of(HistoryAction::kFreeCompleted, 6144, 100, 40), other};
  const std::string text = text_of([&](const auto& sink) {
    return exchange::write_perfetto_trace({{DeviceId{1}, &record}}, {}, {}, sink);
  });
  EXPECT_NE(text.find(R"({"ph":"C","name":"pool 0,5","ts":50,"pid":1,"tid":0,"args":)"
                      R"({"allocated":400,"pending":0}})"),
            std::string::npos)
      << text;
}

TEST(TraceWriter, ABlockFromBeforeOfMoreThanAnExbibyteIsRefused) {
  for (const std::uint64_t beyond : {0u, 1u}) {
    cache::HistorySnapshot record = still_record();
    record.snapshot.blocks[0].requested = Bytes{(std::uint64_t{1} << 60) + beyond};
    std::string text;
    EXPECT_EQ(exchange::write_trace_text(record, "run", exchange::string_sink(&text)).code(),
              beyond == 0 ? Code::kOk : Code::kInvalidArgument);
    EXPECT_EQ(text.empty(), beyond == 1);
  }
}

}  // namespace
}  // namespace ashlar::props
