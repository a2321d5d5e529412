// Imitates: an allocator that leaves a page mapped at the addresses it had, and hands it out at one of them
// after another. Does not prove: that a real driver keeps the bytes of two addresses equal (CUDA promises it
// for grids that are ordered one after the other).
#include "props/gpu/fixture.h"

namespace ashlar::spec {
namespace {

/// Two streams, and pages of 2 MiB that are mapped at two places of one reservation.
struct SimAliases : SimTest {
  static constexpr Bytes kPage = 2_MiB;
  explicit SimAliases(const SimGpuOptions& options = {}) : SimTest(options) {}

  PageHandle page() { return gpu.page_create(kPage).value(); }
  Address map(Address at, PageHandle page) {
    EXPECT_TRUE(gpu.page_map(at, kPage, page).is_ok());
    EXPECT_TRUE(gpu.page_access(at, kPage).is_ok());
    return at;
  }
  void allocate(AllocationTag tag, const Stream& stream, Address at, Bytes size = kPage) {
    sim.on_allocate(tag, at, size, stream);
  }
  /// Allocates, uses and frees.
  void own(AllocationTag tag, const Stream& stream, Address at, Bytes size = kPage) {
    allocate(tag, stream, at, size);
    EXPECT_TRUE(kernel(stream, at, size, tag).is_ok());
    sim.on_free(tag);
  }
  void expect_silence() { EXPECT_EQ(sim.fault_count(), 0u); }

