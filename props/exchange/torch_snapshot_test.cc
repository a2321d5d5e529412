// PyTorch's snapshot byte by byte, and what the writer refuses. That others read it: read_back_test.sh.
#include <limits>

#include <gtest/gtest.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::HistoryAction;
using exchange::TorchFormat;

std::string snapshot_text(const std::vector<exchange::DeviceHistory>& devices,
                          const exchange::TorchSnapshotOptions& options) {
  return text_of([&](const exchange::ByteSink& sink) {
    return exchange::write_torch_snapshot(devices, options, sink);
  });
}

Code code_of(const cache::HistorySnapshot& record, std::int32_t device = 0) {
  std::string text;
  const Status status = exchange::write_torch_snapshot({{DeviceId{device}, &record}}, {},
                                                       exchange::string_sink(&text));
  EXPECT_EQ(status.is_ok(), !text.empty())
      << "nothing is written before the record is known to agree";
  return status.code();
}

TEST(TorchSnapshot, JsonHasTheViewersFields) {
  const cache::HistorySnapshot record = small_record();
  exchange::TorchSnapshotOptions options;
  options.format = TorchFormat::kJson;
  options.frames = small_frames;
  options.settings = {
      {"threshold", 0.5}, {"split", std::int64_t{-1}}, {"note to self", std::string("\x01\"")}};
  options.annotations = {{DeviceId{0}, 15, {{"name", std::string("step")}, {"last", true}}}};
  EXPECT_EQ(
      snapshot_text({{DeviceId{1}, &record}}, options),
      R"({"segments":[{"device":1,"address":4096,"total_size":4096,"allocated_size":1536,"active_size":2048,)"
      R"("requested_size":1900,"stream":7,"segment_type":"small","segment_pool_id":[0,2],"is_expandable":false,)"
      R"("frames":[],"blocks":[{"address":4096,"size":1024,"requested_size":1000,"state":"active_allocated",)"
      R"("frames":[{"name":"inner;f","filename":"a.cc","line":3},{"name":"outer","filename":"b.cc","line":4}]},)"
      R"({"address":5120,"size":512,"requested_size":500,"state":"active_pending_free","frames":[]},)"
      R"({"address":5632,"size":512,"requested_size":400,"state":"active_allocated","frames":[]},)"
      R"({"address":6144,"size":2048,"requested_size":0,"state":"inactive","frames":[]}]}],)"
      R"("device_traces":[[],[{"action":"free_requested","addr":5120,"size":500,"stream":7,"time_us":10,)"
      R"("frames":[],"compile_context":"N/A","user_metadata":"","pool_id":[0,0]},{"action":"alloc","addr":5632,)"
      R"("size":400,"stream":7,"time_us":20,"frames":[],"compile_context":"N/A","user_metadata":"",)"
      R"("pool_id":[0,0]}]],"allocator_settings":{"threshold":0.5,"split":-1,"note to self":"\u0001\"",)"
      R"("trace_alloc_overflowed":false},"external_annotations":[{"name":"step","last":true,"device":0,)"
      R"("time_us":15}]})");
}

TEST(TorchSnapshot, APickleOfNothingIsTheseBytes) {
  const std::string text = snapshot_text({}, {});
  const auto put = [](char at) { return std::string("q") + at; };
  const auto word = [&put](std::string_view letters, char at) {
    return std::string("X") + static_cast<char>(letters.size()) + std::string(3, '\0') +
           std::string(letters) + put(at);
  };
  EXPECT_EQ(text, "\x80\x02}(" + word("segments", 0) + "]" + word("device_traces", 1) + "]" +
                      word("allocator_settings", 2) + "}(" + word("trace_alloc_overflowed", 3) +
                      "\x89u" + word("external_annotations", 4) + "]u.");
}

TEST(TorchSnapshot, EventsOverTheLimitAreCutAtTheOldEndAndCounted) {
  cache::HistorySnapshot record = small_record();
  record.history.lost = 3;
  exchange::TorchSnapshotOptions options;
  options.format = TorchFormat::kJson;
  options.window.events_max = 1;
  const std::string text = snapshot_text({{DeviceId{0}, &record}}, options);
  EXPECT_EQ(text.find("free_requested"), std::string::npos);
  EXPECT_NE(text.find(R"("action":"alloc")"), std::string::npos);
  EXPECT_NE(
      text.find(
          R"("trace_alloc_overflowed":true,"note":"device 0: 1 of 5 events, 3 older ones lost by the )"
          R"(ring, 1 older ones over the limit of the file")"),
      std::string::npos)
      << text;
}

