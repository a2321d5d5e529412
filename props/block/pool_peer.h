// PoolPeer: a test's access to the private parts of a block pool, to inspect and to damage them.
//
// Thread safety: none, as the pool.
#pragma once

#include <ashlar/block/block_pool.h>

namespace ashlar::inline v0::block {

struct PoolPeer {
  static BlockRecord& record(BlockPool& pool, BlockIndex b) { return pool.records_[raw(b)]; }
  static OverflowRecord& overflow(BlockPool& pool, BlockIndex b) {
    return pool.records_.write_overflow(raw(b));
  }
  static SegmentRecord& segment(BlockPool& pool, SegmentIndex s) { return pool.segments_[raw(s)]; }
  static SegmentSlab& segments(BlockPool& pool) { return pool.segments_; }
  static PoolCounts& counts(BlockPool& pool) { return pool.counts_; }
  static BlockRecords& records(BlockPool& pool) { return pool.records_; }
  static FreeIndex& index(BlockPool& pool) { return pool.index_; }
  static AddressMap& map(BlockPool& pool) { return pool.map_; }

  static std::uint32_t& map_count(BlockPool& pool) { return pool.map_.count_; }
  static std::uint32_t* cells(const AddressMap& map) { return map.cells_.get(); }
  static std::uint32_t index_of(std::uint32_t entry) { return AddressMap::index_of(entry); }
  static std::uint32_t& latest(FreeIndex& index) { return index.latest_; }
  static std::uint32_t& class_bits(FreeIndex& index, unsigned group) {
    return index.class_bits_[group];
  }
  static std::uint64_t& group_bits(FreeIndex& index) { return index.group_bits_; }
  using Leaf = FitTrees::Leaf;
  using Branch = FitTrees::Branch;
  static Leaf& leaf(FreeIndex& index, std::uint32_t node) { return index.trees_.leaves_[node]; }
  static Branch& branch(FreeIndex& index, std::uint32_t node) { return index.trees_.branch(node); }
  static NodeStore<Leaf>& leaves(FreeIndex& index) { return index.trees_.leaves_; }
  static std::uint32_t branches_touched(const FreeIndex& index) {
    return index.trees_.branches_.touched();
  }
  static Leaf& leaf_of(FreeIndex& index, Link link) { return leaf(index, FitTrees::leaf_of(link)); }
  static std::uint32_t slot_of(Link link) { return FitTrees::slot_of(link); }
  static constexpr unsigned kSlotBits = FitTrees::kSlotBits;
  static constexpr unsigned kLeafSlots = FitTrees::kLeafSlots;
  static constexpr std::uint64_t kNoKey = FitTrees::kNoKey;
  static unsigned window_bits(const FreeIndex& index) { return index.window_bits_; }
  static std::uint64_t window_base(const FreeIndex& index) { return index.window_base_; }
  /// The class and key of a block of that size at that offset in the window.
  static FreeIndex::Place place_of(const FreeIndex& index, Bytes size, Bytes offset) {
    return index.place_of(size.count(), offset.count());
  }
  static constexpr unsigned kClassBits = FreeIndex::kClassBits;
  static constexpr unsigned kGroups = FreeIndex::kGroups;
  static std::uint32_t& unused(BlockRecords& records) { return records.slab_.unused_; }
  static std::uint32_t* order(BlockPool& pool) { return pool.order_.entries_.get(); }
};

}  // namespace ashlar::inline v0::block
