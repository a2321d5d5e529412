// A pool with some history, and a sweep of damages to it: each field of each structure is set to some
// other values in turn, and BlockPool::validate() must notice each.
//
// Left out is what validate() cannot judge: stamps, user words, requests
// (block_pool_validate_test), values without effect.
// Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/block/unmapped_ranges.h>

#include "props/block/by_address.h"
#include "props/block/part_peer.h"
#include "spec/ops/random.h"

namespace ashlar::block {

/// What a pool of the sweep must have been in, so that the sweep is about it.
struct Seen {
  unsigned moving_to_wide = 0, moving_to_near = 0, splitting = 0, branches = 0;
};

/// A pool with some history.
class DamagedWorld {
 public:
  explicit DamagedWorld(std::uint64_t seed) : dice_(seed) {
    const unsigned segments = 2 + static_cast<unsigned>(dice_.below(3)) * 15;
    for (unsigned i = 0; i < segments; ++i)
      segments_.push_back(add_by_address(pool_, kBase + 4_MiB * i, 256_KiB, 0, i));
    const unsigned steps = 150 + static_cast<unsigned>(dice_.below(350));
    for (unsigned i = 0; i < steps; ++i) step();
    // Segments in transfer, which no list of free blocks holds; some give their records back.
    for (unsigned i = 0; i < 3; ++i) {
      const SegmentIndex moving =
          add_by_address(pool_, kBase + 1_GiB + 4_MiB * i, 1_MiB, 0, i, BlockState::kInTransfer);
      if (i == 1) pool_.remove_segment(moving);
    }
    if (dice_.below(2) == 0) add_unmapped();
    if (dice_.below(2) == 0) {
      add_by_address(pool_, kBase + 64_GiB, 1_MiB, 0, 0);  // outside of the window
      for (std::uint64_t i = dice_.below(16); i > 0; --i) step();
    }
    EXPECT_STREQ(pool_.validate(), nullptr);
  }
  BlockPool& pool() { return pool_; }
  Seen seen() {
    FreeIndex& index = PartPeer::index(pool_);
    Seen seen;
    seen.moving_to_wide = PartPeer::move(index) == 1;
    seen.moving_to_near = PartPeer::move(index) == 2;
    seen.splitting = PartPeer::map(pool_).is_splitting();
    seen.branches = PartPeer::branches_of(PartPeer::trees(index)).taken() > 0;
    return seen;
  }

 private:
  /// A segment of which every other granule is mapped.
  void add_unmapped() {
    UnmappedRanges ranges(pool_);
    const Address base = kBase + 2_GiB;
    const SegmentIndex added = ranges.add_segment(base, 16_KiB, Position{base.value()}, 0);
    for (BlockIndex at = pool_.view(added).first; pool_.size(at) > 512_B;) {
      ranges.lift(at);
      const BlockIndex rest = pool_.divide(at, 512_B);
      ranges.unmap(at);
      if (pool_.size(rest) == 512_B) break;
      at = pool_.divide(rest, 512_B);
      live_.push_back(pool_.release(rest, 1));
      pool_.lift(live_.back());
      EXPECT_TRUE(pool_.take_lifted(live_.back(), 1_B, 0));
      ranges.unmap(at);
    }
  }
  void step() {
    const Bytes size = 512_B * (1 + dice_.below(dice_.below(3) == 0 ? 20 : 2));
    const std::uint64_t kind = dice_.below(10);
    if (kind < 6 || live_.empty()) {
      const BlockIndex fit = pool_.best_fit(size, Bytes::max());
      if (fit == kNoBlock) return;
      live_.push_back(pool_.take(fit, size, true, size, dice_.below(2)));
      return;
    }
    std::swap(live_[dice_.below(live_.size())], live_.back());
    if (kind == 6) pool_.defer(live_.back());
    const BlockIndex free = pool_.release(live_.back(), 1);
    live_.pop_back();
    if (kind == 7) pool_.lift(free);
  }

  BlockPool pool_{512_B};
  spec::Random dice_;
  std::vector<SegmentIndex> segments_;
  std::vector<BlockIndex> live_;
};

/// Damages fields of one pool, one at a time.
class Sweep {
 public:
  Sweep(BlockPool& pool, std::uint64_t seed) : pool_(pool), dice_(seed) {}

  /// Sets the field to other values. `limit` is a number that it must stay below, if any.
  template <class T>
  void damage(T& field, const std::string& name, std::uint64_t limit = 0, std::uint64_t self = 0) {
    constexpr unsigned kBits = 8 * sizeof(T);
    const auto old = static_cast<std::uint64_t>(field);
    const std::uint64_t values[] = {old + 1,
                                    old - 1,
                                    0,
                                    old ^ std::uint64_t{1} << dice_.below(kBits),
                                    old ^ std::uint64_t{1} << (kBits - 1),
                                    limit,
                                    limit - 1,
                                    self,
                                    dice_.below(limit + 1)};
    for (const std::uint64_t value : values) {
      if (static_cast<T>(value) != static_cast<T>(old)) set(field, name, static_cast<T>(value));
    }
  }
  /// Sets the field to that value, expects it noticed, and sets it back.
  template <class T>
  void set(T& field, const std::string& name, T value) {
    const T old = field;
    field = value;
    EXPECT_NE(pool_.validate(), nullptr) << name << " was " << +old << ", is " << +value;
    damages_ += 1;
    field = old;
  }
  std::uint64_t damages() const { return damages_; }

