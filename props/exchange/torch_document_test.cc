// PyTorch's snapshot in its parts: which events are missing, whose traces there are, what settings and annotations become.
//
// Imitates: several devices, some without a history, and windows that cut histories at both ends. Does not prove: that others read
// the files (read_back_test.sh).
#include <gtest/gtest.h>

#include <limits>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::HistoryAction;
using cache::HistorySnapshot;
using exchange::DeviceHistory;
using exchange::TorchSnapshotOptions;

std::string json_of(const std::vector<DeviceHistory>& devices, TorchSnapshotOptions options = {}) {
  options.format = exchange::TorchFormat::kJson;
  return text_of([&](const exchange::ByteSink& sink) {
    return exchange::write_torch_snapshot(devices, options, sink);
  });
}
/// The text from `begin` on, up to `end` and with it.
std::string part_of(const std::string& json, const std::string& begin, const std::string& end) {
  const std::size_t from = json.find(begin);
  if (from == std::string::npos) return "";
  return json.substr(from, json.find(end, from + begin.size()) + end.size() - from);
}
std::string settings_of(const std::string& json) {
  return part_of(json, "\"allocator_settings\":", "}");
}
/// Six snapshots, at 10, 20, ... 60 us.
HistorySnapshot record_of_six() {
  HistorySnapshot record;
  for (std::uint64_t i = 1; i <= 6; ++i)
    record.history.events.push_back(event_of(HistoryAction::kSnapshot, 0, 64, 10 * i));
  return record;
}

TEST(TorchNote, SaysWhichEventsAreMissingAndWhy) {
  HistorySnapshot record = record_of_six();
  TorchSnapshotOptions options;
  const auto settings = [&] { return settings_of(json_of({{DeviceId{3}, &record}}, options)); };
  const auto with = [](const std::string& is_cut, const std::string& note) {
    return R"("allocator_settings":{"trace_alloc_overflowed":)" + is_cut +
           ",\"note\":\"device 3: " + note + "\"}";
  };
  EXPECT_EQ(settings(), R"("allocator_settings":{"trace_alloc_overflowed":false})");
  options.window.from_us = 20;
  EXPECT_EQ(settings(), with("false", "5 of 6 events, 1 before the window"));
  options.window.to_us = 50;
  EXPECT_EQ(settings(), with("false", "3 of 6 events, 1 before the window, 2 after the window"));
  options.window.events_max = 3;
  EXPECT_EQ(settings(), with("false", "3 of 6 events, 1 before the window, 2 after the window"));
  options.window.events_max = 2;
  EXPECT_EQ(settings(), with("true",
                             "2 of 6 events, 1 before the window, 1 older ones over the limit "
                             "of the file, 2 after the window"));
  record.history.lost = 4;
  EXPECT_EQ(settings(), with("true",
                             "2 of 10 events, 4 older ones lost by the ring, 1 before the "
                             "window, 1 older ones over the limit of the file, 2 after the "
                             "window"));
  options.window = {};
  EXPECT_EQ(settings(), with("true", "6 of 10 events, 4 older ones lost by the ring"));
}

TEST(TorchNote, EachDeviceWithMissingEventsHasItsPart) {
  const HistorySnapshot whole;
  HistorySnapshot cut = record_of_six(), other = record_of_six();
  cut.history.lost = 1;
  other.history.lost = 2;
  EXPECT_EQ(
      settings_of(json_of({{DeviceId{0}, &cut}, {DeviceId{1}, &whole}, {DeviceId{2}, &other}})),
      R"("allocator_settings":{"trace_alloc_overflowed":true,"note":"device 0: 6 of 7 events, 1 older )"
      R"(ones lost by the ring; device 2: 6 of 8 events, 2 older ones lost by the ring"})");
  EXPECT_NE(json_of({{DeviceId{0}, &cut}, {DeviceId{1}, &whole}}).find("overflowed\":true"),
            std::string::npos);
  EXPECT_NE(json_of({{DeviceId{0}, &whole}, {DeviceId{1}, &cut}}).find("overflowed\":true"),
            std::string::npos);
}

