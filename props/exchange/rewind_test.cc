// Memory as it was: what is there before each event of a record, and the records that have no such past.
//
// Imitates: records that someone else wrote, or that were damaged: ranges that overlap, wrap, or do not touch where they should.
// Does not prove: whose context a block has (record_edges_test.cc).
#include <gtest/gtest.h>

#include <sstream>

#include <ashlar/exchange/rewind.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;
using cache::HistorySnapshot;
using exchange::Rewind;

constexpr std::uint64_t kMost = ~std::uint64_t{0};

/// The ranges with memory, and the blocks in them: `4096+1024 p` is pending, with its requested size where that differs.
std::string shown(const Rewind& state) {
  std::ostringstream text;
  for (const auto& [base, segment] : state.segments())
    text << "[" << base.value() << "+" << segment.size.count() << "]";
  for (const auto& [address, block] : state.blocks()) {
    text << " " << address.value() << "+" << block.size.count();
    if (block.requested != block.size) text << "(" << block.requested.count() << ")";
    if (block.is_pending) text << "p";
  }
  return text.str();
}
/// What is there before that event of the record; the code's name where that is none.
std::string before(const HistorySnapshot& record, std::size_t event = 0) {
  Rewind state;
  const Status status = exchange::rewind_to(record, event, &state);
  if (status.is_ok()) return shown(state);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  return "refused";
}

cache::SnapshotBlock block(std::uint64_t address, std::uint64_t size, BlockState state) {
  return {Address{address}, Bytes{size}, Bytes{size}, StreamId{7}, 0, state};
}
/// A record without events, of one segment.
HistorySnapshot record_of(std::uint64_t base, std::uint64_t size,
                          std::vector<cache::SnapshotBlock> blocks) {
  HistorySnapshot record;
  const auto count = static_cast<std::uint32_t>(blocks.size());
  record.snapshot.segments = {
      {Address{base}, Bytes{size}, StreamId{7}, 0, 0, count, PoolId::kSmall}};
  record.snapshot.blocks = std::move(blocks);
  return record;
}
/// Adds a segment with one block that fills it.
void add(HistorySnapshot* record, std::uint64_t base, std::uint64_t size, BlockState state) {
  const auto first = static_cast<std::uint32_t>(record->snapshot.blocks.size());
  record->snapshot.segments.push_back(
      {Address{base}, Bytes{size}, StreamId{7}, 0, first, 1, PoolId::kSmall});
  record->snapshot.blocks.push_back(block(base, size, state));
}
/// What is there before an event at the end of such a record.
std::string undone(HistorySnapshot record, HistoryAction action, std::uint64_t address,
                   std::uint64_t size) {
  record.history.events.push_back(event_of(action, address, size));
  return before(record, record.history.events.size() - 1);
}

TEST(Rewind, EachEventIsUndone) {
  HistorySnapshot record = record_of(4096, 4096, {block(4096, 4096, BlockState::kFree)});
  record.history.events = {event_of(HistoryAction::kSegmentAllocate, 4096, 4096),
                           event_of(HistoryAction::kAllocate, 4096, 500),
                           event_of(HistoryAction::kSegmentMap, 16384, 4096),
                           event_of(HistoryAction::kOutOfMemory, 0, kMost),
                           event_of(HistoryAction::kFreeRequested, 4096, 500),
                           event_of(HistoryAction::kSnapshot, 0, 8192),
                           event_of(HistoryAction::kFreeCompleted, 4096, 500),
                           event_of(HistoryAction::kUserDefined, 0, 0),
                           event_of(HistoryAction::kSegmentUnmap, 16384, 4096)};
  record.history.events[6].block_size = 512_B;
  const char* const expected[] = {"",
                                  "[4096+4096]",
                                  "[4096+4096] 4096+512(500)",
                                  "[4096+4096][16384+4096] 4096+512(500)",
                                  "[4096+4096][16384+4096] 4096+512(500)",
                                  "[4096+4096][16384+4096] 4096+512(500)p",
                                  "[4096+4096][16384+4096] 4096+512(500)p",
                                  "[4096+4096][16384+4096]",
                                  "[4096+4096][16384+4096]",
                                  "[4096+4096]"};
  for (std::size_t event = 0; event < std::size(expected); ++event)
    EXPECT_EQ(before(record, event), expected[event]) << event;
}

