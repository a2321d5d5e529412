// Records of segments, and their order by address.
//
// Purpose: a block does not know its segment; who asks finds it by the block's address, among the
// segments in order. That is seldom, and a number a block would be a sixth of what is kept of it,
// copied at every split.
// Thread safety: none; the pool's owner brings the lock.
//
// Invariants:
//   (1) The order names every segment once that is not all in transfer, by rising bases. (Of one
//       that is, the range may be the driver's again, and another segment's.)
//   (2) Putting a segment in again, and taking it out, never allocates: there is room for all
//       segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <ashlar/base/host_table.h>
#include <ashlar/block/slab.h>

namespace ashlar::inline v0::block {

/// A segment, or an unused record.
struct SegmentRecord {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t user = 0;
  /// its lowest block; the record never changes while the segment lives
  std::uint32_t first = kNone;
  std::uint32_t prev = kNone;  ///< in the pool's list of segments
  std::uint32_t next = kNone;
};
using SegmentSlab = Slab<SegmentRecord>;

class SegmentOrder {
 public:
  /// Makes sure that so many segments can be in the order together, one more than last time at
  /// most. False if the host has no memory (nothing changed). Amortised O(1).
  bool reserve(std::uint64_t segments) noexcept { return segments <= capacity_ || grow(); }
  /// REQUIRES: reserve() has counted it; no segment of the order overlaps this one. Cost: as moving
  /// the entries above it.
  void insert(const SegmentSlab& segments, std::uint32_t index) noexcept {
    ASHLAR_ASSERT(count_ < capacity_, "segments(1): insert() without a reserved place");
    std::uint32_t* const at = above(segments, segments[index].base);
    std::copy_backward(at, end(), end() + 1);
    *at = index;
    count_ += 1;
  }
  /// Takes out the segment that holds `address`, and returns it. REQUIRES: there is one. Cost: as
  /// insert().
  std::uint32_t erase(const SegmentSlab& segments, std::uint64_t address) noexcept {
    std::uint32_t* const after = above(segments, address);
    ASHLAR_ASSERT(after != entries_.get(), "segments(1): below every segment");
    const std::uint32_t index = after[-1];
    std::copy(after, end(), after - 1);
    count_ -= 1;
    return index;
  }
  /// The segment that holds `address`. REQUIRES: there is one. Cost: O(log segments).
  std::uint32_t at(const SegmentSlab& segments, std::uint64_t address) const noexcept {
    const std::uint32_t* const after = above(segments, address);
    ASHLAR_ASSERT(after != entries_.get(), "segments(1): below every segment");
    return after[-1];
  }
  /// Are they `count`, in use, in order, and none of them one that `is_away(index)`? If as many
  /// segments are not: invariant 1.
  template <class IsAway>
  bool is_consistent(const SegmentSlab& segments, std::uint64_t count,
                     IsAway&& is_away) const noexcept {
    if (count_ != count) return false;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const std::uint32_t index = entries_[i];
      if (index >= segments.capacity() || segments.state(index) != kInUse || is_away(index))
        return false;
      if (i > 0 && segments[entries_[i - 1]].base >= segments[index].base) return false;
    }
    return true;
  }

 private:
  friend struct PoolPeer;

  static constexpr std::uint32_t kCapacityFirst = 16;

  std::uint32_t* end() const noexcept { return entries_.get() + count_; }
  /// The first whose base is above `address`.
  std::uint32_t* above(const SegmentSlab& segments, std::uint64_t address) const noexcept {
    return std::upper_bound(
        entries_.get(), end(), address,
        [&segments](std::uint64_t of, std::uint32_t index) { return of < segments[index].base; });
  }

  [[gnu::cold]] bool grow() noexcept {
    // no more than the slab's, which fits
    const std::uint32_t capacity = capacity_ == 0 ? kCapacityFirst : capacity_ * 2;
    HostTable<std::uint32_t> entries = make_host_table<std::uint32_t>(capacity);
    if (entries == nullptr) return false;
    std::copy(entries_.get(), end(), entries.get());
    entries_ = std::move(entries);
    capacity_ = capacity;
    return true;
  }

  HostTable<std::uint32_t> entries_;
  std::uint32_t capacity_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace ashlar::inline v0::block
