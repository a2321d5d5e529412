// The page map against a list of segments: every address near an edge leads to the segments that are
// on its page, and to no other; and what the map asks of its host.
//
// Imitates: segments of any length at any address, side by side and over the edges of pages and
// leaves, that come, go and change hands. Does not prove: what readers see meanwhile
// (page_map_test.cc).
#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>

#include <ashlar/cache/page_map.h>

#include "props/host_memory/counting_host.h"

namespace ashlar::cache {
namespace {

constexpr std::uint64_t kPage = std::uint64_t{1} << 21;
constexpr std::uint64_t kLeaf = kPage << 12;

/// Stands for a heap: the map never looks into one.
StreamHeap* numbered_heap(std::uint64_t number) {
  return reinterpret_cast<StreamHeap*>(static_cast<std::uintptr_t>(number << 12));
}

void describe(DeviceSegment* segment, std::uint64_t base, std::uint64_t size, std::uint64_t heap,
              PoolId pool) {
  segment->base = Address{base};
  segment->size = Bytes{size};
  segment->heap = numbered_heap(heap);
  segment->pool = pool;
}

class Pages {
 public:
  bool is_free(std::uint64_t base, std::uint64_t size) const {
    for (const DeviceSegment& s : segments)
      if (s.base.value() < base + size && base < s.base.value() + s.size.count()) return false;
    return true;
  }
  void enter(std::uint64_t base, std::uint64_t size, std::uint64_t heap, PoolId pool) {
    DeviceSegment& segment = segments.emplace_back();
    describe(&segment, base, size, heap, pool);
    ASSERT_TRUE(map.reserve(segment.base, segment.size, segment.owner()).is_ok());
    map.insert(segment);
  }
  void leave(std::list<DeviceSegment>::iterator segment) {
    map.erase(*segment);
    segments.erase(segment);
  }
  /// The page's first owner is the one of its first byte, the second begins inside it.
  void expect_at(std::uint64_t address) const {
    const std::uint64_t page = address / kPage * kPage;
    Owner first, second;
    for (const DeviceSegment& s : segments) {
      const std::uint64_t base = s.base.value(), last = base + (s.size.count() - 1);
      if (base <= page && page <= last) first = s.owner();
      if (page < base && base - page < kPage) second = s.owner();
    }
    const PageMap::Found found = map.find(Address{address});
    ASSERT_EQ(found.first, first) << std::hex << address;
    ASSERT_EQ(found.second, second) << std::hex << address;
    ASSERT_EQ(found.leads_to(Owner(numbered_heap(9999), PoolId::kSmall)), false);
    if (!first.is_nobody()) {
      ASSERT_TRUE(found.leads_to(first));
    }
    if (!second.is_nobody()) {
      ASSERT_TRUE(found.leads_to(second));
    }
  }
  /// All pages of the segments, and those around them.
  void expect_near(const DeviceSegment& s) const {
    const std::uint64_t base = s.base.value(), end = base + s.size.count();
    for (std::uint64_t at = base - kPage; at < end + 2 * kPage; at += kPage) expect_at(at);
    for (const std::uint64_t at : {base - 1, base, base + 1, end - 1, end, end + 1}) expect_at(at);
  }

  /// Page map(4).
  void expect_count() const {
    std::uint64_t pages = 0;
    for (const DeviceSegment& s : segments) {
      const std::uint64_t base = s.base.value(), last = base + (s.size.count() - 1);
      pages += last / kPage - base / kPage + 1;
      ASSERT_EQ(PageMap::pages_of(s.base, s.size), last / kPage - base / kPage + 1);
    }
    ASSERT_EQ(map.owner_count(), pages);
  }

