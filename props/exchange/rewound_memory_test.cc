// Memory that came and went: what a record's segments were before it was given, and before it was taken back.
//
// Imitates: ranges whose pages are mapped and unmapped beside each other, and records in which that cannot be.
#include <gtest/gtest.h>

#include <sstream>

#include <ashlar/exchange/rewind.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;
using cache::HistorySnapshot;

/// A record of the free segments [100, 150) and [200, 250), the first with a live block at [120, 130).
HistorySnapshot record_of_two() {
  const auto block = [](std::uint64_t address, std::uint64_t size, BlockState state) {
    return cache::SnapshotBlock{Address{address}, Bytes{size}, Bytes{size}, StreamId{7}, 0, state};
  };
  HistorySnapshot record;
  record.snapshot.segments = {{Address{100}, 50_B, StreamId{7}, 0, 0, 3, PoolId::kSmall},
                              {Address{200}, 50_B, StreamId{7}, 1, 3, 1, PoolId::kSmall}};
  record.snapshot.blocks = {block(100, 20, BlockState::kFree), block(120, 10, BlockState::kLive),
                            block(130, 20, BlockState::kFree), block(200, 50, BlockState::kFree)};
  return record;
}
/// The segments before the record's first event, each as `base+size`, and its stream where that is not 7.
std::string segments_before(const HistorySnapshot& record) {
  exchange::Rewind state;
  if (!exchange::rewind_all(record, &state).is_ok()) return "refused";
  std::ostringstream text;
  for (const auto& [base, segment] : state.segments()) {
    text << "[" << base.value() << "+" << segment.size.count();
    if (segment.stream != StreamId{7}) text << " of " << segment.stream.value();
    text << "]";
  }
  return text.str();
}
std::string undone(HistoryAction action, std::uint64_t address, std::uint64_t size,
                   std::uint64_t stream = 7) {
  HistorySnapshot record = record_of_two();
  record.history.events = {event_of(action, address, size)};
  record.history.events[0].stream = StreamId{stream};
  return segments_before(record);
}

std::string mapped(std::uint64_t address, std::uint64_t size) {
  return undone(HistoryAction::kSegmentMap, address, size);
}

TEST(RewoundMemory, WhatWasMappedLeavesTheRestOfItsRange) {
  EXPECT_EQ(mapped(200, 50), "[100+50]");
  EXPECT_EQ(mapped(200, 10), "[100+50][210+40]");
  EXPECT_EQ(mapped(240, 10), "[100+50][200+40]");
  EXPECT_EQ(mapped(210, 10), "[100+50][200+10][220+30]");
  EXPECT_EQ(mapped(200, 51), "refused");
  EXPECT_EQ(mapped(199, 10), "refused");
  EXPECT_EQ(mapped(90, 10), "refused");
  EXPECT_EQ(mapped(250, 1), "refused");
  EXPECT_EQ(mapped(150, 10), "refused");
}

TEST(RewoundMemory, WhatWasGivenHeldNoBlock) {
  EXPECT_EQ(mapped(100, 20), "[120+30][200+50]");
  EXPECT_EQ(mapped(130, 20), "[100+30][200+50]");
  EXPECT_EQ(mapped(100, 21), "refused");
  EXPECT_EQ(mapped(129, 21), "refused");
  EXPECT_EQ(mapped(122, 3), "refused");
  EXPECT_EQ(mapped(120, 10), "refused");
  EXPECT_EQ(mapped(100, 50), "refused");
}

TEST(RewoundMemory, ASegmentIsGivenWhole) {
  const auto given = [](std::uint64_t address, std::uint64_t size) {
    return undone(HistoryAction::kSegmentAllocate, address, size);
  };
  EXPECT_EQ(given(200, 50), "[100+50]");
  EXPECT_EQ(given(200, 49), "refused");
  EXPECT_EQ(given(201, 49), "refused");
  EXPECT_EQ(given(210, 10), "refused");
  EXPECT_EQ(given(100, 50), "refused") << "a block is in it";
}

