// Records of segments, and their order by address.
//
// Purpose: blocks do not store their segment; the rare caller finds it by the block's address. A
// segment index in every block would be a sixth of its record, and copied at every split.
// Thread safety: none; the pool's owner holds a lock.
//
// Invariants:
//   (1) The order holds, by rising base, each segment once that is not one block in transfer. (The
//       range of one that is may have returned to the driver and come back as another segment.)
//   (2) Inserting a segment and erasing one never allocate: there is room for all segments. Each
//       takes at most kFitStepsMax steps, however many segments there are.
//
// The order is one fit tree (fit_tree.h). It searches upwards, and the segment that contains an
// address is the last one that begins at or below it; so the keys count downwards from the highest
// address.
#pragma once

#include <cstdint>

#include <ashlar/block/fit_tree.h>
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
  Link in_order{};  ///< in the order: its leaf and slot (fit_tree.h)
};

class SegmentRecords : public Slab<SegmentRecord> {
 public:
  Link& link(std::uint32_t index) { return (*this)[index].in_order; }
  Link link(std::uint32_t index) const { return (*this)[index].in_order; }
};

class SegmentOrder {
 public:
  /// Makes room for `segments` segments. False if the host has no memory (nothing changed).
  bool reserve(std::uint32_t segments) noexcept { return tree_.reserve(segments); }
  /// As FitTrees::grow_ahead().
  bool grow_ahead(std::uint32_t segments) noexcept { return tree_.grow_ahead(segments); }
  /// Adds a segment. REQUIRES: reserve() made room for it; no segment of the order overlaps it.
  void insert(SegmentRecords& segments, std::uint32_t index) noexcept {
    tree_.insert(segments, root_, kClass, key_of(segments[index].base), index);
    count_ += 1;
  }
  /// Removes the segment that contains `address`, and returns it. REQUIRES: there is one.
  std::uint32_t erase(SegmentRecords& segments, std::uint64_t address) noexcept {
    const std::uint32_t index = find(address);
    tree_.remove(segments, index, [this](std::uint32_t) -> std::uint32_t& { return root_; });
    count_ -= 1;
    return index;
  }
  /// The segment that contains `address`. REQUIRES: there is one. Cost: O(log segments).
  std::uint32_t find(std::uint64_t address) const noexcept {
    ASHLAR_ASSERT(count_ > 0, "segments(1): an address in none of the segments");
    return tree_.lower_bound(root_, key_of(address));
  }
  /// True if the order holds `count` segments, each in use, and none of them with
  /// is_in_transfer(index). This is invariant 1 if `count` segments are not in transfer.
  /// Cost: O(segments). Defined in fit_tree_validate.h.
  template <class IsInTransfer>
  bool is_consistent(const SegmentRecords& segments, std::uint64_t count,
                     IsInTransfer&& is_in_transfer) const noexcept;

 private:
  friend struct PoolPeer;

  using Tree = FitTrees<SegmentRecords>;
  static constexpr unsigned kClass = 0;

  /// Addresses are multiples of the granule, so their low bits, which a key must not have, are
  /// zero.
  static std::uint64_t key_of(std::uint64_t address) { return ~address & ~Tree::kSlotMask; }

  Tree::Node root_ = kNoNode;
  std::uint32_t count_ = 0;
  Tree tree_;
};

}  // namespace ashlar::inline v0::block
