// What validate() of the allocator reports (C5): one damage for each invariant of a heap, its uses,
// its marks, the list of heaps, the segments' records and the ledger. Each is mended again, and the
// allocator is sound.
//
// Not proved: that there is no other invariant. The pool's own: block_pool_validate_test.cc.
#include <vector>

#include "props/adapters/cache_peer.h"
#include "props/block/pool_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

/// While one lives, the field has another value; validate() has to say what is wrong.
template <class T>
class Damage {
 public:
  Damage(T& field, T wrong) : field_(field), was_(field) { field = wrong; }
  ~Damage() { field_ = was_; }
  Damage(const Damage&) = delete;
  Damage& operator=(const Damage&) = delete;

 private:
  T& field_;
  T was_;
};

/// A world with a live, a pending and a free block, recorded and unrecorded uses, and a mark.
class CacheDamageTest : public LivenessTest {
 protected:
  void SetUp() override {
    make(256_MiB, "wait_ms:never");
    other_ = stuck_stream();
    live_ = allocate(4_KiB, own_);
    for (int i = 0; i < 2; ++i) {
      const Address used = allocate(2_MiB, own_);
      EXPECT_TRUE(allocator_->free(used, other_).is_ok());
    }
    EXPECT_TRUE(gpu_->host_function(own_, gpu_->new_flag()).is_ok());
    for (int i = 0; i < 2; ++i) {  // a mark each
      EXPECT_TRUE(allocator_->free(allocate(30_MiB, own_)).is_ok());
      static_cast<void>(allocator_->trim(kDevice));
    }
    EXPECT_EQ(allocator_->validate(), nullptr);
  }
  std::string found() {
    const char* const broken = allocator_->validate();
    return broken == nullptr ? "" : broken;
  }
  DeviceCache& cache() { return CachePeer::device(*allocator_, 0); }
  StreamHeap& heap() { return *cache().heaps().find(own_.id); }
  DeviceSegment& record(PoolId pool) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    const block::BlockPool& in = heap().pool(pool);
    return *record_of(in.view(in.first_segment()));
  }

  static block::BlockPool& pool_of(StreamHeap& heap, PoolId id) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return heap.pool(id);
  }

  Stream other_;
  Address live_;
};

TEST_F(CacheDamageTest, EveryFieldOfASegmentsRecordIsHeldAgainstItsPool) {
  DeviceSegment& small = record(PoolId::kSmall);
  const std::string wrong = "supply(1): a segment's record is not its pool's";
  {
    const Damage damage(small.base, small.base + 512_B);
    EXPECT_EQ(found(), wrong);
  }
  {
    const Damage damage(small.size, small.size + 512_B);
    EXPECT_EQ(found(), wrong);
  }
  {
    const Damage damage(small.pool, PoolId::kLarge);
    EXPECT_EQ(found(), wrong);
  }
  {
    const Damage damage(small.entry.index, small.entry.index + 1);
    EXPECT_EQ(found(), wrong);
  }
  {
    const Damage damage(small.position, block::Position{raw(small.position) + 512});
    EXPECT_EQ(found(), wrong);
  }
  small.heap = cache().heaps().find(other_.id);
  EXPECT_EQ(found(), wrong);
  small.heap = &heap();
  PageMap& pages = CachePeer::shared(*allocator_).pages;
  pages.erase(small);
  EXPECT_EQ(found(), "supply(1): the page map does not lead to a segment");
  pages.insert(small);
  EXPECT_EQ(found(), "");
}

TEST_F(CacheDamageTest, APageThatStaysOwnedWhenItsSegmentIsGoneIsSeen) {
  DeviceSegment gone;
  gone.base = Address{std::uint64_t{1} << 40} + 512_B;
  gone.size = 2_MiB;
  gone.heap = &heap();
  PageMap& pages = CachePeer::shared(*allocator_).pages;
  ASSERT_TRUE(pages.reserve(gone.base, gone.size, gone.owner()).is_ok());
  EXPECT_EQ(found(), "");
  pages.insert(gone);
  EXPECT_EQ(found(), "page map(4): a page of no segment has an owner");
  pages.erase(gone);
  EXPECT_EQ(found(), "");
}

