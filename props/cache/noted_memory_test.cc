// What events make of a copy of the heaps (NotedMemory): ranges of pages that the copy knows, and ones that came later.
//
// Imitates: a copy that is made heap by heap while other threads map, unmap and give up addresses. Does not prove: that the
// events are those of real changes (history_threads_test.cc).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ashlar/cache/noted_memory.h>

namespace ashlar::cache {
namespace {

constexpr std::uint64_t kPage = 0x1000;

HistoryEvent event(HistoryAction action, std::uint64_t page, std::uint64_t pages,
                   std::uint64_t stream = 1) {
  HistoryEvent made;
  made.action = action;
  made.address = Address{page * kPage};
  made.size = made.block_size = Bytes{pages * kPage};
  made.stream = StreamId{stream};
  return made;
}
HistoryEvent map(std::uint64_t page, std::uint64_t pages, std::uint64_t stream = 1) {
  return event(HistoryAction::kSegmentMap, page, pages, stream);
}
HistoryEvent unmap(std::uint64_t page, std::uint64_t pages, std::uint64_t stream = 1) {
  return event(HistoryAction::kSegmentUnmap, page, pages, stream);
}

/// A range of addresses without memory, as it is copied.
Snapshot empty_range(std::uint64_t page, std::uint64_t pages, std::uint64_t stream = 1) {
  Snapshot made;
  SnapshotSegment segment{};
  segment.base = Address{page * kPage};
  segment.size = Bytes{pages * kPage};
  segment.stream = StreamId{stream};
  segment.block_count = 1;
  segment.is_paged = true;
  made.segments = {segment};
  made.blocks = {{segment.base, segment.size, Bytes{}, segment.stream, 0, BlockState::kUnmapped}};
  return made;
}

/// `page+pages:` and the blocks of each segment: L live, P pending, F free, U without memory, each with its pages.
/// `with_ordinals`: behind the pages `#` and the segment's ordinal, ? for an unknown one. Fails where the blocks do not tile
/// their segment.
std::string shown(const Snapshot& from, const std::vector<HistoryEvent>& events,
                  bool with_ordinals = false) {
  NotedMemory memory(from);
  for (const HistoryEvent& each : events) memory.apply(each);
  Snapshot made;
  memory.write(&made);
  std::string text;
  for (const SnapshotSegment& segment : made.segments) {
    text += (text.empty() ? "" : " ") + std::to_string(segment.base.value() / kPage) + "+" +
            std::to_string(segment.size.count() / kPage);
    const bool is_known = segment.ordinal != ~std::uint64_t{0};
    if (with_ordinals) text += "#" + (is_known ? std::to_string(segment.ordinal) : "?");
    text += ':';
    Address reached = segment.base;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const SnapshotBlock& block = made.blocks[segment.block_first + i];
      EXPECT_EQ(block.address, reached);
      reached = reached + block.size;
      text += block.state == BlockState::kLive       ? 'L'
              : block.state == BlockState::kPending  ? 'P'
              : block.state == BlockState::kUnmapped ? 'U'
                                                     : 'F';
      text += std::to_string(block.size.count() / kPage);
    }
    EXPECT_EQ(reached, segment.base + segment.size);
  }
  return text;
}

TEST(NotedMemory, OfARangeThatCameLaterTheMappedRunsAreSegments) {
  EXPECT_EQ(shown({}, {map(10, 3)}), "10+3:F3");
  EXPECT_EQ(shown({}, {map(10, 3), map(15, 1)}), "10+3:F3 15+1:F1");
  EXPECT_EQ(shown({}, {map(10, 3), map(15, 1), map(13, 2)}), "10+6:F6");
  EXPECT_EQ(shown({}, {map(10, 3), map(8, 2)}), "8+5:F5");
  EXPECT_EQ(shown({}, {map(10, 3), map(13, 2, 2)}), "10+3:F3 13+2:F2") << "of two streams";
  EXPECT_EQ(shown({}, {map(10, 5), unmap(11, 2)}), "10+1:F1 13+2:F2");
  EXPECT_EQ(shown({}, {map(10, 5), unmap(10, 5)}), "");
  EXPECT_EQ(shown({}, {map(10, 5), unmap(10, 5), map(12, 1)}), "12+1:F1");
  // As many pages as were mapped in several pieces go at once.
  EXPECT_EQ(shown({}, {map(10, 2), map(12, 4), unmap(11, 5)}), "10+1:F1");
  EXPECT_EQ(shown({}, {unmap(11, 5)}), "") << "of a range that is not there any more";
  EXPECT_EQ(shown({}, {map(10, 2), map(14, 2), unmap(8, 20)}), "");
}

TEST(NotedMemory, WhatIsAllocatedInARunIsThere) {
  const HistoryEvent allocated = event(HistoryAction::kAllocate, 11, 2);
  const HistoryEvent requested = event(HistoryAction::kFreeRequested, 11, 2);
  const HistoryEvent completed = event(HistoryAction::kFreeCompleted, 11, 2);
  EXPECT_EQ(shown({}, {map(10, 3), allocated}), "10+3:F1L2");
  EXPECT_EQ(shown({}, {map(10, 3), allocated, requested}), "10+3:F1P2");
  EXPECT_EQ(shown({}, {map(10, 3), allocated, requested, completed}), "10+3:F3");
  EXPECT_EQ(shown({}, {map(10, 3), allocated, unmap(10, 3), map(10, 3)}), "10+3:F3");
}

TEST(NotedMemory, ARangeOfTheCopyKeepsItsAddresses) {
  EXPECT_EQ(shown(empty_range(10, 8), {map(12, 3)}), "10+8:U2F3U3");
  EXPECT_EQ(shown(empty_range(10, 8), {map(12, 3), unmap(13, 1)}), "10+8:U2F1U1F1U3");
  EXPECT_EQ(shown(empty_range(10, 8), {map(10, 8), unmap(10, 8)}), "10+8:U8");
}

TEST(NotedMemory, ARangeWithoutMemoryMakesRoomForWhatComesAtItsAddresses) {
  EXPECT_EQ(shown(empty_range(10, 8), {map(14, 6, 2)}), "14+6:F6");
  EXPECT_EQ(shown(empty_range(10, 8), {map(14, 2, 2)}), "14+2:F2");
  EXPECT_EQ(shown(empty_range(10, 8), {event(HistoryAction::kSegmentAllocate, 12, 10)}),
            "12+10:F10");
  // While it has memory it is there, whoever is named.
  EXPECT_EQ(shown(empty_range(10, 8), {map(10, 1), map(14, 2, 2)}), "10+8:F1U3F2U2");
}

/// A segment at page 10 of the copy, with a block of a page for each letter: U without memory, F free, L live.
Snapshot copied(const std::string& states) {
  Snapshot made;
  SnapshotSegment segment{};
  segment.ordinal = 5;
  segment.base = Address{10 * kPage};
  segment.size = Bytes{states.size() * kPage};
  segment.stream = StreamId{1};
  segment.block_count = static_cast<std::uint32_t>(states.size());
  made.segments = {segment};
  for (std::size_t i = 0; i < states.size(); ++i)
    made.blocks.push_back({Address{(10 + i) * kPage}, Bytes{kPage}, Bytes{}, segment.stream, 0,
                           states[i] == 'L'   ? BlockState::kLive
                           : states[i] == 'U' ? BlockState::kUnmapped
                                              : BlockState::kFree});
  return made;
}
// The copy shows blocks of a later or an earlier moment than the first event.
TEST(NotedMemory, AnAllocationReplacesWhatTheCopyShowsInItsPlace) {
  const HistoryEvent allocated = event(HistoryAction::kAllocate, 11, 2);
  EXPECT_EQ(shown(copied("FFLF"), {allocated}, true), "10+4#5:F1L2F1");
  EXPECT_EQ(shown(copied("FLLF"), {allocated}, true), "10+4#5:F1L2F1");
  Snapshot reaching = copied("LFF");  // a block of two pages at 10
  reaching.blocks[0].size = Bytes{2 * kPage};
  reaching.segments[0].size = Bytes{4 * kPage};
  reaching.blocks[1].address = Address{12 * kPage};
  reaching.blocks[2].address = Address{13 * kPage};
  EXPECT_EQ(shown(reaching, {allocated}, true), "10+4#5:F1L2F1");
  EXPECT_EQ(shown(copied("LLLL"), {event(HistoryAction::kAllocate, 10, 4)}, true), "10+4#5:L4");
}

TEST(NotedMemory, ASegmentThatPassesKeepsItsOrdinal) {
  EXPECT_EQ(shown(copied("FFFF"), {event(HistoryAction::kSegmentAllocate, 10, 4, 2)}, true),
            "10+4#5:F4");
  EXPECT_EQ(shown(copied("FFFF"),
                  {event(HistoryAction::kSegmentFree, 10, 4, 1),
                   event(HistoryAction::kSegmentAllocate, 10, 4, 2)},
                  true),
            "10+4#?:F4");
}

}  // namespace
}  // namespace ashlar::cache