  PageMap map;
  std::list<DeviceSegment> segments;
};

TEST(PageMapModelTest, AnySegmentsAnywhereAreFoundOnTheirPagesAndNowhereElse) {
  const std::uint64_t places[] = {kLeaf, 3 * kLeaf, std::uint64_t{1} << 41,
                                  (std::uint64_t{1} << 49) - 4 * kPage,
                                  (std::uint64_t{1} << 57) - 40 * kPage};
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    Pages pages;
    const std::uint64_t heaps = seed % 3 == 0 ? 400 : 5;  // more than have numbers
    for (int step = 0; step < 300 && !testing::Test::HasFatalFailure(); ++step) {
      const std::uint64_t heap = 1 + random() % heaps;
      const auto pool = static_cast<PoolId>(random() % 2);
      if (random() % 3 != 0 || pages.segments.empty()) {
        std::uint64_t base = places[random() % 5] + random() % 16 * kPage - 8 * kPage;
        std::uint64_t size = kPage + random() % 4 * kPage;
        switch (random() % 4) {  // the edges of pages, a byte beside them, anywhere
          case 0: break;
          case 1: base += random() % 3 - 1; break;
          case 2: size += random() % 2; break;
          default: base += random() % kPage; size += random() % kPage;
        }
        if (!pages.is_free(base, size)) continue;
        pages.enter(base, size, heap, pool);
        pages.expect_near(pages.segments.back());
      } else {
        auto it = pages.segments.begin();
        std::advance(it, random() % pages.segments.size());
        if (random() % 2 == 0) {  // it is adopted
          it->heap = numbered_heap(heap);
          it->pool = pool;
          ASSERT_TRUE(pages.map.reserve(it->base, it->size, it->owner()).is_ok());
          pages.map.insert(*it);
          pages.expect_near(*it);
        } else {
          DeviceSegment gone;
          describe(&gone, it->base.value(), it->size.count(), 1, pool);
          pages.leave(it);
          pages.expect_near(gone);
        }
      }
    }
    for (const DeviceSegment& segment : pages.segments) pages.expect_near(segment);
    pages.expect_count();
    while (!pages.segments.empty() && !testing::Test::HasFatalFailure()) {
      pages.leave(pages.segments.begin());
      if (pages.segments.size() % 8 == 0) pages.expect_count();
    }
  }
}

TEST(PageMapModelTest, ASegmentOfOneByteOverTheEdgeOfALeafOrOfTheMapIsSeen) {
  Pages pages;
  pages.enter(5 * kLeaf - kPage, kPage + 1, 1, PoolId::kLarge);
  pages.expect_near(pages.segments.back());
  pages.enter(9 * kLeaf - kPage, kPage, 2, PoolId::kSmall);
  pages.expect_near(pages.segments.back());
  const std::uint64_t end = std::uint64_t{1} << 57;
  const Owner owner(numbered_heap(1), PoolId::kLarge);
  for (const std::uint64_t over : {1u, 2u, 4096u})
    EXPECT_EQ(pages.map.reserve(Address{end - kPage}, Bytes{kPage + over}, owner).code(),
              Code::kUnsupported);
  EXPECT_EQ(pages.map.reserve(Address{~std::uint64_t{0} - kPage}, Bytes{kPage + 2}, owner).code(),
            Code::kUnsupported)
      << "it wraps";
  EXPECT_TRUE(pages.map.reserve(Address{end - kPage}, Bytes{kPage}, owner).is_ok());
  for (const std::uint64_t at : {end, end + kPage, ~std::uint64_t{0}})
    EXPECT_TRUE(pages.map.find(Address{at}).first.is_nobody());
}

TEST(PageMapModelTest, AMapByBaseLeadsFromTheBaseOfEachShortSegmentToItsOwner) {
  std::mt19937_64 random(3);
  PageMap map(true);
  std::map<std::uint64_t, DeviceSegment> segments;
  constexpr std::uint64_t kAlignment = PageMap::kBaseAlignment.count();
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t at = 5 * kLeaf - kPage + random() % 64 * kAlignment * (1 + random() % 200);
    const auto found = segments.find(at);
    if (found == segments.end()) {
      DeviceSegment& segment = segments[at];
      describe(&segment, at, 1 + random() % (2 * kPage), 1 + random() % 400,
               static_cast<PoolId>(random() % 2));
      ASSERT_TRUE(map.reserve(segment.base, segment.size, segment.owner()).is_ok());
      map.insert(segment);
    } else if (random() % 2 == 0) {
      found->second.heap = numbered_heap(1 + random() % 400);  // it is adopted
      ASSERT_TRUE(
          map.reserve(found->second.base, found->second.size, found->second.owner()).is_ok());
      map.insert(found->second);
    } else {
      map.erase(found->second);
      segments.erase(found);
      ASSERT_TRUE(map.find(Address{at}).first.is_nobody());
    }
  }
  for (const auto& [at, segment] : segments) {
    ASSERT_EQ(map.find(Address{at}).first, segment.owner());
    ASSERT_TRUE(map.find(Address{at}).second.is_nobody());
    ASSERT_EQ(map.owners_of(segment.base, segment.size), 1u);
  }
  ASSERT_EQ(map.owner_count(), segments.size());
  ASSERT_TRUE(map.find(Address{17 * kLeaf}).first.is_nobody());
  EXPECT_EQ(map.reserve(Address{std::uint64_t{1} << 57}, Bytes{1}, {}).code(), Code::kUnsupported);
}

