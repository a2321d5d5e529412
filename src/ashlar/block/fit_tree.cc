// The rare changes of a fit tree's shape: a full leaf is split, an empty one is dropped.
#include <ashlar/block/fit_tree.h>

namespace ashlar::inline v0::block {

/// Splits the full leaf at `link` into itself and a new one, then inserts the record on its side.
void FitTrees::split_leaf(Records& records, Node& link, std::uint64_t key,
                          std::uint32_t index) noexcept {
  const Node full = link;
  const Node parent = leaves_[full].parent;
  const Node fresh = add_leaf(leaves_[full].size_class);
  Leaf& from = leaves_[full];
  std::uint64_t differing = 0;
  for (const std::uint64_t other : from.keys) differing |= other ^ key;
  const std::uint64_t bit = std::bit_floor(differing & ~kSlotMask);
  ASHLAR_ASSERT(bit != 0, "free index(2): two blocks with one key");
  for (unsigned slot = 0; slot < kLeafSlots; ++slot) {
    if ((from.keys[slot] & bit) == 0) continue;
    fill_slot(records, fresh, from.keys[slot] & ~kSlotMask, from.records[slot]);
    from.keys[slot] = kNoKey;
    from.used = static_cast<std::uint16_t>(from.used & ~(1u << slot));
  }
  add_branch(link, parent, bit, key | bit, fresh, full);
  fill_slot(records, (key & bit) != 0 ? fresh : full, key, index);
}

/// Drops an empty leaf; its sibling takes the place of their parent. True if the leaf was the whole
/// tree.
bool FitTrees::drop_leaf(Node& root, Node leaf) noexcept {
  const Node parent = leaves_[leaf].parent;
  leaves_.give_back(leaf);
  if (parent == kNoNode) {
    root = kNoNode;
    return true;
  }
  const Node sibling = branch(parent).child[branch(parent).child[0] == leaf];
  const Node above = branch(parent).parent;
  Node& link = above == kNoNode ? root : branch(above).child[branch(above).child[1] == parent];
  link = sibling;
  parent_of(sibling) = above;
  branches_.give_back(parent & ~kBranch);
  return false;
}

}  // namespace ashlar::inline v0::block
