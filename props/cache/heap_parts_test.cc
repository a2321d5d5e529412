// What the parts of a device's cache answer at the edges of what their callers ask: a stream that has
// died or passed on between two steps of a call, a number that would wrap, a capture that is
// announced already.
//
// Imitates: the second of two threads, which finds done what it was about to do: its state is made by
// hand, since no device call lies between the two steps.
// Does not prove: the orders of memory that the two need (ThreadSanitizer, the proof).
#include "props/cache/crossing_fixture.h"
#include "props/cache/parts_fixture.h"

namespace ashlar::cache {
namespace {

class HeapPartsTest : public CrossingTest {
 protected:
  /// The heap of a stream that was retired with all of its work done.
  StreamHeap& forgotten_heap() {
    dead_ = stream();
    EXPECT_TRUE(allocator_->free(allocate(4_KiB, dead_)).is_ok());
    static_cast<void>(gpu_->drain_all());
    EXPECT_TRUE(allocator_->retire_stream(dead_).is_ok());
    static_cast<void>(gpu_->drain_all());
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    EXPECT_TRUE(is_forgotten(heap_of(dead_)));
    return heap_of(dead_);
  }
  static bool is_forgotten(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return heap.is_forgotten();
  }
  StreamHeap* get_or_make(const Stream& stream,
                          StreamHeap* forgotten) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return cache().heaps().get_or_make(stream, forgotten);
  }
  std::uint64_t calls() const {
    std::uint64_t sum = 0;
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
      sum += device_->calls(static_cast<CallKind>(kind));
    return sum;
  }

