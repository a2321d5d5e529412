// The page map alone, on segments where the other suites put none: gigabytes apart, over the edge
// of a leaf, past 57 bits; and its readers while another thread enters segments and takes them out.
//
// Imitates: an allocator with more memory than one leaf of the map covers; frees while other
// streams grow, adopt and give back, on a driver whose segments share pages. Does not prove: that
// every interleaving was seen.
#include <atomic>
#include <deque>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include <ashlar/cache/page_map.h>

namespace ashlar {
namespace {

/// Stands for a heap: the map never looks into one.
cache::StreamHeap* heap_at(std::uintptr_t number) {
  return reinterpret_cast<cache::StreamHeap*>(number << 12);
}

struct Entered : cache::DeviceSegment {
  Entered(cache::PageMap& pages, std::uintptr_t heap_number, Address at, Bytes bytes) {
    base = at;
    size = bytes;
    heap.store(heap_at(heap_number));
    EXPECT_TRUE(pages.reserve(at, bytes, owner()).is_ok());
    pages.insert(*this);
  }
  Address last() const { return base + (size - 1_B); }
};

constexpr Address kBase{std::uint64_t{1} << 45};

TEST(PageMapTest, SegmentsFarApartAreAllFoundWhicheverWasEnteredLast) {
  cache::PageMap pages;
  const Entered near(pages, 1, kBase, 2_MiB);
  const Entered next_leaf(pages, 2, kBase + 8_GiB, 2_MiB);
  const Entered far(pages, 3, Address{(2_MiB).count()}, 20_MiB);
  const Entered highest(pages, 4, Address{(std::uint64_t{1} << 57) - (2_MiB).count()}, 2_MiB);
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
  cache::PageMap pages;
  const Entered segment(pages, 1, kBase + 8_GiB - 6_MiB, 20_MiB);
  for (Address at = segment.base; at <= segment.last(); at = at + 2_MiB) {
    EXPECT_TRUE(pages.find(at).leads_to(segment.owner()));
  }
  EXPECT_FALSE(pages.find(segment.base - 1_B).leads_to(segment.owner()));
  EXPECT_FALSE(pages.find(segment.base + segment.size).leads_to(segment.owner()));
}

/// Two segments of one page come, go and come back in every order: the page leads to exactly those
/// that are there.
TEST(PageMapTest, APageOfTwoSegmentsLeadsToWhicheverAreThere) {
  for (const bool low_enters_first : {true, false}) {
    for (const bool low_leaves_first : {true, false}) {
      cache::PageMap pages;
      std::optional<Entered> low, high;
      const auto enter_low = [&] { low.emplace(pages, 1, kBase, 3_MiB); };
      const auto enter_high = [&] { high.emplace(pages, 2, kBase + 3_MiB, 2_MiB); };
      const auto expect = [&](bool has_low, bool has_high) {
        for (const Address at : {kBase + 2_MiB, kBase + 4_MiB - 1_B}) {
          EXPECT_EQ(pages.find(at).first,
                    has_low ? cache::Owner(heap_at(1), PoolId::kLarge) : cache::Owner{});
          EXPECT_EQ(pages.find(at).second,
                    has_high ? cache::Owner(heap_at(2), PoolId::kLarge) : cache::Owner{});
        }
        EXPECT_EQ(pages.find(kBase).leads_to(cache::Owner(heap_at(1), PoolId::kLarge)), has_low);
        EXPECT_EQ(pages.find(kBase + 4_MiB).leads_to(cache::Owner(heap_at(2), PoolId::kLarge)),
                  has_high);
      };
      low_enters_first ? enter_low() : enter_high();
      expect(low_enters_first, !low_enters_first);
      low_enters_first ? enter_high() : enter_low();
      expect(true, true);
      pages.erase(low_leaves_first ? *low : *high);
      expect(!low_leaves_first, low_leaves_first);
      pages.erase(low_leaves_first ? *high : *low);
      expect(false, false);
      enter_high();
      expect(false, true);
      enter_low();
      expect(true, true);
    }
  }
}

/// Two leaves that share a place in the table of recent leaves.
TEST(PageMapTest, LeavesAtTheSamePlaceAtHandAreNotMistaken) {
  cache::PageMap pages;
  const Entered near(pages, 1, kBase, 2_MiB);
  const Entered far(pages, 2, kBase + 256_GiB, 2_MiB);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(pages.find(near.base).leads_to(near.owner()));
    EXPECT_TRUE(pages.find(far.base).leads_to(far.owner()));
    EXPECT_FALSE(pages.find(near.base).leads_to(far.owner()));
    pages.insert(near);
  }
}

/// Owners without a number (all are given), on pages whose owner before and after has one; on whole
/// pages and on shared ones.
TEST(PageMapTest, OwnersWithoutANumberAreFoundLikeTheOthers) {
  cache::PageMap pages;
  std::deque<Entered> segments;
  // every third page is shared
  const auto at = [](std::uint64_t i) { return kBase + Bytes{i * 3 * (1_MiB).count()}; };
  for (std::uint64_t i = 0; i < 600; ++i) segments.emplace_back(pages, i + 1, at(i), 3_MiB);
  segments.emplace_back(pages, 601, at(600), 510_MiB);  // its pages' words are in five blocks of 64
  const auto expect_all = [&] {
    for (const Entered& segment : segments) {
      for (const Address address : {segment.base, segment.base + 1_MiB, segment.last()}) {
        ASSERT_TRUE(pages.find(address).leads_to(segment.owner())) << address.value();
      }
    }
  };
  expect_all();
  // the last segments go to the first owners, and the first segments to the last
  for (std::size_t i = 0; i < segments.size(); ++i) {
    pages.erase(segments[i]);
    ASSERT_FALSE(pages.find(segments[i].base).leads_to(segments[i].owner()));
    segments[i].heap.store(heap_at(segments.size() - i));
    ASSERT_TRUE(pages.reserve(segments[i].base, segments[i].size, segments[i].owner()).is_ok());
    pages.insert(segments[i]);
  }
  expect_all();
  for (const Entered& segment : segments) pages.erase(segment);
  for (std::uint64_t i = 0; i < 1'155; ++i) {
    const cache::PageMap::Found found = pages.find(kBase + Bytes{i * (2_MiB).count()});
    ASSERT_TRUE(found.first.is_nobody() && found.second.is_nobody());
  }
}

/// A segment with a live block; a thread enters one after the other, each on the page of the one
/// before.
struct Live {
  static constexpr Bytes kSize = 3_MiB;  // every third page is shared
  static constexpr std::uint64_t kNumbers = 254;

