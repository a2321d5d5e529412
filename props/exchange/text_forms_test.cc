// The forms that are lines of text, and what texts may hold: times of the day, names in a stack, bytes that are no UTF-8.
//
// Imitates: histories over several days, and names with the characters that a form uses itself.
#include <gtest/gtest.h>

#include <array>

#include <ashlar/exchange.h>
#include <ashlar/exchange/utf8.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::ContextId;
using cache::HistoryAction;
using cache::HistorySnapshot;
using exchange::Frame;

std::string log_of(const HistorySnapshot& record) {
  return text_of(
      [&](const exchange::ByteSink& sink) { return exchange::write_rmm_log(record, sink); });
}
std::string stacks_of(const std::vector<const HistorySnapshot*>& records,
                      const exchange::FrameSource& frames) {
  std::vector<exchange::DeviceHistory> devices;
  for (const HistorySnapshot* const record : records)
    devices.push_back({DeviceId{static_cast<std::int32_t>(devices.size())}, record});
  return text_of([&](const exchange::ByteSink& sink) {
    return exchange::write_collapsed_stacks(devices, frames, sink);
  });
}

TEST(RmmLog, TheTimeIsThatOfTheDay) {
  const std::uint64_t second = 1'000'000, day = 86'400 * second;
  const std::pair<std::uint64_t, const char*> times[] = {
      {0, "00:00:00.000000"},
      {999'999, "00:00:00.999999"},
      {59 * second + 100'000, "00:00:59.100000"},
      {60 * second + 20'000, "00:01:00.020000"},
      {3599 * second + 3'000, "00:59:59.003000"},
      {3600 * second + 400, "01:00:00.000400"},
      {45'296 * second + 789'012, "12:34:56.789012"},
      {day - 1, "23:59:59.999999"},
      {day, "00:00:00.000000"},
      {19'700 * day + 36'610 * second + 50, "10:10:10.000050"}};
  for (const auto& [time, text] : times) {
    HistorySnapshot record;
    record.history.events = {event_of(HistoryAction::kOutOfMemory, 0, 8, time)};
    EXPECT_EQ(log_of(record), "Thread,Time,Action,Pointer,Size,Stream\n0," + std::string(text) +
                                  ",allocate failure,(nil),8,0x7\n");
  }
}

TEST(RmmLog, OnlyCallsHaveLines) {
  HistorySnapshot record;
  record.history.events = {event_of(HistoryAction::kSegmentAllocate, 4096, 64),
                           event_of(HistoryAction::kAllocate, 4096, 64),
                           event_of(HistoryAction::kFreeRequested, 4096, 64),
                           event_of(HistoryAction::kFreeCompleted, 4096, 64),
                           event_of(HistoryAction::kSegmentFree, 4096, 64),
                           event_of(HistoryAction::kSnapshot, 0, 64),
                           event_of(HistoryAction::kUserDefined, 0, 0)};
  EXPECT_EQ(log_of(record),
            "Thread,Time,Action,Pointer,Size,Stream\n"
            "0,00:00:00.000000,allocate,0x1000,64,0x7\n"
            "0,00:00:00.000000,free,0x1000,64,0x7\n");
}

TEST(CollapsedStacks, AStackBeginsWithItsOutermostFrame) {
  HistorySnapshot record = small_record();
  const auto frames = [](ContextId context) -> std::vector<Frame> {
    if (context == ContextId{1}) return {{"c", "", 0}, {"b", "", 0}, {"a", "", 0}};
    return {{"c", "", 0}, {"b", "", 0}};
  };
  EXPECT_EQ(stacks_of({&record}, frames), "a;b;c 1000\nb;c 400\n");
  record.snapshot.blocks[2].state = BlockState::kPending;
  EXPECT_EQ(stacks_of({&record}, frames), "a;b;c 1000\n") << "what is pending is not live";
  while (record.snapshot.blocks.size() > 0) record.snapshot.blocks.pop_back();
  EXPECT_EQ(stacks_of({&record}, frames), "") << "what was taken out of the snapshot is not there";
}

TEST(CollapsedStacks, WhatTheFormUsesItselfBecomesASpace) {
  const HistorySnapshot record = small_record();
  const auto named = [&record](const std::string& name) {
    return stacks_of({&record}, [&name](ContextId) { return std::vector<Frame>{{name, "", 0}}; });
  };
  EXPECT_EQ(named(std::string("a;b\nc\0d\x1f"
                              "e\x20"
                              "f\x7f"
                              "g:<",
                              15)),
            "a b c d e f\x7fg:< 1400\n");
  EXPECT_EQ(named("\xc3\xa4\xff"), "\xc3\xa4\xef\xbf\xbd 1400\n");
}

TEST(CollapsedStacks, DevicesAddUpAndBlocksWithoutContextsAreUnknown) {
  const HistorySnapshot record = small_record();
  HistorySnapshot other = small_record();
  const exchange::FrameSource frames = small_frames;
  other.block_contexts = {ContextId{1}};
  EXPECT_EQ(stacks_of({&record, &other}, frames), "outer;inner f 2000\nunknown 800\n");
  other.block_contexts.clear();
  EXPECT_EQ(stacks_of({&record, &other}, frames), "outer;inner f 1000\nunknown 1800\n");
  EXPECT_EQ(stacks_of({&record}, {}), "unknown 1400\n");
  EXPECT_EQ(exchange::write_collapsed_stacks({{DeviceId{0}, nullptr}}, {}, {}).code(),
            Code::kInvalidArgument);
}

TEST(Frames, TheSourceIsAskedOnceForEachContextAndNotForNone) {
  HistorySnapshot record = small_record();
  record.block_contexts = {ContextId{1}, ContextId{1}, ContextId{2}, {}};
  record.history.events[0].context = ContextId{1};
  std::vector<std::uint64_t> asked;
  const exchange::FrameSource frames = [&asked](ContextId context) {
    asked.push_back(context.value());
    return small_frames(context);
  };
  stacks_of({&record, &record}, frames);
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{1, 2}));
  asked.clear();
  exchange::TorchSnapshotOptions options;
  options.frames = frames;
  text_of([&](const exchange::ByteSink& sink) {
    return exchange::write_torch_snapshot({{DeviceId{0}, &record}}, options, sink);
  });
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{1, 2}));
}

