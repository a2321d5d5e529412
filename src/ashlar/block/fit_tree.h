// Fit trees: records ordered by key, with leaves of several keys in no order. The free index has one
// for each class.
//
// Purpose: an allocator inserts and removes blocks far more often than it searches for the best
// one. Inserting into a leaf and removing from it is a store: no comparison, no path, no other
// block's record. A search scans all slots of one leaf without a conditional jump on the keys;
// mispredicted jumps were most of the cost of the sorted tree used before (measured).
// Thread safety: none; the pool's owner holds a lock. const members may run concurrently.
//
// Invariants:
//   (1) Bit i of a leaf's `used` is set exactly when its slot i is full; the key of an empty slot
//       is kNoKey. A leaf under a branch is not empty. A leaf that is a whole tree may be empty: it
//       is kept for the next block of its class as long as the leaves in use are no more than the
//       records that reserve() counted. So there are at most that many empty leaves, and at most
//       that many others; reserve() makes room for both.
//   (2) The key in a full slot is the record's key plus the slot's number, in low bits that are
//       zero in every record's key. The record's link names leaf and slot.
//   (3) All keys under a branch share the bits of its pivot above the pivot's lowest set bit, and
//       each side has keys. Parent and child name each other. So a path has at most one branch for
//       each bit of a key.
//
// Above the leaves is a binary digital tree without its unary paths (D. Morrison, PATRICIA, J. ACM
// 15, 1968). A branch stores a pivot: the bits that its keys share, then a one, then zeros. Keys
// under it that are smaller than the pivot go left, the others right. A full leaf is split at the
// highest bit in which its keys differ, so that neither half is empty.
#pragma once

#include <bit>
#include <cstdint>

#include <ashlar/base/step_count.h>
#include <ashlar/block/block_records.h>
#include <ashlar/block/node_store.h>

namespace ashlar::inline v0::block {

/// The most nodes that a search, insertion or removal visits on a path: one branch for each bit of
/// a key, and a leaf.
inline constexpr unsigned kFitStepsMax = 60;

/// Trees of block records, whose link(index) is the trees' to write while a record is in one.
class FitTrees {
 public:
  using Records = BlockRecords;
  /// The number of a leaf, or that of a branch with the bit kBranch; kNoNode for no tree.
  using Node = std::uint32_t;

  /// The low bits of a key that must be zero. A record's link has its leaf's number and, in as many
  /// low bits, its slot.
  static constexpr unsigned kSlotBits = 4;
  static constexpr std::uint64_t kSlotMask = (1u << kSlotBits) - 1;

  /// Makes room for `records` records in all trees together. False if the host has no memory.
  bool reserve(std::uint32_t records) noexcept {
    return leaves_.reserve(2 * records) && branches_.reserve(records);
  }

  /// Makes room for them in one store that lacks it. True if there was one, whether or not the host
  /// had memory for it.
  bool grow_ahead(std::uint32_t records) noexcept {
    if (leaves_.capacity() < 2 * records) {
      static_cast<void>(leaves_.reserve(2 * records));
    } else if (branches_.capacity() < records) {
      static_cast<void>(branches_.reserve(records));
    } else {
      return false;
    }
    return true;
  }

  /// Inserts a record into the tree of its class. REQUIRES: the key is not in the tree; reserve()
  /// made room for the record.
  void insert(Records& records, Node& root, unsigned size_class, std::uint64_t key,
              std::uint32_t index) noexcept;
  struct Removed {
    std::uint32_t size_class;
    bool is_empty;  ///< true if the class has no record left
  };
  /// Removes a record. root_of(size_class) is the root of its class's tree, by reference; it is
  /// asked for where the tree changes its shape. REQUIRES: the record is in that tree.
  template <class RootOf>
  Removed remove(Records& records, std::uint32_t index, RootOf&& root_of) noexcept;
  /// The record with the smallest key >= `key`, or kNone. REQUIRES: the tree has a record.
  std::uint32_t lower_bound(Node root, std::uint64_t key) const noexcept;
  /// The record with the smallest key, or the largest. REQUIRES: the tree has a record.
  std::uint32_t smallest(Node root) const noexcept;
  std::uint32_t largest(Node root) const noexcept;
  /// A record of the leaf with the smallest keys. REQUIRES: the tree has a record.
  std::uint32_t any_of_first_leaf(Node root) const noexcept;
  /// Drops a tree that has no record left.
  void drop_empty(Node& root) noexcept {
    leaves_.give_back(root);
    root = kNoNode;
  }

