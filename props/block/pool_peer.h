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
  static SegmentRecord& segment(BlockPool& pool, SegmentIndex s) {
    return pool.records_.segments()[raw(s)];
  }
  static SegmentRecords& segments(BlockPool& pool) { return pool.records_.segments(); }
  static PoolCounts& counts(BlockPool& pool) { return pool.counts_; }
  static BlockRecords& records(BlockPool& pool) { return pool.records_; }
  static FreeIndex& index(BlockPool& pool) { return pool.index_; }
  static FreeIndex* unmapped(BlockPool& pool) { return pool.unmapped_.get(); }
  static AddressMap& map(BlockPool& pool) { return pool.map_; }

  static std::uint32_t* cells(const AddressMap& map) { return map.cells_; }
  static std::uint32_t& split(AddressMap& map) { return map.split_; }
  static std::uint32_t split(const AddressMap& map) { return map.split_; }
  static std::uint32_t half(const AddressMap& map) { return map.half(); }
  /// True if the entry of that address may be in the chain of its cell's lower half.
  static bool waits(const AddressMap& map, std::uint64_t address) {
    return map.waits_in_lower(map.cell_of(AddressMap::hash_of(address)));
  }
  static std::uint32_t index_of(std::uint32_t entry) { return AddressMap::index_of(entry); }
  static std::uint32_t& latest(FreeIndex& index) { return index.latest_; }
  static std::uint32_t& class_bits(FreeIndex& index, unsigned group) {
    return index.near_.class_bits_[group];
  }
  /// Which way records move between the windows; 0 when none do.
  static unsigned move(const FreeIndex& index) { return static_cast<unsigned>(index.move_); }
  static std::uint64_t& group_bits(FreeIndex& index) { return index.near_.group_bits_; }
  using Trees = FreeIndex::Trees;
  using Leaf = Trees::Leaf;
  using Branch = Trees::Branch;
  static Leaf& leaf(FreeIndex& index, std::uint32_t node) { return index.trees_.leaves_[node]; }
  static Branch& branch(FreeIndex& index, std::uint32_t node) { return index.trees_.branch(node); }
  static auto& leaves(FreeIndex& index) { return index.trees_.leaves_; }
  static std::uint32_t branches_touched(const FreeIndex& index) {
    return index.trees_.branches_.touched();
  }
  static Leaf& leaf_of(FreeIndex& index, Link link) { return leaf(index, Trees::leaf_of(link)); }
  static std::uint32_t slot_of(Link link) { return Trees::slot_of(link); }
  static constexpr unsigned kSlotBits = Trees::kSlotBits;
  static constexpr unsigned kLeafSlots = Trees::kLeafSlots;
  static constexpr std::uint64_t kNoKey = Trees::kNoKey;
  static unsigned window_bits(const FreeIndex& index) { return index.near_.window_bits_; }
  static std::uint64_t window_base(const FreeIndex& index) { return index.near_.window_base_; }
  /// The class and key of a block of that size at that offset in the window.
  static FitClasses::Place place_of(const FreeIndex& index, Bytes size, Bytes offset) {
    return index.near_.place_of(size.count(), offset.count());
  }
  static constexpr unsigned kClassBits = FitClasses::kClassBits;
  static constexpr unsigned kGroups = FitClasses::kGroups;
  static std::uint32_t& unused(BlockRecords& records) { return records.slab_.unused_; }
  static bool is_settled(const FreeIndex& index) {
    return index.move_ == FreeIndex::Move::kSettled;
  }
  // Several private fields at once, by reference: part_peer.h names them.
  static auto parts(FreeIndex& index) {
    struct {
      FitClasses& near_classes;
      FitClasses* wide_classes;
      FreeIndex::Trees& trees;
    } const parts{index.near_, index.wide_.get(), index.trees_};
    return parts;
  }
  static auto parts(FitClasses& classes) {
    struct {
      decltype(classes.class_bits_)& class_bits;
      std::uint64_t& group_bits;
      decltype(classes.roots_)& roots;
      std::uint64_t& window_base;
      unsigned& window_bits;
    } const parts{classes.class_bits_, classes.group_bits_, classes.roots_, classes.window_base_,
                  classes.window_bits_};
    return parts;
  }
  static auto parts(AddressMap& map) {
    struct {
      std::uint32_t& count;
      std::uint32_t& limit;
      std::uint32_t& room;
    } const parts{map.count_, map.limit_, map.room_};
    return parts;
  }
  static auto parts(BlockPool& pool) {
    struct {
      std::uint32_t& first_segment;
      decltype(pool.records_.slab_)& slab;
    } const parts{pool.segments_first_, pool.records_.slab_};
    return parts;
  }
  template <class AnyTrees>
  static auto parts_of_trees(AnyTrees& trees) {
    struct {
      decltype(trees.leaves_)& leaves;
      decltype(trees.branches_)& branches;
    } const parts{trees.leaves_, trees.branches_};
    return parts;
  }
  template <class AnySlab>
  static auto parts_of_slab(AnySlab& slab) {
    struct {
      std::uint32_t& unused;
      std::uint32_t& touched;
      std::uint32_t& capacity;
    } const parts{slab.unused_, slab.touched_, slab.capacity_};
    return parts;
  }
  static std::uint32_t hash_of(std::uint64_t address) { return AddressMap::hash_of(address); }
  static constexpr unsigned kMovedAtOnce = FreeIndex::kMovedAtOnce;
  static constexpr std::uint32_t kBranch = Trees::kBranch;

  /// Pretends that the index has settled, or that its records move to the wide classes.
  static void settle(FreeIndex& index, bool is_settled = true) {
    index.set_move(is_settled ? FreeIndex::Move::kSettled : FreeIndex::Move::kToWide);
  }
};

}  // namespace ashlar::inline v0::block