TEST(RewoundMemory, WhatWasTakenBackOverlapsNothing) {
  for (const auto action : {HistoryAction::kSegmentFree, HistoryAction::kSegmentUnmap}) {
    const auto taken = [action](std::uint64_t address, std::uint64_t size) {
      return undone(action, address, size);
    };
    EXPECT_EQ(taken(160, 10), "[100+50][160+10][200+50]");
    EXPECT_EQ(taken(80, 10), "[80+10][100+50][200+50]");
    EXPECT_EQ(taken(300, 10), "[100+50][200+50][300+10]");
    EXPECT_EQ(taken(149, 10), "refused");
    EXPECT_EQ(taken(195, 6), "refused");
    EXPECT_EQ(taken(200, 1), "refused");
    EXPECT_EQ(taken(210, 10), "refused");
    EXPECT_EQ(taken(80, 200), "refused");
  }
}

TEST(RewoundMemory, PagesOfOneStreamThatTouchAreOneRange) {
  const auto unmapped = [](std::uint64_t address, std::uint64_t size, std::uint64_t stream) {
    return undone(HistoryAction::kSegmentUnmap, address, size, stream);
  };
  EXPECT_EQ(unmapped(150, 10, 7), "[100+60][200+50]");
  EXPECT_EQ(unmapped(151, 10, 7), "[100+50][151+10][200+50]");
  EXPECT_EQ(unmapped(190, 10, 7), "[100+50][190+60]");
  EXPECT_EQ(unmapped(189, 10, 7), "[100+50][189+10][200+50]");
  EXPECT_EQ(unmapped(150, 50, 7), "[100+150]");
  EXPECT_EQ(unmapped(90, 10, 7), "[90+60][200+50]");
  EXPECT_EQ(unmapped(250, 10, 7), "[100+50][200+60]");
  EXPECT_EQ(unmapped(150, 50, 8), "[100+50][150+50 of 8][200+50]");
}

TEST(RewoundMemory, ASegmentThatTouchesAnotherOneStaysItsOwn) {
  EXPECT_EQ(undone(HistoryAction::kSegmentFree, 150, 50), "[100+50][150+50][200+50]");
}

TEST(RewoundMemory, WhatWasTakenBackIsWhatItsEventSays) {
  for (const bool is_paged : {false, true}) {
    HistorySnapshot record;
    record.history.events = {
        event_of(is_paged ? HistoryAction::kSegmentUnmap : HistoryAction::kSegmentFree, 100, 50)};
    HistoryEvent& event = record.history.events[0];
    event.stream = StreamId{9};
    event.memory_pool = {3, 4};
    event.pool = is_paged ? PoolId::kLarge : PoolId::kSmall;
    exchange::Rewind state;
    ASSERT_TRUE(exchange::rewind_all(record, &state).is_ok());
    const exchange::RewoundSegment& segment = state.segments().at(Address{100});
    EXPECT_EQ(segment.size, 50_B);
    EXPECT_EQ(segment.stream, StreamId{9});
    EXPECT_EQ(segment.memory_pool, (MemoryPoolId{3, 4}));
    EXPECT_EQ(segment.pool, event.pool);
    EXPECT_EQ(segment.is_paged, is_paged);
  }
}

TEST(RewoundMemory, AFreedBlockIsWhatItsEventSays) {
  HistorySnapshot record = record_of_two();
  record.history.events = {event_of(HistoryAction::kFreeCompleted, 200, 30)};
  HistoryEvent& event = record.history.events[0];
  event.block_size = 40_B;
  event.stream = StreamId{9};
  event.memory_pool = {3, 4};
  event.context = cache::ContextId{5};
  exchange::Rewind state;
  ASSERT_TRUE(exchange::rewind_all(record, &state).is_ok());
  const exchange::RewoundBlock& block = state.blocks().at(Address{200});
  EXPECT_EQ(block.size, 40_B);
  EXPECT_EQ(block.requested, 30_B);
  EXPECT_EQ(block.stream, StreamId{9});
  EXPECT_EQ(block.memory_pool, (MemoryPoolId{3, 4}));
  EXPECT_EQ(block.context, cache::ContextId{}) << "that of whoever found it complete says nothing";
  EXPECT_TRUE(block.is_pending);
}

}  // namespace
}  // namespace ashlar::props