  struct NodeCounts {
    std::uint64_t records = 0;
    std::uint64_t leaves = 0;
    std::uint64_t branches = 0;
    std::uint8_t state = 0;  ///< that every record must be in
  };
  /// Walks one tree and adds to `counts`. Returns nullptr, or the text of the broken invariant.
  /// key_of(index) is the key that record `index` should have. Cost: O(nodes). Defined in
  /// fit_tree_validate.h.
  template <class KeyOf>
  const char* validate(const Records& records, Node root, unsigned size_class, NodeCounts* counts,
                       KeyOf&& key_of) const;
  /// True if every node is in a tree that was counted, or unused.
  bool accounts_for(const NodeCounts& counts) const noexcept {
    return leaves_.accounts_for(counts.leaves) && branches_.accounts_for(counts.branches);
  }

 private:
  friend struct PoolPeer;

  static constexpr Node kBranch = 0x80000000u;
  static constexpr unsigned kLeafSlots = 10;
  static constexpr std::uint16_t kAllSlotsUsed = (1u << kLeafSlots) - 1;
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};
  static_assert(kRecordsMax <= (1u << (31 - kSlotBits)),
                "a link can number twice as many leaves as there are records");
  static_assert(kLeafSlots <= kSlotMask, "kNoKey is greater than any record's key with its slot");

  struct alignas(64) Leaf {
    Leaf() {
      for (std::uint64_t& key : keys) key = kNoKey;
    }
    std::uint64_t keys[kLeafSlots];
    Node parent = kNoNode;
    std::uint16_t used = 0;
    std::uint16_t size_class = 0;
    std::uint32_t records[kLeafSlots];
  };
  static_assert(sizeof(Leaf) == 128, "two cache lines");
  struct Branch {
    std::uint64_t pivot = 0;
    Node child[2] = {kNoNode, kNoNode};
    Node parent = kNoNode;
  };

  static Node leaf_of(Link link) { return link.to >> kSlotBits; }
  static std::uint32_t slot_of(Link link) { return link.to & kSlotMask; }
  static bool is_branch(Node node) { return (node & kBranch) != 0; }
  Branch& branch(Node node) { return branches_[node & ~kBranch]; }
  const Branch& branch(Node node) const { return branches_[node & ~kBranch]; }
  Node& parent_of(Node node) {
    return is_branch(node) ? branch(node).parent : leaves_[node].parent;
  }
  /// True if the key cannot be under the branch: it differs from the pivot above the pivot's lowest
  /// set bit.
  static bool is_outside(std::uint64_t key, std::uint64_t pivot) {
    return (key ^ pivot) > (pivot ^ (pivot - 1));
  }
  static std::uint64_t distance_to_next(const Leaf& leaf, std::uint64_t key) noexcept;
  /// The leaf with the tree's smallest keys (side 0) or its largest (side 1).
  Node outermost(Node root, unsigned side) const noexcept {
    Node node = root;
    for (; is_branch(node); node = branch(node).child[side]) count_steps(1);
    return node;
  }

  Node add_leaf(unsigned size_class) noexcept;
  void fill_slot(Records& records, Node node, std::uint64_t key, std::uint32_t index) noexcept;
  void add_branch(Node& link, Node parent, std::uint64_t bit, std::uint64_t key, Node with_key,
                  Node other) noexcept;
  void split_leaf(Records& records, Node& link, std::uint64_t key, std::uint32_t index) noexcept;
  bool drop_leaf(Node& root, Node leaf) noexcept;

  NodeStore<Leaf, std::uint64_t{2} * kRecordsMax> leaves_;
  NodeStore<Branch, kRecordsMax> branches_;
};

// Searching.

/// The distance from `key` up to the leaf's next key. It wraps for keys below `key`, so that these
/// and empty slots are further away than any key above.
inline std::uint64_t FitTrees::distance_to_next(const Leaf& leaf, std::uint64_t key) noexcept {
  std::uint64_t even = kNoKey;
  std::uint64_t odd = kNoKey;
  for (unsigned i = 0; i < kLeafSlots; i += 2) {
    const std::uint64_t a = leaf.keys[i] - key;
    const std::uint64_t b = leaf.keys[i + 1] - key;
    even = a < even ? a : even;
    odd = b < odd ? b : odd;
  }
  return even < odd ? even : odd;
}

inline std::uint32_t FitTrees::lower_bound(Node root, std::uint64_t key) const noexcept {
  Node node = root;
  Node above = kNoNode;  // the last subtree passed whose keys are all greater
  while (is_branch(node)) {
    count_steps(1);
    const Branch& at = branch(node);
    if (is_outside(key, at.pivot)) {
      if (key < at.pivot) return smallest(node);
      return above == kNoNode ? kNone : smallest(above);
    }
    if (key < at.pivot) {
      above = at.child[1];
      node = at.child[0];
    } else {
      node = at.child[1];
    }
  }
  const Leaf& leaf = leaves_[node];
  const std::uint64_t distance = distance_to_next(leaf, key);
  if (distance < kNoKey - key) return leaf.records[(key + distance) & kSlotMask];
  return above == kNoNode ? kNone : smallest(above);
}