TEST_F(CacheDamageTest, TheLedgersSumsAreHeldAgainstTheSegments) {
  {
    const Damage damage(CachePeer::charged(cache().ledger()), 1_B);
    EXPECT_EQ(found(), "ledger(2): bytes charged against the limit are not the reserved");
  }
  {
    Stat& segments = CachePeer::segments(cache().ledger());
    const Damage damage(segments.current, segments.current + 1);
    EXPECT_EQ(found(), "C14: the segment count is not the sum over pools");
  }
  Stat& reserved = CachePeer::reserved(cache().ledger());
  const Damage damage(reserved.current, reserved.current + 1);
  EXPECT_EQ(found(), "C14: reserved bytes are not the sum over segments");
}

TEST_F(CacheDamageTest, TheLedgersRecordsInUseAreThePoolsInTheOrderOfTheirPositions) {
  DeviceSegment& newest = *CachePeer::newest(cache().ledger());
  ASSERT_NE(newest.older, nullptr);
  const std::string wrong =
      "ledger(4): the positions of two segments are not those of their ordinals";
  {
    const Damage damage(newest.ordinal, newest.older->ordinal);
    EXPECT_EQ(found(), wrong);
  }
  {
    const Damage damage(newest.older->newer, static_cast<DeviceSegment*>(nullptr));
    EXPECT_EQ(found(), wrong);
  }
  DeviceSegment* const extra = cache().ledger().new_record(2_MiB);
  EXPECT_EQ(found(), "ledger(3): a record in use is no pool's segment");
  {
    const Damage damage(extra->position, newest.position);
    EXPECT_EQ(found(), wrong);
  }
  cache().ledger().recycle(extra);
  EXPECT_EQ(found(), "");
}

TEST_F(CacheDamageTest, TheUsesOfABlockAreHeldAgainstTheQueues) {
  PendingUses& uses = CachePeer::uses(heap());
  UseNode* const head = CachePeer::first_queue(uses);
  ASSERT_NE(head, nullptr);
  ASSERT_NE(head->next, nullptr);
  {
    const Damage damage(head->sibling_before, head->next);
    EXPECT_EQ(found(), "heap(4): neighbours among a block's uses do not agree");
  }
  {
    const Damage damage(head->block, head->next->block);
    EXPECT_EQ(found(), "heap(4): a block's use is another's");
  }
  {
    const Damage damage(head->pool, PoolId::kSmall);
    EXPECT_EQ(found(), "heap(4): a block's use is another's");
  }
  {
    const Damage<StreamHeap*> damage(head->user, nullptr);
    EXPECT_EQ(found(), "uses(2): a block's use names no user");
  }
  {
    const Damage damage(head->next->user, &heap());
    EXPECT_EQ(found(), "heap(5): a queue mixes streams");
  }
  {
    const Damage damage(head->queue.last, head);
    EXPECT_EQ(found(), "heap(5): a queue's tail is not its last");
  }
  {
    std::uint64_t& count = CachePeer::queue_count(uses);
    const Damage damage(count, count + 1);
    EXPECT_EQ(found(), "heap(5): the queues are not what their counter says");
  }
  const Damage<UseNode*> damage(head->next, nullptr);
  EXPECT_EQ(found(), "heap(4): the uses that wait are not those of the pending blocks");
}

TEST_F(CacheDamageTest, APendingBlockWaitsForAUse) {
  const UseNode* const head = CachePeer::first_queue(CachePeer::uses(heap()));
  ASSERT_NE(head, nullptr);
  block::BlockPool& in = pool_of(heap(), head->pool);
  const std::uint64_t word = in.user(head->block);
  in.set_user(head->block, 0);
  EXPECT_EQ(found(), "heap(4): a pending block waits for no use");
  in.set_user(head->block, word);
  EXPECT_EQ(found(), "");
}

TEST_F(CacheDamageTest, AHeapsPoolIsWalkedToo) {
  block::PoolCounts& counts = block::PoolPeer::counts(pool_of(heap(), PoolId::kLarge));
  const Damage damage(counts.requested_bytes, counts.requested_bytes + 1_B);
  EXPECT_EQ(found(), "block(6) C14: a counter differs from the recount");
}

