// A `.trace` as it is written, read back by the tool's own reader where that says more than the bytes.
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "props/exchange/history_maker.h"
#include "props/exchange/small_records.h"
#include "src/tool/trace.h"

namespace ashlar::props {
namespace {

constexpr std::string_view kHeader =
    R"({"format":"alloc-trace","version":1,"name":"run","unit":"bytes"})";

TEST(TraceWriter, WritesWhatItIsTold) {
  std::string text;
  exchange::TraceWriter writer(exchange::string_sink(&text), "run");
  writer.on_allocate(Address{512}, 100_B);
  writer.on_allocate(Address{1024}, 200_B, 3);
  writer.mark("step\n2");
  writer.on_free(Address{512});
  writer.on_allocate(Address{512}, 1_B);
  EXPECT_EQ(text, "") << "nothing reaches the sink before 64 KiB or finish()";
  EXPECT_TRUE(writer.finish().is_ok());
  EXPECT_EQ(text, std::string(kHeader) + "\na 0 100\na 1 200 3\nm step 2\nf 0\na 2 1\n");
  EXPECT_EQ(writer.counts().allocations, 3u);
  EXPECT_EQ(writer.counts().frees, 1u);
  EXPECT_EQ(writer.counts().marks, 1u);
}

TEST(TraceWriter, CountsWhatItCannotKnow) {
  std::string text;
  exchange::TraceWriter writer(exchange::string_sink(&text), "run");
  writer.on_free(Address{4096});
  writer.on_free(Address{});
  writer.on_allocate(Address{}, 8_B);
  writer.on_allocate(Address{512}, Bytes{(std::uint64_t{1} << 60) + 1});
  writer.on_free(Address{512});
  writer.mark("");
  writer.on_allocate(Address{512}, 7_B);
  writer.on_allocate(Address{512}, 8_B);
  EXPECT_TRUE(writer.finish().is_ok());
  EXPECT_EQ(text, std::string(kHeader) + "\na 0 7\nf 0\na 1 8\n");
  const exchange::TraceWriterCounts counts = writer.counts();
  EXPECT_EQ(counts.unknown_frees, 2u);
  EXPECT_EQ(counts.untold_frees, 1u);
  EXPECT_EQ(counts.lost, 1u);
  EXPECT_EQ(counts.marks, 0u);
}

TEST(TraceWriter, LeavesOutWhatReadersRefuse) {
  std::string text;
  exchange::TraceWriter writer(exchange::string_sink(&text), "limits");
  for (std::uint64_t stream = 0; stream < exchange::kTraceStreamsMax + 3; ++stream)
    writer.on_allocate(Address{512 + stream}, 8_B, stream);
  EXPECT_EQ(writer.counts().lost, 3u);
  const Bytes largest{std::uint64_t{1} << 60};
  for (std::uint64_t i = 0; i < 17; ++i) writer.on_allocate(Address{(i + 1) << 40}, largest, 1);
  EXPECT_EQ(writer.counts().lost, 5u) << "beside the 8 bytes of each stream 15 fit";
  writer.on_free(Address{std::uint64_t{1} << 40});
  writer.on_allocate(Address{std::uint64_t{1} << 40}, largest, exchange::kTraceStreamsMax - 1);
  EXPECT_EQ(writer.counts().lost, 5u);
  ASSERT_TRUE(writer.finish().is_ok());
  std::string error;
  const auto trace = tool::parse_trace(text, "limits", &error);
  ASSERT_TRUE(trace.has_value()) << error;
  EXPECT_EQ(trace->allocations, writer.counts().allocations);
}

TEST(TraceWriter, AnyNameAndMarkCanBeReadBack) {
  std::string text;
  const std::string odd = std::string("a\"\\\n\xff\0b", 7) + std::string(200'000, '\x01');
  {
    exchange::TraceWriter writer(exchange::string_sink(&text), odd);
    writer.mark(odd);
  }
  std::string error;
  const auto trace = tool::parse_trace(text, "run.trace", &error);
  ASSERT_TRUE(trace) << error;
  ASSERT_EQ(trace->marks.size(), 1u);
  EXPECT_EQ(trace->marks[0].size(), exchange::kTraceTextMax);
}

TEST(TraceWriter, NoFailureOfItsSinkReachesTheCaller) {
  unsigned calls = 0;
  exchange::TraceWriter writer(
      [&calls](std::string_view) -> bool {
        ++calls;
        throw std::runtime_error("disk");
      },
      "run");
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    writer.on_allocate(Address{512 * i}, 1_B);
    writer.on_free(Address{512 * i});
  }
  EXPECT_EQ(writer.finish().code(), Code::kWriteFailed);
  EXPECT_EQ(calls, 1u);
  EXPECT_GT(writer.counts().lost, 0u);
}

TEST(TraceWriter, ThreadsMayAllocateAndFreeAtOnce) {
  std::string text;
  exchange::TraceWriter writer(exchange::string_sink(&text), "run");
  std::vector<std::thread> threads;
  for (std::uint64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&writer, t] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        writer.on_allocate(Address{t << 32 | (i + 1)}, Bytes{t}, t);
        if (i % 2 == 0) writer.on_free(Address{t << 32 | (i + 1)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(writer.finish().is_ok());
  std::string error;
  const auto trace = tool::parse_trace(text, "run.trace", &error);
  ASSERT_TRUE(trace) << error;
  EXPECT_EQ(trace->allocations, 8000u);
  EXPECT_EQ(trace->frees, 4000u);
  EXPECT_EQ(trace->streams.size(), 4u);
}

TEST(TraceWriter, WritesToAFileAndLeavesADeviceNodeWhatItIs) {
  const std::string path = testing::TempDir() + "trace_writer_test.trace";
  {
    auto writer = exchange::TraceWriter::open(path, "run");
    ASSERT_TRUE(writer.is_ok());
    writer.value()->on_allocate(Address{512}, 9_B);
  }
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            std::string(kHeader) + "\na 0 9\n");
  auto full = exchange::TraceWriter::open("/dev/full", "run");
  ASSERT_TRUE(full.is_ok());
  EXPECT_EQ(full.value()->finish().code(), Code::kWriteFailed);
  EXPECT_EQ(exchange::TraceWriter::open("/no/such/folder/file", "run").code(), Code::kWriteFailed);
}

TEST(TraceWriter, AHistoryBeginsWithWhatWasLive) {
  cache::HistorySnapshot record = small_record();
  record.history.texts = {"step 1"};
  cache::HistoryEvent text = event_of(cache::HistoryAction::kUserDefined, 0, 0);
  text.context = cache::ContextId{1};
  record.history.events.push_back(text);
  EXPECT_EQ(
      text_of([&](const auto& sink) { return exchange::write_trace_text(record, "run", sink); }),
      std::string(kHeader) + "\na 0 1000 7\na 1 500 7\nf 1\na 2 400 7\nm step 1\n");
  record.history.events[0].action = cache::HistoryAction::kFreeCompleted;
  EXPECT_EQ(
      text_of([&](const auto& sink) { return exchange::write_trace_text(record, "run", sink); }),
      "")
      << "a record that does not agree";
}

TEST(TraceWriter, ALongHistoryIsATraceWithItsLiveBytes) {
  HistoryMaker maker(9, Address{4096});
  maker.run(20'000);
  for (const std::size_t kept : {std::size_t{20'100}, std::size_t{3000}}) {
    const cache::HistorySnapshot record = maker.record(kept);
    const std::string text =
        text_of([&](const auto& sink) { return exchange::write_trace_text(record, "run", sink); });
    std::string error;
    const auto trace = tool::parse_trace(text, "run.trace", &error);
    ASSERT_TRUE(trace) << error;
    std::uint64_t live = 0;
    for (const cache::SnapshotBlock& block : record.snapshot.blocks)
      live += block.state == BlockState::kLive;
    EXPECT_EQ(trace->allocations - trace->frees, live);
  }
}

}  // namespace
}  // namespace ashlar::props
