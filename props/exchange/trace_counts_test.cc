// What a trace writer counts when it cannot write: by kind, before and behind the failure of its sink.
//
// Imitates: a full disk, and addresses whose frees nobody told.
#include <gtest/gtest.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using exchange::TraceWriter;
using exchange::TraceWriterCounts;

constexpr std::string_view kHeader =
    R"({"format":"alloc-trace","version":1,"name":"run","unit":"bytes"})";
constexpr Bytes kExbibyte{std::uint64_t{1} << 60};

TEST(TraceCounts, WhatASinkThatFailedCannotTakeIsLost) {
  unsigned calls = 0;
  TraceWriter writer(
      [&calls](std::string_view) {
        ++calls;
        return false;
      },
      "run");
  writer.on_allocate(Address{512}, 8_B);
  writer.mark("before");
  EXPECT_EQ(writer.counts().lost, 0u) << "the sink was not called yet";
  EXPECT_EQ(writer.finish().code(), Code::kWriteFailed);
  writer.on_free(Address{512});
  EXPECT_EQ(writer.counts().lost, 1u);
  writer.on_allocate(Address{1024}, 8_B);
  EXPECT_EQ(writer.counts().lost, 2u);
  writer.on_free(Address{1024});
  writer.mark("behind");
  writer.mark("");
  const TraceWriterCounts counts = writer.counts();
  EXPECT_EQ(counts.lost, 3u);
  EXPECT_EQ(counts.unknown_frees, 1u) << "of an allocation that was lost";
  EXPECT_EQ(counts.allocations, 1u);
  EXPECT_EQ(counts.frees, 0u);
  EXPECT_EQ(counts.marks, 1u);
  EXPECT_EQ(writer.finish().code(), Code::kWriteFailed);
  EXPECT_EQ(calls, 1u);
}

TEST(TraceCounts, AnAddressThatIsUsedAgainEndsWhatWasThere) {
  std::string text;
  TraceWriter writer(exchange::string_sink(&text), "run");
  writer.on_allocate(Address{512}, 8_B);
  writer.on_allocate(Address{512}, kExbibyte + 1_B);
  writer.on_free(Address{512});
  EXPECT_EQ(writer.counts().untold_frees, 1u);
  EXPECT_EQ(writer.counts().lost, 1u);
  EXPECT_EQ(writer.counts().unknown_frees, 1u);
  EXPECT_TRUE(writer.finish().is_ok());
  EXPECT_EQ(text, std::string(kHeader) + "\na 0 8\nf 0\n");
}

TEST(TraceCounts, AllocationsUpToAnExbibyteAreWritten) {
  std::string text;
  TraceWriter writer(exchange::string_sink(&text), "run");
  writer.on_allocate(Address{1}, kExbibyte);
  writer.on_allocate(Address{2}, kExbibyte + 1_B);
  for (std::uint64_t i = 0; i < 14; ++i) writer.on_allocate(Address{10 + i}, kExbibyte);
  writer.on_allocate(Address{3}, kExbibyte);
  EXPECT_EQ(writer.counts().lost, 2u) << "sixteen would be 2^64 bytes";
  writer.on_allocate(Address{3}, kExbibyte - 1_B);
  EXPECT_EQ(writer.counts().lost, 2u) << "2^64 - 1 bytes";
  writer.on_allocate(Address{4}, 1_B);
  EXPECT_EQ(writer.counts().lost, 3u);
  writer.on_free(Address{3});
  writer.on_allocate(Address{4}, kExbibyte - 1_B);
  EXPECT_EQ(writer.counts().lost, 3u) << "what is freed makes room";
}

TEST(TraceCounts, AMarkIsOneLine) {
  std::string text;
  TraceWriter writer(exchange::string_sink(&text), "run");
  writer.mark(std::string("a\0\x1f\x20\x7f\xff", 6));
  writer.mark(std::string(exchange::kTraceTextMax + 1, 'x'));
  EXPECT_TRUE(writer.finish().is_ok());
  EXPECT_EQ(text, std::string(kHeader) + "\nm a   \x7f\xff\nm " +
                      std::string(exchange::kTraceTextMax, 'x') + "\n");
}

TEST(TraceCounts, ATraceOfAHistoryIsRefusedForAnAllocationOfMoreThanAnExbibyte) {
  for (const std::uint64_t beyond : {0u, 1u}) {
    cache::HistorySnapshot record;
    const auto event = [&](cache::HistoryAction action) {
      cache::HistoryEvent made = event_of(action, 4096, kExbibyte.count() + beyond);
      made.block_size = kExbibyte + 512_B;
      made.size = Bytes{kExbibyte.count() + beyond};
      return made;
    };
    cache::HistoryEvent segment = event_of(cache::HistoryAction::kSegmentAllocate, 4096, 0);
    segment.size = kExbibyte + 512_B;
    record.history.events = {segment, event(cache::HistoryAction::kAllocate),
                             event(cache::HistoryAction::kFreeRequested),
                             event(cache::HistoryAction::kFreeCompleted), segment};
    record.history.events.back().action = cache::HistoryAction::kSegmentFree;
    std::string text;
    EXPECT_EQ(exchange::write_trace_text(record, "run", exchange::string_sink(&text)).code(),
              beyond == 0 ? Code::kOk : Code::kInvalidArgument);
    EXPECT_EQ(text.empty(), beyond == 1);
  }
}

}  // namespace
}  // namespace ashlar::props
