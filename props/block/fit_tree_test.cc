// Fit trees by themselves, beside a sorted map: what is found, how many nodes a search visits, what
// is kept of an empty tree, and that a wrong branch is noticed wherever it is.
//
// Imitates: classes of the free index with keys at random, in dense runs and in nested prefixes.
// Does not prove that the free index asks with the right keys (free_index_test).
#include <ashlar/block/fit_tree.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/block/fit_tree_validate.h>

#include "props/block/part_peer.h"
#include "props/block/step_expectation.h"
#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

using Peer = PartPeer;
using Trees = FitTrees;

constexpr unsigned kClass = 5;

/// One tree beside a sorted map of its keys.
class CheckedTree {
 public:
  void insert(std::uint64_t key) {
    if (by_key_.contains(key)) return;
    if (records_.must_grow()) {
      ASSERT_TRUE(trees_.reserve(records_.capacity_next()));
    }
    ASSERT_TRUE(records_.reserve_one());
    const std::uint32_t index = records_.take(kInUse);
    const unsigned branches = branches_passed(key);
    expect_steps(branches, [&] { trees_.insert(records_, root_, kClass, key, index); });
    by_key_[key] = index;
  }
  void remove(std::uint64_t key) {
    const std::uint32_t index = by_key_.at(key);
    Trees::Removed removed{};
    expect_steps(0, [&] {
      removed =
          trees_.remove(records_, index, [this](std::uint32_t) -> std::uint32_t& { return root_; });
    });
    EXPECT_EQ(removed.size_class, kClass);
    by_key_.erase(key);
    EXPECT_EQ(removed.is_empty, by_key_.empty());
    records_.give_back(index);
  }
  std::uint64_t some_key(std::uint64_t n) const {
    return std::next(by_key_.begin(), static_cast<long>(n % by_key_.size()))->first;
  }
  std::size_t size() const { return by_key_.size(); }

  void expect_found() {
    ASSERT_EQ(broken(), nullptr);
    if (by_key_.empty()) return;
    for (const auto& entry : by_key_) {  // clang 14 cannot capture a structured binding
      const std::uint64_t key = entry.first;
      const std::uint32_t index = entry.second;
      // A search for a key that is there visits the branches above it and no other.
      expect_steps(depth(index), [&] { EXPECT_EQ(trees_.lower_bound(root_, key), index) << key; });
      for (const std::uint64_t near :
           {key - 16, key + 16, key ^ 16, key ^ std::uint64_t{1} << 40}) {
        const auto expected = by_key_.lower_bound(near);
        EXPECT_EQ(trees_.lower_bound(root_, near),
                  expected == by_key_.end() ? kNone : expected->second)
            << near;
      }
    }
    const std::uint32_t first = by_key_.begin()->second;
    const std::uint32_t last = by_key_.rbegin()->second;
    expect_steps(depth(first), [&] { EXPECT_EQ(trees_.smallest(root_), first); });
    expect_steps(depth(last), [&] { EXPECT_EQ(trees_.largest(root_), last); });
    expect_steps(depth(first), [&] {
      const Link found = records_.link(trees_.any_of_first_leaf(root_));
      EXPECT_EQ(Peer::leaf_number(found), Peer::leaf_number(records_.link(first)));
    });
  }
  /// What validate() says, if record `index` should have the key `key`.
  const char* broken(std::uint32_t index = kNone, std::uint64_t key = 0) {
    Trees::NodeCounts counts;
    if (root_ == kNoNode) return nullptr;
    const char* const text =
        trees_.validate(records_, root_, kClass, &counts, [&](std::uint32_t i) -> std::uint64_t {
          if (i == index) return key;
          return std::find_if(by_key_.begin(), by_key_.end(),
                              [i](const auto& entry) { return entry.second == i; })
              ->first;
        });
    if (text == nullptr) {
      EXPECT_EQ(counts.records, by_key_.size());
      EXPECT_TRUE(trees_.accounts_for(counts));
    }
    return text;
  }
  void expect_wrong_branch(std::uint32_t index = kNone, std::uint64_t key = 0) {
    const char* const text = broken(index, key);
    ASSERT_NE(text, nullptr);
    EXPECT_NE(std::strstr(text, "under a wrong branch"), nullptr) << text;
  }
  /// Damages the children of every branch, and the keys on both sides of its pivot.
  void expect_damage_is_noticed() {
    std::vector<std::uint32_t> branches;
    collect(root_, &branches);
    for (const std::uint32_t n : branches) {
      auto& branch = Peer::branches_of(trees_)[n];
      std::uint32_t& left = branch.child[0];
      std::uint32_t& right = branch.child[1];
      const std::uint32_t before[] = {left, right};
      std::swap(left, right);
      expect_wrong_branch();
      right = before[1];  // twice the right one
      left = before[1];
      expect_wrong_branch();
      right = left = before[0];
      expect_wrong_branch();
      right = before[1];
      expect_key_noticed(left, branch.pivot);
      expect_key_noticed(right, branch.pivot - 16);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(broken(), nullptr);
  }

 private:
  unsigned depth(std::uint32_t index) {
    unsigned branches = 0;
    std::uint32_t up = Peer::leaves_of(trees_)[Peer::leaf_number(records_.link(index))].parent;
    for (; up != kNoNode; up = Peer::branches_of(trees_)[Peer::branch_number(up)].parent)
      branches += 1;
    return branches;
  }
  /// The branches from the root on down to a leaf, or to the branch that the key is outside of.
  unsigned branches_passed(std::uint64_t key) {
    unsigned branches = 0;
    std::uint32_t node = root_;
    while (node != kNoNode && Peer::is_branch(node)) {
      branches += 1;
      const auto& branch = Peer::branches_of(trees_)[Peer::branch_number(node)];
      const std::uint64_t lowest = branch.pivot & (~branch.pivot + 1);
      if (key / lowest / 2 != branch.pivot / lowest / 2) break;
      node = branch.child[key >= branch.pivot];
    }
    return branches;
  }
  void collect(std::uint32_t node, std::vector<std::uint32_t>* branches) {
    if (node == kNoNode || !Peer::is_branch(node)) return;
    branches->push_back(Peer::branch_number(node));
    for (const std::uint32_t child : Peer::branches_of(trees_)[branches->back()].child)
      collect(child, branches);
  }
  /// A record of that leaf, if it is one, has the key: in every slot that it could be in.
  void expect_key_noticed(std::uint32_t node, std::uint64_t key) {
    if (Peer::is_branch(node)) return;
    auto& leaf = Peer::leaves_of(trees_)[node];
    for (unsigned slot = 0; slot < Peer::kLeafSlots; ++slot) {
      if ((leaf.used >> slot & 1) == 0) continue;
      const std::uint64_t before = leaf.keys[slot];
      leaf.keys[slot] = key | slot;
      expect_wrong_branch(leaf.records[slot], key);
      leaf.keys[slot] = before;
    }
  }

  BlockRecords records_;
  Trees trees_;
  Trees::Node root_ = kNoNode;
  std::map<std::uint64_t, std::uint32_t> by_key_;
};

/// A key at random, in a dense run, or a power of two: nested prefixes.
std::uint64_t key_of(spec::Random& dice, unsigned shape) {
  switch (shape) {
    case 0: return dice.next() >> 1 & ~std::uint64_t{15};
    case 1: return (std::uint64_t{1} << 40) + 16 * dice.below(600);
    case 2: return std::uint64_t{1} << (5 + dice.below(57));
    default: return key_of(dice, static_cast<unsigned>(dice.below(3)));
  }
}

TEST(FitTree, AgreesWithASortedMapAndVisitsOnlyThePathToAKey) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    spec::Random dice(seed);
    CheckedTree tree;
    const auto shape = static_cast<unsigned>(seed % 4);
    for (unsigned step = 0; step < 1200; ++step) {
      if (tree.size() == 0 || dice.below(1000) < (step < 700 ? 700 : 300)) {
        tree.insert(key_of(dice, shape));
      } else {
        tree.remove(tree.some_key(dice.next()));
      }
      if (step % 40 == 0) tree.expect_found();
      if (::testing::Test::HasFailure()) FAIL() << "step " << step;
    }
    tree.expect_damage_is_noticed();
    while (tree.size() > 0) tree.remove(tree.some_key(dice.next()));
    tree.expect_found();
  }
}