TEST(TorchSnapshot, AWindowThatEndsEarlierShowsMemoryAsItWasThen) {
  const cache::HistorySnapshot record = small_record();
  exchange::TorchSnapshotOptions options;
  options.format = TorchFormat::kJson;
  options.window.to_us = 20;
  const std::string text = snapshot_text({{DeviceId{0}, &record}}, options);
  EXPECT_NE(text.find(R"({"address":5632,"size":2560,"requested_size":0,"state":"inactive")"),
            std::string::npos)
      << text;
}

TEST(TorchSnapshot, ASegmentWithAHoleIsASegmentForEachPart) {
  cache::HistorySnapshot record = small_record();
  record.snapshot.blocks[1].state = BlockState::kUnmapped;
  record.history.events.clear();
  exchange::TorchSnapshotOptions options;
  options.format = TorchFormat::kJson;
  const std::string text = snapshot_text({{DeviceId{0}, &record}}, options);
  EXPECT_NE(text.find(R"("address":4096,"total_size":1024,)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("address":5632,"total_size":2560,)"), std::string::npos) << text;
}

TEST(TorchSnapshot, RecordsThatDoNotAgreeAreRefused) {
  EXPECT_EQ(code_of(small_record()), Code::kOk);
  const auto with = [](HistoryAction action, std::uint64_t address, std::uint64_t size) {
    cache::HistorySnapshot record = small_record();
    record.history.events.push_back(event_of(action, address, size, 30));
    return code_of(record);
  };
  EXPECT_EQ(with(HistoryAction::kAllocate, 4096, 1000), Code::kOk);
  EXPECT_EQ(with(HistoryAction::kAllocate, 6144, 100), Code::kInvalidArgument) << "free at the end";
  EXPECT_EQ(with(HistoryAction::kAllocate, 5120, 500), Code::kInvalidArgument)
      << "pending at the end";
  EXPECT_EQ(with(HistoryAction::kFreeCompleted, 6144, 100), Code::kOk);
  EXPECT_EQ(with(HistoryAction::kFreeCompleted, 5632, 100), Code::kInvalidArgument)
      << "live at the end";
  EXPECT_EQ(with(HistoryAction::kFreeCompleted, 8192, 100), Code::kInvalidArgument)
      << "in no segment";
  EXPECT_EQ(with(HistoryAction::kFreeCompleted, 8100, 100), Code::kInvalidArgument)
      << "beyond its segment";
  EXPECT_EQ(with(HistoryAction::kFreeRequested, 5632, 400), Code::kInvalidArgument)
      << "not pending";
  EXPECT_EQ(with(HistoryAction::kSegmentAllocate, 4096, 4096), Code::kInvalidArgument)
      << "blocks are in it";
  EXPECT_EQ(with(HistoryAction::kSegmentAllocate, 6144, 2048), Code::kInvalidArgument)
      << "a part of one";
  EXPECT_EQ(with(HistoryAction::kSegmentMap, 6144, 2048), Code::kOk);
  EXPECT_EQ(with(HistoryAction::kSegmentMap, 8192, 2048), Code::kInvalidArgument) << "not there";
  EXPECT_EQ(with(HistoryAction::kSegmentUnmap, 8192, 2048), Code::kOk);
  EXPECT_EQ(with(HistoryAction::kSegmentUnmap, 6144, 2048), Code::kInvalidArgument)
      << "still there";
}

TEST(TorchSnapshot, NumbersThatJavaScriptCannotHoldAreRefused) {
  const std::uint64_t most = std::uint64_t{1} << 53;
  cache::HistorySnapshot record;
  record.history.events = {
      event_of(HistoryAction::kOutOfMemory, 0, std::numeric_limits<std::uint64_t>::max())};
  EXPECT_EQ(code_of(record), Code::kOk) << "a size that nobody was given";
  for (const std::uint64_t beyond : {std::uint64_t{1}, std::uint64_t{0}}) {
    record = small_record();
    record.history.events.clear();
    record.snapshot.blocks.resize(1);
    record.block_contexts.clear();
    record.snapshot.segments[0].block_count = 1;
    record.snapshot.segments[0].base = record.snapshot.blocks[0].address =
        Address{most - 1024 - beyond};
    record.snapshot.segments[0].size = 1024_B;
    EXPECT_EQ(code_of(record), beyond == 1 ? Code::kOk : Code::kInvalidArgument);
  }
}

