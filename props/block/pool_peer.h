// A test's way into the private parts of a block pool: to damage them, and to see validate() name
// the damage.
#pragma once

#include <ashlar/block/block_pool.h>

namespace ashlar::inline v0::block {

struct PoolPeer {
  static BlockRecord& record(BlockPool& pool, BlockIndex b) {
    return pool.records_[static_cast<std::uint32_t>(b)];
  }
  static Apart& apart(BlockPool& pool, BlockIndex b) {
    return pool.records_.write_apart(static_cast<std::uint32_t>(b));
  }
  static SegmentRecord& segment(BlockPool& pool, SegmentIndex s) {
    return pool.segments_[static_cast<std::uint32_t>(s)];
  }
  static SegmentSlab& segments(BlockPool& pool) { return pool.segments_; }
  static PoolCounts& counts(BlockPool& pool) { return pool.counts_; }
  static BlockRecords& records(BlockPool& pool) { return pool.records_; }
  static FreeIndex& index(BlockPool& pool) { return pool.index_; }
  static AddressMap& map(BlockPool& pool) { return pool.map_; }

  static std::uint32_t& map_count(BlockPool& pool) { return pool.map_.count_; }
  static std::uint32_t* cells(const AddressMap& map) { return map.cells_.get(); }
  static std::uint32_t index_of(std::uint32_t entry) { return AddressMap::index_of(entry); }
  static std::uint32_t& latest(FreeIndex& index) { return index.latest_; }
  static std::uint32_t& root(FreeIndex& index, unsigned size_class) {
    return index.roots_[size_class];
  }
  static std::uint32_t& subs(FreeIndex& index, unsigned group) { return index.subs_[group]; }
  static std::uint64_t& groups(FreeIndex& index) { return index.groups_; }
  using Leaf = FitTrees::Leaf;
  using Branch = FitTrees::Branch;
  static Leaf& leaf(FreeIndex& index, std::uint32_t node) { return index.trees_.leaves_[node]; }
  static Branch& branch(FreeIndex& index, std::uint32_t node) { return index.trees_.branch(node); }
  static NodeStore<Leaf>& leaves(FreeIndex& index) { return index.trees_.leaves_; }
  static std::uint32_t branches_touched(const FreeIndex& index) {
    return index.trees_.branches_.touched();
  }
  static Leaf& leaf_at(FreeIndex& index, Link place) {
    return leaf(index, FitTrees::leaf_at(place));
  }
  static std::uint32_t slot_at(Link place) { return FitTrees::slot_at(place); }
  static constexpr unsigned kSlotBits = FitTrees::kSlotBits;
  static constexpr unsigned kLeafSlots = FitTrees::kLeafSlots;
  static constexpr std::uint64_t kNoKey = FitTrees::kNoKey;
  static unsigned window_bits(const FreeIndex& index) { return index.window_bits_; }
  static unsigned sub_bits() { return FreeIndex::kSubBits; }
  static std::uint32_t& unused(BlockRecords& records) { return records.slab_.unused_; }
  static std::uint32_t* order(BlockPool& pool) { return pool.order_.entries_.get(); }
};

}  // namespace ashlar::inline v0::block