TEST(FitTree, KeepsAnEmptyLeafAsLongAsTheLeavesAreNoMoreThanTheRecordsWithRoom) {
  constexpr std::uint32_t kRecords = 5;
  constexpr std::uint32_t kTrees = 12;
  BlockRecords records;
  ASSERT_TRUE(records.reserve_one());
  Trees trees;
  ASSERT_TRUE(trees.reserve(kRecords));
  std::vector<Trees::Node> roots(kTrees, kNoNode);
  const auto root_of = [&](std::uint32_t size_class) -> std::uint32_t& {
    return roots[size_class];
  };
  const std::uint32_t index = records.take(kInUse);
  std::uint32_t kept = 0;
  for (unsigned round = 0; round < 3; ++round) {
    for (std::uint32_t size_class = 0; size_class < kTrees; ++size_class) {
      const bool is_kept_already = roots[size_class] != kNoNode;
      trees.insert(records, roots[size_class], size_class, 16, index);
      const Trees::Removed removed = trees.remove(records, index, root_of);
      EXPECT_TRUE(removed.is_empty);
      EXPECT_EQ(removed.size_class, size_class);
      kept += !is_kept_already && kept < kRecords;
      EXPECT_EQ(roots[size_class] != kNoNode, size_class < kept);
      EXPECT_EQ(Peer::leaves_of(trees).taken(), kept);
    }
  }
  for (std::uint32_t size_class = 0; size_class < kRecords; ++size_class)
    trees.drop_empty(roots[size_class]);
  EXPECT_EQ(Peer::leaves_of(trees).taken(), 0u);
  EXPECT_TRUE(trees.accounts_for({}));
}

TEST(FitTree, GrowsAheadOneStoreAtATimeUntilThereIsRoom) {
  Trees trees;
  ASSERT_TRUE(trees.reserve(4));
  for (const std::uint32_t records : {5u, 16u, 1000u, 4096u}) {
    EXPECT_TRUE(trees.grow_ahead(records));
    EXPECT_EQ(Peer::leaves_of(trees).capacity(), 2 * records);
    EXPECT_LT(Peer::branches_of(trees).capacity(), records);
    EXPECT_TRUE(trees.grow_ahead(records));
    EXPECT_EQ(Peer::leaves_of(trees).capacity(), 2 * records);
    EXPECT_EQ(Peer::branches_of(trees).capacity(), records);
    EXPECT_FALSE(trees.grow_ahead(records));
    EXPECT_FALSE(trees.grow_ahead(records - 1));
  }
}

}  // namespace
}  // namespace ashlar::block
