// The page map alone, on segments where the other suites put none: gigabytes apart, over the edge of a leaf, past 57 bits.
//
// Imitates: an allocator with more memory than one leaf of the map covers. Does not prove: anything about readers that run
// while a segment is entered (threads_test.cc).
#include <gtest/gtest.h>

#include <ashlar/cache/page_map.h>

namespace ashlar {
namespace {

/// The map never looks into a heap.
StreamHeap* heap_at(std::uintptr_t number) { return reinterpret_cast<StreamHeap*>(number << 12); }

struct Entered : SegmentRecord {
  Entered(PageMap& pages, std::uintptr_t heap_number, Address at, Bytes bytes) {
    base = at;
    size = bytes;
    heap.store(heap_at(heap_number));
    EXPECT_TRUE(pages.reserve(at, bytes));
    pages.insert(*this);
  }
  Address last() const { return base + (size - 1_B); }
};

constexpr Address kBase{std::uint64_t{1} << 45};

TEST(PageMapTest, SegmentsFarApartAreAllFoundWhicheverWasEnteredLast) {
  PageMap pages;
  const Entered near(pages, 1, kBase, 2_MiB);
  const Entered next_leaf(pages, 2, kBase + 8_GiB, 2_MiB);
  const Entered far(pages, 3, Address{2_MiB .count()}, 20_MiB);
  const Entered highest(pages, 4, Address{(std::uint64_t{1} << 57) - 2_MiB .count()}, 2_MiB);
  for (const Entered* segment : {&near, &next_leaf, &far, &highest}) {
    EXPECT_TRUE(pages.find(segment->base).leads_to(segment->owner()));
    EXPECT_TRUE(pages.find(segment->last()).leads_to(segment->owner()));
  }
  EXPECT_TRUE(pages.find(kBase + 16_GiB).first.is_nobody());
  pages.erase(near);
  EXPECT_TRUE(pages.find(near.base).first.is_nobody());
  EXPECT_TRUE(pages.find(far.base).leads_to(far.owner()));
}

TEST(PageMapTest, ASegmentOverTheEdgeOfALeafIsFoundOnEveryPage) {
  PageMap pages;
  const Entered segment(pages, 1, kBase + 8_GiB - 6_MiB, 20_MiB);
  for (Address at = segment.base; at <= segment.last(); at = at + 2_MiB) {
    EXPECT_TRUE(pages.find(at).leads_to(segment.owner()));
  }
  EXPECT_FALSE(pages.find(segment.base - 1_B).leads_to(segment.owner()));
  EXPECT_FALSE(pages.find(segment.base + segment.size).leads_to(segment.owner()));
}

TEST(PageMapTest, APageOfTwoSegmentsLeadsToBoth) {
  PageMap pages;
  const Entered low(pages, 1, kBase, 3_MiB);
  const Entered high(pages, 2, kBase + 3_MiB, 2_MiB);
  EXPECT_TRUE(pages.find(kBase + 2_MiB).leads_to(low.owner()));
  EXPECT_TRUE(pages.find(kBase + 2_MiB).leads_to(high.owner()));
}

TEST(PageMapTest, AddressesBeyondTheMapAreRefusedAndNobodys) {
  PageMap pages;
  const Entered segment(pages, 1, kBase, 2_MiB);
  EXPECT_FALSE(pages.reserve(Address{std::uint64_t{1} << 57}, 2_MiB));
  EXPECT_FALSE(pages.reserve(Address{(std::uint64_t{1} << 57) - 1}, 2_MiB));
  EXPECT_FALSE(pages.reserve(Address{~std::uint64_t{0}}, 2_MiB));
  EXPECT_TRUE(pages.find(Address{kBase.value() | std::uint64_t{1} << 57}).first.is_nobody());
}

}  // namespace
}  // namespace ashlar
