// FitTrees::validate: walks one whole tree (fit_tree.h). Included by block_pool_validate.cc.
//
// Thread safety: none; the pool's owner holds a lock.
// Every loop is bounded, so that a corrupt tree is reported instead of looping forever.
#pragma once

#include <array>

#include <ashlar/block/fit_tree.h>

namespace ashlar::inline v0::block {

template <class KeyOf>
const char* FitTrees::validate(const Records& records, Node root, unsigned size_class,
                               NodeCounts* counts, KeyOf&& key_of) const {
  struct Visit {
    Node node;
    Node parent;
    std::uint64_t least;  // the range of keys that the branches above allow
    std::uint64_t most;
  };
  std::array<Visit, 66> stack;  // at most one right child waits for each bit of a key
  std::size_t waiting = 0;
  stack[waiting++] = Visit{root, kNoNode, 0, kNoKey};
  while (waiting > 0) {
    const Visit visit = stack[--waiting];
    if (is_branch(visit.node)) {
      if ((visit.node & ~kBranch) >= branches_.touched()) return "block(3) C5: a tree is broken";
      const Branch& at = branch(visit.node);
      if (++counts->branches > branches_.touched() || at.pivot == 0)
        return "block(3) C5: a tree is broken";
      if (at.parent != visit.parent) return "block(3) C5: parent and child do not agree";
      const std::uint64_t below = at.pivot ^ (at.pivot - 1);
      if ((at.pivot & ~below) < visit.least || (at.pivot | below) > visit.most) {
        return "block(3) C5: a branch is under a wrong branch";
      }
      if (waiting + 2 > stack.size()) return "block(3) C5: a tree is deeper than its keys";
      stack[waiting++] = Visit{at.child[1], visit.node, at.pivot, at.pivot | below};
      stack[waiting++] = Visit{at.child[0], visit.node, at.pivot & ~below, at.pivot - 1};
      continue;
    }
    if (visit.node >= leaves_.touched() || ++counts->leaves > leaves_.touched())
      return "block(3) C5: a tree is broken";
    const Leaf& leaf = leaves_[visit.node];
    if (leaf.parent != visit.parent) return "block(3) C5: parent and child do not agree";
    if (leaf.size_class != size_class) return "block(3) C5: a leaf names another class";
    if ((leaf.used == 0 && leaf.parent != kNoNode) || leaf.used > kAllSlotsUsed)
      return "block(3) C5: an empty leaf is in a tree";
    for (std::uint32_t slot = 0; slot < kLeafSlots; ++slot) {
      if ((leaf.used >> slot & 1) == 0) {
        if (leaf.keys[slot] != kNoKey) return "block(3) C5: an empty slot has a key";
        continue;
      }
      const std::uint32_t index = leaf.records[slot];
      if (index >= records.touched() || ++counts->records > records.touched()) {
        return "block(3) C5: a tree is broken";
      }
      if (records.state(index) != counts->state)
        return "block(3) C5: a block in the index has another state";
      const Link link = records.link(index);
      if (leaf_of(link) != visit.node || slot_of(link) != slot) {
        return "block(3) C5: record and leaf do not agree";
      }
      const std::uint64_t key = leaf.keys[slot];
      if (key != (key_of(index) | slot)) return "block(3) C5: a key is not its block's";
      if (key < visit.least || key > visit.most)
        return "block(3) C5: a block is under a wrong branch";
    }
  }
  return nullptr;
}

}  // namespace ashlar::inline v0::block
