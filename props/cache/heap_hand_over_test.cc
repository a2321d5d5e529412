// When a heap may pass from a dead stream to another, and what a trim waits for: the small protocols
// behind C6 and C29, by themselves.
//
// Imitated: each thing that may be left of a dead stream, alone. Not proved: races; the protocols'
// orders are ThreadSanitizer's and the proof's.
#include <ashlar/cache/waited_work.h>

#include "props/adapters/cache_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

TEST(StreamLife, IsReferredToUntilItIsPassingAndNeverWhilePassing) {
  StreamLife life;
  EXPECT_TRUE(life.retire());
  EXPECT_TRUE(life.finish());
  EXPECT_TRUE(life.refer());
  EXPECT_EQ(life.reference_count(), 1u);
  EXPECT_FALSE(life.begin_passing());
  EXPECT_TRUE(life.is_finished());  // as before
  life.drop_reference();
  const unsigned recording = life.recorders().begin();
  EXPECT_FALSE(life.begin_passing());
  EXPECT_TRUE(life.is_finished());
  life.recorders().end(recording);
  EXPECT_TRUE(life.begin_passing());
  EXPECT_FALSE(life.refer());
  EXPECT_EQ(life.reference_count(), 0u);
  life.end_passing();
  EXPECT_TRUE(life.is_alive());
  EXPECT_TRUE(life.refer());
}

TEST(StreamLife, EndsOnceAndInOneWay) {
  StreamLife life;
  EXPECT_FALSE(life.finish());
  life.lose(7);
  EXPECT_EQ(life.state(), StreamLife::State::kLost);
  life.lose(9);
  EXPECT_EQ(life.lost_at(), 7u);
  EXPECT_FALSE(life.retire());
  EXPECT_TRUE(life.finish());
  EXPECT_FALSE(life.finish());
  EXPECT_TRUE(life.is_finished());
}

class HandOverTest : public LivenessTest {
 protected:
  /// The heap of a stream that was retired with all of its work done.
  StreamHeap& forgotten_heap() {
    make(256_MiB);
    const Stream dead = stream();
    EXPECT_TRUE(allocator_->free(allocate(4_KiB, dead)).is_ok());
    static_cast<void>(gpu_->drain_all());
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    end(dead);
    static_cast<void>(gpu_->drain_all());
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    return *CachePeer::device(*allocator_, 0).heaps().find(dead.id);
  }
  static bool is_forgotten(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return heap.is_forgotten();
  }
  static bool passes(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return heap.begin_passing();
  }
};

TEST_F(HandOverTest, AHeapIsForgottenOnlyWhenNothingIsLeftOfItsStream) {
  StreamHeap& heap = forgotten_heap();
  EXPECT_TRUE(is_forgotten(heap));
  heap.life.set_capturing(true);
  EXPECT_FALSE(is_forgotten(heap));
  EXPECT_FALSE(passes(heap));
  heap.life.set_capturing(false);
  const unsigned recording = heap.life.recorders().begin();
  EXPECT_FALSE(is_forgotten(heap));
  heap.life.recorders().end(recording);
  EXPECT_TRUE(heap.life.refer());
  EXPECT_FALSE(is_forgotten(heap));
  heap.life.drop_reference();
  CachePeer::misses(heap).under_way = 1;
  EXPECT_FALSE(is_forgotten(heap));
  CachePeer::misses(heap).under_way = 0;
  const unsigned phase = CachePeer::uses(heap).takers().begin();
  EXPECT_FALSE(is_forgotten(heap));
  CachePeer::uses(heap).takers().end(phase);
  EXPECT_TRUE(is_forgotten(heap));
}

TEST_F(HandOverTest, AHeapOfAStreamThatIsAliveOrUnfinishedIsNotForgotten) {
  make(256_MiB);
  const Stream stuck = stuck_stream();
  EXPECT_TRUE(allocator_->free(allocate(4_KiB, stuck)).is_ok());
  StreamHeap& heap = *CachePeer::device(*allocator_, 0).heaps().find(stuck.id);
  EXPECT_FALSE(is_forgotten(heap));
  EXPECT_FALSE(passes(heap));
  EXPECT_TRUE(allocator_->retire_stream(stuck).is_ok());
  EXPECT_FALSE(is_forgotten(heap));  // its work is not done
  EXPECT_FALSE(passes(heap));
}

TEST_F(HandOverTest, AStreamWithoutIdentityIsRefusedByEveryCallThatNamesOne) {
  make(256_MiB);
  Stream nobody = own_;
  nobody.id = StreamId{};
  const Address block = allocate(4_KiB, own_);
  const std::uint64_t known = stats().streams;
  EXPECT_EQ(allocator_->allocate(4_KiB, nobody).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->record_use(block, nobody).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->free(block, nobody).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->begin_capture(nobody).code(), Code::kInvalidArgument);
  const Stream made;  // by default, as a caller has it who forgot Device::identify
  EXPECT_EQ(allocator_->allocate(4_KiB, made).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->record_use(block, made).code(), Code::kInvalidArgument);
  EXPECT_EQ(record_use_of_alive(*allocator_, block, made).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->free(block, made).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->begin_capture(made).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->end_capture(made).code(), Code::kNotFound);
  EXPECT_EQ(allocator_->retire_stream(made).code(), Code::kNotFound);
  EXPECT_EQ(allocator_->largest_free_block(made).code(), Code::kInvalidArgument);
  EXPECT_TRUE(allocator_->begin_capture(own_).is_ok());
  EXPECT_EQ(allocator_->begin_body(made, own_).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->begin_body(own_, made).code(), Code::kNotFound);
  EXPECT_TRUE(allocator_->end_capture(own_).is_ok());
  EXPECT_EQ(stats().streams, known);  // C32
  EXPECT_TRUE(allocator_->free(block).is_ok());
}

TEST_F(HandOverTest, WorkThatIsWaitedForHasABorderOnlyForATrim) {
  make(256_MiB);
  Synchronizer& own = CachePeer::device(*allocator_, 0).uses().synchronizer();
  WaitedWork any(WaitedWork::Which::kAny, own);
  any.begin();
  const std::uint64_t later = own.next_sequence();
  EXPECT_TRUE(any.concerns(own, later));
  EXPECT_FALSE(any.move_border());
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(any.may_wait_for_others());
    EXPECT_TRUE(any.may_look_again());
  }
  const std::uint64_t earlier = own.next_sequence();
  WaitedWork trim(WaitedWork::Which::kEarlier, own);
  trim.begin();
  EXPECT_TRUE(trim.concerns(own, earlier));
  const std::uint64_t newer = own.next_sequence();
  EXPECT_FALSE(trim.concerns(own, newer));
  trim.begin();  // the border stays where it is
  EXPECT_FALSE(trim.concerns(own, newer));
  EXPECT_TRUE(trim.move_border());
  EXPECT_TRUE(trim.concerns(own, newer));
  unsigned moves = 0;
  while (trim.move_border()) ++moves;
  EXPECT_EQ(moves, 2u);  // four in all
  unsigned rounds = 0;
  while (trim.may_wait_for_others()) ++rounds;
  EXPECT_EQ(rounds, 64u);
  EXPECT_TRUE(trim.may_look_again());
  EXPECT_FALSE(trim.may_look_again());
}

}  // namespace
}  // namespace ashlar::cache
