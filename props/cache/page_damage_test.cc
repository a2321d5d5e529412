// What validate() reports of pages and pins: one damage for each invariant of page_table.h, page_supply.h and pins.h that
// it checks. Each is mended again, and the allocator is sound.
//
// Not proved: that there is no other invariant. Of the rest of a heap: cache_damage_test.cc.
#include "props/adapters/cache_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

constexpr const char* kPinIsBroken = "pins(1) C21: a pinned page is not at home, or not counted";

/// A segment of pages: 6 MiB live and pinned, then 4 MiB unmapped, whose pages went to the driver, then 4 MiB live.
class PageDamageTest : public LivenessTest {
 protected:
  void SetUp() override {
    make(64_MiB, "backing:pages");
    pinned_ = allocate(6_MiB, own_);
    const Address between = allocate(4_MiB, own_);
    allocate(4_MiB, own_);
    EXPECT_TRUE(allocator_->free(between).is_ok());
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    pin_ = allocator_->pin(pinned_).value();
    EXPECT_EQ(found(), "");
  }
  void TearDown() override {
    EXPECT_EQ(found(), "");
    EXPECT_TRUE(allocator_->unpin(pin_).is_ok());
  }
  std::string found() {
    const char* const broken = allocator_->validate();
    return broken == nullptr ? "" : broken;
  }
  PageTable& table() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    const StreamHeap& heap = *CachePeer::device(*allocator_, 0).heaps().find(own_.id);
    const block::BlockPool& in = heap.pool(PoolId::kLarge);
    return record_of(in.view(in.first_segment()))->page_table;
  }
  /// What is reported while the field has another value.
  template <class T>
  std::string found_with(T& field, T wrong) {
    const T was = std::exchange(field, wrong);
    const std::string broken = found();
    field = was;
    return broken;
  }

  Address pinned_;
  PinnedRange pin_;
};

TEST_F(PageDamageTest, ABlockNeedsAPageAtHomeMappedAndWithAccessUnderEachOfItsBytes) {
  constexpr const char* kLacks = "page table(1): a block lacks a page";
  for (const std::uint64_t page : {0u, 2u, 5u, 6u}) {  // 3 and 4 are unmapped
    SCOPED_TRACE(page);
    EXPECT_EQ(found_with(table()[page].is_mapped, false), kLacks);
    EXPECT_EQ(found_with(table()[page].has_access, false), kLacks);
    // Of a pinned page the pins say it first.
    const char* const homeless = page > 2 ? kLacks : kPinIsBroken;
    EXPECT_EQ(found_with<PageSlot*>(table()[page].page->home, nullptr), homeless);
    EXPECT_EQ(found_with<PhysicalPage*>(table()[page].page, nullptr), homeless);
  }
}

TEST_F(PageDamageTest, AnUnmappedSlotIsNoPagesHome) {
  constexpr const char* kAtHome = "page table(2): a page is at home under an unmapped block";
  for (const std::uint64_t page : {3u, 4u}) {
    SCOPED_TRACE(page);
    PhysicalPage stray;
    stray.home = &table()[page];
    EXPECT_EQ(found_with<PhysicalPage*>(table()[page].page, &stray), kAtHome);
    stray.home = nullptr;
    EXPECT_EQ(found_with<PhysicalPage*>(table()[page].page, &stray), "");
  }
}

TEST_F(PageDamageTest, EachPageOfAPinnedRangeIsCounted) {
  for (const std::uint64_t page : {0u, 1u, 2u}) {
    SCOPED_TRACE(page);
    table().pins_of(page).store(0);
    EXPECT_EQ(found(), kPinIsBroken);
    table().pins_of(page).store(1);
  }
}

}  // namespace
}  // namespace ashlar::cache
