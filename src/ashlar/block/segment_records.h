// Records of segments, and their order by address.
//
// Purpose: blocks do not store their segment; the rare caller binary-searches the segments by the
// block's address. A segment index in every block would be a sixth of its record, and copied at
// every split.
// Thread safety: none; the pool's owner holds a lock.
//
// Invariants:
//   (1) The order holds, by rising base, each segment once that is not one block in transfer. (The
//       range of one that is may have returned to the driver and come back as another segment.)
//   (2) Inserting a segment and erasing one never allocate: there is room for all segments.
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
  /// the block at `base`; it has the same record for the segment's whole life
  std::uint32_t first = kNone;
  std::uint32_t prev = kNone;  ///< in the pool's list of segments
  std::uint32_t next = kNone;
};
using SegmentSlab = Slab<SegmentRecord>;

class SegmentOrder {
 public:
  /// Makes room for `segments` segments. False if the host has no memory (nothing changed).
  /// Amortised O(1). REQUIRES: at most one more than at the call before.
  bool reserve(std::uint64_t segments) noexcept { return segments <= capacity_ || grow(); }
  /// Adds a segment. REQUIRES: reserve() made room for it; no segment of the order overlaps it.
  /// Cost: O(segments above it), a number moved for each.
  void insert(const SegmentSlab& segments, std::uint32_t index) noexcept {
    ASHLAR_ASSERT(count_ < capacity_, "segments(2): insert() without reserved room");
    std::uint32_t* const at = first_above(segments, segments[index].base);
    std::copy_backward(at, end(), end() + 1);
    *at = index;
    count_ += 1;
  }
  /// Removes the segment that contains `address`, and returns it. REQUIRES: there is one.
  /// Cost: as insert().
  std::uint32_t erase(const SegmentSlab& segments, std::uint64_t address) noexcept {
    std::uint32_t* const at = position_of(segments, address);
    const std::uint32_t index = *at;
    std::copy(at + 1, end(), at);
    count_ -= 1;
    return index;
  }
  /// The segment that contains `address`. REQUIRES: there is one. Cost: O(log segments).
  std::uint32_t find(const SegmentSlab& segments, std::uint64_t address) const noexcept {
    return *position_of(segments, address);
  }
  /// True if the order holds `count` segments, each in use, by rising base, and none of them with
  /// is_in_transfer(index). This is invariant 1 if `count` segments are not in transfer.
  template <class IsInTransfer>
  bool is_consistent(const SegmentSlab& segments, std::uint64_t count,
                     IsInTransfer&& is_in_transfer) const noexcept {
    if (count_ != count) return false;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const std::uint32_t index = entries_[i];
      if (index >= segments.capacity() || segments.state(index) != kInUse || is_in_transfer(index))
        return false;
      if (i > 0 && segments[entries_[i - 1]].base >= segments[index].base) return false;
    }
    return true;
  }

 private:
  friend struct PoolPeer;

  static constexpr std::uint32_t kCapacityFirst = 16;

  std::uint32_t* end() const noexcept { return entries_.get() + count_; }
  /// The first entry whose base is above `address`.
  std::uint32_t* first_above(const SegmentSlab& segments, std::uint64_t address) const noexcept {
    return std::upper_bound(
        entries_.get(), end(), address,
        [&segments](std::uint64_t of, std::uint32_t index) { return of < segments[index].base; });
  }
  /// The entry of the segment that contains `address`. REQUIRES: there is one.
  std::uint32_t* position_of(const SegmentSlab& segments, std::uint64_t address) const noexcept {
    std::uint32_t* const above = first_above(segments, address);
    ASHLAR_ASSERT(above != entries_.get(), "segments(1): an address below every segment");
    return above - 1;
  }

  [[gnu::cold]] bool grow() noexcept {
    // Never more than the slab of segments has records, so the doubling does not wrap.
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
