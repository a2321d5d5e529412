// The trees of the free index: one for each class, ordered by key, with leaves that hold several
// keys in no order.
//
// Purpose: an allocator puts blocks in and takes them out far oftener than it looks for the best
// one. In a leaf either is a store: no comparison, no path, no other block's record. A search scans
// one leaf, all slots, with no branch on what it finds; mispredicted branches were most of what the
// sorted tree before this one cost (measured).
// Thread safety: none; the pool's owner brings the lock. const members may run together.
//
// Above the leaves is a binary digital tree with its unary paths left out (D. Morrison, PATRICIA,
// J. ACM 15, 1968). A branch names its pivot: the bits its keys share, then a one, then zeros. Keys
// under it that are smaller than the pivot go left, the others right. A full leaf is divided at the
// highest bit in which its keys differ, so both halves have some.
//
// Invariants:
//   (1) `used` says which slots of a leaf are full; an empty slot's key is kNoKey. A leaf under a
//       branch is not empty. One that is a whole tree may be: it is kept for the class's next block
//       while no more leaves are in use than room was made for records. So of empty leaves, too,
//       there are never more than that, and reserve() makes room for both.
//   (2) A full slot's key is the record's key plus the slot's number, in low bits that are zero in
//       every key; the record names leaf and slot.
//   (3) All keys under a branch share the pivot's bits above its lowest one, and both sides have
//       keys; parent and child name each other. So a path has at most one branch for each bit of a
//       key.
#pragma once

#include <bit>
#include <cstdint>

#include <ashlar/block/block_records.h>
#include <ashlar/block/node_store.h>

namespace ashlar::inline v0::block {

class FitTrees {
 public:
  using Records = BlockRecords;
  /// A leaf's number, or a branch's with kBranch; kNoNode is no tree.
  using Node = std::uint32_t;

  /// The low bits of a key, which must be zero. A record's link has as many for its slot, under its
  /// leaf.
  static constexpr unsigned kSlotBits = 4;
  static constexpr std::uint64_t kSlotMask = (1u << kSlotBits) - 1;

  /// Makes sure that `records` records can be in the trees together. False if the host has no
  /// memory.
  bool reserve(std::uint32_t records) noexcept {
    return leaves_.reserve(2 * records) && branches_.reserve(records);
  }

  /// Adds a record to the tree of its class. REQUIRES: its key is not in it; reserve() has counted
  /// it.
  void insert(Records& records, Node& root, unsigned size_class, std::uint64_t key,
              std::uint32_t index) noexcept;
  struct Removed {
    std::uint32_t size_class;
    bool is_empty;  ///< the class has no record any more
  };
  /// Takes a record out. REQUIRES: it is in a tree of `roots`.
  Removed remove(Records& records, Node* roots, std::uint32_t index) noexcept;
  /// The record with the smallest key >= `key`, or kNone. REQUIRES: a tree, not empty.
  std::uint32_t lower_bound(Node root, std::uint64_t key) const noexcept;
  /// The record with the smallest, the largest key. REQUIRES: a tree, not empty.
  std::uint32_t smallest(Node root) const noexcept;
  std::uint32_t largest(Node root) const noexcept;
  /// Is there no tree, not even one without records?
  bool is_empty() const noexcept { return leaves_.taken() == 0; }
  /// Forgets all trees.
  void clear() noexcept {
    leaves_.clear();
    branches_.clear();
  }

  /// Walks one tree: nullptr, or the invariant that broke. key_of(index) says what a record's key
  /// should be. Adds to the counts. Cost: O(nodes). In fit_tree_validate.h.
  struct Counted {
    std::uint64_t records = 0;
    std::uint64_t leaves = 0;
    std::uint64_t branches = 0;
  };
  template <class KeyOf>
  const char* validate(const Records& records, Node root, unsigned size_class, Counted* counted,
                       KeyOf&& key_of) const;
  /// Is every node in a tree that was walked, or unused?
  bool holds(const Counted& counted) const noexcept {
    return leaves_.holds(counted.leaves) && branches_.holds(counted.branches);
  }

 private:
  friend struct PoolPeer;

  static constexpr Node kBranch = 0x80000000u;
  static constexpr unsigned kLeafSlots = 10;
  static constexpr std::uint16_t kFull = (1u << kLeafSlots) - 1;
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};
  static_assert(kRecordsMax <= (1u << (31 - kSlotBits)),
                "a link holds the number of each of twice as many leaves");
  static_assert(kLeafSlots <= kSlotMask,
                "the key of an empty slot is greater than any key with its slot");

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

  static Node leaf_at(Link place) { return place.to >> kSlotBits; }
  static std::uint32_t slot_at(Link place) { return place.to & kSlotMask; }
  static bool is_branch(Node node) { return (node & kBranch) != 0; }
  Branch& branch(Node node) { return branches_[node & ~kBranch]; }
  const Branch& branch(Node node) const { return branches_[node & ~kBranch]; }
  Node& parent_of(Node node) {
    return is_branch(node) ? branch(node).parent : leaves_[node].parent;
  }
  /// Does the key differ from the pivot above the pivot's lowest one, so that the branch is not on
  /// its path?
  static bool is_elsewhere(std::uint64_t key, std::uint64_t pivot) {
    return (key ^ pivot) > (pivot ^ (pivot - 1));
  }
  static std::uint64_t least_distance(const Leaf& leaf, std::uint64_t key) noexcept;