TEST(Rewind, ASecondRecordReplacesTheFirst) {
  Rewind state;
  ASSERT_TRUE(state.begin(small_record()).is_ok());
  ASSERT_TRUE(state.begin(record_of(64, 64, {block(64, 64, BlockState::kLive)})).is_ok());
  EXPECT_EQ(shown(state), "[64+64] 64+64");
  ASSERT_TRUE(state.begin(HistorySnapshot{}).is_ok());
  EXPECT_EQ(shown(state), "");
}

TEST(Rewind, ARangeWithoutMemoryPartsASegment) {
  const auto parts = [](BlockState a, BlockState b, BlockState c, BlockState d) {
    return before(record_of(
        100, 40, {block(100, 10, a), block(110, 10, b), block(120, 10, c), block(130, 10, d)}));
  };
  const auto none = BlockState::kUnmapped, free = BlockState::kFree, live = BlockState::kLive;
  EXPECT_EQ(parts(none, none, none, none), "");
  EXPECT_EQ(parts(none, free, live, none), "[110+20] 120+10");
  EXPECT_EQ(parts(live, none, none, free), "[100+10][130+10] 100+10");
  EXPECT_EQ(parts(free, none, live, live), "[100+10][120+20] 120+10 130+10");
  EXPECT_EQ(parts(none, live, none, live), "[110+10][130+10] 110+10 130+10");
}

TEST(Rewind, BlocksThatDoNotTileTheirSegmentAreRefused) {
  const auto live = BlockState::kLive, free = BlockState::kFree;
  const auto pair = [&](std::uint64_t from, std::uint64_t size, std::uint64_t next,
                        std::uint64_t next_size) {
    return before(record_of(100, 40, {block(from, size, free), block(next, next_size, live)}));
  };
  EXPECT_EQ(pair(100, 10, 110, 30), "[100+40] 110+30");
  EXPECT_EQ(pair(100, 10, 110, 29), "refused") << "a byte is nobody's at the end";
  EXPECT_EQ(pair(100, 10, 110, 31), "refused") << "beyond the end";
  EXPECT_EQ(pair(100, 10, 110, kMost), "refused");
  EXPECT_EQ(pair(100, 10, 111, 29), "refused") << "a byte is nobody's between";
  EXPECT_EQ(pair(100, 11, 110, 30), "refused") << "they overlap";
  EXPECT_EQ(pair(101, 9, 110, 30), "refused") << "a byte is nobody's at the beginning";
  EXPECT_EQ(pair(100, 40, 140, 0), "refused") << "a block without bytes, which is in no segment";
  EXPECT_EQ(pair(100, 0, 100, 40), "refused");
  EXPECT_EQ(before(record_of(100, 40, {})), "refused");
}

TEST(Rewind, BlocksThatTheSnapshotDoesNotHaveAreRefused) {
  HistorySnapshot record = record_of(100, 10, {block(100, 10, BlockState::kFree)});
  add(&record, 200, 10, BlockState::kLive);
  EXPECT_EQ(before(record), "[100+10][200+10] 200+10");
  record.snapshot.segments[1].block_count = 2;
  EXPECT_EQ(before(record), "refused");
  record.snapshot.segments[1].block_count = 0xffffffff;
  EXPECT_EQ(before(record), "refused");
  record.snapshot.segments[1].block_first = 2;
  EXPECT_EQ(before(record), "refused");
  record.snapshot.segments[1].block_first = 3;
  record.snapshot.segments[1].block_count = 0;
  EXPECT_EQ(before(record), "refused");
  HistorySnapshot shorter = record;
  shorter.snapshot.segments[1] = record.snapshot.segments[0];
  record.snapshot.segments[1].size = {};
  record.snapshot.segments[1].block_first = 2;
  EXPECT_EQ(before(record), "[100+10]") << "nothing of it is there, and nothing is missing";
  shorter.snapshot.segments = {record.snapshot.segments[0]};
  shorter.snapshot.blocks.pop_back();
  EXPECT_EQ(before(shorter), "[100+10]");
  shorter.snapshot.blocks.pop_back();
  EXPECT_EQ(before(shorter), "refused") << "the block was taken out";
}