TEST_F(CacheDamageTest, ThereIsASpareNodeForEveryLiveBlock) {
  UseNodes& nodes = CachePeer::uses(heap()).nodes();
  std::vector<UseNode*> taken;
  while (nodes.spare_count() > 0) taken.push_back(nodes.take());
  EXPECT_EQ(found(), "heap(3): fewer spare nodes than live blocks");
  for (UseNode* const node : taken) nodes.give(node);
  EXPECT_EQ(found(), "");
}

TEST_F(CacheDamageTest, TheCountsOfNodesAreHeldAgainstTheLists) {
  PendingUses& uses = CachePeer::uses(heap());
  {
    const Damage damage(CachePeer::spare_count(uses.nodes()), uses.nodes().spare_count() + 1);
    EXPECT_EQ(found(), "heap(3): the spare list is not what its counter says");
  }
  {
    std::uint64_t& made = CachePeer::made_count(uses.nodes());
    const Damage damage(made, made + 1);
    EXPECT_EQ(found(), "nodes(1): the slabs are not what their counter says");
  }
  {
    const Damage damage(CachePeer::unrecorded_count(uses), std::uint64_t{1});
    EXPECT_EQ(found(), "unrecorded(1): the counts are not those of the lists");
  }
  {
    const unsigned phase = uses.takers().begin();
    EXPECT_EQ(found(), "heap(4): a taker has not put its nodes back");
    uses.takers().end(phase);
  }
  {
    const Damage damage(CachePeer::misses(heap()).under_way, 1u);
    EXPECT_EQ(found(), "heap(6): a miss has not ended its hold");
  }
  heap().loans.add(PoolId::kSmall, 512_B);
  EXPECT_EQ(found(), "heap(8): what is borrowed is not what is lent");
  heap().loans.remove(PoolId::kSmall, 512_B);
}

TEST_F(CacheDamageTest, MarksAndStampsAreInOrder) {
  EpochMarks& marks = CachePeer::marks(heap());
  ASSERT_GE(marks.count(), 2u);
  {
    const Damage damage(CachePeer::mark(marks, 1).covers, marks[0].covers);
    EXPECT_EQ(found(), "marks(1): a later mark covers no more");
  }
  {
    const Damage<EventPool*> damage(CachePeer::mark(marks, 0).slot.pool, nullptr);
    EXPECT_EQ(found(), "marks(1): a mark without an event");
  }
  const Damage damage(CachePeer::newest_release(CachePeer::clock(heap())),
                      CachePeer::clock(heap()).now() + 1);
  EXPECT_EQ(found(), "heap(1): a stamp from the future");
}

TEST_F(CacheDamageTest, EveryHeapIsInTheTableUnderItsOwnersKey) {
  {
    const Damage damage(heap().stream.id, StreamId{999'999});
    EXPECT_EQ(found(), "heaps(1): a heap's key is not its stream's identity");
  }
  const std::uint64_t id = heap().id;
  StreamHeap& damaged = heap();
  damaged.id = other_.id.value();
  EXPECT_EQ(found(), "heaps(2): two heaps have one key");
  damaged.id = id + 1000;
  EXPECT_EQ(found(), "heaps(1): a heap is not in the table by its owner's key");
  damaged.id = id;
}

TEST_F(CacheDamageTest, WhatIsUnderWayHasEndedAndReferencesAreThoseOfTheUses) {
  SharedState& shared = CachePeer::shared(*allocator_);
  const unsigned phase = shared.blocking_calls.begin();
  EXPECT_EQ(found(), "C9: a blocking call has not ended");
  shared.blocking_calls.end(phase);
  ++shared.event_waiters;
  EXPECT_EQ(found(), "wait: a call has not ended its hold on events");
  --shared.event_waiters;
  EXPECT_TRUE(heap().life.refer());
  EXPECT_EQ(found(), "life(1): the references are not those of the uses");
  heap().life.drop_reference();
  EXPECT_EQ(found(), "");
}

}  // namespace
}  // namespace ashlar::cache