TEST(TorchSnapshot, OneNumberThatIsTooLargeIsEnough) {
  const std::uint64_t most = std::uint64_t{1} << 53;
  // Memory that was taken back before the end: of it only the event tells.
  const auto taken = [](std::uint64_t address, std::uint64_t size) {
    cache::HistorySnapshot record;
    record.history.events = {event_of(HistoryAction::kSegmentFree, address, size),
                             event_of(HistoryAction::kSegmentFree, 4096, 64)};
    return code_of(record);
  };
  EXPECT_EQ(taken(most - 2, 1), Code::kOk);
  for (const std::uint64_t address : {most - 1, most, most + 1, 2 * most, ~std::uint64_t{8}})
    EXPECT_EQ(taken(address, 1), Code::kInvalidArgument) << address;
  EXPECT_EQ(taken(8192, most - 8193), Code::kOk);
  EXPECT_EQ(taken(8192, most - 8192), Code::kInvalidArgument);
  // One that is as good as it can be follows the one that is not.
  cache::HistorySnapshot record = small_record();
  record.history.events.clear();
  record.block_contexts.clear();
  record.snapshot.blocks[0].requested = Bytes{most};
  EXPECT_EQ(code_of(record), Code::kInvalidArgument);
  record = {};
  record.snapshot.blocks = small_record().snapshot.blocks;
  record.snapshot.blocks.resize(1);
  record.snapshot.blocks.push_back(record.snapshot.blocks[0]);
  record.snapshot.blocks[0].address = Address{most};
  record.snapshot.segments = {{Address{most}, 1024_B, StreamId{7}, 0, 0, 1, PoolId::kSmall},
                              {Address{4096}, 1024_B, StreamId{7}, 0, 1, 1, PoolId::kSmall}};
  EXPECT_EQ(code_of(record), Code::kInvalidArgument);
  record.snapshot.segments[0].base = record.snapshot.blocks[0].address = Address{8192};
  EXPECT_EQ(code_of(record), Code::kOk);
}

TEST(TorchSnapshot, SizesThatNobodyWasGivenMayBeOfAnyNumber) {
  for (const auto action :
       {HistoryAction::kOutOfMemory, HistoryAction::kSnapshot, HistoryAction::kUserDefined}) {
    cache::HistorySnapshot record;
    record.history.events = {event_of(action, 0, ~std::uint64_t{0})};
    EXPECT_EQ(code_of(record), Code::kOk) << static_cast<int>(action);
  }
  for (const std::uint64_t beyond : {0u, 1u}) {
    cache::HistorySnapshot record = small_record();
    record.history.events = {event_of(HistoryAction::kFreeCompleted, 6144, 512)};
    record.history.events[0].size = Bytes{(std::uint64_t{1} << 53) - 6145 + beyond};
    EXPECT_EQ(code_of(record), beyond == 0 ? Code::kOk : Code::kInvalidArgument);
  }
}

TEST(TorchSnapshot, DevicesThatCannotBeListedAreRefused) {
  const cache::HistorySnapshot record = small_record();
  std::string text;
  const auto sink = exchange::string_sink(&text);
  EXPECT_EQ(code_of(record, -1), Code::kInvalidArgument);
  EXPECT_EQ(code_of(record, exchange::kDevicesMax), Code::kInvalidArgument);
  EXPECT_EQ(code_of(record, exchange::kDevicesMax - 1), Code::kOk);
  EXPECT_EQ(exchange::write_torch_snapshot({{DeviceId{0}, nullptr}}, {}, sink).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(
      exchange::write_torch_snapshot({{DeviceId{2}, &record}, {DeviceId{2}, &record}}, {}, sink)
          .code(),
      Code::kInvalidArgument);
}

TEST(TorchSnapshot, ASinkThatFailsIsSaidAndCalledNoMore) {
  unsigned calls = 0;
  const auto full = [&calls](std::string_view) { return ++calls > 1; };
  cache::HistorySnapshot record = small_record();
  const cache::HistoryEvent snapshot = event_of(HistoryAction::kSnapshot, 0, 4096);
  record.history.events.insert(record.history.events.end(), 5000, snapshot);
  EXPECT_EQ(exchange::write_torch_snapshot({{DeviceId{0}, &record}}, {}, full).code(),
            Code::kWriteFailed);
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(exchange::write_torch_snapshot({}, {}, exchange::ByteSink()).code(),
            Code::kWriteFailed);
  EXPECT_EQ(exchange::file_sink("/no/such/folder/file").code(), Code::kWriteFailed);
}

}  // namespace
}  // namespace ashlar::props