TEST(Rewind, ContextsAreThoseOfAllBlocksOrOfNone) {
  HistorySnapshot record = small_record();
  EXPECT_NE(before(record), "refused");
  record.block_contexts.pop_back();
  EXPECT_EQ(before(record), "refused");
  record.block_contexts.resize(5);
  EXPECT_EQ(before(record), "refused");
  record.block_contexts.clear();
  EXPECT_NE(before(record), "refused");
}

TEST(Rewind, SegmentsThatOverlapAreRefused) {
  for (const bool is_first : {true, false}) {
    const auto with = [is_first](std::uint64_t base, std::uint64_t size) {
      HistorySnapshot record;
      if (is_first) add(&record, base, size, BlockState::kFree);
      add(&record, 100, 50, BlockState::kLive);
      if (!is_first) add(&record, base, size, BlockState::kFree);
      return before(record);
    };
    EXPECT_EQ(with(60, 40), "[60+40][100+50] 100+50");
    EXPECT_EQ(with(150, 10), "[100+50][150+10] 100+50");
    EXPECT_EQ(with(60, 41), "refused");
    EXPECT_EQ(with(149, 1), "refused");
    EXPECT_EQ(with(100, 1), "refused");
    EXPECT_EQ(with(100, 50), "refused");
    EXPECT_EQ(with(90, 100), "refused");
  }
}

// The last address of all can belong to no range: a range's end is one more than its last address.
TEST(Rewind, RangesThatWrapAreRefused) {
  EXPECT_EQ(before(record_of(kMost - 9, 9, {block(kMost - 9, 9, BlockState::kLive)})),
            "[18446744073709551606+9] 18446744073709551606+9");
  EXPECT_EQ(before(record_of(kMost - 9, 10, {block(kMost - 9, 10, BlockState::kLive)})), "refused");
  const HistorySnapshot record = record_of(100, 50, {block(100, 50, BlockState::kFree)});
  const std::uint64_t wrapping = kMost - 99;  // from 100 on it ends at 0
  for (const auto action :
       {HistoryAction::kSegmentAllocate, HistoryAction::kSegmentMap, HistoryAction::kSegmentFree,
        HistoryAction::kSegmentUnmap, HistoryAction::kFreeCompleted})
    EXPECT_EQ(undone(record, action, 100, wrapping), "refused") << static_cast<int>(action);
  EXPECT_EQ(undone(record, HistoryAction::kSegmentUnmap, kMost, 1), "refused");
}

TEST(Rewind, AFreedBlockWasInMemoryAndOverNoOther) {
  HistorySnapshot record =
      record_of(100, 60,
                {block(100, 10, BlockState::kLive), block(110, 20, BlockState::kFree),
                 block(130, 10, BlockState::kLive), block(140, 20, BlockState::kFree)});
  add(&record, 160, 40, BlockState::kFree);
  const auto freed = [&record](std::uint64_t address, std::uint64_t size) {
    return undone(record, HistoryAction::kFreeCompleted, address, size);
  };
  const std::string segments = "[100+60][160+40] ";
  EXPECT_EQ(freed(110, 20), segments + "100+10 110+20p 130+10");
  EXPECT_EQ(freed(109, 5), "refused");
  EXPECT_EQ(freed(110, 21), "refused");
  EXPECT_EQ(freed(130, 5), "refused");
  EXPECT_EQ(freed(140, 20), segments + "100+10 130+10 140+20p");
  EXPECT_EQ(freed(140, 21), "refused") << "in two segments";
  EXPECT_EQ(freed(160, 40), segments + "100+10 130+10 160+40p");
  EXPECT_EQ(freed(160, 41), "refused");
  EXPECT_EQ(freed(90, 10), "refused") << "in front of all";
  EXPECT_EQ(freed(200, 1), "refused") << "behind all";
  EXPECT_EQ(freed(150, 0), "refused") << "of no bytes";
  EXPECT_EQ(freed(200, 0), "refused");
}

}  // namespace
}  // namespace ashlar::props
