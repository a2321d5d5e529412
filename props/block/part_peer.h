// PartPeer: names for the private fields that PoolPeer gives several at once, of the parts of a pool:
// classes, trees, slabs, the address map.
//
// Thread safety: none, as the pool.
#pragma once

#include "props/block/pool_peer.h"

namespace ashlar::inline v0::block {

struct PartPeer : PoolPeer {
  // The free index and its classes.
  static FitClasses& near_classes(FreeIndex& index) { return parts(index).near_classes; }
  /// nullptr if no record had to move yet.
  static FitClasses* wide_classes(FreeIndex& index) { return parts(index).wide_classes; }
  static auto& class_bits(FitClasses& classes) { return parts(classes).class_bits; }
  static std::uint64_t& group_bits(FitClasses& classes) { return parts(classes).group_bits; }
  static auto& roots(FitClasses& classes) { return parts(classes).roots; }
  static std::uint64_t& window_base(FitClasses& classes) { return parts(classes).window_base; }
  static std::uint64_t window_base(FreeIndex& index) { return window_base(near_classes(index)); }
  static unsigned window_bits(FitClasses& classes) { return parts(classes).window_bits; }
  static unsigned window_bits(FreeIndex& index) { return window_bits(near_classes(index)); }

  // Trees.
  static auto& trees(FreeIndex& index) { return parts(index).trees; }
  template <class AnyTrees>
  static auto& leaves_of(AnyTrees& trees) {
    return parts_of_trees(trees).leaves;
  }
  template <class AnyTrees>
  static auto& branches_of(AnyTrees& trees) {
    return parts_of_trees(trees).branches;
  }
  static bool is_branch(std::uint32_t node) { return (node & kBranch) != 0; }
  static std::uint32_t branch_number(std::uint32_t node) { return node & ~kBranch; }
  static std::uint32_t leaf_number(Link link) { return link.to >> kSlotBits; }

  // The address map.
  static std::uint32_t cell_of(const AddressMap& map, std::uint64_t address) {
    return hash_of(address) & (static_cast<std::uint32_t>(map.capacity()) - 1);
  }
  static std::uint32_t lower_of(const AddressMap& map, std::uint32_t cell) {
    return cell & (half(map) - 1);
  }
  static std::uint32_t& count(AddressMap& map) { return parts(map).count; }
  static std::uint32_t& limit(AddressMap& map) { return parts(map).limit; }
  static std::uint32_t& room(AddressMap& map) { return parts(map).room; }

  // Slabs of any records.
  template <class AnySlab>
  static std::uint32_t& slab_unused(AnySlab& slab) {
    return parts_of_slab(slab).unused;
  }
  template <class AnySlab>
  static std::uint32_t& slab_touched(AnySlab& slab) {
    return parts_of_slab(slab).touched;
  }
  template <class AnySlab>
  static std::uint32_t& slab_capacity(AnySlab& slab) {
    return parts_of_slab(slab).capacity;
  }

  // Segments and the pool.
  static std::uint32_t& first_segment(BlockPool& pool) { return parts(pool).first_segment; }
  static auto& slab(BlockPool& pool) { return parts(pool).slab; }
};

}  // namespace ashlar::inline v0::block
