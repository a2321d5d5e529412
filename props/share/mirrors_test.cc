// Which mirror a page of another process is opened in, and what that costs (row DEV-21).
//
// Imitates: an exporter whose segment changes while an opener keeps older pages of it: headers are put together here from pages of
// a simulated device, so that they say what an allocator's would say only after a long history. Does not prove: what a driver
// does with the addresses.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::CallKind;
using device::ShareKind;
using share::OpenedMemory;
using share::SharedPart;
using share::ShareHeader;

class MirrorsTest : public ::testing::Test {
 protected:
  MirrorsTest() : from_(ShareProcess::only(ShareKind::kFabric)), opener_(to_.devices()) {}
  ~MirrorsTest() override {
    for (const auto& [device, page] : pages_)
      EXPECT_TRUE(from_.device(device).page_release(page).is_ok());
    EXPECT_TRUE(from_.gpu().leak_check());
    EXPECT_TRUE(to_.gpu().leak_check());
    EXPECT_TRUE(to_.gpu().take_faults().empty());
  }

  /// A new page of the exporter's, of another generation than those before.
  SharedPart page(Bytes size = 2_MiB, int device = 0) {
    device::Sharing& shares = *from_.device(device).sharing();
    const PageHandle made = shares.page_create(size, ShareKind::kFabric).value();
    pages_.emplace_back(device, made);
    return {size, ++generation_, shares.page_export(made).value()};
  }
  /// An allocation that is those parts, which begin at `offset` of a segment of 16 MiB.
  ShareHeader header(Bytes offset, std::vector<SharedPart> parts) {
    ShareHeader header;
    header.exporter = 7;
    header.uuid = from_.device().sharing()->uuid().value();
    header.segment = Address{std::uint64_t{1} << 40};
    header.segment_size = 16_MiB;
    header.parts_offset = offset;
    for (const SharedPart& part : parts) header.size += part.size;
    header.parts = std::move(parts);
    return header;
  }
  OpenedMemory open(const ShareHeader& header) {
    return opener_.open(share::write_header(header)).value();
  }
  /// Where the mirror begins that the header was opened in.
  static Address mirror_of(const OpenedMemory& opened, const ShareHeader& header) {
    return opened.address() - header.offset - header.parts_offset;
  }
  spec::Ledger held() { return to_.gpu().ledger(); }
  /// How many device calls opening it makes; it is closed again.
  std::uint64_t calls_to_open(const ShareHeader& header) {
    const std::uint64_t before = to_.gpu().account().calls();
    const OpenedMemory opened = open(header);
    return to_.gpu().account().calls() - before;
  }

  const DescriptorBalance balance_;
  ShareProcess from_;
  ShareProcess to_;
  share::MemoryOpener opener_;
  std::vector<std::pair<int, PageHandle>> pages_;
  std::uint64_t generation_ = 0;
};

TEST_F(MirrorsTest, PagesOfOneSegmentLieInOneMirror) {
  const ShareHeader low = header(2_MiB, {page()});
  const ShareHeader high = header(6_MiB, {page()});
  const OpenedMemory first = open(low);
  const OpenedMemory second = open(high);
  EXPECT_EQ(second.address() - first.address(), 4_MiB) << "as they do in the exporter";
  EXPECT_EQ(held().reservations.count, 1u);
}

TEST_F(MirrorsTest, WhatIsAnotherSegmentHasAnotherMirror) {
  using Change = std::function<void(ShareHeader&)>;
  const Change changes[] = {
      [](ShareHeader& h) { h.exporter = 8; },
      [](ShareHeader& h) { h.segment = h.segment + 16_MiB; },
      [](ShareHeader& h) { h.segment_size = 32_MiB; },
      [&](ShareHeader& h) {
        h.uuid = from_.device(1).sharing()->uuid().value();
        h.parts = {page(2_MiB, 1)};
      },
  };
  const OpenedMemory first = open(header(2_MiB, {page()}));
  for (const Change& change : changes) {
    ShareHeader other = header(4_MiB, {page()});  // nothing is in its way in the first mirror
    change(other);
    const OpenedMemory second = open(other);
    EXPECT_EQ(held().reservations.count, 2u) << &change - changes;
  }
}