  Stream dead_;
};

TEST_F(HeapPartsTest, OfTwoThreadsThatMakeAStreamsHeapTheSecondGetsTheFirsts) {
  make(Bytes{0});
  StreamHeap& unused = forgotten_heap();
  const Stream fresh = stream();
  StreamHeap* const made = get_or_make(fresh, nullptr);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(get_or_make(fresh, nullptr), made);
  EXPECT_EQ(get_or_make(fresh, &unused), made);
  EXPECT_EQ(cache().heaps().get_or_make(fresh), made);
  EXPECT_TRUE(is_forgotten(unused));
}

TEST_F(HeapPartsTest, AForgottenHeapPassesOnUnlessSomebodyNamedItsStreamMeanwhile) {
  make(Bytes{0});
  StreamHeap& heap = forgotten_heap();
  const Stream first = stream();
  const Stream second = stream();
  ASSERT_TRUE(heap.life.refer());
  StreamHeap* const other = get_or_make(first, &heap);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other, &heap);
  EXPECT_EQ(heap.stream.id, dead_.id);
  heap.life.drop_reference();
  EXPECT_EQ(get_or_make(second, &heap), &heap);
  EXPECT_EQ(heap.stream.id, second.id);
  EXPECT_EQ(cache().heaps().find(dead_.id), nullptr);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(HeapPartsTest, AHeapIsForgottenOnlyWhenItsClockAndItsMarksSaySo) {
  make(Bytes{0});
  StreamHeap& heap = forgotten_heap();
  EpochMarks& marks = CachePeer::marks(heap);
  marks.push(cache().uses().events(), 1, 1);
  EXPECT_FALSE(is_forgotten(heap));
  marks.clear(cache().uses().events());
  EXPECT_TRUE(is_forgotten(heap));
  // Between the two steps of UseTracker::finish().
  make_heaps(1, false);
  const Stream ended = stream();
  StreamHeap& unclear = *get_or_make(ended, nullptr);
  EXPECT_TRUE(unclear.life.retire());
  EXPECT_TRUE(unclear.life.finish());
  EXPECT_FALSE(is_forgotten(unclear));
  CachePeer::clock(unclear).complete(kEverything);
  EXPECT_TRUE(is_forgotten(unclear));
}

TEST_F(HeapPartsTest, AStreamThatIsFinishedTwiceIsFinishedOnce) {
  make(Bytes{0});
  const Stream ended = stream();
  StreamHeap& heap = *get_or_make(ended, nullptr);
  EXPECT_TRUE(heap.life.retire());
  UseTracker::finish(heap);
  EXPECT_TRUE(heap.life.is_finished());
  UseTracker::finish(heap);
  EXPECT_TRUE(heap.life.is_finished());
  EXPECT_EQ(CachePeer::clock(heap).completed(), kEverything);
}

TEST_F(HeapPartsTest, AUseByAStreamWhoseHeapIsPassingOnIsNone) {
  make(Bytes{0});
  const Address block = allocate(4_KiB, own_);
  StreamHeap& heap = forgotten_heap();
  ASSERT_TRUE(heap.life.begin_passing());
  EXPECT_TRUE(allocator_->record_use(block, dead_).is_ok());
  EXPECT_EQ(heap.life.reference_count(), 0u);
  EXPECT_EQ(cache().use_count(), 0u) << "its node is spare again";
  EXPECT_TRUE(allocator_->free(block, dead_).is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().active[0].current, 0u);
  heap.life.end_passing();
}

TEST_F(HeapPartsTest, ACallThatFindsTheHeapInTheHandsOfAnotherStreamIsRefused) {
  make(Bytes{0});
  EXPECT_NE(allocate(4_KiB, own_), Address{});
  StreamHeap& heap = heap_of(own_);
  EXPECT_TRUE(allocator_->begin_capture(own_).is_ok());
  // As after StreamHeap::serve() and before its last step, the heap's identity in the table.
  heap.stream.id = captured_.id;
  EXPECT_EQ(allocator_->allocate(4_KiB, own_).code(), Code::kInvalidHandle);
  EXPECT_EQ(allocator_->end_capture(own_).code(), Code::kNotFound);
  heap.stream.id = own_.id;
  EXPECT_TRUE(allocator_->end_capture(own_).is_ok());
}

TEST_F(HeapPartsTest, AStreamThatNobodyKnowsCannotBeLost) {
  make(Bytes{0});
  const std::uint64_t streams = cache().heaps().count();
  cache().heaps().lose(StreamId{1'000'000}, 1);
  EXPECT_EQ(cache().heaps().count(), streams);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(HeapPartsTest, AStreamThatIsAliveIsNotAskedForItsLastEvent) {
  make(Bytes{0});
  EXPECT_NE(allocate(4_KiB, own_), Address{});
  const std::uint64_t before = calls();
  EXPECT_FALSE(cache().uses().ask_last_event(heap_of(own_)));
  EXPECT_EQ(calls(), before);
}

TEST_F(HeapPartsTest, OnceACaptureIsAnnouncedNobodyStealsOrSynchronises) {
  make(Bytes{0});
  EXPECT_TRUE(allocator_->free(allocate(40_MiB, own_)).is_ok());
  static_cast<void>(gpu_->drain_all());
  StreamHeap& to = *get_or_make(stream(), nullptr);
  const Request request{30_MiB, 30_MiB, Bytes::max(), PoolId::kLarge};
  Reclaimer& reclaimer = cache().reclaimer();
  shared().captures.fetch_add(1);
  const std::uint64_t before = calls();
  EXPECT_TRUE(reclaimer.try_steal(to, request, Reach::kAll).is_null()) << "C9";
  cache().uses().ask_whether_done();
  EXPECT_EQ(calls(), before) << "C9";
  shared().captures.fetch_sub(1);
  static_cast<void>(reclaimer.try_steal(to, request, Reach::kAll));
  EXPECT_GT(calls(), before);
}

TEST_F(HeapPartsTest, AChargeThatWouldWrapIsOverEveryLimit) {
  make(Bytes{0});
  SegmentLedger& ledger = cache().ledger();
  EXPECT_TRUE(ledger.charge(2_MiB).is_ok());
  EXPECT_EQ(ledger.charge(Bytes::max()).code(), Code::kOutOfMemory);
  EXPECT_TRUE(ledger.charge(Bytes::max() - 2_MiB).is_ok());
  ledger.refund(Bytes::max() - 2_MiB);
  ledger.refund(2_MiB);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(HeapPartsTest, ANewSegmentsPositionIsBehindEveryOlderOnesAndNoFurther) {
  make(Bytes{0});
  SegmentLedger& ledger = cache().ledger();
  const auto position = [](const DeviceSegment* record) { return Bytes{raw(record->position)}; };
  DeviceSegment* const first = ledger.new_record(2_MiB);
  DeviceSegment* const second = ledger.new_record(20_MiB);
  DeviceSegment* const third = ledger.new_record(4_MiB);
  EXPECT_EQ(position(first), 0_B);
  EXPECT_EQ(position(second), 2_MiB);
  EXPECT_EQ(position(third), 22_MiB);
  ledger.recycle(second);
  DeviceSegment* const fourth = ledger.new_record(2_MiB);
  EXPECT_EQ(fourth, second) << "the record is used again";
  EXPECT_EQ(position(fourth), 26_MiB) << "not in the gap: the third is older";
  ledger.recycle(third);
  ledger.recycle(fourth);
  EXPECT_EQ(position(ledger.new_record(6_MiB)), 2_MiB) << "behind the first, now the newest";
  EXPECT_GT(third->ordinal, first->ordinal);
  ledger.recycle(first);
  ledger.recycle(third);
  ledger.recycle(fourth);
}

TEST_F(HeapPartsTest, ASegmentBehindTheLastPositionGetsNoRecordAndTheNextOneThatFitsDoes) {
  make(Bytes{0});
  SegmentLedger& ledger = cache().ledger();
  const Bytes half{std::uint64_t{1} << 63};
  DeviceSegment* const low = ledger.new_record(half);
  ASSERT_NE(low, nullptr);
  EXPECT_EQ(ledger.new_record(half), nullptr);
  DeviceSegment* const high = ledger.new_record(half - 1_B);
  ASSERT_NE(high, nullptr);
  EXPECT_EQ(ledger.new_record(1_B), nullptr);
  ledger.recycle(high);
  ledger.recycle(low);
  DeviceSegment* const anew = ledger.new_record(half);
  ASSERT_NE(anew, nullptr);
  EXPECT_EQ(anew->position, block::Position{}) << "no segment is left";
  ledger.recycle(anew);
}

TEST_F(HeapPartsTest, ALimitThatTheDriverCannotWorkOutChangesNothing) {
  make(Bytes{64_MiB});
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, 40_MiB).is_ok());
  gpu_->fail(CallKind::kMemoryInfo, 1, spec::FailMode::kOnce);
  EXPECT_EQ(allocator_->set_memory_fraction(kDevice, 1.0).code(), Code::kDriverError);
  EXPECT_EQ(allocator_->allocate(50_MiB, own_).code(), Code::kOutOfMemory);
  EXPECT_TRUE(allocator_->set_memory_fraction(kDevice, 1.0).is_ok());
  EXPECT_NE(allocate(50_MiB, own_), Address{});
}

TEST(SegmentReleaseEdgeTest, NoSegmentIsEnoughForASizeThatRoundsBeyondAllSizes) {
  CacheParts parts(256_MiB);
  const Stream own = parts.stream();
  parts.free(parts.allocate(40_MiB, own));
  StreamHeap& heap = parts.heap(own);
  {
    const Guard guard(heap.lock);
    heap.clock.complete(heap.clock.advance());
  }
  SegmentRelease release(parts.cache().heaps(), parts.shared(), parts.cache().supply(),
                         parts.cache().reclaimer().lock());
  const ReclaimGuard turn(parts.cache().reclaimer().lock());
  EXPECT_EQ(release.release_enough(heap, Bytes::max(), 100_MiB), 0_B);
  EXPECT_EQ(release.release_enough(heap, Bytes::max(), 0_B), 40_MiB) << "all, as none is enough";
}

}  // namespace
}  // namespace ashlar::cache
