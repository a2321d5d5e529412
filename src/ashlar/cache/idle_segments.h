// Which of a heap's segments may go back to the driver, and which of them first (segment_release.h).
//
// Thread safety: by the role `reclaiming` and the heap's lock. A walk over a heap's segments or free blocks lets go of that lock
// after a slice and takes it again (C31): the segments stay where the walk is, as without the role nobody removes one, and new ones
// come in front of all others; but what a walk returned may not be idle any more.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <ashlar/cache/reclaim_lock.h>
#include <ashlar/cache/segment_supply.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

/// The order of segments by size; of equally large ones the older is the smaller.
struct SizeRank {
  Bytes size;
  std::uint64_t ordinal = 0;
  bool is_smaller_than(const SizeRank& other) const noexcept {
    return size < other.size || (size == other.size && ordinal < other.ordinal);
  }
};

/// May the segment go back: is it one free block whose last use is known complete (D4), or which goes back behind
/// that, and of no memory pool in use, nor pinned?
bool may_go_back(const StreamHeap& heap, const DeviceSegment* segment,
                 Behind behind = Behind::kNone) noexcept ASHLAR_REQUIRES(reclaiming, heap.lock);

/// The heap's smallest segment of at least `size` bytes that may go back and was not asked about
/// in the pass, or nullptr. Cost: the free blocks of that size, and the larger ones that may not go back.
DeviceSegment* smallest_idle(StreamHeap& heap, Bytes size, std::uint64_t pass) noexcept
    ASHLAR_REQUIRES(reclaiming, heap.lock);

/// Some of a heap's segments that may go back.
struct IdleBatch {
  std::array<DeviceSegment*, 64> segments;
  unsigned count = 0;
  bool has_others =
      false;  ///< whose work is done, and which stay all the same: held, refused, or a memory pool's

  std::span<DeviceSegment* const> all() const noexcept { return {segments.data(), count}; }
  /// Is there no segment whose work is done?
  bool is_empty_handed() const noexcept { return count == 0 && !has_others; }
};

/// The first of the heap's segments that may go back, of those that were not asked about in the pass. Cost: the heap's free blocks.
IdleBatch next_idle(StreamHeap& heap, std::uint64_t pass, Behind behind) noexcept
    ASHLAR_REQUIRES(reclaiming, heap.lock);

/// A walk over all segments of a heap. The one that it returned last may be removed.
class SegmentWalk {
 public:
  /// The next segment that may go back, or nullptr at the end.
  DeviceSegment* next_idle(const StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming, heap.lock);
  /// The heap's lock was taken anew.
  void begin_hold() noexcept { looks_ = 0; }

 private:
  std::size_t pool_ = 0;
  bool has_begun_ = false;  ///< with that pool
  block::SegmentIndex next_ = block::kNoSegment;
  unsigned looks_ = 0;  ///< since it took the heap's lock
};

/// The first idle segments in some order: as many as one walk chooses.
struct FirstIdle {
  using ComesBefore = bool (*)(const DeviceSegment*, const DeviceSegment*) noexcept;
  void insert(DeviceSegment* segment, ComesBefore comes_before) noexcept;

  std::array<DeviceSegment*, 32> segments{};
  std::size_t count = 0;
};

/// The heap's largest segments that may go back, the largest first. Cost: a walk over its segments.
FirstIdle find_largest(StreamHeap& heap, Bytes at_least, std::uint64_t pass) noexcept
    ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);

}  // namespace ashlar::inline v0::cache
