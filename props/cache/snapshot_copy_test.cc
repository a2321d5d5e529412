// A snapshot's copy (PoolCopy), slice by slice, while blocks are merged and segments come and go
// between two slices.
//
// Imitates: other threads that use the heap whenever the copy lets go of its lock; every change is
// made at a chosen moment.
// Does not prove: that the copy ends while threads go on (cache_threads_test.cc runs some).
#include <optional>
#include <vector>

#include <ashlar/cache/snapshot_copy.h>

#include "props/adapters/cache_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

class SnapshotCopyTest : public LivenessTest {
 protected:
  static constexpr unsigned kBlocks = 20 * kCopiedPerHold;

  /// One segment with so many live blocks.
  void SetUp() override {
    make(Bytes{0}, "backing:segments");
    for (unsigned i = 0; i < kBlocks; ++i) blocks_.push_back(allocate(512_B, own_));
    copy_.emplace(heap(), PoolId::kSmall, &out_);
  }
  void TearDown() override { EXPECT_EQ(allocator_->validate(), nullptr); }
  StreamHeap& heap() { return *CachePeer::device(*allocator_, 0).heaps().find(own_.id); }
  bool slice() { return CachePeer::copy_slice(*copy_, heap()); }
  unsigned setbacks() { return CachePeer::setbacks(*copy_); }
  /// Frees the blocks from the first to before the second number.
  void free(unsigned first, unsigned last) {
    for (unsigned i = first; i < last; ++i) EXPECT_TRUE(allocator_->free(blocks_[i]).is_ok());
  }
  /// Slices to the end; then what was copied is what there is now.
  void expect_end() {
    unsigned slices = 0;
    while (!slice()) ASSERT_LT(++slices, 100u);
    Snapshot now;
    ASSERT_TRUE(allocator_->snapshot(kDevice, &now).is_ok());
    ASSERT_EQ(out_.segments.size(), now.segments.size());
    ASSERT_EQ(out_.blocks.size(), now.blocks.size());
    for (std::size_t i = 0; i < now.blocks.size(); ++i) {
      EXPECT_EQ(out_.blocks[i].address, now.blocks[i].address);
      EXPECT_EQ(out_.blocks[i].size, now.blocks[i].size);
    }
  }

  std::vector<Address> blocks_;
  Snapshot out_;
  std::optional<PoolCopy> copy_;
};

TEST_F(SnapshotCopyTest, ALongSegmentIsCopiedInSlicesWithoutASetback) {
  EXPECT_FALSE(slice());
  EXPECT_TRUE(CachePeer::is_in_segment(*copy_));
  expect_end();
  EXPECT_EQ(setbacks(), 0u);
}

TEST_F(SnapshotCopyTest, BlocksMergedBehindTheCopyAreCopiedAnew) {
  EXPECT_FALSE(slice());
  free(100, kCopiedPerHold + 10);
  expect_end();
  EXPECT_EQ(setbacks(), 0u);
}

TEST_F(SnapshotCopyTest, ASegmentThatBecameOneBlockIsCopiedFromItsBeginning) {
  EXPECT_FALSE(slice());
  free(0, kBlocks);
  expect_end();
  EXPECT_EQ(setbacks(), 1u);
  EXPECT_EQ(out_.blocks.size(), 1u);
}

TEST_F(SnapshotCopyTest, ASegmentThatIsGoneIsDropped) {
  EXPECT_FALSE(slice());
  free(0, kBlocks);
  static_cast<void>(gpu_->drain_all());
  ASSERT_TRUE(allocator_->trim(kDevice).is_ok());
  ASSERT_EQ(reserved(), 0u);
  expect_end();
  EXPECT_EQ(setbacks(), 1u);
  EXPECT_TRUE(out_.segments.empty());
}

TEST_F(SnapshotCopyTest, AnotherSegmentWithItsNumberIsCopiedFromItsBeginning) {
  EXPECT_FALSE(slice());
  free(0, kBlocks);
  static_cast<void>(gpu_->drain_all());
  ASSERT_TRUE(allocator_->trim(kDevice).is_ok());
  blocks_ = {allocate(512_B, own_), allocate(1_KiB, own_)};
  expect_end();
  EXPECT_EQ(setbacks(), 1u);
  EXPECT_EQ(out_.blocks.size(), 3u);
}

TEST_F(SnapshotCopyTest, WhereAllThatWasCopiedIsMergedTheSegmentIsCopiedFromItsFirstBlock) {
  EXPECT_FALSE(slice());
  EXPECT_FALSE(slice());
  const std::size_t copied = out_.blocks.size();
  ASSERT_GT(copied, kCopiedPerHold);
  free(0, static_cast<unsigned>(copied) + 10);
  EXPECT_FALSE(slice()) << "the way back takes more than a slice";
  EXPECT_EQ(setbacks(), 1u);
  expect_end();
}

TEST_F(SnapshotCopyTest, ASliceThatLeadsNoFurtherThanAnEarlierOneIsASetback) {
  EXPECT_FALSE(slice());
  EXPECT_FALSE(slice());
  // Back to the first block, of many again by then.
  const unsigned merged = static_cast<unsigned>(out_.blocks.size()) + 10;
  free(0, merged);
  EXPECT_FALSE(slice());
  for (unsigned i = 0; i < merged; ++i) EXPECT_EQ(allocate(512_B, own_), blocks_[i]);
  EXPECT_FALSE(slice());
  EXPECT_GE(setbacks(), 1u);
  expect_end();
}

TEST_F(SnapshotCopyTest, AfterTooManySetbacksItIsRefused) {
  EXPECT_FALSE(slice());
  CachePeer::setbacks(*copy_) = 1000;
  // As above: the way back takes more than a slice.
  EXPECT_FALSE(slice());
  free(0, static_cast<unsigned>(out_.blocks.size()) + 10);
  EXPECT_EQ(copy_->run().code(), Code::kBusy);
}

}  // namespace
}  // namespace ashlar::cache
