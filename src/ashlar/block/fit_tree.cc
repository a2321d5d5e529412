// The rare changes of a tree's shape: a full leaf is divided, an empty one dropped.
#include <ashlar/block/fit_tree.h>

namespace ashlar::inline v0::block {

/// Divides the full leaf at `link` between itself and a new one, then adds the record to its side.
void FitTrees::divide(Records& records, Node& link, std::uint64_t key,
                      std::uint32_t index) noexcept {
  const Node full = link;
  const Node parent = leaves_[full].parent;
  const Node fresh = add_leaf(leaves_[full].size_class);
  Leaf& from = leaves_[full];
  std::uint64_t differing = 0;
  for (const std::uint64_t other : from.keys) differing |= other ^ key;
  const std::uint64_t top = std::bit_floor(differing & ~kSlotMask);
  ASHLAR_ASSERT(top != 0, "free index(2): two blocks with one key");
  for (unsigned slot = 0; slot < kLeafSlots; ++slot) {
    if ((from.keys[slot] & top) == 0) continue;
    put(records, fresh, from.keys[slot] & ~kSlotMask, from.records[slot]);
    from.keys[slot] = kNoKey;
    from.used = static_cast<std::uint16_t>(from.used & ~(1u << slot));
  }
  join(link, parent, top, key | top, fresh, full);
  put(records, (key & top) != 0 ? fresh : full, key, index);
}

/// Gives an empty leaf back; its sibling takes the place of the branch above them. True when it was
/// the whole tree.
bool FitTrees::drop_leaf(Node* roots, Node leaf) noexcept {
  const std::uint32_t size_class = leaves_[leaf].size_class;
  const Node parent = leaves_[leaf].parent;
  leaves_.give(leaf);
  if (parent == kNoNode) {
    roots[size_class] = kNoNode;
    return true;
  }
  const Node sibling = branch(parent).child[branch(parent).child[0] == leaf];
  const Node above = branch(parent).parent;
  Node& link =
      above == kNoNode ? roots[size_class] : branch(above).child[branch(above).child[1] == parent];
  link = sibling;
  parent_of(sibling) = above;
  branches_.give(parent & ~kBranch);
  return false;
}

}  // namespace ashlar::inline v0::block