  Node add_leaf(unsigned size_class) noexcept;
  void put(Records& records, Node leaf, std::uint64_t key, std::uint32_t index) noexcept;
  void join(Node& link, Node parent, std::uint64_t top, std::uint64_t key, Node with_key,
            Node other) noexcept;
  void divide(Records& records, Node& link, std::uint64_t key, std::uint32_t index) noexcept;
  bool drop_leaf(Node* roots, Node leaf) noexcept;

  NodeStore<Leaf> leaves_;
  NodeStore<Branch> branches_;
};

// Searching.

/// How far above `key` the leaf's next key is. Keys below it, and empty slots, are further away
/// than any key above it.
inline std::uint64_t FitTrees::least_distance(const Leaf& leaf, std::uint64_t key) noexcept {
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
  Node above = kNoNode;  // a tree whose keys are all greater, the nearest passed
  while (is_branch(node)) {
    const Branch& at = branch(node);
    if (is_elsewhere(key, at.pivot)) {
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
  const std::uint64_t distance = least_distance(leaf, key);
  if (distance < kNoKey - key) return leaf.records[(key + distance) & kSlotMask];
  return above == kNoNode ? kNone : smallest(above);
}

inline std::uint32_t FitTrees::smallest(Node root) const noexcept {
  Node node = root;
  while (is_branch(node)) node = branch(node).child[0];
  const Leaf& leaf = leaves_[node];
  return leaf.records[least_distance(leaf, 0) & kSlotMask];
}

inline std::uint32_t FitTrees::largest(Node root) const noexcept {
  Node node = root;
  while (is_branch(node)) node = branch(node).child[1];
  const Leaf& leaf = leaves_[node];
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
    Branch& at = branch(*link);
    if (is_elsewhere(key, at.pivot)) {
      const Node leaf = add_leaf(size_class);
      put(records, leaf, key, index);
      join(*link, parent, std::bit_floor(key ^ at.pivot), key, leaf, *link);
      return;
    }
    parent = *link;
    link = &at.child[key >= at.pivot];
  }
  if (leaves_[*link].used == kFull) return divide(records, *link, key, index);
  put(records, *link, key, index);
}

inline FitTrees::Removed FitTrees::remove(Records& records, Node* roots,
                                          std::uint32_t index) noexcept {
  const Node node = leaf_at(records.link(index));
  const std::uint32_t slot = slot_at(records.link(index));
  Leaf& leaf = leaves_[node];
  ASHLAR_ASSERT(leaf.records[slot] == index, "fit tree(2): remove() of a block that is not in it");
  leaf.keys[slot] = kNoKey;
  leaf.used = static_cast<std::uint16_t>(leaf.used & ~(1u << slot));
  // One branch on all conditions together, for a leaf empties about as often as not.
  const bool is_empty = leaf.used == 0;
  const bool must_go = (leaf.parent != kNoNode) | (leaves_.taken() > branches_.capacity());
  const std::uint32_t size_class = leaf.size_class;
  if (is_empty & must_go) [[unlikely]]
    return Removed{size_class, drop_leaf(roots, node)};
  return Removed{size_class, is_empty};
}

/// A leaf that is a whole tree.
inline FitTrees::Node FitTrees::add_leaf(unsigned size_class) noexcept {
  const Node node = leaves_.take();
  Leaf& leaf = leaves_[node];
  leaf.size_class = static_cast<std::uint16_t>(size_class);
  leaf.parent = kNoNode;
  return node;
}

inline void FitTrees::put(Records& records, Node node, std::uint64_t key,
                          std::uint32_t index) noexcept {
  Leaf& leaf = leaves_[node];
  const auto slot = static_cast<std::uint32_t>(std::countr_one(leaf.used));
  ASHLAR_ASSERT(slot < kLeafSlots, "fit tree(1): a full leaf");
  leaf.used = static_cast<std::uint16_t>(leaf.used | 1u << slot);
  leaf.keys[slot] = key | slot;
  leaf.records[slot] = index;
  records.link(index).to = node << kSlotBits | slot;
}

/// Puts a new branch where `link` is: over `with_key`, whose keys are like `key` down to the bit
/// `top`, and `other`, whose keys differ there.
inline void FitTrees::join(Node& link, Node parent, std::uint64_t top, std::uint64_t key,
                           Node with_key, Node other) noexcept {
  const std::uint32_t index = branches_.take();
  const bool side = (key & top) != 0;
  Branch& at = branches_[index];
  at.pivot = (key | top) & ~(top - 1);
  at.child[side] = with_key;
  at.child[!side] = other;
  at.parent = parent;
  link = index | kBranch;
  parent_of(with_key) = link;
  parent_of(other) = link;
}

}  // namespace ashlar::inline v0::block