TEST(TorchTraces, ADeviceIsFoundByItsNumber) {
  HistorySnapshot first, second;
  first.history.events = {event_of(HistoryAction::kSnapshot, 0, 11, 1)};
  second.history.events = {event_of(HistoryAction::kSnapshot, 0, 22, 2)};
  const auto event = [](const std::string& size, const std::string& time) {
    return R"([{"action":"snapshot","addr":0,"size":)" + size + R"(,"stream":7,"time_us":)" + time +
           R"(,"frames":[],"compile_context":"N/A","user_metadata":"","pool_id":[0,0]}])";
  };
  for (const bool is_sorted : {true, false}) {
    std::vector<DeviceHistory> devices = {{DeviceId{1}, &first}, {DeviceId{4}, &second}};
    if (!is_sorted) std::swap(devices[0], devices[1]);
    EXPECT_EQ(part_of(json_of(devices), "\"device_traces\"", "]],"),
              "\"device_traces\":[[]," + event("11", "1") + ",[],[]," + event("22", "2") + "],");
  }
}

TEST(TorchTraces, EachActionHasItsName) {
  HistorySnapshot record;
  record.history.texts = {"step"};
  record.history.events = {event_of(HistoryAction::kSegmentAllocate, 4096, 64),
                           event_of(HistoryAction::kAllocate, 4096, 64),
                           event_of(HistoryAction::kFreeRequested, 4096, 64),
                           event_of(HistoryAction::kFreeCompleted, 4096, 64),
                           event_of(HistoryAction::kSegmentFree, 4096, 64),
                           event_of(HistoryAction::kSegmentMap, 8192, 64),
                           event_of(HistoryAction::kSegmentUnmap, 8192, 64),
                           event_of(HistoryAction::kOutOfMemory, 4096, 64),
                           event_of(HistoryAction::kSnapshot, 0, 64),
                           event_of(HistoryAction::kUserDefined, 0, 0)};
  record.history.events[7].device_free = 5_B;
  record.history.events[9].context = cache::ContextId{1};
  record.history.events[9].memory_pool = {3, 4};
  TorchSnapshotOptions options;
  options.frames = [](cache::ContextId) { return std::vector<exchange::Frame>{{"f", "", 0}}; };
  const std::string json = json_of({{DeviceId{0}, &record}}, options);
  std::size_t at = 0;
  for (const char* const name :
       {R"("segment_alloc","addr":4096)", R"("alloc","addr":4096)",
        R"("free_requested","addr":4096)", R"("free_completed","addr":4096)",
        R"("segment_free","addr":4096)", R"("segment_map","addr":8192)",
        R"("segment_unmap","addr":8192)", R"("oom","device_free":5)", R"("snapshot","addr":0)",
        R"("annotate","addr":0)"}) {
    at = json.find(R"({"action":)" + std::string(name), at);
    ASSERT_NE(at, std::string::npos) << name;
  }
  EXPECT_NE(
      json.find(R"("frames":[],"compile_context":"N/A","user_metadata":"step","pool_id":[3,4])",
                at),
      std::string::npos)
      << "an annotation's context is its text, and no call stack";
}

TEST(TorchSegments, ASegmentHasItsKindAndItsSums) {
  HistorySnapshot record = small_record();
  record.history.events.clear();
  record.snapshot.segments[0].pool = PoolId::kLarge;
  record.snapshot.segments[0].is_paged = true;
  EXPECT_EQ(
      part_of(json_of({{DeviceId{0}, &record}}), "{\"device\"", "\"blocks\""),
      R"({"device":0,"address":4096,"total_size":4096,"allocated_size":1536,"active_size":2048,)"
      R"("requested_size":1900,"stream":7,"segment_type":"large","segment_pool_id":[0,2],)"
      R"("is_expandable":true,"frames":[],"blocks")");
}