  std::uint64_t nth;
  Address base() const { return kBase + Bytes{nth * kSize.count()}; }
  /// Two owners with a number alternate with two without, so that both kinds come first in a pair.
  std::uintptr_t heap_number() const { return nth / 2 % 2 == 0 ? 1 + nth % kNumbers : 1'000 + nth; }
  bool is_found(const cache::PageMap& pages) const {
    const cache::Owner owner(heap_at(heap_number()), PoolId::kLarge);
    return pages.find(base()).leads_to(owner) && pages.find(base() + (kSize - 1_B)).leads_to(owner);
  }
};

TEST(PageMapTest, ALiveBlocksOwnerIsFoundWhileTheRestOfItsPagesChanges) {
  constexpr std::uint64_t kLives = 20'000;
  cache::PageMap pages;
  for (std::uint64_t n = 1; n <= Live::kNumbers; ++n)
    Entered(pages, n, Address{n * (2_MiB).count()}, 2_MiB);
  std::atomic<std::uint64_t> lives{0};  // the last of so many is live
  std::atomic<std::uint64_t> lost{0};
  const auto look = [&] {
    for (std::uint64_t n = 0; n < kLives;) {
      n = lives.load();
      // A segment that is not found may have been taken out meanwhile.
      if (n > 0 && !Live{n - 1}.is_found(pages) && lives.load() == n) ++lost;
      pages.find(Live{n}.base());  // handed out to nobody yet: any answer will do
    }
  };
  std::thread readers[] = {std::thread(look), std::thread(look)};
  std::optional<Entered> turns[2];
  for (std::uint64_t n = 0; n < kLives; ++n) {
    std::optional<Entered>& segment = turns[n % 2];
    segment.emplace(pages, Live{n + 2}.heap_number(), Live{n}.base(), Live::kSize);
    // adopted, by an owner of the other kind
    segment.emplace(pages, Live{n}.heap_number(), Live{n}.base(), Live::kSize);
    lives.store(n + 1);
    if (n > 0) pages.erase(*turns[(n + 1) % 2]);
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(lost.load(), 0u);
}

TEST(PageMapTest, AddressesBeyondTheMapAreRefusedAndNobodys) {
  cache::PageMap pages;
  const Entered segment(pages, 1, kBase, 2_MiB);
  for (const std::uint64_t base :
       {std::uint64_t{1} << 57, (std::uint64_t{1} << 57) - 1, ~std::uint64_t{0}}) {
    EXPECT_EQ(pages.reserve(Address{base}, 2_MiB, segment.owner()).code(), Code::kUnsupported);
  }
  EXPECT_TRUE(pages.find(Address{kBase.value() | std::uint64_t{1} << 57}).first.is_nobody());
}

}  // namespace
}  // namespace ashlar