/// The Unicode Standard, table 3-7: the bytes that a character of that first byte may have.
struct WellFormed {
  unsigned first_low, first_high;
  std::vector<std::pair<unsigned, unsigned>> others;
};
const std::vector<WellFormed>& well_formed() {
  const std::pair<unsigned, unsigned> any{0x80, 0xbf};
  static const std::vector<WellFormed> kTable = {{0x00, 0x7f, {}},
                                                 {0xc2, 0xdf, {any}},
                                                 {0xe0, 0xe0, {{0xa0, 0xbf}, any}},
                                                 {0xe1, 0xec, {any, any}},
                                                 {0xed, 0xed, {{0x80, 0x9f}, any}},
                                                 {0xee, 0xef, {any, any}},
                                                 {0xf0, 0xf0, {{0x90, 0xbf}, any, any}},
                                                 {0xf1, 0xf3, {any, any, any}},
                                                 {0xf4, 0xf4, {{0x80, 0x8f}, any, any}}};
  return kTable;
}
std::size_t length_by_the_table(const std::string& text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const WellFormed& row : well_formed()) {
    if (text.empty() || byte(0) < row.first_low || byte(0) > row.first_high) continue;
    if (text.size() <= row.others.size()) return 0;
    for (std::size_t i = 0; i < row.others.size(); ++i)
      if (byte(i + 1) < row.others[i].first || byte(i + 1) > row.others[i].second) return 0;
    return row.others.size() + 1;
  }
  return 0;
}

TEST(Utf8, CharactersAreThoseOfTheStandardsTable) {
  const std::array<unsigned, 10> edges = {0x00, 0x7f, 0x80, 0x8f, 0x90,
                                          0x9f, 0xa0, 0xbf, 0xc0, 0xff};
  std::size_t wrong = 0;
  const auto compare = [&wrong](const std::string& text) {
    wrong += exchange::utf8_length(text) != length_by_the_table(text);
  };
  compare("");
  for (unsigned first = 0; first < 256; ++first) {
    std::string text(1, static_cast<char>(first));
    compare(text);
    for (unsigned second = 0; second < 256; ++second) {
      text.resize(1);
      text += static_cast<char>(second);
      compare(text);
      for (const unsigned third : edges) {
        text.resize(2);
        text += static_cast<char>(third);
        compare(text);
        for (const unsigned fourth : edges) compare(text + static_cast<char>(fourth));
      }
    }
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace ashlar::props