inline std::uint32_t FitTrees::smallest(Node root) const noexcept {
  const Leaf& leaf = leaves_[outermost(root, 0)];
  return leaf.records[distance_to_next(leaf, 0) & kSlotMask];
}

inline std::uint32_t FitTrees::any_of_first_leaf(Node root) const noexcept {
  const Leaf& leaf = leaves_[outermost(root, 0)];
  return leaf.records[std::countr_zero(leaf.used)];
}

inline std::uint32_t FitTrees::largest(Node root) const noexcept {
  const Leaf& leaf = leaves_[outermost(root, 1)];
  std::uint64_t most = 0;
  for (const std::uint64_t key : leaf.keys) most = key != kNoKey && key > most ? key : most;
  return leaf.records[most & kSlotMask];
}

// Changing.

inline void FitTrees::insert(Records& records, Node& root, unsigned size_class, std::uint64_t key,
                             std::uint32_t index) noexcept {
  if (root == kNoNode) root = add_leaf(size_class);
  Node* link = &root;
  Node parent = kNoNode;
  while (is_branch(*link)) {
    count_steps(1);
    Branch& at = branch(*link);
    if (is_outside(key, at.pivot)) {
      const Node leaf = add_leaf(size_class);
      fill_slot(records, leaf, key, index);
      add_branch(*link, parent, std::bit_floor(key ^ at.pivot), key, leaf, *link);
      return;
    }
    parent = *link;
    link = &at.child[key >= at.pivot];
  }
  if (leaves_[*link].used == kAllSlotsUsed) return split_leaf(records, *link, key, index);
  fill_slot(records, *link, key, index);
}

template <class RootOf>
inline FitTrees::Removed FitTrees::remove(Records& records, std::uint32_t index,
                                          RootOf&& root_of) noexcept {
  const Node node = leaf_of(records.link(index));
  const std::uint32_t slot = slot_of(records.link(index));
  Leaf& leaf = leaves_[node];
  ASHLAR_ASSERT(leaf.records[slot] == index,
                "fit tree(2): remove() of a block that is not in a tree");
  leaf.keys[slot] = kNoKey;
  leaf.used = static_cast<std::uint16_t>(leaf.used & ~(1u << slot));
  // One jump on all conditions together, because a leaf becomes empty about half of the time.
  const bool is_empty = leaf.used == 0;
  const bool must_drop = (leaf.parent != kNoNode) | (leaves_.taken() > branches_.capacity());
  const std::uint32_t size_class = leaf.size_class;
  if (is_empty & must_drop) [[unlikely]]
    return Removed{size_class, drop_leaf(root_of(size_class), node)};
  return Removed{size_class, is_empty};
}

/// Takes a leaf without a parent: a whole tree.
inline FitTrees::Node FitTrees::add_leaf(unsigned size_class) noexcept {
  const Node node = leaves_.take();
  Leaf& leaf = leaves_[node];
  leaf.size_class = static_cast<std::uint16_t>(size_class);
  leaf.parent = kNoNode;
  return node;
}

/// Stores the record in an empty slot of the leaf. REQUIRES: there is one.
inline void FitTrees::fill_slot(Records& records, Node node, std::uint64_t key,
                                std::uint32_t index) noexcept {
  Leaf& leaf = leaves_[node];
  const auto slot = static_cast<std::uint32_t>(std::countr_one(leaf.used));
  ASHLAR_ASSERT(slot < kLeafSlots, "fit tree(1): no empty slot in the leaf");
  leaf.used = static_cast<std::uint16_t>(leaf.used | 1u << slot);
  leaf.keys[slot] = key | slot;
  leaf.records[slot] = index;
  records.link(index).to = node << kSlotBits | slot;
}

/// Puts a new branch at `link`, above two nodes: `with_key`, whose keys equal `key` down to `bit`,
/// and `other`, whose keys differ from it in `bit` and not above.
inline void FitTrees::add_branch(Node& link, Node parent, std::uint64_t bit, std::uint64_t key,
                                 Node with_key, Node other) noexcept {
  const std::uint32_t index = branches_.take();
  const bool side = (key & bit) != 0;
  Branch& at = branches_[index];
  at.pivot = (key | bit) & ~(bit - 1);
  at.child[side] = with_key;
  at.child[!side] = other;
  at.parent = parent;
  link = index | kBranch;
  parent_of(with_key) = link;
  parent_of(other) = link;
}

}  // namespace ashlar::inline v0::block
