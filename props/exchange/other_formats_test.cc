// RMM's log, Perfetto's JSON and collapsed stacks, line by line; and the pieces that all forms share.
#include <limits>

#include <gtest/gtest.h>

#include <ashlar/exchange/json_sink.h>
#include <ashlar/exchange/pickle_sink.h>
#include <ashlar/exchange/utf8.h>

#include "props/exchange/history_maker.h"
#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::HistoryAction;

TEST(RmmLog, HasALineForEachCallAndForWhatWasLiveBefore) {
  cache::HistorySnapshot record = small_record();
  const std::uint64_t late = (((23u * 60 + 59) * 60 + 8) * std::uint64_t{1'000'000}) + 42;
  record.history.events.push_back(
      event_of(HistoryAction::kOutOfMemory, 0, 1 << 20, 86'400'000'000 + late));
  record.history.events.back().stream = StreamId{0};
  EXPECT_EQ(text_of([&](const auto& sink) { return exchange::write_rmm_log(record, sink); }),
            "Thread,Time,Action,Pointer,Size,Stream\n"
            "0,00:00:00.000010,allocate,0x1000,1000,0x7\n"
            "0,00:00:00.000010,allocate,0x1400,500,0x7\n"
            "0,00:00:00.000010,free,0x1400,500,0x7\n"
            "0,00:00:00.000020,allocate,0x1600,400,0x7\n"
            "0,23:59:08.000042,allocate failure,(nil),1048576,0\n");
  record.history.events[0].address = Address{1};
  EXPECT_EQ(text_of([&](const auto& sink) { return exchange::write_rmm_log(record, sink); }), "");
}

TEST(PerfettoTrace, HasCountersEdgesInstantsAndNames) {
  cache::HistorySnapshot record = small_record();
  record.history.events.push_back(event_of(HistoryAction::kOutOfMemory, 0, 9000, 30));
  record.history.events.back().device_free = 64_B;
  const exchange::FrameSource frames = small_frames;
  const std::string text = text_of([&](const auto& sink) {
    return exchange::write_perfetto_trace({{DeviceId{1}, &record}}, frames, {}, sink);
  });
  const std::string counter = R"({"ph":"C","name":"memory","ts":)";
  EXPECT_EQ(
      text,
      R"({"displayTimeUnit":"ms","traceEvents":[)"
      R"({"ph":"M","name":"process_name","ts":0,"pid":1,"tid":0,"args":{"name":"device 1"}},)"
      R"({"ph":"b","name":"inner;f","ts":10,"pid":1,"tid":7,"cat":"allocation","id":"1.0",)"
      R"("args":{"address":"0x1000","bytes":1000}},)"
      R"({"ph":"b","name":"500 bytes","ts":10,"pid":1,"tid":7,"cat":"allocation","id":"1.1",)"
      R"("args":{"address":"0x1400","bytes":500}},)" +
          counter + R"(10,"pid":1,"tid":0,"args":{"allocated":1500,"pending":0,"idle":2596}},)" +
          R"({"ph":"C","name":"pool 0,2","ts":10,"pid":1,"tid":0,"args":{"allocated":1500,"pending":0}},)"
          R"({"ph":"e","name":"500 bytes","ts":10,"pid":1,"tid":7,"cat":"allocation","id":"1.1"},)" +
          counter + R"(10,"pid":1,"tid":0,"args":{"allocated":1000,"pending":500,"idle":2596}},)" +
          R"({"ph":"C","name":"pool 0,2","ts":10,"pid":1,"tid":0,"args":{"allocated":1000,"pending":500}},)"
          R"({"ph":"b","name":"400 bytes","ts":20,"pid":1,"tid":7,"cat":"allocation","id":"1.2",)"
          R"("args":{"address":"0x1600","bytes":400}},)" +
          counter + R"(20,"pid":1,"tid":0,"args":{"allocated":1400,"pending":500,"idle":2196}},)" +
          R"({"ph":"i","name":"out of memory","ts":30,"pid":1,"tid":7,"s":"p","args":{"bytes":9000,)"
          R"("device_free":64}}]})");
}

TEST(PerfettoTrace, ALongHistoryEndsEachAllocationOnceAtMost) {
  HistoryMaker maker(8, Address{4096});
  maker.run(4000);
  const cache::HistorySnapshot record = maker.record(1000);
  const std::string text = text_of([&](const auto& sink) {
    return exchange::write_perfetto_trace({{DeviceId{0}, &record}}, {}, {}, sink);
  });
  const auto count = [&text](std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  std::size_t live = 0;
  for (const cache::SnapshotBlock& block : record.snapshot.blocks)
    live += block.state == BlockState::kLive;
  EXPECT_EQ(count(R"("ph":"b")") - count(R"("ph":"e")"), live);
}

TEST(CollapsedStacks, AddUpWhatIsLive) {
  cache::HistorySnapshot record = small_record();
  const exchange::FrameSource frames = small_frames;
  const auto text = [&] {
    return text_of([&](const auto& sink) {
      return exchange::write_collapsed_stacks({{DeviceId{0}, &record}}, frames, sink);
    });
  };
  EXPECT_EQ(text(), "outer;inner f 1000\nunknown 400\n");
  record.block_contexts[2] = cache::ContextId{1};
  EXPECT_EQ(text(), "outer;inner f 1400\n");
}

TEST(Utf8, OnlyBytesThatBelongToNoCharacterAreReplaced) {
  std::string space;
  for (const std::string_view valid :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(exchange::valid_utf8(valid, &space).data(), valid.data());
  const std::string_view mark = "\xef\xbf\xbd";
  for (const std::string_view invalid :
       {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xe2\x82", "\xc3", "\xf0\x9f\xa7"}) {
    std::string expected = "x";
    for (std::size_t i = 0; i < invalid.size(); ++i) expected += mark;
    EXPECT_EQ(exchange::valid_utf8("x" + std::string(invalid) + "y", &space), expected + "y");
  }
}

/// A list of one number, without the pickle's head and tail.
template <class Write>
std::string pickled(Write&& write) {
  const std::string text = text_of([&](const auto& bytes) {
    exchange::PickleSink sink(bytes);
    write(&sink);
    return sink.finish();
  });
  return text.substr(2, text.size() - 3);
}

TEST(PickleSink, EachNumberHasItsShortestOpcode) {
  const auto whole = [](std::uint64_t number) {
    return pickled([number](exchange::PickleSink* sink) { sink->integer(number); });
  };
  EXPECT_EQ(whole(0), std::string("K\0", 2));
  EXPECT_EQ(whole(255), "K\xff");
  EXPECT_EQ(whole(256), std::string("M\0\x01", 3));
  EXPECT_EQ(whole(65'536), std::string("J\0\0\x01\0", 5));
  EXPECT_EQ(whole(0x7fffffff), "J\xff\xff\xff\x7f");
  EXPECT_EQ(whole(0x80000000), std::string("\x8a\x05\0\0\0\x80\0", 7));
  EXPECT_EQ(whole(0x7f'ffff'ffff), "\x8a\x05\xff\xff\xff\xff\x7f");
  EXPECT_EQ(whole(std::numeric_limits<std::uint64_t>::max()),
            "\x8a\x09" + std::string(8, '\xff') + '\0');
  const auto below = [](std::int64_t number) {
    return pickled([number](exchange::PickleSink* sink) { sink->negative(number); });
  };
  EXPECT_EQ(below(-1), "J\xff\xff\xff\xff");
  EXPECT_EQ(below(-0x80000001ll), "\x8a\x08\xff\xff\xff\x7f\xff\xff\xff\xff");
}

TEST(PickleSink, ListsAreWrittenInPartsOfAThousand) {
  const auto list = [](unsigned count) {
    return pickled([count](exchange::PickleSink* sink) {
      sink->begin_list();
      for (unsigned i = 0; i < count; ++i) sink->boolean(true);
      sink->end_list();
    });
  };
  const std::string thousand = "(" + std::string(1000, '\x88') + "e";
  EXPECT_EQ(list(0), "]");
  EXPECT_EQ(list(1000), "]" + thousand);
  EXPECT_EQ(list(2001), "]" + thousand + thousand + "(\x88" + "e");
}

TEST(PickleSink, RepeatedTextsAndSharedValuesAreReferredTo) {
  const std::string text = pickled([](exchange::PickleSink* sink) {
    sink->begin_list();
    sink->text("a");
    sink->text("a");
    for (int times = 0; times < 2; ++times) {
      if (!sink->begin_shared(5)) continue;
      sink->begin_list();
      sink->end_list();
      sink->end_shared(5);
    }
    sink->end_list();
  });
  EXPECT_EQ(text, std::string("](X\x01\0\0\0aq\0h\0]q\x01h\x01"
                              "e",
                              18));
}

}  // namespace
}  // namespace ashlar::props
