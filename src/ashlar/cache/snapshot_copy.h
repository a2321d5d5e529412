// Copies what the heaps hold into a snapshot (snapshot.h), in slices.
//
// Purpose: 10^6 blocks take milliseconds to copy, and a heap's lock is held for microseconds (C31).
// Between two slices the lock is let go, and blocks may be split, merged, given back.
// Thread safety: any thread; takes one heap's lock at a time, and allocates without it.
//
// Invariants:
//   (1) A segment of fewer than kCopiedPerHold blocks and uses is copied in one slice, as it is at
//       one moment. A longer one is copied in several; all its blocks are as they are at one moment
//       if the segment does not change meanwhile.
//   (2) The blocks copied of a segment follow each other without a gap or an overlap, whatever
//       happened between two slices: a slice goes on at a block that begins where it began when it
//       was copied, and copies it anew. What was copied from there on is dropped.
//   (3) It ends: a slice leads further in its segment than all before, or is a setback, and of these
//       there are at most kSetbacksMax in a pool.
#pragma once

#include <vector>

#include <ashlar/cache/segment_supply.h>
#include <ashlar/cache/snapshot.h>

namespace ashlar::inline v0::cache {

/// The most segments, blocks and uses that are looked at before a heap's lock is let go.
inline constexpr unsigned kCopiedPerHold = 128;

/// What a copy shows of memory that is on its way.
enum class InTransfer : std::uint8_t {
  kAsItIs,
  /// As the history has it at that moment: free, or gone (history_snapshot.h).
  kAsNoted,
};

/// The copy of one pool of a heap.
class PoolCopy {
 public:
  PoolCopy(const StreamHeap& heap, PoolId id, Snapshot* out,
           InTransfer in_transfer = InTransfer::kAsItIs) noexcept
      : heap_(heap), id_(id), in_transfer_(in_transfer), out_(out) {}

  /// Appends the pool's segments. kBusy, and `*out` is of no use, after too many setbacks.
  /// Throws std::bad_alloc if the host has too little memory.
  Status run() ASHLAR_EXCLUDES(heap_.lock);

 private:
  friend struct CachePeer;
  /// Makes room for a slice, so that nothing grows under the lock.
  void reserve_slice();
  /// False if there is more to copy.
  bool copy_slice() noexcept ASHLAR_REQUIRES(heap_.lock);
  /// Copies the segment from its first block on. False if the slice has ended.
  bool copy_segment(block::SegmentIndex at) noexcept ASHLAR_REQUIRES(heap_.lock);
  /// Copies the rest of the segment that is copied in part. False if the slice has ended.
  bool resume_segment() noexcept ASHLAR_REQUIRES(heap_.lock);
  /// Copies blocks to the end of their segment. False if the slice has ended.
  bool copy_blocks(block::BlockIndex block) noexcept ASHLAR_REQUIRES(heap_.lock);
  /// What a history says of a block in transfer.
  BlockState noted_state(const block::BlockView& view, block::SegmentIndex at) const noexcept
      ASHLAR_REQUIRES(heap_.lock);
  void end_segment(block::SegmentIndex at) noexcept ASHLAR_REQUIRES(heap_.lock);
  void drop_segment() noexcept;
  void spend(unsigned steps) noexcept;

  const StreamHeap& heap_;
  const PoolId id_;
  const InTransfer in_transfer_;
  Snapshot* const out_;
  unsigned steps_left_ = 0;   ///< of the slice
  unsigned setbacks_ = 0;     ///< so far
  std::uint32_t number_ = 1;  ///< of the segment that is copied in part, or comes next

  // The segment that is copied in part.
  bool is_in_segment_ = false;
  std::uint64_t ordinal_ = 0;              ///< tells it from another one with its number
  std::size_t first_ = 0;                  ///< its first block in the snapshot
  std::vector<block::BlockIndex> copied_;  ///< the numbers of its blocks from there on
  Address reached_;                        ///< how far any slice led
};

/// Sorts the segments by their base. Of segments that overlap, because memory changed heaps or came
/// back from the driver during the copy, only the one that was copied last is kept.
/// Throws std::bad_alloc if the host has too little memory.
void sort_segments(Snapshot* out);

}  // namespace ashlar::inline v0::cache