  void run() {
    blocks();
    segments();
    trees();
    classes(PartPeer::near_classes(PartPeer::index(pool_)), "near");
    if (FitClasses* const wide = PartPeer::wide_classes(PartPeer::index(pool_)))
      classes(*wide, "wide");
    damage(PartPeer::latest(PartPeer::index(pool_)), "latest", PartPeer::records(pool_).touched());
    map();
    counts();
    EXPECT_STREQ(pool_.validate(), nullptr) << "the sweep left damage";
  }

 private:
  template <class AnySlab>
  void slab(AnySlab& slab, const std::string& name) {
    damage(PartPeer::slab_unused(slab), name + ".unused", slab.touched());
    std::uint32_t& touched = PartPeer::slab_touched(slab);
    std::uint32_t& capacity = PartPeer::slab_capacity(slab);
    const std::uint32_t before = capacity;
    capacity = touched - 1;
    EXPECT_NE(pool_.validate(), nullptr) << name << ".capacity";
    capacity = before;
    damage(touched, name + ".touched", capacity);
  }

  void blocks() {
    BlockRecords& records = PartPeer::records(pool_);
    const std::uint32_t limit = records.touched();
    slab(PartPeer::slab(pool_), "records");
    for (std::uint32_t i = 1; i < limit; ++i) {
      const std::string name = "block " + std::to_string(i);
      damage(records.state(i), name + ".state", 4);
      damage(records[i].next, name + ".next", limit, i);
      if (records.state(i) == kUnused) continue;
      damage(records[i].prev, name + ".prev", limit, i);
      // With this limit no value is kInOverflow: what the overflow record says was never written.
      damage(records[i].address, name + ".address", 1);
      damage(records[i].size, name + ".size", 1);
      damage_segment(records, i, name + ".segment");
      const bool is_free = records.state(i) == raw(BlockState::kFree);
      const bool has_link =
          is_free ? PartPeer::latest(PartPeer::index(pool_)) != i : is_owned(records.state(i));
      if (has_link) damage(records.link(i).to, name + ".link", limit, i);
    }
  }
  void damage_segment(BlockRecords& records, std::uint32_t i, const std::string& name) {
    const std::uint32_t before = records.segment(i);
    for (const std::uint32_t other : {before + 1, before - 1, ~before}) {
      records.set_segment(i, other);
      EXPECT_NE(pool_.validate(), nullptr) << name << " was " << before << ", is " << other;
      damages_ += 1;
    }
    records.set_segment(i, before);
  }
  void segments() {
    SegmentRecords& segments = PartPeer::segments(pool_);
    const std::uint32_t limit = segments.touched();
    slab(segments, "segments");
    damage(PartPeer::first_segment(pool_), "first segment", limit);
    for (std::uint32_t i = 1; i < limit; ++i) {
      const std::string name = "segment " + std::to_string(i);
      const bool is_unused = segments.state(i) == kUnused;
      // Of a segment in use, validate() knows no state but that.
      set(segments.state(i), name + ".state", is_unused ? kInUse : kUnused);
      damage(segments[i].next, name + ".next", limit, i);
      if (is_unused) continue;
      damage(segments[i].prev, name + ".prev", limit, i);
      damage(segments[i].base, name + ".base");
      damage(segments[i].size, name + ".size");
      // By less than a granule: of a segment that has no block in a tree, validate() knows no more.
      std::uint64_t& shift = segments.column<SegmentShift>(i).bytes;
      set(shift, name + ".shift", shift + 1);
      damage(segments[i].first, name + ".first", PartPeer::records(pool_).touched());
    }
  }
  std::vector<std::uint32_t> index_roots() {
    FreeIndex& index = PartPeer::index(pool_);
    const auto& near_roots = PartPeer::roots(PartPeer::near_classes(index));
    std::vector<std::uint32_t> roots(near_roots.begin(), near_roots.end());
    if (FitClasses* const wide = PartPeer::wide_classes(index)) {
      const auto& wide_roots = PartPeer::roots(*wide);
      roots.insert(roots.end(), wide_roots.begin(), wide_roots.end());
    }
    return roots;
  }
  /// Marks the nodes of one tree.
  static void mark(FitTrees& trees, std::uint32_t node, std::vector<bool>* leaves,
                   std::vector<bool>* branches) {
    if (node == kNoNode) return;
    if (!PartPeer::is_branch(node)) {
      (*leaves)[node] = true;
      return;
    }
    const std::uint32_t n = PartPeer::branch_number(node);
    (*branches)[n] = true;
    for (const std::uint32_t child : PartPeer::branches_of(trees)[n].child)
      mark(trees, child, leaves, branches);
  }
  /// The list of unused nodes has no marks: a node in use in place of an unused one is not noticed.
  void unused_node(std::uint32_t& next, const std::string& name, std::uint32_t n,
                   std::uint32_t limit) {
    set(next, name + ".next", n);
    set(next, name + ".next", limit);
    if (next != kNoNode) set(next, name + ".next", kNoNode);
  }
  void trees() {
    FitTrees& trees = PartPeer::trees(PartPeer::index(pool_));
    const std::uint32_t records = PartPeer::records(pool_).touched();
    auto& leaves = PartPeer::leaves_of(trees);
    auto& branches = PartPeer::branches_of(trees);
    std::vector<bool> used_leaves(leaves.touched()), used_branches(branches.touched());
    for (const std::uint32_t root : index_roots()) mark(trees, root, &used_leaves, &used_branches);
    for (std::uint32_t n = 0; n < leaves.touched(); ++n) {
      const std::string name = "leaf " + std::to_string(n);
      auto& leaf = leaves[n];
      if (!used_leaves[n]) {
        unused_node(leaf.parent, name, n, leaves.touched());
        continue;
      }
      damage(leaf.parent, name + ".parent", leaves.touched(), n);
      damage(leaf.used, name + ".used", 1u << PartPeer::kLeafSlots);
      damage(leaf.size_class, name + ".size_class");
      for (unsigned slot = 0; slot < PartPeer::kLeafSlots; ++slot) {
        damage(leaf.keys[slot], name + ".key");
        if ((leaf.used >> slot & 1) != 0)
          damage(leaf.records[slot], name + ".record", records, slot);
      }
    }
    for (std::uint32_t n = 0; n < branches.touched(); ++n) {
      const std::string name = "branch " + std::to_string(n);
      auto& branch = branches[n];
      if (!used_branches[n]) {
        unused_node(branch.parent, name, n, branches.touched());
        continue;
      }
      damage(branch.parent, name + ".parent", branches.touched(), n);
      damage(branch.pivot, name + ".pivot");
      for (auto& child : branch.child) damage(child, name + ".child", leaves.touched(), n);
    }
  }
  void classes(FitClasses& classes, const std::string& of) {
    for (auto& bits : PartPeer::class_bits(classes)) damage(bits, of + ".class_bits");
    for (unsigned group = 0; group < PartPeer::kGroups; ++group) {
      PartPeer::group_bits(classes) ^= std::uint64_t{1} << group;
      EXPECT_NE(pool_.validate(), nullptr) << of << ".group_bits " << group;
      PartPeer::group_bits(classes) ^= std::uint64_t{1} << group;
    }
    const auto& leaves = PartPeer::leaves_of(PartPeer::trees(PartPeer::index(pool_)));
    auto& roots = PartPeer::roots(classes);
    for (std::size_t i = 0; i < roots.size();
         i += roots[i + 1 < roots.size() ? i + 1 : i] == kNoNode ? 1 + dice_.below(8) : 1)
      damage(roots[i], of + ".root " + std::to_string(i), leaves.touched());
    // A window as far away as it is long gives every block the same place.
    if (classes.is_empty() || PartPeer::window_bits(classes) == 64) return;
    damage(PartPeer::window_base(classes), of + ".window_base",
           PartPeer::window_base(classes) + (std::uint64_t{1} << PartPeer::window_bits(classes)));
  }
  void map() {
    AddressMap& map = PartPeer::map(pool_);
    damage(PartPeer::count(map), "map.count");
    set(PartPeer::split(map), "map.split", PartPeer::half(map) + 1);
    // While a split is under way it may have come less far, or further where no entry waits.
    if (!map.is_splitting()) damage(PartPeer::split(map), "map.split");
    damage(PartPeer::limit(map), "map.limit");
    if (!map.is_splitting()) damage(PartPeer::room(map), "map.room");
    for (std::uint64_t cell = 0; cell < map.capacity(); ++cell) {
      damage(PartPeer::cells(map)[cell], "map.cell " + std::to_string(cell),
             PartPeer::records(pool_).touched());
    }
  }
  void counts() {
    PoolCounts& counts = PartPeer::counts(pool_);
    damage(counts.segments, "segments");
    damage(counts.idle_segments, "idle_segments");
    for (std::uint64_t& blocks : counts.blocks) damage(blocks, "blocks");
    const auto damage_bytes = [this](Bytes& bytes) {
      const Bytes old = bytes;
      for (const Bytes other :
           {Bytes{old.count() + 1}, Bytes{old.count() - 1}, Bytes{~old.count()}}) {
        bytes = other;
        EXPECT_NE(pool_.validate(), nullptr) << "bytes " << other.count();
      }
      bytes = old;
    };
    for (Bytes& bytes : counts.bytes) damage_bytes(bytes);
    damage_bytes(counts.segment_bytes);
    damage_bytes(counts.requested_bytes);
    damage_bytes(counts.idle_bytes);
  }

  BlockPool& pool_;
  spec::Random dice_;
  std::uint64_t damages_ = 0;
};

}  // namespace ashlar::block