TEST_F(MirrorsTest, AnEarlierMirrorThatHasMoreIsTakenBeforeALaterOne) {
  const SharedPart older = page();
  const SharedPart newer = page();
  const SharedPart b = page();
  const SharedPart c = page();
  const ShareHeader all = header(Bytes{}, {older, b, c});
  const ShareHeader moved = header(Bytes{}, {newer, b});
  const OpenedMemory first = open(all);
  const OpenedMemory second = open(moved);
  EXPECT_NE(mirror_of(second, moved), mirror_of(first, all)) << "the older page is in the way";
  const auto mapped = held().mappings.count;
  const ShareHeader last = header(4_MiB, {c});
  EXPECT_EQ(mirror_of(open(last), last), mirror_of(first, all)) << "the other has nothing of it";
  const ShareHeader both = header(2_MiB, {b, c});
  const OpenedMemory third = open(both);
  EXPECT_EQ(mirror_of(third, both), mirror_of(first, all)) << "the other has one of two";
  EXPECT_EQ(held().mappings.count, mapped) << "what is open is not opened twice";
}

TEST_F(MirrorsTest, WhatIsInTheWayIsSeenBehindAPlaceThatIsFree) {
  const OpenedMemory older = open(header(2_MiB, {page()}));
  const ShareHeader both = header(Bytes{}, {page(), page()});
  const OpenedMemory newer = open(both);
  EXPECT_NE(mirror_of(newer, both), older.address() - 2_MiB);
  EXPECT_EQ(held().mappings.bytes, 6_MiB) << "each has pages of its own";
}

TEST_F(MirrorsTest, APageIsKnownByItsPlaceAndSizeToo) {
  const SharedPart wide = page(4_MiB);
  SharedPart behind = page(4_MiB);
  SharedPart narrow = page(2_MiB);
  behind.generation = narrow.generation = wide.generation;
  const ShareHeader first = header(Bytes{}, {wide});
  const OpenedMemory opened = open(first);
  for (const auto& [name, other] : {std::pair("it overlaps", header(2_MiB, {behind})),
                                    std::pair("it is smaller", header(Bytes{}, {narrow}))}) {
    const OpenedMemory second = open(other);
    EXPECT_NE(mirror_of(second, other), mirror_of(opened, first)) << name;
    EXPECT_EQ(held().mappings.bytes, 4_MiB + other.size) << name;
  }
}

TEST_F(MirrorsTest, APageThatStayedMappedIsUnmappedBeforeTheNextOpening) {
  const OpenedMemory keeps = open(header(Bytes{}, {page()}));
  const ShareHeader refused = header(6_MiB, {page()});
  to_.gpu().fail(CallKind::kPageUnmap, 1, spec::FailMode::kOnce);
  const Address there = open(refused).address();  // and closes it
  EXPECT_EQ(held().mappings.count, 2u) << "the driver refused";
  const OpenedMemory again = open(refused);
  EXPECT_EQ(held().mappings.count, 2u) << "the driver is asked again";
  EXPECT_EQ(again.address(), there) << "so the place is free";
}

TEST_F(MirrorsTest, APageThatIsNeitherReachedNorUnmappedIsUnmappedBeforeTheNextOpening) {
  const OpenedMemory keeps = open(header(Bytes{}, {page()}));
  const ShareHeader refused = header(6_MiB, {page()});
  for (const CallKind kind : {CallKind::kPageAccess, CallKind::kPageUnmap})
    to_.gpu().fail(kind, 1, spec::FailMode::kOnce);
  EXPECT_FALSE(opener_.open(share::write_header(refused)).is_ok());
  EXPECT_EQ(held().mappings.count, 2u) << "the driver refused";
  const OpenedMemory again = open(refused);
  EXPECT_EQ(held().mappings.count, 2u) << "the driver is asked again";
}

TEST_F(MirrorsTest, AnOpeningCostsWhatItsDeclarationSays) {
  constexpr std::uint64_t kModes = 2;  // the thread's capture mode, there and back
  const ShareHeader kept = header(Bytes{}, {page()});
  const ShareHeader beside = header(2_MiB, {page(), page()});
  ShareHeader elsewhere = header(Bytes{}, {page()});
  elsewhere.segment = elsewhere.segment + 16_MiB;
  const OpenedMemory first = open(kept);
  const auto expect_costs = [&](const char* when) {
    EXPECT_EQ(calls_to_open(kept), kModes) << when << ": what is open";
    EXPECT_EQ(calls_to_open(beside), kModes + 2 * 4) << when << ": two pages";
    EXPECT_EQ(calls_to_open(elsewhere), kModes + 4 + 1) << when << ": a page and a mirror";
  };
  expect_costs("at first");
  expect_costs("when others have been closed");
  to_.gpu().fail(CallKind::kPageUnmap, 1, spec::FailMode::kOnce);
  static_cast<void>(open(beside));  // and closes it: one of its pages stays
  static_cast<void>(open(kept));    // and asks for that page again
  EXPECT_EQ(held().mappings.count, 1u);
  expect_costs("when none is refused any more");
}

}  // namespace
}  // namespace ashlar::props