  const Stream a = make();
  const Stream b = make();
  const Address base = gpu.address_reserve(64_MiB, 0_B).value();
  const PageHandle first_page = page();
  /// The addresses of one page.
  const Address one = map(base + 8_MiB, first_page);
  const Address other = map(base + 32_MiB, first_page);
};

TEST_F(SimAliases, APageTakesMemoryOnceAndIsHeldUntilItsLastAddressIsGone) {
  EXPECT_EQ(sim.ledger().pages.bytes, kPage);
  EXPECT_EQ(sim.ledger().mappings.count, 2u);
  EXPECT_TRUE(gpu.page_release(first_page).is_ok());
  EXPECT_TRUE(gpu.page_unmap(one, kPage).is_ok());
  EXPECT_EQ(sim.ledger().pages.bytes, kPage);
  EXPECT_TRUE(kernel(a, other, kPage).is_ok());
  EXPECT_EQ(sim.step(a), 1u);
  expect_silence();
  EXPECT_TRUE(gpu.page_unmap(other, kPage).is_ok());
  EXPECT_EQ(sim.ledger().pages.bytes, 0_B);
}

TEST_F(SimAliases, EachAddressIsGivenAccessByItself) {
  const Address third = base + 48_MiB;
  EXPECT_TRUE(gpu.page_map(third, kPage, first_page).is_ok());
  EXPECT_TRUE(kernel(a, third, 512_B).is_ok());
  sim.step(a);
  expect_fault(FaultKind::kTouchUnmapped, Blame::kCaller);
  EXPECT_TRUE(kernel(a, other, 512_B).is_ok());
  sim.step(a);
  expect_silence();
}

TEST_F(SimAliases, AUseThroughOneAddressKeepsTheOtherFromAnotherStream) {
  own(1, a, one);
  allocate(2, b, other);
  expect_fault(FaultKind::kEarlyReuse);
}

TEST_F(SimAliases, StreamOrderAnEventAndAWaitProtectTheOtherAddress) {
  own(1, a, one);
  own(2, a, other);
  own(3, a, one);
  expect_silence();
  EXPECT_TRUE(gpu.stream_wait(b.handle, recorded(a)).is_ok());
  own(4, b, other);
  expect_silence();
  EXPECT_TRUE(sim.drain_all().is_ok());
  allocate(5, make(), one);
  expect_silence();
}

TEST_F(SimAliases, AUseThatNobodyAnnouncedIsTheCallersThroughWhicheverAddress) {
  allocate(1, a, one);
  EXPECT_TRUE(kernel(b, one, kPage, 1).is_ok());
  sim.on_free(1);
  allocate(2, a, other);
  expect_fault(FaultKind::kUnannouncedUse, Blame::kCaller);
}

TEST_F(SimAliases, AGraphsUseKeepsTheOtherAddressFromAllButItsGroup) {
  EXPECT_TRUE(sim.launch(a, Touch{one, kPage, Access::kReadWrite, kNoTag, 7}).is_ok());
  sim.on_allocate(1, other, kPage, b, 7);
  sim.on_free(1);
  expect_silence();
  sim.on_allocate(2, other, kPage, b, 8);
  expect_fault(FaultKind::kEarlyReuse);
}

TEST_F(SimAliases, ANodeOfAGraphKeepsTheOtherAddressFromOtherStreamsOfItsCapture) {
  const PageHandle second = page();
  map(one + kPage * 2, page());
  map(one + kPage, second);
  map(other + kPage, second);
  EXPECT_TRUE(sim.begin_capture(a, device::CaptureMode::kRelaxed).is_ok());
  EXPECT_TRUE(gpu.stream_wait(b.handle, recorded(a)).is_ok());
  own(1, b, one, kPage * 3);
  allocate(2, a, other, kPage * 2);
  expect_fault(FaultKind::kEarlyReuse);  // once, not for each page
  sim.on_free(2);
  EXPECT_TRUE(gpu.stream_wait(a.handle, recorded(b)).is_ok());
  own(3, a, other, kPage * 2);
  expect_silence();
}

TEST_F(SimAliases, BytesThatLiveAtOneAddressMustNotLiveAtAnother) {
  allocate(1, a, one, 1_MiB);
  allocate(2, a, other + 1_MiB, 1_MiB);
  expect_silence();
  allocate(3, a, other + 512_KiB, 512_KiB);
  expect_fault(FaultKind::kOverlap);
  sim.on_free(1);
  allocate(4, a, other, 1_MiB);
  expect_silence();
}

TEST_F(SimAliases, NoPageMayBeTwiceInOneAllocation) {
  map(other + kPage, first_page);
  allocate(1, a, other, kPage * 2);
  expect_fault(FaultKind::kOverlap);
  allocate(2, a, one);  // that was reported, and counts for nothing
  expect_silence();
}

TEST_F(SimAliases, PagesInPiecesKeepTheirUsesWhereverTheyGo) {
  const PageHandle second = page();
  const PageHandle third = page();
  map(one + kPage, third);
  map(one + kPage * 2, second);
  map(other + kPage, second);
  own(1, a, one, kPage * 3);  // of the first, the third and the second page
  allocate(2, a, other, kPage * 2);
  EXPECT_TRUE(kernel(b, other, 512_B, 2).is_ok());
  expect_fault(FaultKind::kUnorderedUse, Blame::kCaller);  // once, not for each page
  sim.on_free(2);
  map(base, third);
  allocate(3, b, base);
  expect_fault(FaultKind::kEarlyReuse);
}

TEST_F(SimAliases, AnAddressIsUnmappedOnlyWhenItsOwnUsesAreDone) {
  own(1, a, one);
  EXPECT_TRUE(gpu.page_unmap(other, kPage).is_ok());  // that it is used elsewhere does not matter
  expect_silence();
  EXPECT_TRUE(gpu.page_unmap(one, kPage).is_ok());
  expect_fault(FaultKind::kInFlight);
}

TEST_F(SimAliases, ALaterUseThroughTheOtherAddressStandsForNoneThroughThis) {
  own(1, a, one);
  own(2, a, other);
  EXPECT_EQ(sim.step(a), 1u);
  EXPECT_TRUE(gpu.page_unmap(one, kPage).is_ok());
  expect_silence();
  own(3, a, other);
  map(one, first_page);
  own(4, a, one);
  EXPECT_TRUE(gpu.page_unmap(other, kPage).is_ok());
  expect_fault(FaultKind::kInFlight);
}

/// It is not enough that work is done: the allocator must have asked.
struct SimAliasesStrict : SimAliases {
  SimAliasesStrict() : SimAliases(SimGpuOptions{.drop_edges = kEdgeCompletion}) {}
};
TEST_F(SimAliasesStrict, AnAddressIsUnmappedOnlyWhenItsOwnUsesAreKnownToBeDone) {
  own(1, a, one + 1_MiB, 512_KiB);
  const EventHandle used = recorded(a);
  own(2, a, other);
  EXPECT_TRUE(sim.drain_all().is_ok());
  EXPECT_TRUE(gpu.page_unmap(one, kPage).is_ok());
  expect_fault(FaultKind::kInFlight);
  map(one, first_page);
  EXPECT_TRUE(gpu.event_query(used).is_ok());
  EXPECT_TRUE(gpu.page_unmap(one, kPage).is_ok());
  expect_silence();
  EXPECT_TRUE(gpu.page_unmap(other, kPage).is_ok());
  expect_fault(FaultKind::kInFlight);
}

TEST_F(SimAliases, AnAddressIsUnmappedUnderAnAllocationOfTheOther) {
  allocate(1, a, one);
  EXPECT_TRUE(gpu.page_unmap(other, kPage).is_ok());
  expect_silence();
  EXPECT_TRUE(gpu.page_unmap(one, kPage).is_ok());
  expect_fault(FaultKind::kLiveUnmapped);
  sim.on_free(1);
  map(base, page());
  map(base + kPage, first_page);
  allocate(2, a, base, kPage * 2);
  EXPECT_TRUE(gpu.page_unmap(base, kPage * 2).is_ok());
  expect_fault(FaultKind::kLiveUnmapped);  // once, not for each page
}

TEST_F(SimAliases, AWordIsTheSameAtBothAddresses) {
  EXPECT_TRUE(sim.wait_value(b, other + 64_B, 1).is_ok());
  EXPECT_EQ(sim.step(b), 0u);
  EXPECT_TRUE(sim.write_value(a, one + 64_B, 1).is_ok());
  sim.step(a);
  EXPECT_EQ(sim.step(b), 1u);
  own(1, a, one);
  EXPECT_TRUE(sim.write_value(a, one + 64_B, 2).is_ok());
  EXPECT_TRUE(sim.wait_value(b, other + 64_B, 2).is_ok());
  allocate(2, b, other);  // ordered by the word
  expect_silence();
}

}  // namespace
}  // namespace ashlar::spec