TEST(PageMapModelTest, TheHostIsAskedForAsFewNodesWordsAndPairsAsAreNeeded) {
  const props::HostHolding before;
  {
    const auto map = std::make_unique<PageMap>();
    std::deque<DeviceSegment> segments;
    const auto made_for = [&](std::uint64_t base, std::uint64_t size, std::uint64_t heap) {
      DeviceSegment& segment = segments.emplace_back();
      describe(&segment, base, size, heap, PoolId::kLarge);
      const std::uint64_t made = props::counted.made;
      EXPECT_TRUE(map->reserve(segment.base, segment.size, segment.owner()).is_ok());
      map->insert(segment);
      return props::counted.made - made;
    };
    EXPECT_EQ(made_for(8 * kLeaf, kPage, 1), 3u) << "a node of each level";
    for (std::uint64_t i = 1; i < 600; ++i)
      ASSERT_EQ(made_for(8 * kLeaf + i * kPage, kPage, 1), 0u) << "one owner has one number";
    // One that begins inside a page: its words and its pair.
    EXPECT_EQ(made_for(8 * kLeaf + 700 * kPage + 512, 3 * kPage, 1), 2u);
    EXPECT_EQ(made_for(8 * kLeaf + 2000 * kPage, 512 * kPage, 2), 0u) << "whole pages need no pair";
    EXPECT_EQ(made_for(9 * kLeaf, kLeaf, 3), 1u) << "a leaf for 8 GiB";
    EXPECT_EQ(made_for(10 * kLeaf, 3 * kLeaf, 3), 3u);
    for (std::uint64_t heap = 4; heap <= 254; ++heap)
      ASSERT_EQ(made_for(14 * kLeaf + heap * kPage, kPage, heap), heap == 4 ? 1u : 0u);
    // From here on no number is left: a block of words for 64 pages.
    EXPECT_EQ(made_for(16 * kLeaf, 128 * kPage, 255), 3u);
    EXPECT_EQ(made_for(17 * kLeaf, 640 * kPage, 256), 11u);
    EXPECT_EQ(made_for(17 * kLeaf + 640 * kPage, 640 * kPage, 254), 0u) << "the last with a number";
  }
  EXPECT_EQ(props::HostHolding(), before) << "every node, word and pair is given back";
}

TEST(PageMapModelTest, AHostWithoutMemoryRefusesTheSegmentAndAsksNoMoreWhenItHasSome) {
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4096}}) {
    PageMap map;
    DeviceSegment segment;
    describe(&segment, 4 * kLeaf - 2 * kPage + offset, 4 * kPage, 1, PoolId::kLarge);
    props::counted.is_empty = true;
    EXPECT_EQ(map.reserve(segment.base, segment.size, segment.owner()).code(),
              Code::kHostOutOfMemory);
    props::counted.is_empty = false;
    EXPECT_TRUE(map.reserve(segment.base, segment.size, segment.owner()).is_ok());
    props::counted.is_empty = true;
    EXPECT_TRUE(map.reserve(segment.base, segment.size, segment.owner()).is_ok());
    map.insert(segment);
    props::counted.is_empty = false;
    EXPECT_EQ(map.find(segment.base + 3_MiB).first, segment.owner());
  }
}

}  // namespace
}  // namespace ashlar::cache