TEST(TorchSegments, FreeNeighboursAreOneBlock) {
  HistorySnapshot record = small_record();
  record.history.events.clear();
  for (const std::size_t i : {1u, 2u}) record.snapshot.blocks[i].state = BlockState::kFree;
  const std::string json = json_of({{DeviceId{0}, &record}});
  EXPECT_NE(
      json.find(
          R"({"address":5120,"size":3072,"requested_size":0,"state":"inactive","frames":[]}]})"),
      std::string::npos)
      << json;
  record.snapshot.blocks[0].state = BlockState::kFree;
  EXPECT_NE(json_of({{DeviceId{0}, &record}}).find(R"("blocks":[{"address":4096,"size":4096,)"),
            std::string::npos);
}

TEST(TorchSegments, EachHasItsOwnBlocksAndWhatIsFreeBetweenThem) {
  HistorySnapshot record = small_record();
  record.history.events.clear();
  record.block_contexts.clear();
  record.snapshot.blocks[0].state = record.snapshot.blocks[1].state = BlockState::kFree;
  record.snapshot.segments.push_back({Address{16384}, 512_B, StreamId{7}, 1, 4, 1, PoolId::kSmall});
  record.snapshot.blocks.push_back(
      {Address{16384}, 512_B, 512_B, StreamId{7}, 0, BlockState::kLive});
  const std::string json = json_of({{DeviceId{0}, &record}});
  const auto block = [](const std::string& place, const std::string& requested,
                        const std::string& state) {
    return R"({"address":)" + place + R"(,"requested_size":)" + requested + R"(,"state":")" +
           state + R"(","frames":[]})";
  };
  const std::string begin = "\"blocks\":[", end = "]}]}";
  EXPECT_EQ(part_of(json, begin, end), begin + block(R"(4096,"size":1536)", "0", "inactive") + "," +
                                           block(R"(5632,"size":512)", "400", "active_allocated") +
                                           "," + block(R"(6144,"size":2048)", "0", "inactive") +
                                           "]}");
  const std::string second = json.substr(json.find(R"("address":16384)"));
  EXPECT_EQ(part_of(second, begin, end),
            begin + block(R"(16384,"size":512)", "512", "active_allocated") + "]}");
}

TEST(TorchSettings, EachSortOfValueIsWritten) {
  TorchSnapshotOptions options;
  options.settings = {{"yes", true},
                      {"no", false},
                      {"none", std::int64_t{0}},
                      {"most", std::numeric_limits<std::int64_t>::max()},
                      {"least", std::numeric_limits<std::int64_t>::min()},
                      {"real", -0.25},
                      {"endless", -std::numeric_limits<double>::infinity()},
                      {"text", std::string("a\x1f\x20\x7e\x7f\\\"")}};
  EXPECT_EQ(settings_of(json_of({}, options)),
            R"("allocator_settings":{"yes":true,"no":false,"none":0,"most":9223372036854775807,)"
            R"("least":-9223372036854775808,"real":-0.25,"endless":null,)"
            R"("text":"a\u001f ~\u007f\\\"","trace_alloc_overflowed":false})");
}

TEST(TorchSettings, AnAnnotationOfADeviceThatCannotBeListedIsRefused) {
  for (const std::int32_t device : {-1, 0, exchange::kDevicesMax - 1, exchange::kDevicesMax}) {
    TorchSnapshotOptions options;
    options.annotations = {{DeviceId{device}, 1, {}}};
    const bool is_listed = device >= 0 && device < exchange::kDevicesMax;
    EXPECT_EQ(json_of({}, options).empty(), !is_listed) << device;
  }
}

TEST(TorchSnapshot, ADeviceThatIsGivenTwiceIsRefusedInAnyOrder) {
  const HistorySnapshot record = small_record();
  const auto with = [&record](std::int32_t a, std::int32_t b, std::int32_t c) {
    return json_of({{DeviceId{a}, &record}, {DeviceId{b}, &record}, {DeviceId{c}, &record}});
  };
  EXPECT_NE(with(2, 0, 1), "");
  EXPECT_EQ(with(2, 0, 2), "");
  EXPECT_EQ(with(0, 2, 2), "");
}

}  // namespace
}  // namespace ashlar::props
